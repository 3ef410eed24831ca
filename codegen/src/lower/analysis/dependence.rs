//! Whether different threads of a block touch the same element, exactly.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::{
    Index, Less, Name, Op,
    arith::Bounds,
    solve::{Answer, Problem},
};

use crate::lower::analysis::{
    disjointness::Pair,
    kernel_accesses::{KernelAccess, KernelFacts},
};

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
    /// The pairs of buffers that share bytes.
    pub(crate) aliases: BTreeSet<(Name, Name)>,
    /// Where shared buffers start, in bytes.
    pub(crate) offsets: IndexMap<Name, i64>,
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
        if (a.buffer != b.buffer && !alias) || !(a.write || b.write) {
            return None;
        }
        let alone = |axis: &Name| matches!((a.only(axis), b.only(axis)), (Some(a), Some(b)) if a == b);
        let axes: Vec<&Name> = self.threads.iter().map(|it| &it.0).filter(|it| !alone(it)).collect();
        if axes.is_empty() {
            return None;
        }
        let placed = alias.then(|| self.placed(a, b));
        let reason = match &placed {
            Some(None) => Some(Reason::Unproved),
            None => Situation { of: self, a, b, named: a, other: None, around, when }.reason(&axes),
            Some(Some((x, y))) => {
                Situation { of: self, a: x, b: y, named: a, other: Some(&b.buffer), around, when }
                    .reason(&axes)
            }
        };
        let (first_writes, then_writes) = (a.write, b.write);
        reason.map(|reason| Dependence { buffer: a.buffer.clone(), first_writes, then_writes, when, reason })
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
}

impl Situation<'_> {
    fn reason(&self, axes: &[&Name]) -> Option<Reason> {
        self.solve(&self.unseparated(axes))
    }

    /// The loop whose iterations differ.
    fn carried(&self) -> Option<&Name> {
        let mut loops = self.around.iter().rev().filter_map(|op| match op {
            Op::For(it) => Some(&it.var),
            Op::Alloc(_) | Op::If(..) | Op::Instr(_) => None,
        });
        loops.next().filter(|_| self.when != When::Same)
    }

    /// Whether a variable has the same value at both touches, but for the carried one.
    fn is_common(&self, name: &Name) -> bool {
        let is_loop = |op: &Op| matches!(op, Op::For(it) if it.var == *name);
        self.of.walk.is_uniform(name) || self.around.iter().any(is_loop)
    }

    /// The axes on which the threads may differ, as far as a fast proof can tell.
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
        let pair = Pair { a: &self.a.indices, b: &later, bounds: &bounds, is_common: &is_common };
        if pair.disjoint() {
            return vec![];
        }
        // Whether touches in different iterations of the loop never meet, whatever the threads.
        let pair = Pair { is_common: &apart, b: &self.b.indices, ..pair };
        let across = carried.map(|var| (var, pair.separated()));
        if across.as_ref().is_some_and(|(var, separated)| separated.contains(*var)) {
            return vec![];
        }
        let separated = match across {
            // The same question again.
            Some((_, separated)) if self.when == When::Later => separated,
            Some(_) | None => Pair { is_common: &is_common, b: &later, ..pair }.separated(),
        };
        axes.iter().copied().filter(|it| !separated.contains(*it)).collect()
    }

    /// The carried variable one iteration on.
    fn in_next(&self, name: &Name) -> Option<Index> {
        (self.when == When::Next && self.carried() == Some(name)).then(|| Index::var(name) + 1)
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
        let problem = self.problem();
        let mut unproved = None;
        for axis in axes {
            let (a, b) = (Index::var(axis), Index::var(&second(axis)));
            // Where both sides are alike, so are the two directions.
            let both = [Less::new(a.clone(), b.clone()), Less::new(b, a)];
            let directions = if self.a == self.b && self.when == When::Same { 1 } else { 2 };
            for less in &both[..directions] {
                let mut problem = problem.clone();
                problem.less(less);
                match problem.solve() {
                    Answer::Never => {}
                    Answer::Unknown => unproved = Some(Reason::Unproved),
                    Answer::Point(point) => {
                        let value = |name: &Name| point.get(name).copied();
                        let thread = |with: &dyn Fn(&Name) -> Name| {
                            self.of.threads.iter().filter_map(|it| value(&with(&it.0))).collect()
                        };
                        let element = self.named.indices.iter().filter_map(|it| it.eval(&value)).collect();
                        let (first, then) = (thread(&Name::clone), thread(&second));
                        return Some(Reason::Example { first, then, element, other: self.other.cloned() });
                    }
                }
            }
        }
        unproved
    }

    /// The question whether the two touches meet in an element.
    fn problem(&self) -> Problem {
        let mut out = Problem::new();
        for name in &self.of.walk.dims {
            out.dim(name);
        }
        for (name, extent) in &self.of.walk.blocks {
            out.index(name, extent);
        }
        for (axis, count) in &self.of.threads {
            out.var(axis, 0, count - 1);
            out.var(&second(axis), 0, count - 1);
        }
        for op in self.around {
            if let Op::For(it) = op {
                out.index(&it.var, &it.extent);
            }
        }
        for (name, extent) in &self.a.vars {
            out.index(name, extent);
        }
        self.a.conditions.iter().for_each(|it| out.less(it));
        let carried = self.carried();
        let with = |name: &Name| match self.in_next(name) {
            Some(next) => Some(next),
            None if self.when != When::Later && Some(name) == carried => None,
            None if self.is_common(name) && Some(name) != carried => None,
            None => Some(Index::var(&second(name))),
        };
        for (name, extent) in &self.b.vars {
            let (var, extent) = (with(name), extent.subst(&with));
            match var.as_ref().map(|it| (it, it.as_var())) {
                None => out.index(name, &extent),
                Some((_, Some(var))) => out.index(var, &extent),
                Some((next, None)) => out.less(&Less::new(next.clone(), extent)),
            }
        }
        if let (When::Later, Some(var)) = (self.when, carried) {
            out.less(&Less::new(Index::var(var), Index::var(&second(var))));
        }
        self.b.conditions.iter().for_each(|it| out.less(&it.subst(&with)));
        let last = self.a.indices.len().saturating_sub(1);
        for (at, (a, b)) in self.a.indices.iter().zip(&self.b.indices).enumerate() {
            let wide = |out: &mut Problem, index: Index, lanes: u32, name: &str| {
                if at != last || lanes == 1 {
                    return index;
                }
                let lane = Name::new(name);
                out.var(&lane, 0, i64::from(lanes) - 1);
                index + Index::var(&lane)
            };
            let (a, b) = (wide(&mut out, a.clone(), self.a.lanes, "+"), b.subst(&with));
            let b = wide(&mut out, b, self.b.lanes, "+'");
            out.equal(&a, &b);
        }
        out
    }
}

/// The variable of the second touch that has the role of one of the first.
fn second(name: &Name) -> Name {
    Name::new(format!("{name}'"))
}
