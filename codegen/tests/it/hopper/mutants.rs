//! Kernels with one thing taken out, moved or changed.

use std::slice;

use ir::{
    Access, Arrival, BulkCopy, BulkKind, Claim, Factor, Fence, Index, Instr, Less, Major, Matrix, Mbarriers,
    Module, Name, Op, Participants, Phase, SemaphoreKind, SyncKind, Take, Tcgen05, TensorOp, ThreadAxis,
    Tile, Turn, Wait, Wgmma, XorSwizzle, axis_var, intrin::Instruction,
};

/// A kernel that is not what it was.
pub(super) struct Mutant {
    /// What was done to it.
    pub(super) name: String,
    /// Whether the hardware finds elements elsewhere; else something comes in another order, another number, or not at all.
    pub(super) is_layout: bool,
    pub(super) module: Module,
}

/// All mutants of the kernel of a module.
pub(super) fn mutants(module: &Module) -> Vec<Mutant> {
    let kernel = &module.kernels[0];
    let mut out = vec![];
    let mut add = |name: String, is_layout: bool, f: &dyn Fn(&mut ir::Kernel)| {
        let mut module = module.clone();
        f(&mut module.kernels[0]);
        out.push(Mutant { name, is_layout, module });
    };
    for (name, it) in &kernel.mbarriers {
        for arrivals in [it.arrivals - 1, it.arrivals + 1] {
            let with = Mbarriers { arrivals, ..it.clone() };
            add(format!("{name} arrivals {arrivals}"), false, &|it| it.mbarriers[name] = with.clone());
        }
        let with = Mbarriers { slots: it.slots - 1, ..it.clone() };
        add(format!("{name} slots {}", with.slots), false, &|it| it.mbarriers[name] = with.clone());
    }
    for (name, map) in &kernel.maps {
        for swizzle in other_modes(map.swizzle) {
            add(format!("{name} {}", mode(swizzle)), true, &|it| it.maps[name].swizzle = swizzle);
        }
    }
    for (what, is_layout, body) in variants(&kernel.body, Place::default()) {
        add(what, is_layout, &|it| it.body.clone_from(&body));
    }
    out
}

fn mode(it: Option<XorSwizzle>) -> &'static str {
    it.and_then(XorSwizzle::mode).unwrap_or("no swizzle")
}

fn other_modes(own: Option<XorSwizzle>) -> Vec<Option<XorSwizzle>> {
    let modes = XorSwizzle::MODES.iter().map(|it| Some(it.1));
    modes.chain([None]).filter(|it| *it != own).collect()
}

/// Where a list stands.
#[derive(Clone, Copy, Default)]
struct Place {
    in_loop: bool,
    /// Whether one thread of the first block of a cluster runs it.
    for_cluster: bool,
}

/// A list with one statement dropped, changed, or behind the next one.
fn variants(ops: &[Op], place: Place) -> Vec<(String, bool, Vec<Op>)> {
    let (mut out, in_loop) = (vec![], place.in_loop);
    for (at, op) in ops.iter().enumerate() {
        let replaced = |with: Vec<Op>| [&ops[..at], &with, &ops[at + 1..]].concat();
        if let Op::Instr(it, origin) = op {
            // Behind the last loop a slot is given back to nobody: no copy comes after it. Other blocks are waited for all the same.
            let is_release = matches!(it, Instr::Arrive(it) if it.bytes.is_none() && it.along.is_empty());
            let is_last_release = !in_loop && is_release;
            // The threads that arrive for a slot arrive for the one before it first: at the end it is enough to wait for the last.
            let waits_for = |op: &Op| match op {
                Op::Instr(Instr::Await(it), _) => Some(it.barrier.clone()),
                _ => None,
            };
            let again = ops.get(at + 1).and_then(waits_for);
            let is_covered = !in_loop && again.is_some() && again == waits_for(op);
            let is_dropped = it.sync().is_some() || matches!(it, Instr::Claim(_));
            if is_dropped && !is_last_release && !is_covered {
                out.push((format!("without `{op}`"), false, replaced(vec![])));
            }
            if is_tensor_copy(it) {
                out.extend(other_scales(ops, at));
            }
            for with in changed(it) {
                let is_layout = match (it, &with) {
                    (Instr::Wgmma(_) | Instr::Tcgen05(_) | Instr::Tensor(_), _) => true,
                    (Instr::Bulk(it), Instr::Bulk(with)) => it.kind == with.kind,
                    _ => false,
                };
                let with = Op::Instr(with, origin.clone());
                out.push((format!("`{op}` as `{with}`"), is_layout, replaced(vec![with])));
            }
            if is_heard_elsewhere(it) && !place.for_cluster {
                let first = Less::new(Index::var(&axis_var(ThreadAxis::ClusterX)), Index::int(1));
                let with = Op::If(vec![first], vec![op.clone()]);
                out.push((format!("`{op}` in the first block"), false, replaced(vec![with])));
            }
        }
        // Whoever claims for his own block alone fills again what he has read himself: it is enough that he fences before that.
        let claims = ops.iter().any(|op| matches!(op.instr(), Some(Instr::Claim(_))));
        let tells_others = |op: &Op| matches!(op.instr(), Some(Instr::Arrive(it)) if !it.along.is_empty());
        let is_alone = !ops.iter().any(tells_others);
        let is_own = |next: &Op| {
            let is_fence = |op: &Op| op.instr() == Some(&Instr::Fence(Fence::Async));
            let frees = matches!(next.instr(), Some(Instr::Arrive(it)) if it.along.is_empty());
            let takes = matches!(op.instr(), Some(Instr::Take(_)));
            claims && is_alone && (is_fence(op) && frees || takes && is_fence(next))
        };
        if let Some(next) = ops.get(at + 1).filter(|next| is_moved(op, next, in_loop) && !is_own(next)) {
            let list = [&ops[..at], &[next.clone(), op.clone()], &ops[at + 2..]].concat();
            out.push((format!("`{}` behind `{}`", first_line(op), first_line(next)), false, list));
        }
        if let Op::Leader(Participants::Cluster, body) = op {
            let with = Op::Leader(Participants::Role, body.clone());
            out.push(("in both blocks of a pair".to_owned(), false, replaced(vec![with])));
        }
        let for_cluster = place.for_cluster || matches!(op, Op::Leader(Participants::Cluster, _));
        let place = Place { in_loop: in_loop || matches!(op, Op::For(_)), for_cluster };
        for (what, is_layout, body) in variants(op.children(), place) {
            let op = op.clone().map_children(&mut |_| body.clone());
            out.push((what, is_layout, replaced(vec![op])));
        }
    }
    out
}

fn first_line(op: &Op) -> String {
    op.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Whether other blocks of a cluster have it from it that they may go on.
fn is_heard_elsewhere(it: &Instr) -> bool {
    match it {
        Instr::Arrive(it) => it.at_first || !it.along.is_empty(),
        Instr::Bulk(it) => {
            matches!(it.kind, BulkKind::Load { along: Some(_), .. } | BulkKind::Load { at_first: true, .. })
        }
        _ => false,
    }
}

/// The product with other descriptors of its factors, and with its sum beside where it was.
fn other_products(product: &Tcgen05) -> Vec<Instr> {
    let others = |at: usize| {
        let tile = &product.operands[at];
        // Scales in tensor memory have no descriptors.
        let tiles = if tile.matrix.is_some() { other_matrices(tile) } else { vec![columns_beside(tile, 1)] };
        tiles.into_iter().map(move |it| {
            let mut operands = product.operands.clone();
            operands[at] = it;
            Tcgen05 { operands, ..product.clone() }
        })
    };
    let beside = [Tcgen05 { place: columns_beside(&product.place, 16), ..product.clone() }];
    (0..product.operands.len())
        .flat_map(others)
        .chain(beside)
        .chain(without_peer(product))
        .map(|it| Instr::Tcgen05(Box::new(it)))
        .collect()
}

/// What stands so many columns of tensor memory further.
fn columns_beside(tile: &Tile, columns: i64) -> Tile {
    let indices = vec![tile.first.indices[0].clone(), &tile.first.indices[1] + columns];
    Tile { first: Access { indices, ..tile.first.clone() }, ..tile.clone() }
}

/// A list in which a product finds the scales of another tile: not copied, or behind it.
fn other_scales(ops: &[Op], at: usize) -> Vec<(String, bool, Vec<Op>)> {
    let op = &ops[at];
    let mut out = vec![(format!("without `{op}`"), true, [&ops[..at], &ops[at + 1..]].concat())];
    let product = (at + 1..ops.len()).find(|it| has_product(&ops[*it]));
    out.extend(product.map(|it| {
        let list = [&ops[..at], &ops[at + 1..=it], slice::from_ref(op), &ops[it + 1..]].concat();
        (format!("`{op}` behind the product"), true, list)
    }));
    out
}

fn has_product(op: &Op) -> bool {
    let mut found = false;
    op.each_instr(&mut |it| found |= matches!(it, Instr::Tcgen05(_)) && !is_tensor_copy(it));
    found
}

fn is_tensor_copy(it: &Instr) -> bool {
    matches!(it, Instr::Tcgen05(it) if it.factors().is_none())
}

/// The product of one block of a pair alone, with what it has itself.
fn without_peer(product: &Tcgen05) -> Option<Tcgen05> {
    let name = product.intrinsic.name.replace("tcgen05_pair_m256", "tcgen05_m128");
    let intrinsic = ir::intrin::find(&name).filter(|_| product.intrinsic.is_of_pair())?;
    let [_, right] = product.factors()?;
    let extents = vec![product.place.extents[0], right.extents[0]];
    let place = Tile { extents, ..product.place.clone() };
    Some(Tcgen05 { intrinsic, place, ..product.clone() })
}

/// An arrival with other bytes, or that fewer blocks or others hear of.
fn changed_arrivals(it: &Arrival) -> Vec<Arrival> {
    let by = |n: i64| Some(Arrival { bytes: Some(it.bytes.as_ref()? + n), ..it.clone() });
    let own = it.at_first.then(|| Arrival { at_first: false, ..it.clone() });
    let without = |at: usize| {
        let mut along = it.along.clone();
        along.remove(at);
        Arrival { along, ..it.clone() }
    };
    [by(16), by(-16), own].into_iter().flatten().chain((0..it.along.len()).map(without)).collect()
}

/// A copy that other blocks of a cluster hear of, or that brings something else to them.
fn changed_copies(it: &BulkCopy) -> Vec<BulkCopy> {
    let BulkKind::Load { barrier, slot, along, at_first } = &it.kind else { return vec![] };
    let own = || {
        let (barrier, slot) = (barrier.clone(), slot.clone());
        BulkCopy { kind: BulkKind::Load { barrier, slot, along: None, at_first: false }, ..it.clone() }
    };
    let at = |axis: ThreadAxis| move |name: &Name| (*name == axis_var(axis)).then(|| Index::int(0));
    if *at_first {
        // What the first block of a pair copies, both do.
        let global = it.global.map_indices(&mut |it| it.subst(&at(ThreadAxis::ClusterX)));
        return vec![own(), BulkCopy { global, ..it.clone() }];
    }
    let Some(axis) = along else { return vec![] };
    // What stands at its place in the cluster goes to the place of all then.
    let first = it.shared.first.map_indices(&mut |it| it.subst(&at(*axis)));
    vec![own(), BulkCopy { shared: Tile { first, ..it.shared.clone() }, ..it.clone() }]
}

/// An instruction with other numbers, or that fewer blocks hear of.
fn changed(it: &Instr) -> Vec<Instr> {
    match it {
        Instr::Await(phase) => {
            let by = |n: i64| Instr::Await(Phase { phase: &phase.phase + n, ..phase.clone() });
            vec![by(1), by(-1)]
        }
        Instr::Arrive(it) => changed_arrivals(it).into_iter().map(Instr::Arrive).collect(),
        Instr::Bulk(it) => changed_copies(it).into_iter().map(Instr::Bulk).collect(),
        // An answer that goes elsewhere, or is looked for there.
        Instr::Claim(claim) => {
            let answer = beside(&claim.answer);
            let slot = (&claim.slot + 1).floor_mod(&Index::int(3));
            vec![
                Instr::Claim(Claim { answer, ..claim.clone() }),
                Instr::Claim(Claim { slot, ..claim.clone() }),
            ]
        }
        Instr::Take(take) => vec![Instr::Take(Take { answer: beside(&take.answer) })],
        Instr::Turn(it) => {
            let by = |n: i64| Instr::Turn(Turn { turn: &it.turn + n, ..it.clone() });
            // Where it begins, how many there are says nothing.
            let fewer = Instr::Turn(Turn { count: &it.count - &Index::int(1), ..it.clone() });
            let fewer = (it.kind == SemaphoreKind::Release).then_some(fewer);
            [by(1), by(-1)].into_iter().chain(fewer).collect()
        }
        // To wait for more than needed is slow, not wrong.
        Instr::Wait(wait) => vec![Instr::Wait(Wait { in_flight: wait.in_flight + 1, ..wait.clone() })],
        Instr::Wgmma(product) => {
            let right = other_matrices(&product.right).into_iter();
            let mut out: Vec<Wgmma> = right.map(|right| Wgmma { right, ..product.clone() }).collect();
            if let Factor::Shared(tile) = &product.left {
                let left = other_matrices(tile).into_iter();
                out.extend(left.map(|it| Wgmma { left: Factor::Shared(it), ..product.clone() }));
            }
            out.into_iter().map(Instr::Wgmma).collect()
        }
        Instr::Tcgen05(product) => other_products(product),
        // Threads find what lies in other columns.
        Instr::Tensor(load) if matches!(load.intrinsic.instruction, Instruction::TensorLoad(_)) => {
            let from = &load.operands[0];
            let indices = vec![from.indices[0].clone(), &from.indices[1] + 8];
            let operands = vec![Access { indices, ..from.clone() }];
            vec![Instr::Tensor(TensorOp { operands, ..load.clone() })]
        }
        _ => vec![],
    }
}

/// The answer of another of three slots.
fn beside(it: &Access) -> Access {
    let moved = (&it.indices[0] + 4).floor_mod(&Index::int(12));
    Access { indices: vec![moved], ..it.clone() }
}

/// A factor that is found in another way.
fn other_matrices(tile: &Tile) -> Vec<Tile> {
    let matrix = tile.matrix.expect("it is flat");
    let mut out: Vec<Matrix> =
        other_modes(matrix.swizzle).into_iter().map(|swizzle| Matrix { swizzle, ..matrix }).collect();
    if has_leading(&matrix, tile) {
        out.push(Matrix { leading: matrix.leading + 16, ..matrix });
        out.push(Matrix { leading: matrix.leading * 2, ..matrix });
    }
    out.push(Matrix { stride: matrix.stride + 16, ..matrix });
    out.push(Matrix { stride: matrix.stride * 2, ..matrix });
    out.into_iter().map(|it| Tile { matrix: Some(it), ..tile.clone() }).collect()
}

/// Whether the leading offset says anything: rows along k within a swizzle are found without it, and so are scales, of 16 bytes a row, and a
/// single panel.
fn has_leading(matrix: &Matrix, tile: &Tile) -> bool {
    match (matrix.major, matrix.swizzle) {
        (Major::K, swizzle) => swizzle.is_none() && tile.extents[1] > 16,
        // Factors of two bytes only are contiguous so.
        (Major::Mn, swizzle) => swizzle.is_none_or(|it| tile.extents[0] > it.block_bytes() / 2),
    }
}

/// Whether it matters that one statement is behind another and not before it.
fn is_moved(op: &Op, next: &Op, in_loop: bool) -> bool {
    let orders = |op: &Op| {
        let (mut all, mut count) = (true, 0);
        op.each_instr(&mut |it| {
            all &= it.sync().is_some() || it.is_remark();
            count += 1;
        });
        all && count > 0 && !matches!(op, Op::Role(..))
    };
    if !(orders(op) || orders(next)) || matches!(op, Op::Alloc(_)) || matches!(next, Op::Alloc(_)) {
        return false;
    }
    let mut is_moved = false;
    op.each_instr(&mut |a| next.each_instr(&mut |b| is_moved |= !commutes(a, b, in_loop)));
    is_moved
}

/// Whether two instructions may change places.
fn commutes(a: &Instr, b: &Instr, in_loop: bool) -> bool {
    let is_release = |it: &Instr| matches!(it, Instr::Arrive(Arrival { bytes: None, .. }));
    let is_load = |it: &Instr| it.fill().is_some();
    let is_expect = |it: &Instr| matches!(it, Instr::Arrive(Arrival { bytes: Some(_), .. }));
    let is_wait = |it: &Instr| matches!(it.sync(), Some(SyncKind::Wait(_) | SyncKind::Await(_)));
    let either = |f: &dyn Fn(&Instr, &Instr) -> bool| f(a, b) || f(b, a);
    let is_turn = |it: &Instr, of: SemaphoreKind| matches!(it, Instr::Turn(it) if it.kind == of);
    let waits_for_others = |it: &Instr| matches!(it.sync(), Some(SyncKind::Await(_)));
    // A slot may be given back later, where nobody waits for others between; and behind the last loop to nobody.
    (is_release(a) && !waits_for_others(b))
        // A turn may begin earlier and end later.
        || is_turn(a, SemaphoreKind::Release)
        || is_turn(b, SemaphoreKind::Acquire)
        || (!in_loop && is_release(b))
        // Scales may be copied later.
        || (is_tensor_copy(a) && waits_for_others(b))
        // Bytes may be expected while products still read what they will replace.
        || (matches!(a.sync(), Some(SyncKind::Wait(_))) && is_expect(b))
        // A phase does not end before the arrival that expects bytes.
        || either(&|a, b| is_expect(a) && is_load(b))
        // A fence for products orders those with what was done to registers before.
        || either(&|a, b| *a == Instr::Fence(Fence::Wgmma) && !uses_registers(b))
        // A fence between the proxies may stand anywhere on the way from one to the other.
        || either(&|a, b| *a == Instr::Fence(Fence::Async) && matches!(b, Instr::Barrier(_)))
        // Its own answer tells the claimer that the phase before is over.
        || either(&|a, b| waits_for(a, READ) && is_expect(b) && concerns_answers(b))
        // An answer comes by itself, so that it may be waited for at any time behind the claim.
        || either(&|a, b| waits_for(a, ANSWERED) && !concerns_answers(b))
        // Whoever waits for two things may wait for either first.
        || (is_wait(a) && is_wait(b))
}

fn waits_for(it: &Instr, name: &str) -> bool {
    matches!(it, Instr::Await(it) if it.barrier.as_str() == name)
}

fn concerns_answers(it: &Instr) -> bool {
    let expects = matches!(it, Instr::Arrive(it) if it.barrier.as_str() == ANSWERED);
    expects || matches!(it, Instr::Claim(_) | Instr::Take(_))
}

/// What the mbarriers are called that tell of answers to claims, and of those who have read them.
const ANSWERED: &str = "tile_full";
const READ: &str = "tile_empty";

fn uses_registers(it: &Instr) -> bool {
    matches!(it, Instr::Wgmma(_) | Instr::Store(..) | Instr::Tensor(_))
}
