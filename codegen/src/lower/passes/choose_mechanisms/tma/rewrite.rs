//! Makes a component one block that copies its box.

use std::sync::Arc;

use ir::{
    Block, Func, Index, Iter, IterKind, Less, Literal, Loop, Mechanism, Name, Scope, Stmt, Value,
    arith::Bounds,
};

use crate::lower::{
    analysis::multicast::multicast,
    passes::choose_mechanisms::{cp_async::Nests, question::replace_component},
};

/// Makes a component one block that copies its box.
pub(crate) fn rewrite(func: &mut Func, var: &Name, component: &Name) -> Option<Name> {
    let fresh = |stem: &str| Name::fresh(stem, |it| func.is_taken(it));
    let path = func.path_to_loop(var)?;
    let bounds = bounds_of(func, path.iter().copied());
    let iter = |it: &&Loop| {
        let (var, binding) = (fresh(&format!("v{}", it.var)), Index::var(&it.var));
        Some(Iter { var, extent: widest(func, &it.extent, &bounds)?, kind: IterKind::Spatial, binding })
    };
    let outer: Vec<Iter> = path.iter().filter_map(iter).collect();
    let written = func.find_block(component).and_then(|it| func.buffers.get(&it.writes().first()?.buffer));
    let zero = written.filter(|it| it.scope == Scope::Shared).map(|it| Literal::zero(it.dtype));
    replace_component(func, var, component, |stmt| {
        let mut nests = Nests::default();
        nests.collect(stmt);
        let [(loops, block)] = &*nests.out else { return stmt.clone() };
        boxed(loops, block, &outer, zero)
    });
    let path = func.path_to_loop(var)?;
    if let Some(axis) = func.find_block(component).and_then(|it| multicast(func, &path, it)) {
        func.replace_block(component, |mut it| {
            it.attrs.multicast = Some(axis);
            Stmt::Block(Arc::new(it))
        });
    }
    None
}

/// The block with the loops around it inside, over iterators that stand for the loops further out. Where its guards do not hold,
/// it stores zero, if it fills shared memory.
fn boxed(loops: &[&Loop], block: &Block, outer: &[Iter], zero: Option<Literal>) -> Stmt {
    let own = |name: &Name| block.find_iter(name).map(|it| it.binding.clone());
    let renamed = |name: &Name| {
        let iter = outer.iter().find(|it| it.binding.as_var().as_ref() == Some(&name))?;
        Some(Index::var(&iter.var))
    };
    let is_inner = |name: &Name| loops.iter().any(|it| it.var == *name);
    let names = |it: &Less| [&it.lhs, &it.rhs].iter().any(|index| index.any_var(&is_inner));
    let (body, guards) = match zero {
        Some(zero) => (or_zero(block, zero), vec![]),
        // What is beyond the bounds of the tensor, the copy engine does not write.
        None => (block.body.clone(), block.guards.iter().filter(|it| !names(it)).cloned().collect()),
    };
    let mut body = body.subst(&own).subst(&renamed);
    for it in loops.iter().rev() {
        body = Stmt::serial(&it.var, it.extent.clone(), body);
    }
    let mut used = Vec::new();
    let _: Stmt = body.map_indices(&mut |index| {
        used.extend(index.vars());
        index.clone()
    });
    let iters = outer.iter().filter(|it| used.contains(&it.var)).cloned().collect();
    let mut attrs = block.attrs.clone();
    attrs.mechanism = Some(Mechanism::Tma);
    Stmt::Block(Arc::new(Block { name: block.name.clone(), iters, guards, attrs, init: None, body }))
}

/// What holds in loops of a program.
pub(super) fn bounds_of<'a>(func: &Func, loops: impl Iterator<Item = &'a Loop>) -> Bounds {
    let mut bounds = Bounds::of_dims(func);
    loops.for_each(|it| bounds.insert(&it.var, &it.extent));
    bounds
}

/// The most iterations that a loop may have, whatever loops around it do; none if that is not known.
pub(super) fn widest(func: &Func, extent: &Index, bounds: &Bounds) -> Option<Index> {
    if !extent.any_var(&|name| !func.dims.contains(name)) {
        return Some(extent.clone());
    }
    bounds.interval(extent).1.map(Index::int)
}

/// What a block stores, and zero where its guards do not hold.
fn or_zero(block: &Block, zero: Literal) -> Stmt {
    let Stmt::Store(store) = &block.body else { return block.body.clone() };
    if block.guards.is_empty() {
        return block.body.clone();
    }
    let (mut conditions, from) = match &store.value {
        Value::Select(all, from, _) => (all.clone(), &**from),
        from => (vec![], from),
    };
    conditions.extend(block.guards.iter().cloned());
    let value = Value::Select(conditions, Arc::new(from.clone()), Arc::new(Value::Const(zero)));
    Stmt::store(store.place.clone(), value)
}
