//! Whether two accesses of a pipelined loop meet in an element, some iterations apart.

use std::collections::BTreeMap;

use crate::{
    Func, Index, Loop, LoopKind, Name, Scope,
    access::{AccessRelation, Conflict, FuncAccess, Iteration},
    solve::{Answer, Problem},
};

/// Where a loop stands.
pub(super) struct Setting<'a> {
    pub(super) func: &'a Func,
    /// The loops around the pipelined one, outermost first.
    pub(super) around: &'a [&'a Loop],
    pub(super) var: &'a Name,
    pub(super) extent: &'a Index,
}

/// Whether and where two accesses meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Meeting {
    /// In this iteration of the first, in this element.
    At(i64, Vec<i64>),
    /// Nowhere.
    Never,
    /// It could not be found out.
    Unknown,
}

impl Setting<'_> {
    /// Whether `a` at some iteration and `b` that many iterations later touch one element.
    ///
    /// The loops around have one value for both, but for those bound to threads where the memory is not a thread's own:
    /// there all threads count together.
    pub(super) fn meet(&self, a: &FuncAccess<'_>, b: &FuncAccess<'_>, distance: i64) -> Meeting {
        if a.buffer != b.buffer || a.indices.len() != b.indices.len() {
            return Meeting::Never;
        }
        let scope = self.func.buffers.get(a.buffer).map_or(Scope::Global, |it| it.scope);
        let is_same = |it: &Loop| match it.kind {
            LoopKind::Bound(axis) => !scope.meets_along(axis),
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => true,
        };
        let when = |name: &Name| match self.around.iter().find(|it| it.var == *name) {
            _ if name == self.var => Iteration::Later(distance),
            around => Iteration::same_if(around.is_some_and(|it| is_same(it))),
        };
        let (first, second) = (self.relation(a), self.relation(b));
        let both = Conflict { first: &first, second: &second, dims: &self.func.dims, when: &when };
        match both.problem().solve() {
            Answer::Never => Meeting::Never,
            Answer::Unknown => Meeting::Unknown,
            Answer::Point(point) => self.example(a, &point),
        }
    }

    /// The points at which an access happens.
    pub(super) fn points(&self, access: &FuncAccess<'_>) -> Problem {
        self.relation(access).points(&self.func.dims)
    }

    /// An access in the loop, under all loops around it.
    fn relation(&self, access: &FuncAccess<'_>) -> AccessRelation {
        let mut out = access.relation();
        let around = self.around.iter().map(|it| (&it.var, &it.extent)).chain([(self.var, self.extent)]);
        out.vars.splice(0..0, around.map(|(var, extent)| (var.clone(), extent.clone())));
        out
    }

    fn example(&self, a: &FuncAccess<'_>, point: &BTreeMap<Name, i64>) -> Meeting {
        let value = |name: &Name| point.get(name).copied();
        let element: Option<Vec<i64>> = a.indices.iter().map(|it| it.eval(&value)).collect();
        match (point.get(self.var), element) {
            (Some(iteration), Some(element)) => Meeting::At(*iteration, element),
            (None, _) | (_, None) => Meeting::Unknown,
        }
    }
}
