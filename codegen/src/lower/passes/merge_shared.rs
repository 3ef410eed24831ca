//! Lets shared buffers that are never in use at the same time share bytes.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::{Alloc, Kernel, Module, Name, Op, Proxy, Scope};

use crate::launch::{aligned, shared_bytes, shared_layout};
use crate::lower::analysis::live_range::live_ranges;

/// ```text
/// alloc A_shared: f32[256] @shared               alloc A_shared: f32[256] @shared at 0
/// alloc C_shared: f32[256] @shared               alloc C_shared: f32[256] @shared at 0
/// A_shared[threadIdx_x] = A[threadIdx_x]    ->   A_shared[threadIdx_x] = A[threadIdx_x]
/// C_local[0] = A_shared[255 - threadIdx_x]       C_local[0] = A_shared[255 - threadIdx_x]
/// C_shared[threadIdx_x] = C_local[0]             C_shared[threadIdx_x] = C_local[0]
/// ```
///
/// What the copy engine or warpgroups touch by themselves shares bytes with nothing: when that is over, only those know who wait for it. Nor does what roles touch, since each runs at its own pace, or what other blocks of a cluster touch.
/// Buffers take places from the largest to the smallest, each the tightest gap that those leave which are in use at
/// the same time. Where that saves nothing the kernel stays as it is. `insert_barriers` runs afterwards, so that
/// threads wait for each other where one buffer takes over the bytes of another.
pub(crate) fn merge_shared(mut module: Module) -> Module {
    for kernel in &mut module.kernels {
        let live_ranges = live_ranges(kernel);
        let allocs: Vec<_> = live_ranges.iter().map(|it| &it.alloc).collect();
        let by_hardware = by_hardware(kernel);
        let has_roles = !kernel.roles.is_empty();
        let apart = |at: usize| {
            let it = &live_ranges[at].alloc;
            has_roles || it.scope == Scope::Cluster || by_hardware.contains(&it.name)
        };
        let conflict = |a: usize, b: usize| apart(a) || apart(b) || live_ranges[a].conflicts(&live_ranges[b]);
        let places = pack(&allocs, &conflict);
        let end = places.iter().map(|(at, offset)| offset + shared_bytes(&live_ranges[*at].alloc)).max();
        if end.is_some_and(|it| it < shared_layout(kernel).1) {
            let offset = |(at, offset): (usize, i64)| (live_ranges[at].alloc.name.clone(), offset);
            let offsets: IndexMap<_, _> = places.into_iter().map(offset).collect();
            allocs_mut(kernel).for_each(|it| it.offset = offsets.get(&it.name).copied());
        }
        allocs_mut(kernel).for_each(|it| it.per = None);
    }
    module
}

/// The buffers that something else than threads touches.
fn by_hardware(kernel: &Kernel) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    for op in &kernel.body {
        op.each_instr(&mut |it| {
            it.each_effect(&mut |it| {
                if it.proxy == Proxy::Async {
                    out.insert(it.access.buffer.clone());
                }
            });
        });
    }
    out
}

/// The allocations at the top of a kernel: all shared memory is among them.
fn allocs_mut(kernel: &mut Kernel) -> impl Iterator<Item = &mut Alloc> {
    kernel.body.iter_mut().filter_map(|op| if let Op::Alloc(it) = op { Some(it) } else { None })
}

/// The place in bytes of each buffer, by its position.
fn pack(allocs: &[&Alloc], conflict: &dyn Fn(usize, usize) -> bool) -> Vec<(usize, i64)> {
    let bytes: Vec<_> = allocs.iter().map(|it| shared_bytes(it)).collect();
    let mut order: Vec<_> = (0..bytes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(bytes[*at]));
    let mut placed: Vec<(usize, i64)> = Vec::new();
    for at in order {
        let others = placed.iter().filter(|it| conflict(it.0, at));
        let mut taken: Vec<_> = others.map(|(other, start)| (*start, start + bytes[*other])).collect();
        taken.sort_unstable();
        let (mut end, mut best) = (0, None);
        for (start, stop) in taken {
            let gap = start - end;
            if gap >= bytes[at] && best.is_none_or(|(size, _)| gap < size) {
                best = Some((gap, end));
            }
            end = aligned(end.max(stop), allocs[at]);
        }
        placed.push((at, best.map_or(end, |it| it.1)));
    }
    placed
}

/// A kernel whose shared buffers have other sizes, packed anew; those share bytes that do in `old`, of the same
/// buffers.
pub(crate) fn repacked(old: &Kernel, mut new: Kernel) -> Kernel {
    let aliases = aliases(old);
    if allocs_mut(&mut new).all(|it| it.offset.is_none()) {
        return new;
    }
    let allocs = new.body.iter().filter_map(|op| if let Op::Alloc(it) = op { Some(it) } else { None });
    let allocs: Vec<_> = allocs.collect();
    let conflict = |a: usize, b: usize| !aliases.contains(&(allocs[a].name.clone(), allocs[b].name.clone()));
    let places = pack(&allocs, &conflict).into_iter();
    let places: IndexMap<_, _> = places.map(|(at, offset)| (allocs[at].name.clone(), offset)).collect();
    allocs_mut(&mut new).for_each(|it| it.offset = places.get(&it.name).copied());
    new
}

/// The pairs of shared buffers of a kernel that have bytes in common, each both ways round.
pub(crate) fn aliases(kernel: &Kernel) -> BTreeSet<(Name, Name)> {
    let (offsets, _) = shared_layout(kernel);
    let mut ranges = Vec::new();
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && let Some(start) = offsets.get(&it.name)
            {
                ranges.push((&it.name, *start, start + shared_bytes(it)));
            }
        });
    }
    let pairs = ranges.iter().flat_map(|a| ranges.iter().map(move |b| (a, b)));
    let overlap = pairs.filter(|(a, b)| a.0 != b.0 && a.1 < b.2 && b.1 < a.2);
    overlap.map(|(a, b)| (a.0.clone(), b.0.clone())).collect()
}

#[cfg(test)]
mod tests {
    use ir::{
        Access, Alloc, DType, For, ForKind, Group, Index, Instr, Literal, Op, Scope, ThreadAxis, Value, Wait,
    };

    use super::*;

    fn alloc(name: &str, len: i64) -> Op {
        Op::Alloc(Alloc::new(Name::new(name), DType::F32, len, Scope::Shared))
    }

    fn place(name: &str) -> Access {
        Access { buffer: Name::new(name), indices: vec![Index::int(0)], lanes: 1 }
    }

    fn copy(name: &str) -> Op {
        Op::from(Instr::AsyncCopy(place(name), Value::Load(place("X"))))
    }

    fn store(name: &str) -> Op {
        Op::from(Instr::Store(place(name), Value::Const(Literal::zero(DType::F32))))
    }

    fn wait(in_flight: u32, buffers: &[&str]) -> Op {
        Op::from(Instr::Wait(Wait::copies(in_flight, buffers.iter().map(|it| Name::new(*it)).collect())))
    }

    /// The bytes that a kernel of these statements needs after merging; it allocates `A` and `B`, 256 bytes each.
    fn bytes(body: Vec<Op>, alloc_scopes: &[(&str, &str)]) -> i64 {
        let alloc = |name: &str| {
            let per = alloc_scopes.iter().find(|it| it.0 == name).map(|it| Name::new(it.1));
            Op::Alloc(Alloc { per, ..Alloc::new(Name::new(name), DType::F32, 64, Scope::Shared) })
        };
        let body = [alloc("A"), alloc("B")].into_iter().chain(body).collect();
        let launch = IndexMap::from([(ThreadAxis::ThreadX, Index::int(32))]);
        let kernel = Kernel { body, ..Kernel::new(Name::new("f"), launch) };
        let (dims, args) = (vec![], IndexMap::new());
        let module = Module { name: Name::new("f"), dims, args, kernels: vec![kernel] };
        shared_layout(&merge_shared(module).kernels[0]).1
    }

    fn in_loop(body: Vec<Op>) -> Op {
        Op::For(For::new(Name::new("k"), Index::int(4), ForKind::Serial, body).into())
    }

    #[test]
    fn what_is_over_before_the_other_begins_shares() {
        assert_eq!(bytes(vec![store("A"), store("B")], &[]), 256);
        assert_eq!(bytes(vec![store("A"), store("B"), store("A")], &[]), 512);
    }

    #[test]
    fn copies_under_way_do_not_share() {
        assert_eq!(bytes(vec![copy("A"), copy("B")], &[]), 512);
        assert_eq!(bytes(vec![copy("A"), Op::from(Instr::Commit(Group::CpAsync)), store("B")], &[]), 512);
        assert_eq!(bytes(vec![copy("A"), wait(0, &["A"]), store("B")], &[]), 512, "not committed");
        assert_eq!(
            bytes(vec![copy("A"), Op::from(Instr::Commit(Group::CpAsync)), wait(0, &["A"]), store("B")], &[]),
            256
        );
        assert_eq!(
            bytes(vec![copy("A"), Op::from(Instr::Commit(Group::CpAsync)), wait(1, &["A"]), store("B")], &[]),
            512,
            "may be in flight"
        );
        let closed_twice = vec![
            copy("A"),
            Op::from(Instr::Commit(Group::CpAsync)),
            Op::from(Instr::Commit(Group::CpAsync)),
            wait(1, &["A"]),
            store("B"),
        ];
        assert_eq!(bytes(closed_twice, &[]), 256);
    }

    #[test]
    fn a_wait_that_may_not_run_counts_for_nothing() {
        let waits = in_loop(vec![wait(0, &["A"])]);
        assert_eq!(
            bytes(vec![copy("A"), Op::from(Instr::Commit(Group::CpAsync)), waits, store("B")], &[]),
            512
        );
        let commits = in_loop(vec![Op::from(Instr::Commit(Group::CpAsync))]);
        assert_eq!(bytes(vec![copy("A"), commits, wait(0, &["A"]), store("B")], &[]), 512);
    }

    #[test]
    fn a_loop_keeps_what_it_carries() {
        let body = || vec![in_loop(vec![store("A"), store("B")])];
        assert_eq!(bytes(body(), &[]), 512);
        assert_eq!(bytes(body(), &[("A", "k")]), 512, "B is in use in the whole loop");
        assert_eq!(bytes(body(), &[("A", "k"), ("B", "k")]), 256);
    }

    #[test]
    fn a_copy_that_outlives_its_iteration_is_in_use_to_the_end() {
        let alloc_scopes = [("A", "k"), ("B", "k")];
        assert_eq!(
            bytes(
                vec![in_loop(vec![store("B"), copy("A"), Op::from(Instr::Commit(Group::CpAsync))])],
                &alloc_scopes
            ),
            512
        );
        let waits = vec![store("B"), copy("A"), Op::from(Instr::Commit(Group::CpAsync)), wait(0, &["A"])];
        assert_eq!(bytes(vec![in_loop(waits)], &alloc_scopes), 256);
    }

    #[test]
    fn the_tightest_gap_is_taken() {
        // `big` is never in use with the others; those are all in use at once.
        let mut body = vec![alloc("one", 64), alloc("two", 32), alloc("three", 16), alloc("big", 128)];
        body.extend([store("one"), store("two"), store("three"), store("one"), store("two"), store("big")]);
        let launch = IndexMap::from([(ThreadAxis::ThreadX, Index::int(32))]);
        let kernel = Kernel { body, ..Kernel::new(Name::new("f"), launch) };
        let live_ranges = live_ranges(&kernel);
        let allocs: Vec<_> = live_ranges.iter().map(|it| &it.alloc).collect();
        let places = pack(&allocs, &|a, b| live_ranges[a].conflicts(&live_ranges[b]));
        assert_eq!(places, [(3, 0), (0, 0), (1, 256), (2, 384)]);
    }
}
