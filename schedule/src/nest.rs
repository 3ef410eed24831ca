//! Loop nests that primitives build around a block, and where they put them.

use std::sync::Arc;

use ir::{
    Block, BlockAttrs, Func, Index, Iter, IterKind, Less, Loop, LoopAttrs, Name, Stmt,
    arith::Bounds,
    region::{Range, Region},
};

/// Puts a loop around a statement for each variable, outermost first.
pub(crate) fn wrap(loops: &[(Name, Index)], body: Stmt) -> Stmt {
    loops.iter().rev().fold(body, |body, (var, extent)| Stmt::serial(var, extent.clone(), body))
}

/// A loop of another name, extent and body, run as `like` is run.
pub(crate) fn loop_like(like: &Loop, var: Name, body: Stmt) -> Stmt {
    let attrs = LoopAttrs::default();
    Stmt::Loop(Arc::new(Loop { var, extent: like.extent.clone(), kind: like.kind, attrs, body }))
}

/// The values of what one variable was fused of, over it: the last runs fastest, and the first has what is left.
pub(crate) fn unfused(of: &Name, extents: &[&Index]) -> Vec<Index> {
    let mut rest = Index::var(of);
    let mut values = Vec::new();
    for (at, extent) in extents.iter().enumerate().rev() {
        values.push(if at == 0 { rest.clone() } else { rest.floor_mod(extent) });
        rest = rest.floor_div(extent);
    }
    values.reverse();
    values
}

/// A block that runs once for each element of `ranges` (one an iterator, `None` for all of its domain), inside
/// loops named after it: `T_0`, `T_1`, … for block `T`, one an iterator in order; `T_1_0`, `T_1_1` where the range of
/// an iterator has several steps. Where a range may leave an iterator's domain, the block is guarded.
///
/// Unit loops are kept, so that the names a script uses do not depend on sizes.
pub(crate) fn place(func: &Func, block: Block, ranges: &[Option<Range>], bounds: &Bounds) -> Stmt {
    let mut bounds = bounds.clone();
    let mut loops: Vec<(Name, Index)> = Vec::new();
    let mut iters = Vec::new();
    let mut guards = Vec::new();
    for (n, (iter, range)) in block.iters.iter().zip(ranges).enumerate() {
        let whole = Range::new(Index::int(0), iter.extent.clone());
        let range = range.clone().unwrap_or(whole);
        let mut binding = range.min.clone();
        for (name, stride, extent) in digits(func, &format!("{}_{n}", block.name), &range, &loops) {
            bounds.insert(&name, &extent);
            binding = binding + Index::var(&name) * stride;
            loops.push((name, extent));
        }
        let binding = bounds.simplify(&binding);
        let inside =
            [Less::new(Index::int(-1), binding.clone()), Less::new(binding.clone(), iter.extent.clone())];
        guards.extend(inside.into_iter().filter(|it| bounds.prove(it) != Some(true)));
        iters.push(Iter { binding, ..iter.clone() });
    }
    let block = Block { iters, guards, ..block };
    wrap(&loops, Stmt::Block(Arc::new(block)))
}

/// The loops that run through a range: name, stride and extent, outermost first.
fn digits(func: &Func, stem: &str, range: &Range, chosen: &[(Name, Index)]) -> Vec<(Name, i64, Index)> {
    let fresh =
        |stem: &str| Name::nth(stem, |it| func.is_taken(it) || chosen.iter().any(|(other, _)| other == it));
    match range.steps.as_slice() {
        [] => vec![(fresh(stem), 1, range.extent.clone())],
        [one] => vec![(fresh(stem), one.stride, Index::int(one.count))],
        steps => {
            let named = steps.iter().enumerate();
            named.map(|(t, it)| (fresh(&format!("{stem}_{t}")), it.stride, Index::int(it.count))).collect()
        }
    }
}

/// A block that copies a box of `from` to the same places of `to`.
pub(crate) fn copy(
    func: &Func,
    name: &Name,
    from: &Name,
    to: &Name,
    region: &Region,
    bounds: &Bounds,
) -> Stmt {
    let shape = &func.buffers[from].shape;
    let vars: Vec<Name> = (0..shape.len()).map(|n| iterator(func, n)).collect();
    let iters = vars.iter().zip(shape);
    let places: Vec<Index> = vars.iter().map(Index::var).collect();
    let block = Block {
        name: name.clone(),
        iters: iters.map(|(var, n)| Iter::new(var, n.clone(), IterKind::Spatial, Index::int(0))).collect(),
        guards: vec![],
        attrs: BlockAttrs::default(),
        init: None,
        body: Stmt::store(ir::Access::new(to, places.clone()), ir::Value::load(from, places)),
    };
    let ranges: Vec<_> = region.iter().cloned().map(Some).collect();
    place(func, block, &ranges, bounds)
}

/// The name of the iterator over dimension `n` of a copy: `v0`, or a fresh one on that stem where a loop, a block, a buffer or a
/// size has it. Iterators of other blocks may have the same.
pub(crate) fn iterator(func: &Func, n: usize) -> Name {
    iterator_named(func, &format!("v{n}"), |_| false)
}

/// The same on any stem, where `is_other` has names that the block has already.
pub(crate) fn iterator_named(func: &Func, stem: &str, is_other: impl Fn(&Name) -> bool) -> Name {
    Name::fresh(stem, |it| {
        func.buffers.contains_key(it)
            || func.dims.contains(it)
            || func.name == *it
            || func.find_loop(it).is_some()
            || func.find_block(it).is_some()
            || is_other(it)
    })
}

/// Where a statement goes: into the body of a loop (or the function's), before the child of that number.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// The loop; `None` for the function itself.
    pub(crate) within: Option<Name>,
    /// The number of children that stay before it.
    pub(crate) at: usize,
}

/// The children of a loop's body, or of the function's.
pub(crate) fn children<'a>(func: &'a Func, within: Option<&Name>) -> Vec<&'a Stmt> {
    let body = match within {
        Some(name) => func.find_loop(name).map(|it| &it.body),
        None => Some(&func.body),
    };
    match body {
        Some(Stmt::Seq(stmts)) => stmts.iter().collect(),
        Some(other) => vec![other],
        None => vec![],
    }
}

/// The numbers of the first and the last child in which one of the blocks stands.
pub(crate) fn span(children: &[&Stmt], blocks: &[Name]) -> Option<(usize, usize)> {
    let holds = |stmt: &&Stmt| stmt.blocks().iter().any(|it| blocks.contains(&it.name));
    Some((children.iter().position(holds)?, children.iter().rposition(holds)?))
}

/// The innermost loop around all of the blocks.
pub(crate) fn common_loop(func: &Func, blocks: &[Name]) -> Option<Name> {
    let mut paths = blocks.iter().filter_map(|it| func.loops_of(it));
    let mut common = paths.next()?;
    for path in paths {
        let same = common.iter().zip(&path).take_while(|(a, b)| a.var == b.var).count();
        common.truncate(same);
    }
    common.last().map(|it| it.var.clone())
}

/// Where a copy of what `writers` write goes for `readers`: after the last of the writers and before the first reader, in the
/// innermost loop around all of them. Where some readers are in one loop with the writers and others are not, that is
/// in this loop, and as deep as it has to be. An error has the first reader that would come too early, and the writer.
pub(crate) fn between(func: &Func, writers: &[Name], readers: &[Name]) -> Result<Spot, (Name, Name)> {
    let all: Vec<Name> = writers.iter().chain(readers).cloned().collect();
    let mut within = if writers.is_empty() || readers.is_empty() { None } else { common_loop(func, &all) };
    loop {
        let children = children(func, within.as_ref());
        let (first_reader, last_writer) = (span(&children, readers), span(&children, writers));
        let (first, last) = match (first_reader, last_writer) {
            (Some((first, _)), None) => return Ok(Spot { within, at: first }),
            (Some((first, _)), Some((_, last))) if last < first => return Ok(Spot { within, at: first }),
            (None, last) => return Ok(Spot { within, at: last.map_or(0, |(_, last)| last + 1) }),
            (Some((first, _)), Some((_, last))) => (first, last),
        };
        match children[last] {
            Stmt::Loop(it) if last_writer == Some((last, last)) => within = Some(it.var.clone()),
            Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {
                return Err((block_of(children[first], readers), block_of(children[last], writers)));
            }
        }
    }
}

/// The first block in a statement that is one of those named, or the first named.
fn block_of(stmt: &Stmt, names: &[Name]) -> Name {
    let inside = stmt.blocks().into_iter().map(|it| &it.name);
    inside.into_iter().find(|it| names.contains(it)).unwrap_or(&names[0]).clone()
}

/// Puts a statement at a spot.
pub(crate) fn insert(func: &mut Func, spot: &Spot, stmt: Stmt) {
    let spliced = |body: Stmt| {
        let mut stmts = match body {
            Stmt::Seq(stmts) => stmts,
            other @ (Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_)) => vec![other],
        };
        stmts.insert(spot.at.min(stmts.len()), stmt);
        Stmt::seq(stmts)
    };
    match &spot.within {
        Some(name) => {
            func.replace_loop(name, |it| Stmt::Loop(Arc::new(Loop { body: spliced(it.body.clone()), ..it })));
        }
        None => func.body = spliced(func.body.clone()),
    }
}

/// The loops down to and including `within`, outermost first; none for the function itself.
pub(crate) fn path<'a>(func: &'a Func, within: Option<&Name>) -> Vec<&'a Loop> {
    within.map(|it| func.path_to_loop(it).expect("it is one of the program's loops")).unwrap_or_default()
}
