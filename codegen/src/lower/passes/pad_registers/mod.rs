//! Lets threads compute the elements of registers that are beyond the end of a ragged dimension, too.

mod unneeded;

use std::{collections::BTreeMap, sync::Arc};

use ir::{
    Access, Block, Func, Index, Iter, IterKind, Less, Name, Role, Stmt, Store, Target, region::bounds_of,
    solve::Problem,
};

/// On a GPU, pads temporaries in registers to whole tiles, and lets the blocks that fill them run over the padding.
///
/// ```text
/// temp S: f32[128] @fragment
/// temp P: f32[100] @fragment
/// for io in 0..2
///   for ii in 0..64
///     block P(vi: 100 = io*64 + ii)
///       P[vi] = exp(S[vi])
/// ->
/// temp P: f32[128] @fragment
/// for io in 0..2
///   for ii in 0..64
///     block P(vi: 128 = io*64 + ii)
///       P[vi] = exp(S[vi])
/// ```
///
/// The instruction that computes `S` has made whole tiles of it, and registers for whole tiles are there anyway. Without the padding a condition would stand at every element;
/// registers that keep what they had where it fails cannot be shared, and the compiler runs out of them. A block is taken along where it assigns to
/// such temporaries alone, and all that it reads at the padded iterator is there: no element that was asked for becomes another one.
pub(crate) fn pad_registers(mut func: Func, target: &Target) -> Func {
    if *target == Target::Cpu {
        return func;
    }
    let padding = padding(&func);
    let guards: Vec<(Name, Vec<Less>)> = func
        .body
        .blocks()
        .into_iter()
        .map(|it| (it.name.clone(), guards_left(&func, it, &padding)))
        .collect();
    for (name, guards) in guards {
        func.replace_block(&name, |mut block| {
            block.guards = guards;
            for at in 0..block.iters.len() {
                if let Some(extent) = extent_of(&block, at, &padding) {
                    block.iters[at].extent = Index::int(extent);
                }
            }
            Stmt::Block(Arc::new(block))
        });
    }
    for ((name, dim), extent) in padding {
        func.buffers[&name].shape[dim] = Index::int(extent);
    }
    unneeded::without_conditions(&mut func);
    func
}

/// Dimensions of buffers, each with what it is padded to.
type Padding = BTreeMap<(Name, usize), i64>;

/// The dimensions of temporaries in registers that can be padded.
fn padding(func: &Func) -> Padding {
    let mut out = candidates(func);
    let blocks = func.body.blocks();
    while let Some(refused) = blocks.iter().find_map(|it| refused(func, it, &out)) {
        out.remove(&refused);
    }
    out
}

/// The dimensions of temporaries in registers that are as long as the iterators of all blocks that fill them, and shorter than what the loops around
/// these run over.
fn candidates(func: &Func) -> Padding {
    let mut out: BTreeMap<(Name, usize), Option<i64>> = BTreeMap::new();
    for block in func.body.blocks() {
        let loops = func.loops_of(&block.name).expect("it is one of the program's");
        let bounds = bounds_of(func, &loops);
        let reach = |at: usize| {
            let it = block.iters.get(at).filter(|it| it.kind == IterKind::Spatial)?;
            let reach = bounds.interval(&it.binding).1?.checked_add(1)?;
            it.extent.as_int().is_some_and(|extent| extent < reach).then_some(reach)
        };
        for store in stores(block) {
            let buffer = &func.buffers[&store.place.buffer];
            for (dim, index) in store.place.indices.iter().enumerate() {
                let is_register = buffer.role == Role::Temp && buffer.scope.is_registers();
                let at = block.iters.iter().position(|it| index.as_var() == Some(&it.var));
                let at = at.filter(|at| is_register && block.iters[*at].extent == buffer.shape[dim]);
                let reach = at.and_then(reach);
                let known = out.entry((store.place.buffer.clone(), dim)).or_insert(reach);
                *known = known.zip(reach).map(|(a, b)| a.min(b));
            }
        }
    }
    out.into_iter().filter_map(|(at, extent)| Some((at, extent?))).collect()
}

/// A dimension that a block cannot fill beyond its end.
fn refused(func: &Func, block: &Block, padding: &Padding) -> Option<(Name, usize)> {
    let is_elementwise = block.iters.iter().all(|it| it.kind == IterKind::Spatial);
    let is_filled = (0..block.iters.len()).all(|at| {
        let Some(extent) = extent_of(block, at, padding) else { return true };
        let var = &block.iters[at].var;
        let mut filled = stores(block).into_iter().map(|it| &it.place);
        filled.all(|it| is_padded(it, var, extent, padding))
            && reads(block, var, &|it| is_there(func, it, var, extent) || is_padded(it, var, extent, padding))
            && (!is_elementwise || guards_left(func, block, padding).is_empty())
    });
    let place = |it: &Store| it.place.buffer.clone();
    let mut dims =
        stores(block).into_iter().flat_map(|it| (0..it.place.indices.len()).map(move |dim| (place(it), dim)));
    if is_filled { None } else { dims.find(|it| padding.contains_key(it)) }
}

/// The conditions of a block that say more than that the iterators which are padded are within what they were.
fn guards_left(func: &Func, block: &Block, padding: &Padding) -> Vec<Less> {
    let padded: Vec<&Iter> = (0..block.iters.len())
        .filter(|at| extent_of(block, *at, padding).is_some())
        .map(|at| &block.iters[at])
        .collect();
    if padded.is_empty() {
        return block.guards.clone();
    }
    let loops = func.loops_of(&block.name).expect("it is one of the program's");
    let says_more = |guard: &&Less| {
        let mut problem = Problem::new();
        func.dims.iter().for_each(|it| problem.dim(it));
        for it in &loops {
            problem.index(&it.var, &it.extent);
        }
        for it in &padded {
            problem.less(&Less::new(it.binding.clone(), it.extent.clone()));
        }
        problem.less(&Less::new(guard.rhs.clone(), &guard.lhs + 1));
        !problem.solve().is_never()
    };
    block.guards.iter().filter(says_more).cloned().collect()
}

/// Whether an access takes no notice of an iterator that runs so far, or finds all elements there in registers: in memory that others have, too, more reads
/// could meet more writes.
fn is_there(func: &Func, access: &Access, var: &Name, extent: i64) -> bool {
    let buffer = &func.buffers[&access.buffer];
    access.indices.iter().zip(&buffer.shape).all(|(index, size)| {
        let is_long = size.as_int().is_some_and(|size| size >= extent);
        !index.any_var(&|name| name == var)
            || index.as_var() == Some(var) && is_long && buffer.scope.is_registers()
    })
}

/// Whether the one subscript with an iterator is the iterator, along a dimension that is padded as far.
fn is_padded(access: &Access, var: &Name, extent: i64, padding: &Padding) -> bool {
    let mut with = access.indices.iter().enumerate().filter(|it| it.1.any_var(&|name| name == var));
    let (Some((dim, index)), None) = (with.next(), with.next()) else { return false };
    let padded = padding.get(&(access.buffer.clone(), dim));
    index.as_var() == Some(var) && padded.is_some_and(|it| *it >= extent)
}

/// Whether all that a block reads at an iterator is accepted.
fn reads(block: &Block, var: &Name, is_accepted: &dyn Fn(&Access) -> bool) -> bool {
    let mut all = true;
    for store in stores(block) {
        store.value.each_load(&mut |it| {
            all &= !it.indices.iter().any(|it| it.any_var(&|name| name == var)) || is_accepted(it);
        });
    }
    all
}

/// What the extent of an iterator becomes by the padding of what it fills.
fn extent_of(block: &Block, at: usize, padding: &Padding) -> Option<i64> {
    let iter = &block.iters[at];
    let extent = |store: &Store| {
        let dim = store.place.indices.iter().position(|it| it.as_var() == Some(&iter.var))?;
        padding.get(&(store.place.buffer.clone(), dim)).copied()
    };
    stores(block).into_iter().filter_map(extent).min()
}

/// What a block stores, its init included.
fn stores(block: &Block) -> Vec<&Store> {
    let mut out = Vec::new();
    for stmt in block.init.iter().chain([&block.body]) {
        stmt.each_store(&mut |it| out.push(it));
    }
    out
}
