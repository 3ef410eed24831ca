//! Whether different threads of a block touch the same element, exactly.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::{
    Independence, Index, Less, Name, Op, ThreadAxis,
    access::{AccessRelation, Conflict, Disjointness, Iteration},
    arith::Bounds,
    axis_var,
    solve::Answer,
};

use crate::lower::analysis::kernel_accesses::{KernelAccess, KernelFacts};

/// When the second of two touches happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum When {
    /// In the same iteration of all loops around both.
    Same,
    /// In the next iteration of the innermost loop around both, and the same of the others.
    Next,
    /// In any later iteration of the innermost loop around both, and the same of the others.
    Later,
}

/// Two threads touch the same element one after the other, and one of them writes; or it is not known that they
/// do not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dependence {
    /// The buffer that is touched first.
    pub(crate) buffer: Name,
    /// Whether the first touch writes.
    pub(crate) first_writes: bool,
    /// Whether the second touch writes.
    pub(crate) then_writes: bool,
    /// Which of the touches stands for the beginning or the end of the block that has the memory.
    pub(crate) life: [bool; 2],
    /// When the second touch happens.
    pub(crate) when: When,
    /// Why it is one.
    pub(crate) reason: Reason,
}

/// Why two touches are ordered by a barrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// These two threads touch this element.
    Example {
        /// The thread that comes first, an index for each axis.
        first: Vec<i64>,
        /// The thread that comes second.
        then: Vec<i64>,
        /// The subscripts in the first touch.
        element: Vec<i64>,
        /// The buffer of the second touch, where it is another with bytes in common.
        other: Option<Name>,
    },
    /// There is no proof that they do not meet.
    Unproved,
}

/// Finds dependences between the threads of a kernel.
pub(crate) struct Dependences {
    /// What is known in the kernel.
    pub(crate) walk: KernelFacts,
    /// The thread axes and how many threads they have.
    pub(crate) threads: Vec<(Name, i64)>,
    /// Those of the axes on which threads have to differ, on one at least.
    pub(crate) apart: Vec<Name>,
    /// Those on which they are the same.
    pub(crate) same: Vec<Name>,
    /// The pairs of buffers that share bytes.
    pub(crate) aliases: BTreeSet<(Name, Name)>,
    /// Where shared buffers start, in bytes.
    pub(crate) offsets: IndexMap<Name, i64>,
    /// Whether only what blocks of a cluster see as one is asked about.
    pub(crate) of_cluster: bool,
}

impl Dependences {
    /// The dependence between two touches under the given loops and conditions, if there is one.
    pub(crate) fn between(
        &self,
        a: &KernelAccess,
        b: &KernelAccess,
        around: &[Op],
        when: When,
    ) -> Option<Dependence> {
        let alias = a.buffer != b.buffer && self.aliases.contains(&(a.buffer.clone(), b.buffer.clone()));
        if self.of_cluster && !self.walk.is_of_cluster(&a.buffer) {
            return None;
        }
        if (a.buffer != b.buffer && !alias) || !(a.write || b.write) {
            return None;
        }
        if when != When::Same && self.are_independent(&a.buffer, around) {
            return None;
        }
        let alone = |axis: &Name| matches!((a.only(axis), b.only(axis)), (Some(a), Some(b)) if a == b);
        let mut same: Vec<Name> = self.same.clone();
        if self.walk.is_global(&a.buffer) {
            same.extend(around.iter().filter_map(taken_along).map(axis_var));
        }
        let is_apart = |it: &&Name| self.apart.contains(it) && !same.contains(it) && !alone(it);
        let axes: Vec<&Name> = self.threads.iter().map(|it| &it.0).filter(is_apart).collect();
        if axes.is_empty() {
            return None;
        }
        let placed = alias.then(|| self.placed(a, b));
        let reason = match &placed {
            Some(None) => Some(Reason::Unproved),
            None => {
                Situation { of: self, a, b, named: a, other: None, around, when, same: &same }.reason(&axes)
            }
            Some(Some((x, y))) => {
                let other = Some(&b.buffer);
                Situation { of: self, a: x, b: y, named: a, other, around, when, same: &same }.reason(&axes)
            }
        };
        let (first_writes, then_writes, life) = (a.write, b.write, [a.is_life, b.is_life]);
        let buffer = a.buffer.clone();
        reason.map(|reason| Dependence { buffer, first_writes, then_writes, life, when, reason })
    }

    /// Whether the iterations of the loop around do not meet in a buffer, as was proved before.
    fn are_independent(&self, buffer: &Name, around: &[Op]) -> bool {
        let mut loops =
            around.iter().rev().filter_map(|op| if let Op::For(it) = op { Some(it) } else { None });
        loops.next().is_some_and(|it| it.independent != Independence::Unknown) && self.walk.is_global(buffer)
    }

    /// Touches of two buffers as touches of the memory that both are in.
    fn placed(&self, a: &KernelAccess, b: &KernelAccess) -> Option<(KernelAccess, KernelAccess)> {
        let ((x, x_bytes), (y, y_bytes)) = (self.walk.flat(a)?, self.walk.flat(b)?);
        let unit = x_bytes.min(y_bytes);
        let place = |touch: &KernelAccess, flat: Index, bytes: i64| {
            let start = self.offsets.get(&touch.buffer)? / unit;
            let indices = vec![flat * (bytes / unit) + start];
            let lanes = touch.lanes * u32::try_from(bytes / unit).ok()?;
            Some(KernelAccess { indices, lanes, ..touch.clone() })
        };
        Some((place(a, x, x_bytes)?, place(b, y, y_bytes)?))
    }
}

/// The axis on which threads differ that run iterations of their own of a loop, which do not meet in global memory.
fn taken_along(op: &Op) -> Option<ThreadAxis> {
    match op {
        Op::For(it) => match it.independent {
            Independence::Along(axis) => Some(axis),
            Independence::Unknown | Independence::Iterations => None,
        },
        _ => None,
    }
}

/// Two touches, and when they happen.
struct Situation<'a> {
    of: &'a Dependences,
    a: &'a KernelAccess,
    b: &'a KernelAccess,
    /// The first touch as its buffer has it.
    named: &'a KernelAccess,
    /// The buffer of the second, if it is another.
    other: Option<&'a Name>,
    around: &'a [Op],
    when: When,
    /// The axes on which both threads are the same.
    same: &'a [Name],
}

impl Situation<'_> {
    /// The exact answer, and where its search is cut off, a proof from the subscripts as sums for those axes that it serves.
    fn reason(&self, axes: &[&Name]) -> Option<Reason> {
        match self.solve(axes) {
            Some(Reason::Unproved) => self.solve(&self.unseparated(axes)),
            exact => exact,
        }
    }

    /// The loop whose iterations differ.
    fn carried(&self) -> Option<&Name> {
        let mut loops = self.around.iter().rev().filter_map(|op| match op {
            Op::For(it) => Some(&it.var),
            _ => None,
        });
        loops.next().filter(|_| self.when != When::Same)
    }

    /// Whether a variable has the same value at both touches, but for the carried one.
    fn is_common(&self, name: &Name) -> bool {
        let is_loop = |op: &Op| matches!(op, Op::For(it) if it.var == *name);
        self.of.walk.is_uniform(name) || self.same.contains(name) || self.around.iter().any(is_loop)
    }

    /// The axes on which the threads may differ, as far as sums of terms can tell.
    fn unseparated<'a>(&self, axes: &[&'a Name]) -> Vec<&'a Name> {
        if self.a.lanes.max(self.b.lanes) > 1 {
            return axes.to_vec();
        }
        let carried = self.carried();
        let later: Vec<_> = self.b.indices.iter().map(|it| it.subst(&|name| self.in_next(name))).collect();
        let apart = |name: &Name| self.is_common(name) && Some(name) != carried;
        let is_common =
            |name: &Name| if self.when == When::Later { apart(name) } else { self.is_common(name) };
        let bounds = self.bounds();
        let pair = Disjointness { a: &self.a.indices, b: &later, bounds: &bounds, is_common: &is_common };
        if pair.disjoint() {
            return vec![];
        }
        // Whether touches in different iterations of the loop never meet, whatever the threads.
        let pair = Disjointness { is_common: &apart, b: &self.b.indices, ..pair };
        let across = carried.map(|var| (var, pair.separated()));
        if across.as_ref().is_some_and(|(var, separated)| separated.contains(*var)) {
            return vec![];
        }
        let separated = match across {
            // The same question again.
            Some((_, separated)) if self.when == When::Later => separated,
            Some(_) | None => Disjointness { is_common: &is_common, b: &later, ..pair }.separated(),
        };
        axes.iter().copied().filter(|it| !separated.contains(*it)).collect()
    }

    /// The carried variable one iteration on.
    fn in_next(&self, name: &Name) -> Option<Index> {
        match self.iteration(name) {
            Iteration::Later(by) => Some(Index::var(name) + by),
            Iteration::Same | Iteration::Any => None,
        }
    }

    /// What is known of the variables of both: of an axis, the wider of the two ranges.
    fn bounds(&self) -> Bounds {
        let mut bounds = self.of.walk.dims();
        for (name, extent) in self.a.vars.iter().chain(&self.b.vars) {
            bounds.insert(name, extent);
        }
        for (axis, count) in &self.of.threads {
            let extent = |it: &KernelAccess| it.limits.get(axis).copied().unwrap_or(*count).min(*count);
            bounds.insert(axis, &Index::int(extent(self.a).max(extent(self.b))));
        }
        bounds
    }

    /// Threads that differ on one of the axes and touch the same element.
    fn solve(&self, axes: &[&Name]) -> Option<Reason> {
        if axes.is_empty() {
            return None;
        }
        let (first, second) = (self.relation(self.a), self.relation(self.b));
        let when = |name: &Name| self.iteration(name);
        let both = Conflict { first: &first, second: &second, dims: &self.of.walk.dims, when: &when };
        let mut problem = both.problem();
        if let (When::Later, Some(var)) = (self.when, self.carried()) {
            let var = Index::var(var);
            problem.less(&Less::new(var.clone(), both.at_second(&var)));
        }
        let mut unproved = None;
        for axis in axes {
            let a = Index::var(axis);
            let b = both.at_second(&a);
            // Where both sides are alike, so are the two directions.
            let either = [Less::new(a.clone(), b.clone()), Less::new(b, a)];
            let directions = if self.a == self.b && self.when == When::Same { 1 } else { 2 };
            for less in &either[..directions] {
                let mut problem = problem.clone();
                problem.less(less);
                match problem.solve() {
                    Answer::Never => {}
                    Answer::Unknown => unproved = Some(Reason::Unproved),
                    Answer::Point(point) => {
                        let value = |name: &Name| point.get(name).copied();
                        let threads = || self.of.threads.iter().map(|it| Index::var(&it.0));
                        let first = threads().filter_map(|it| it.eval(&value)).collect();
                        let then = threads().filter_map(|it| both.at_second(&it).eval(&value)).collect();
                        let element = self.named.indices.iter().filter_map(|it| it.eval(&value)).collect();
                        return Some(Reason::Example { first, then, element, other: self.other.cloned() });
                    }
                }
            }
        }
        unproved
    }

    /// Which iteration of a variable the second touch is in.
    fn iteration(&self, name: &Name) -> Iteration {
        let is_carried = self.carried() == Some(name);
        match self.when {
            When::Next if is_carried => Iteration::Later(1),
            When::Later if is_carried => Iteration::Any,
            When::Same | When::Next | When::Later => Iteration::same_if(self.is_common(name)),
        }
    }

    /// A touch by any thread, of any of its lanes.
    fn relation(&self, touch: &KernelAccess) -> AccessRelation {
        let common = self.of.walk.common.iter().map(|(name, extent)| (name.clone(), extent.clone()));
        let threads = self.of.threads.iter().map(|(axis, count)| (axis.clone(), Index::int(*count)));
        let around = self.around.iter().filter_map(|op| match op {
            Op::For(it) => Some((it.var.clone(), it.extent.clone())),
            _ => None,
        });
        let mut vars: Vec<_> = common.chain(threads).chain(around).collect();
        vars.extend(touch.vars.iter().map(|(name, extent)| (name.clone(), extent.clone())));
        let mut indices = touch.indices.clone();
        if let Some(last) = indices.last_mut().filter(|_| touch.lanes > 1) {
            // No program has a name like it.
            let lane = Name::new("+");
            vars.push((lane.clone(), Index::int(i64::from(touch.lanes))));
            *last = last.clone() + Index::var(&lane);
        }
        AccessRelation { indices, vars, conditions: touch.conditions.clone() }
    }
}
