//! Whether two accesses of a pipelined loop meet in an element, some iterations apart.

use std::collections::BTreeMap;

use super::touch::Touch;
use crate::{
    Func, Index, Less, Loop, LoopKind, Name, Scope,
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
    pub(super) fn meet(&self, a: &Touch, b: &Touch, distance: i64) -> Meeting {
        if a.buffer != b.buffer || a.indices.len() != b.indices.len() {
            return Meeting::Never;
        }
        let mut question = self.question(a);
        let scope = self.func.buffers.get(&a.buffer).map_or(Scope::Global, |it| it.scope);
        for it in self.around {
            if matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread() && scope.is_shared_along(axis)) {
                question.rename(&it.var, &it.extent);
            }
        }
        let later = Index::var(self.var) + distance;
        question.problem.less(&Less::new(later.clone(), question.other(self.extent)));
        question.renamed.insert(self.var.clone(), later);
        for (var, extent) in &b.loops {
            question.rename(var, extent);
        }
        for (x, y) in a.indices.iter().zip(&b.indices) {
            let y = question.other(y);
            question.problem.equal(x, &y);
        }
        for less in &b.conditions {
            let less = Less::new(question.other(&less.lhs), question.other(&less.rhs));
            question.problem.less(&less);
        }
        match question.problem.solve() {
            Answer::Never => Meeting::Never,
            Answer::Unknown => Meeting::Unknown,
            Answer::Point(point) => self.example(a, &point),
        }
    }

    /// The points at which an access happens.
    pub(super) fn problem_at(&self, touch: &Touch) -> Problem {
        self.question(touch).problem
    }

    fn question(&self, touch: &Touch) -> Question {
        let mut question = Question { problem: Problem::new(), renamed: BTreeMap::new() };
        for dim in &self.func.dims {
            question.problem.dim(dim);
        }
        let around = self.around.iter().map(|it| (&it.var, &it.extent)).chain([(self.var, self.extent)]);
        for (var, extent) in around.chain(touch.loops.iter().map(|it| (&it.0, &it.1))) {
            question.problem.index(var, extent);
        }
        for less in &touch.conditions {
            question.problem.less(less);
        }
        question
    }

    fn example(&self, a: &Touch, point: &BTreeMap<Name, i64>) -> Meeting {
        let value = |name: &Name| point.get(name).copied();
        let element: Option<Vec<i64>> = a.indices.iter().map(|it| it.eval(&value)).collect();
        match (point.get(self.var), element) {
            (Some(iteration), Some(element)) => Meeting::At(*iteration, element),
            (None, _) | (_, None) => Meeting::Unknown,
        }
    }
}

/// The equations of a meeting; the second access has variables of its own.
struct Question {
    problem: Problem,
    renamed: BTreeMap<Name, Index>,
}

impl Question {
    fn rename(&mut self, var: &Name, extent: &Index) {
        let other = Name::new(format!("{var}'"));
        let extent = self.other(extent);
        self.problem.index(&other, &extent);
        self.renamed.insert(var.clone(), Index::var(&other));
    }

    fn other(&self, index: &Index) -> Index {
        index.subst(&|name| self.renamed.get(name).cloned())
    }
}
