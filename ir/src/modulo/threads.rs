//! The threads that run a loop, and how often they come to an access.

use std::collections::BTreeMap;

use super::work::extent;
use crate::{
    Arch, Loop, LoopKind, Name, Scope, Stmt, ThreadAxis,
    access::FuncAccess,
    intrin::{Intrinsic, WARP},
};

/// The blocks of threads that run a loop.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    /// The loops around that are dealt to threads.
    around: Vec<(Name, ThreadAxis, f64)>,
    /// The threads of a block.
    pub(super) count: f64,
    /// The blocks of the grid.
    pub(super) blocks: f64,
}

impl Threads {
    /// Of a loop that stands in others; `None` where a size is not known.
    pub(super) fn of(around: &[&Loop], it: &Loop) -> Option<Threads> {
        let mut extents: BTreeMap<ThreadAxis, f64> = BTreeMap::new();
        let mut lanes: f64 = 1.0;
        let mut unknown = false;
        let mut add = |it: &Loop| {
            if let LoopKind::Bound(axis) = it.kind {
                let Some(extent) = extent(&it.extent) else { return unknown |= axis.is_thread() };
                let most = extents.entry(axis).or_insert(1.0);
                *most = most.max(extent);
            }
        };
        for it in around {
            add(it);
        }
        // All blocks of a kernel have as many threads as its widest statement.
        let kernel = around.first().map_or(&it.body, |it| &it.body);
        kernel.walk(&mut |stmt| match stmt {
            Stmt::Loop(it) => add(it),
            Stmt::Block(it) => lanes = lanes.max(it.attrs.tensorize.map_or(1.0, |it| it.lanes() as f64)),
            Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
        });
        if unknown {
            return None;
        }
        let x = extents.entry(ThreadAxis::ThreadX).or_insert(1.0);
        *x = x.max(lanes);
        let product = |of_threads: bool| {
            extents.iter().filter(|it| it.0.is_thread() == of_threads).map(|it| it.1).product()
        };
        let bound = |it: &&Loop| match it.kind {
            LoopKind::Bound(axis) if axis.is_thread() => Some((it.var.clone(), axis, extent(&it.extent)?)),
            _ => None,
        };
        let around = around.iter().filter_map(bound).collect();
        Some(Threads { around, count: product(true), blocks: product(false) })
    }

    /// The loops over which an access runs in one iteration, for all threads of a block: an axis that is dealt out again inside
    /// counts there.
    fn loops<'a>(&'a self, access: &'a FuncAccess<'_>) -> Option<Vec<(&'a Name, LoopKind, f64)>> {
        let axis_of = |it: &Loop| match it.kind {
            LoopKind::Bound(axis) => Some(axis),
            _ => None,
        };
        let inside = &access.loops;
        let again = |axis: ThreadAxis, from: usize| inside[from..].iter().any(|it| axis_of(it) == Some(axis));
        let around = self.around.iter().filter(|it| !again(it.1, 0));
        let mut out: Vec<_> =
            around.map(|(name, axis, extent)| (name, LoopKind::Bound(*axis), *extent)).collect();
        for (at, it) in inside.iter().enumerate() {
            if !axis_of(it).is_some_and(|axis| again(axis, at + 1)) {
                out.push((&it.var, it.kind, extent(&it.extent)?));
            }
        }
        Some(out)
    }

    /// How many elements it touches: of memory that threads share, all of them; of registers, one thread.
    pub(super) fn distinct(&self, access: &FuncAccess<'_>, scope: Scope) -> Option<f64> {
        let is_in = |name: &Name| access.indices.iter().any(|it| it.any_var(&|var| var == name));
        let counts = |kind: LoopKind| !scope.is_registers() || !matches!(kind, LoopKind::Bound(_));
        let all = self.loops(access)?.into_iter().filter(|it| is_in(it.0) && counts(it.1));
        let elements: f64 = all.map(|it| it.2).product();
        let lanes = access.block().and_then(|it| it.attrs.tensorize).map_or(WARP, Intrinsic::lanes);
        Some(if scope == Scope::Fragment { elements / lanes as f64 } else { elements })
    }

    /// How often it happens.
    pub(super) fn times(&self, access: &FuncAccess<'_>) -> Option<f64> {
        Some(self.loops(access)?.into_iter().map(|it| it.2).product())
    }

    /// How many elements shared memory is asked for: what a loop inside does not change is loaded once and kept in a register, and
    /// lanes of a warp that want the same are served together.
    pub(super) fn asked(&self, access: &FuncAccess<'_>) -> Option<f64> {
        let is_in = |name: &Name| access.indices.iter().any(|it| it.any_var(&|var| var == name));
        let loops = self.loops(access)?;
        let (mut out, mut innermost) = (1.0, true);
        for (name, kind, extent) in loops.iter().rev() {
            let written_out = matches!(kind, LoopKind::Unrolled | LoopKind::Vectorized);
            let changes = is_in(name) || matches!(kind, LoopKind::Bound(_));
            if changes || !(innermost || written_out) {
                out *= extent;
            }
            innermost &= !changes;
        }
        let mut lanes = f64::from(Arch::WARP);
        for axis in [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ] {
            if let Some((name, _, extent)) = loops.iter().find(|it| it.1 == LoopKind::Bound(axis)) {
                let together = extent.min(lanes);
                out /= if is_in(name) { 1.0 } else { together };
                lanes = (lanes / together).max(1.0);
            }
        }
        Some(out)
    }

    /// How many values one thread adds up in an element, one after the other.
    pub(super) fn sums(&self, access: &FuncAccess<'_>) -> Option<f64> {
        let is_in = |name: &Name| access.indices.iter().any(|it| it.any_var(&|var| var == name));
        let all = self.loops(access)?.into_iter();
        Some(all.filter(|it| !is_in(it.0) && !matches!(it.1, LoopKind::Bound(_))).map(|it| it.2).product())
    }
}
