//! Copies of the copy engine: which boxes of which tensors, and who starts them.

use std::{collections::BTreeSet, sync::Arc};

use indexmap::IndexMap;
use ir::{
    Access, Arrival, Block, BulkCopy, BulkKind, For, Func, Index, Instr, LoopKind, Mbarriers, Mechanism,
    Name, Op, Participants, Scope, Stmt, Storage, SyncKind, TensorMap, ThreadAxis, Tile, axis_var, intrin,
};

use crate::lower::analysis::{
    copy_box::{CopyBox, PLACE_BYTES, boxed_access, copy_box, parts_of},
    multicast::part,
    pairs, roles,
};

use super::{FuncToKernel, Led, Scoped};

impl FuncToKernel<'_> {
    /// The copies of a block that the copy engine does, for one thread: boxes as large as it moves them. Of a box that goes to several
    /// blocks of threads, the part that is for this one to copy.
    pub(super) fn bulk_copies(&self, block: &Block, at: &Scoped) -> Vec<Op> {
        let (loops, [global, place]) =
            boxed_access(self.func, &block.body).expect("`choose_mechanisms` makes nests of one copy");
        let mut inner = at.clone();
        for (var, extent) in &loops {
            inner.bounds.insert(var, &Index::int(*extent));
        }
        let stores = block.writes().iter().any(|it| it.buffer == global.buffer);
        let [from, place] = [global, place].map(|it| it.map_indices(&mut |index| inner.resolve(index)));
        let mut found = copy_box(&loops, [&from, &place], &inner.bounds)
            .expect("`choose_mechanisms` takes boxes only, and passes keep them");
        let halved = pairs::halved(self.func, &place.buffer);
        if let Some(dim) = halved {
            half(&mut found, dim);
        } else if let Some(axis) = block.attrs.multicast {
            let blocks = self.launch[&axis].as_int().expect("a cluster has a constant size");
            found = part(found, &Index::var(&axis_var(axis)), blocks);
        }
        let [starts, own] = &found.starts;
        let [sides, _] = &found.extents;
        let parts = parts_of(sides, self.func.buffers[&place.buffer].layout.panel);
        let parts = parts.expect("`choose_mechanisms` has asked");
        let mut out = Vec::new();
        for offset in offsets(sides, &parts) {
            let mut next = offset.iter().zip(sides).filter(|it| *it.1 > 1);
            let mut extents = parts.iter().filter(|it| **it > 1);
            let moved = |(start, side): (&Index, &i64)| {
                if *side == 1 {
                    return (start.clone(), 1);
                }
                let (by, _) = next.next().expect("both sides have the same dimensions");
                (inner.bounds.simplify(&(start + *by)), *extents.next().expect("as many"))
            };
            let (indices, extents): (Vec<_>, Vec<_>) = own.iter().zip(&found.extents[1]).map(moved).unzip();
            let coordinates = starts.iter().zip(&offset).map(|(it, by)| inner.bounds.simplify(&(it + *by)));
            let global = Access { buffer: from.buffer.clone(), indices: coordinates.collect(), lanes: 1 };
            let first = Access { buffer: place.buffer.clone(), indices, lanes: 1 };
            let shared = Tile { first, extents, matrix: None };
            let kind = if stores {
                BulkKind::Store
            } else {
                let ring = at.ring.clone().expect("a pipeline expects what it copies");
                let (barrier, slot, at_first) = (ring.barrier, ring.slot, ring.at_first);
                BulkKind::Load { barrier, slot, along: block.attrs.multicast.filter(|_| !at_first), at_first }
            };
            let map = self.map_of(&from.buffer, &place.buffer, &parts);
            let copy = Instr::Bulk(BulkCopy { kind, map, global, shared });
            out.push(Op::Instr(copy, at.origin.clone()));
        }
        let team = if stores { self.storing } else { Participants::Block };
        if at.led == Led::All { out } else { vec![Op::Leader(team, out)] }
    }

    /// The tensor map for boxes of a buffer to another, made if it is the first such.
    fn map_of(&self, global: &Name, shared: &Name, tile: &[i64]) -> Name {
        let buffer = &self.func.buffers[global];
        let map = TensorMap {
            buffer: global.clone(),
            dims: buffer.shape.clone(),
            strides: Storage::of(buffer).strides,
            tile: tile.to_vec(),
            swizzle: Storage::of(&self.func.buffers[shared]).swizzle,
        };
        let mut maps = self.maps.borrow_mut();
        let known = maps.iter().find(|known| *known.1 == map).map(|known| known.0.clone());
        known.unwrap_or_else(|| {
            let taken = |name: &Name| maps.contains_key(name) || self.func.is_taken(name);
            let name = Name::fresh(&format!("{global}_map"), taken);
            maps.insert(name.clone(), map);
            name
        })
    }
}

/// Who starts the copies to global memory in a kernel: the leader of each warpgroup or warp, where those have boxes of their own, else
/// one of the block.
pub(super) fn storing(func: &Func, stmt: &Stmt, launch: &IndexMap<ThreadAxis, Index>) -> Participants {
    let mut own = roles::ping_pong(stmt).is_some();
    for block in stmt.blocks() {
        let stores = block.writes().iter().any(|it| func.buffers[&it.buffer].scope == Scope::Global);
        if block.attrs.mechanism != Some(Mechanism::Tma) || !stores {
            continue;
        }
        let around = func.loops_of(&block.name).into_iter().flatten();
        let is_thread = |it: &&ir::Loop| matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread());
        let rows: Vec<_> = around.filter(is_thread).map(|it| &it.var).collect();
        let mut used = false;
        let depends = |index: &Index| index.any_var(&|name| rows.contains(&name));
        let written = |name: &Name| {
            block.writes().iter().any(|it| it.indices.iter().any(|it| it.any_var(&|n| n == name)))
        };
        for it in &block.iters {
            used |= depends(&it.binding) && written(&it.var);
        }
        own |= used;
    }
    let width = launch.get(&ThreadAxis::ThreadX).and_then(Index::as_int);
    match width {
        Some(intrin::WARPGROUP) if own => Participants::Warpgroup,
        Some(intrin::WARP) if own => Participants::Warp,
        _ => Participants::Block,
    }
}

/// Where the parts of a box begin.
fn offsets(sides: &[i64], parts: &[i64]) -> Vec<Vec<i64>> {
    let mut out = vec![vec![]];
    for (side, part) in sides.iter().zip(parts) {
        let steps = (0..side / part).map(|it| it * part);
        out = out.iter().flat_map(|at| steps.clone().map(|it| [&at[..], &[it]].concat())).collect();
    }
    out
}

/// The statements with what one thread does for others in one list where it follows each other, under the same conditions, too.
pub(super) fn together(ops: Vec<Op>) -> Vec<Op> {
    let mut out: Vec<Op> = Vec::new();
    for op in ops {
        let op = led(op.map_children(&mut together));
        match (out.last_mut(), op) {
            (Some(Op::Leader(known, list)), Op::Leader(of, more)) if *known == of => list.extend(more),
            (Some(Op::If(known, list)), Op::If(conditions, more))
                if *known == conditions && are_led(list) && are_led(&more) =>
            {
                list.extend(more);
                *list = together(std::mem::take(list));
            }
            (_, op) => out.push(op),
        }
    }
    out
}

/// A loop in which one thread starts products is that thread's.
fn led(op: Op) -> Op {
    let Op::For(it) = op else { return op };
    match it.body.as_slice() {
        [Op::Leader(of, body)] if body.iter().any(|it| matches!(it.instr(), Some(Instr::Tcgen05(_)))) => {
            let (of, body) = (*of, body.clone());
            let it = For { body, ..For::clone(&it) };
            Op::Leader(of, vec![Op::For(Arc::new(it))])
        }
        _ => Op::For(it),
    }
}

/// Whether one thread does all of it for others.
fn are_led(ops: &[Op]) -> bool {
    ops.iter().all(|it| matches!(it, Op::Leader(..)))
}

/// Lets memory that the copy engine fills begin where it can.
pub(super) fn align(body: &mut [Op]) {
    let mut filled = BTreeSet::new();
    for op in &*body {
        op.each_instr(&mut |it| {
            if let Instr::Bulk(it) = it {
                filled.insert(it.shared.first.buffer.clone());
            }
        });
    }
    for op in body {
        if let Op::Alloc(it) = op
            && filled.contains(&it.name)
        {
            it.align = it.align.max(PLACE_BYTES);
        }
    }
}

/// The half of a box that a block of a pair copies for itself, along a dimension of its place: there it is all that has room.
fn half(found: &mut CopyBox, dim: usize) {
    let sides =
        |extents: &[i64]| -> Vec<usize> { (0..extents.len()).filter(|at| extents[*at] > 1).collect() };
    let [from, own] = [sides(&found.extents[0]), sides(&found.extents[1])];
    let Some(from) = own.iter().position(|at| *at == dim).and_then(|at| from.get(at)).copied() else {
        return;
    };
    let half = found.extents[1][dim] / pairs::BLOCKS;
    found.starts[0][from] = found.starts[0][from].clone() + Index::var(&axis_var(pairs::AXIS)) * half;
    (found.extents[0][from], found.extents[1][dim]) = (half, half);
}

/// What a block expects, if that is what it does.
pub(super) fn expected(stmt: &Stmt) -> Option<&Arrival> {
    let Stmt::Block(block) = stmt else { return None };
    let Stmt::Instr(it) = &block.body else { return None };
    match &**it {
        Instr::Arrive(it) => Some(it).filter(|it| it.bytes.is_some()),
        _ => None,
    }
}

/// The mbarriers that the statements of a kernel speak of.
pub(super) fn mbarriers(func: &Func, body: &[Op]) -> IndexMap<Name, Mbarriers> {
    let mut used = BTreeSet::new();
    for op in body {
        op.each_instr(&mut |it| {
            match it.sync() {
                Some(SyncKind::Await(it)) => used.insert(it.barrier.clone()),
                Some(SyncKind::Arrive(it)) => used.insert(it.barrier.clone()),
                _ => false,
            };
        });
    }
    let all = func.mbarriers.iter().filter(|it| used.contains(it.0));
    all.map(|(name, it)| (name.clone(), it.clone())).collect()
}
