//! Whether two accesses can be to the same element.

use super::{AccessRelation, relation::second};
use crate::{
    Index, IndexKind, Less, Name,
    arith::Bounds,
    solve::{LARGEST, Problem, all_recombined},
};

/// Two accesses to one buffer, and what the points of the second have to do with those of the first.
pub struct Conflict<'a> {
    /// The one.
    pub first: &'a AccessRelation,
    /// The other.
    pub second: &'a AccessRelation,
    /// The symbolic dimensions, which are at least one, and common.
    pub dims: &'a [Name],
    /// Which iteration the second is in, of each variable.
    pub when: &'a dyn Fn(&Name) -> Iteration,
}

/// Which value a variable has at the second of two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Iteration {
    /// The same as at the first.
    Same,
    /// Any.
    Any,
    /// So many more than at the first.
    Later(i64),
}

impl Iteration {
    /// The same where that is so, and any elsewhere.
    pub const fn same_if(is_common: bool) -> Iteration {
        if is_common { Iteration::Same } else { Iteration::Any }
    }
}

/// Equations and conditions under which both accesses are to one element.
struct Equations {
    vars: Vec<(Name, Index)>,
    equal: Vec<(Index, Index)>,
    conditions: Vec<Less>,
}

impl Conflict<'_> {
    /// An expression over the variables of the second access, in the question about both.
    pub fn at_second(&self, index: &Index) -> Index {
        index.subst(&|name| self.replaced(name))
    }

    /// The points at which both are to one element: the variables of the first as they are, those of the second that are
    /// not common with a `'`.
    pub fn problem(&self) -> Problem {
        self.equations().problem(self.dims)
    }

    /// Whether it is proved that they are never to one element.
    pub fn never(&self) -> bool {
        self.never_where(&[])
    }

    /// Whether it is proved that a variable of both has one value on both sides wherever they are to one element.
    pub fn has_same(&self, var: &Name) -> bool {
        let (a, b) = (Index::var(var), self.at_second(&Index::var(var)));
        let is_mirrored = self.first == self.second && self.is_symmetric();
        let less = Less::new(a.clone(), b.clone());
        self.never_where(&[less]) && (is_mirrored || self.never_where(&[Less::new(b, a)]))
    }

    /// Whether they are never to one element where these conditions hold as well; [`Self::at_second`] gives what they say of
    /// the second.
    ///
    /// Quotients and remainders cost the solver variables, and products and divisors that are no constants are hard on it.
    /// It is asked without them first, with the sums that they make together.
    pub fn never_where(&self, more: &[Less]) -> bool {
        let mut exact = self.equations();
        exact.conditions.extend_from_slice(more);
        exact.without_ratios(self.dims).problem(self.dims).solve().is_never()
            || exact.problem(self.dims).solve().is_never()
    }

    fn is_symmetric(&self) -> bool {
        let is_shifted = |it: &(Name, Index)| matches!((self.when)(&it.0), Iteration::Later(_));
        !self.second.vars.iter().any(is_shifted)
    }

    fn replaced(&self, name: &Name) -> Option<Index> {
        if self.dims.contains(name) {
            return None;
        }
        match (self.when)(name) {
            Iteration::Same => None,
            Iteration::Any => Some(Index::var(&second(name))),
            Iteration::Later(by) => Some(Index::var(name) + by),
        }
    }

    fn equations(&self) -> Equations {
        let (mut vars, mut conditions) = (self.first.vars.clone(), self.first.conditions.clone());
        for (name, extent) in &self.second.vars {
            let extent = self.at_second(extent);
            let var = self.replaced(name).unwrap_or_else(|| Index::var(name));
            match var.as_var() {
                None => conditions.push(Less::new(var, extent)),
                Some(var) => {
                    let var = (var.clone(), extent);
                    if !vars.contains(&var) {
                        // Variables of one role stand together: the search tries the first ones first.
                        let at = vars.iter().rposition(|it| it.0 == *name).map_or(vars.len(), |at| at + 1);
                        vars.insert(at, var);
                    }
                }
            }
        }
        let with = |name: &Name| self.replaced(name);
        conditions.extend(self.second.conditions.iter().map(|it| it.subst(&with)));
        let there = self.second.indices.iter().map(|it| self.at_second(it));
        Equations { vars, equal: self.first.indices.iter().cloned().zip(there).collect(), conditions }
    }
}

impl Equations {
    fn problem(&self, dims: &[Name]) -> Problem {
        let mut problem = Problem::new();
        for dim in dims {
            problem.dim(dim);
        }
        for (name, extent) in &self.vars {
            problem.index(name, extent);
        }
        for (a, b) in &self.equal {
            problem.equal(a, b);
        }
        for it in &self.conditions {
            problem.less(it);
        }
        problem
    }

    /// What follows of it in sums of multiples of variables.
    fn without_ratios(&self, dims: &[Name]) -> Equations {
        let mut bounds = Bounds::default();
        for dim in dims {
            bounds.insert_dim(dim);
        }
        for (name, extent) in &self.vars {
            bounds.insert(name, extent);
        }
        let mut equal = all_recombined(self.equal.clone(), &bounds, &|_| true);
        equal.retain(|(a, b)| is_linear(a) && is_linear(b));
        let linear = self.conditions.iter().filter(|it| is_linear(&it.lhs) && is_linear(&it.rhs));
        let most = |extent: &Index| if is_linear(extent) { extent.clone() } else { Index::int(LARGEST) };
        Equations {
            vars: self.vars.iter().map(|(name, extent)| (name.clone(), most(extent))).collect(),
            equal,
            conditions: linear.cloned().collect(),
        }
    }
}

/// Whether this is a sum of multiples of variables.
fn is_linear(index: &Index) -> bool {
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => true,
        IndexKind::Mul(a, b) => {
            (a.as_int().is_some() || b.as_int().is_some()) && is_linear(a) && is_linear(b)
        }
        IndexKind::Add(a, b) => is_linear(a) && is_linear(b),
        IndexKind::FloorDiv(..)
        | IndexKind::FloorMod(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => false,
    }
}
