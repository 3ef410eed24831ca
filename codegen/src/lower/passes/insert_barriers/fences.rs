//! Fences between the ways to memory: barriers order what threads do, and not what hardware does by itself.

use std::collections::BTreeSet;

use ir::{Fence, Instr, Kernel, Name, Op, Participants, Proxy, Scope, SyncKind};

/// ```text
/// S[threadIdx_x] = A[threadIdx_x]          S[threadIdx_x] = A[threadIdx_x]
/// barrier                             ->   fence async
/// C[0 +: 32] <- wgmma_…(S[…], …)           barrier
///                                          C[0 +: 32] <- wgmma_…(S[…], …)
/// ```
///
/// What threads wrote to shared memory comes before what hardware does to it if the writer fences, and all meet then (PTX ISA,
/// *Proxies*). They meet where a dependence says so; so a fence stands before each barrier of a kernel that has such memory.
///
/// The same holds for what threads have read and hardware fills again: an arrival may be seen while their loads still stand behind stores of other
/// warps. Warps tell of that by themselves, so the barriers of warps count there, and arrivals that each thread makes.
pub(super) fn insert(kernel: &mut Kernel) {
    let shared = shared(&kernel.body);
    let touched = |wanted: &dyn Fn(Proxy, bool) -> bool| -> BTreeSet<Name> {
        let mut out = BTreeSet::new();
        for op in &kernel.body {
            op.each_instr(&mut |it| {
                // Where answers are taken, there is a fence already.
                if matches!(it, Instr::Take(_)) {
                    return;
                }
                it.each_effect(&mut |it| {
                    if wanted(it.proxy, it.mode.writes()) {
                        out.insert(it.access.buffer.clone());
                    }
                });
            });
        }
        out
    };
    let written = touched(&|proxy, writes| proxy == Proxy::Generic && writes);
    let read = touched(&|proxy, writes| proxy == Proxy::Generic && !writes);
    let by_hardware = touched(&|proxy, _| proxy == Proxy::Async);
    let filled = touched(&|proxy, writes| proxy == Proxy::Async && writes);
    let after = if shared.iter().any(|it| read.contains(it) && filled.contains(it)) {
        After::Reads
    } else if shared.iter().any(|it| written.contains(it) && by_hardware.contains(it)) {
        After::Writes
    } else {
        return;
    };
    kernel.body = fenced(std::mem::take(&mut kernel.body), after, false);
}

/// What threads do that hardware comes after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// They write, and meet as a block then.
    Writes,
    /// They read as well, of which warps and threads tell by themselves, too.
    Reads,
}

/// The buffers in shared memory.
fn shared(body: &[Op]) -> Vec<Name> {
    let name = |op: &Op| match op {
        Op::Alloc(it) if it.scope == Scope::Shared => Some(it.name.clone()),
        _ => None,
    };
    body.iter().filter_map(name).collect()
}

fn fenced(ops: Vec<Op>, after: After, is_led: bool) -> Vec<Op> {
    let mut out = Vec::with_capacity(ops.len());
    for op in ops {
        if let Op::Instr(it, origin) = &op {
            let least = if after == After::Reads { Participants::Warp } else { Participants::Warpgroup };
            let tells = match it.sync() {
                Some(SyncKind::Barrier) => it.participants() >= least,
                Some(SyncKind::Arrive(it)) => after == After::Reads && !is_led && !it.is_late,
                _ => false,
            };
            let is_fenced = matches!(out.last(), Some(Op::Instr(Instr::Fence(Fence::Async), _)));
            if tells && !is_fenced {
                out.push(Op::Instr(Instr::Fence(Fence::Async), origin.clone()));
            }
        }
        let is_led = is_led || matches!(op, Op::Leader(..));
        out.push(op.map_children(&mut |it| fenced(it, after, is_led)));
    }
    out
}
