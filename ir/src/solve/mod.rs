//! Exact answers to small questions about integers: is there a point where all these conditions hold?
//!
//! Questions about dependences are of this kind: can thread `t` in iteration `i` and thread `u` in iteration `i + 1`
//! touch the same element, all guards considered? The answer is a point, which is evaluated in the conditions as they
//! were given before it is believed; or a proof that there is none; or that the limits were reached. All limits are
//! counts, so that the answer is the same on every machine.
//!
//! The conditions become linear rows over the variables and auxiliary ones: a quotient by a constant is a variable of
//! its own between two rows, so is a product of variables (with an interval), and so is a minimum (with two rows of
//! which one must hold). Then: intervals and congruences are propagated through the rows; a short search looks for a
//! point, corners first; Fourier-Motzkin elimination with integer rounding, in the spirit of Pugh's Omega test, looks
//! for a contradiction; and a long search that eliminates at its nodes comes last.

mod digits;
mod eliminate;
mod invert;
mod linear;
mod propagate;
mod search;
mod system;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

pub(crate) use digits::{all_recombined, all_simplified_and_recombined};
pub(crate) use invert::point_of;

use self::{
    search::{Search, SearchResult},
    system::System,
};
use crate::{Index, Less, Name};

/// No symbolic dimension and no variable without a constant limit is taken to be larger.
pub(crate) const LARGEST: i64 = 1 << 31;

/// Conditions on integer variables in ranges.
///
/// An expression that has no value (a divisor that is not positive) makes its condition false. Values of 2^62 and
/// more do not count as reachable: no program that runs has such an index.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    vars: Vec<(Name, i64, i64)>,
    equal: Vec<(Index, Index)>,
    less: Vec<Less>,
}

/// What is known of a [`Problem`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// All conditions hold here.
    Point(BTreeMap<Name, i64>),
    /// There is no such point.
    Never,
    /// The limits were reached, or a condition mentions a variable without a range.
    Unknown,
}

impl Answer {
    /// Whether there is no point.
    pub fn is_never(&self) -> bool {
        *self == Answer::Never
    }

    /// The point where there is one.
    pub fn point(&self) -> Option<&BTreeMap<Name, i64>> {
        match self {
            Answer::Point(it) => Some(it),
            Answer::Never | Answer::Unknown => None,
        }
    }
}

impl Problem {
    /// No variables and no conditions.
    pub fn new() -> Problem {
        Problem::default()
    }

    /// A variable between two values, both included. Said twice, both ranges hold.
    pub fn var(&mut self, name: &Name, low: i64, high: i64) {
        match self.vars.iter_mut().find(|it| it.0 == *name) {
            Some((_, a, b)) => (*a, *b) = ((*a).max(low), (*b).min(high)),
            None => self.vars.push((name.clone(), low, high)),
        }
    }

    /// A symbolic dimension: at least one.
    pub fn dim(&mut self, name: &Name) {
        self.var(name, 1, LARGEST);
    }

    /// The variable of a loop: from zero up to its extent, which may be symbolic.
    pub fn index(&mut self, name: &Name, extent: &Index) {
        let most = extent.as_int().map_or(LARGEST, |it| it - 1);
        self.var(name, 0, most);
        if extent.as_int().is_none() {
            self.less(&Less::new(Index::var(name), extent.clone()));
        }
    }

    /// The condition that two expressions have the same value.
    pub fn equal(&mut self, a: &Index, b: &Index) {
        self.equal.push((a.clone(), b.clone()));
    }

    /// The condition `lhs < rhs`.
    pub fn less(&mut self, it: &Less) {
        self.less.push(it.clone());
    }

    /// A point, or that there is none, or that it is not known.
    pub fn solve(&self) -> Answer {
        if self.vars.iter().any(|it| it.1 > it.2) {
            return Answer::Never;
        }
        let Some(system) = System::of(self) else { return Answer::Unknown };
        let mut search = Search::new(self, &system);
        let short = 16 + 2 * self.vars.len();
        match search.run(short, false) {
            SearchResult::Point(point) => return self.named(&point),
            SearchResult::Nothing => return Answer::Never,
            SearchResult::Limit => {}
        }
        if search.refute() {
            return Answer::Never;
        }
        for (nodes, eliminate) in [(400, false), (120, true), (20_000, false)] {
            match search.run(nodes, eliminate) {
                SearchResult::Point(point) => return self.named(&point),
                SearchResult::Nothing => return Answer::Never,
                SearchResult::Limit => {}
            }
        }
        Answer::Unknown
    }

    fn named(&self, point: &[i64]) -> Answer {
        Answer::Point(self.vars.iter().zip(point).map(|(it, value)| (it.0.clone(), *value)).collect())
    }

    /// Whether all conditions hold for these values of the variables.
    fn holds(&self, point: &[i64]) -> bool {
        let value = |name: &Name| self.vars.iter().position(|it| it.0 == *name).map(|at| point[at]);
        let both = |a: &Index, b: &Index| Some((a.eval(&value)?, b.eval(&value)?));
        self.equal.iter().all(|(a, b)| both(a, b).is_some_and(|(a, b)| a == b))
            && self.less.iter().all(|it| both(&it.lhs, &it.rhs).is_some_and(|(a, b)| a < b))
    }
}
