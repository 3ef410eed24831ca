//! Conditions that decide elements nobody needs.

use std::{collections::BTreeSet, sync::Arc};

use ir::{Block, Func, Index, Less, Name, Role, Scope, Stmt, Store, Value, arith::Bounds, region::bounds_of};

use super::stores;

/// Lets blocks assign to registers and shared memory beyond the end of a dimension what they assign before it, where no output depends on what is
/// there.
///
/// ```text
/// block W(vi: 128 = …)
///   W[vi] = select(vi < 100, P[vi], 0)
/// block C(vi: 128 = …, vk: reduce 64 = …)
///   C[vi] = C[vi] + W[vi] * V[vk]
/// block O(vi: 100 = …)
///   O[vi] = C[vi]
/// ->
/// block W(vi: 128 = …)
///   W[vi] = P[vi]
/// …
/// ```
///
/// Padding of a product is zero as far as the schedule says, and need not be where rows of the result are made of the same rows of a factor alone.
pub(super) fn without_conditions(func: &mut Func) {
    for limit in limits(func) {
        let dims = unneeded(func, limit);
        let blocks: Vec<Block> = func.body.blocks().into_iter().cloned().collect();
        for block in blocks {
            let body = assigned(func, &block, limit, &dims);
            if body != block.body {
                func.replace_block(&block.name, |old| Stmt::Block(Arc::new(Block { body, ..old })));
            }
        }
    }
}

/// Dimensions of buffers.
type Dims = BTreeSet<(Name, usize)>;

/// The ends of dimensions that conditions on values ask for.
fn limits(func: &Func) -> BTreeSet<i64> {
    let mut out = BTreeSet::new();
    for store in func.body.blocks().into_iter().flat_map(stores) {
        store
            .value
            .each_condition(&mut |it| out.extend(it.rhs.as_int().filter(|_| it.lhs.as_var().is_some())));
    }
    out
}

/// The dimensions of temporaries in registers and shared memory whose elements from `limit` on reach no output: whoever reads them puts what it makes of
/// them at the same place of another such dimension.
fn unneeded(func: &Func, limit: i64) -> Dims {
    let mut out = Dims::new();
    for (name, buffer) in &func.buffers {
        let is_near = buffer.scope.is_registers() || buffer.scope == Scope::Shared;
        let is_ours = buffer.role == Role::Temp && is_near;
        let long = buffer.shape.iter().enumerate().filter(|it| it.1.as_int().is_some_and(|it| it > limit));
        out.extend(long.filter(|_| is_ours).map(|(dim, _)| (name.clone(), dim)));
    }
    let blocks = func.body.blocks();
    let inside: Vec<(&Block, Bounds)> = blocks.iter().map(|it| (*it, bounds_inside(func, it))).collect();
    while let Some(needed) = inside.iter().find_map(|(block, bounds)| needed(block, bounds, limit, &out)) {
        out.remove(&needed);
    }
    out
}

/// What is known of the variables that the body of a block reads.
fn bounds_inside(func: &Func, block: &Block) -> Bounds {
    let loops = func.loops_of(&block.name).expect("it is one of the program's");
    let mut bounds = bounds_of(func, &loops);
    block.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
    for stmt in block.init.iter().chain([&block.body]) {
        stmt.walk(&mut |stmt| {
            if let Stmt::Loop(it) = stmt {
                bounds.insert(&it.var, &it.extent);
            }
        });
    }
    bounds
}

/// A dimension that a block reads beyond the limit for something else than the same place beyond it.
fn needed(block: &Block, bounds: &Bounds, limit: i64, dims: &Dims) -> Option<(Name, usize)> {
    let end = Index::int(limit);
    stores(block).into_iter().find_map(|store| {
        let mut found = None;
        store.value.each_load(&mut |load| {
            for (dim, index) in load.indices.iter().enumerate() {
                let read = (load.buffer.clone(), dim);
                let is_asked = dims.contains(&read)
                    && bounds.prove(&Less::new(index.clone(), end.clone())) != Some(true);
                if is_asked && !is_unneeded(store, index, dims) {
                    found.get_or_insert(read);
                }
            }
        });
        found
    })
}

/// Whether an assignment goes to the place of a subscript in an unneeded dimension.
fn is_unneeded(store: &Store, index: &Index, dims: &Dims) -> bool {
    let place = &store.place;
    let mut at = place.indices.iter().enumerate().filter(|it| it.1 == index);
    at.any(|(dim, _)| dims.contains(&(place.buffer.clone(), dim)))
}

/// What a block computes, without conditions that an iterator is below the limit where only unneeded elements depend on them, and all that is read in
/// their stead is there.
fn assigned(func: &Func, block: &Block, limit: i64, dims: &Dims) -> Stmt {
    let is_there = |var: &Name, chosen: &Value| {
        let extent = block.iters.iter().find(|it| it.var == *var).and_then(|it| it.extent.as_int());
        let mut all = true;
        chosen
            .each_load(&mut |it| all &= extent.is_some_and(|extent| super::is_there(func, it, var, extent)));
        all
    };
    let mut body = block.body.clone();
    body.walk_mut(&mut |stmt| {
        if let Stmt::Store(store) = stmt {
            let is_dropped = |it: &Less, chosen: &Value| {
                let var = it.lhs.as_var().filter(|_| it.rhs.as_int() == Some(limit));
                var.is_some_and(|var| is_unneeded(store, &it.lhs, dims) && is_there(var, chosen))
            };
            let value = store.value.where_holds(&is_dropped);
            *stmt = Stmt::Store(Arc::new(Store { value, place: store.place.clone() }));
        }
        true
    });
    body
}
