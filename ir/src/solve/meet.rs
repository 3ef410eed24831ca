//! Whether two places of a program can be the same element.

use super::{Answer, LARGEST, Problem, digits::recombined};
use crate::{Index, IndexKind, Less, Name, arith::Bounds};

/// So many equations are made of others, at most.
const MOST_EQUATIONS: usize = 16;

/// A place that a program touches: an element at each point of its variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessRelation {
    /// The element.
    pub indices: Vec<Index>,
    /// The variables, outer ones first, each from zero up to its extent. One that is there twice has the smaller one.
    pub vars: Vec<(Name, Index)>,
    /// What must hold for the place to be touched.
    pub conditions: Vec<Less>,
}

/// Two places in one buffer. The variables of the one are not those of the other, unless they are common.
pub struct Meeting<'a> {
    /// The one.
    pub a: &'a AccessRelation,
    /// The other.
    pub b: &'a AccessRelation,
    /// The symbolic dimensions, which are at least one.
    pub dims: &'a [Name],
    /// The variables with the same value on both sides.
    pub is_common: &'a dyn Fn(&Name) -> bool,
}

impl Meeting<'_> {
    /// Whether it is proved that they are never the same element.
    pub fn never(&self) -> bool {
        self.refuted(&[])
    }

    /// Whether it is proved that a variable of both has one value on both sides wherever they are the same element.
    pub fn has_same(&self, var: &Name) -> bool {
        let (a, b) = (Index::var(var), Index::var(&self.second(var)));
        let mirrored = self.a == self.b;
        let less = Less::new(a.clone(), b.clone());
        self.refuted(&[less]) && (mirrored || self.refuted(&[Less::new(b, a)]))
    }

    fn second(&self, name: &Name) -> Name {
        if self.is_dim(name) || (self.is_common)(name) { name.clone() } else { Name::new(format!("{name}'")) }
    }

    fn is_dim(&self, name: &Name) -> bool {
        self.dims.contains(name)
    }

    /// Whether they never meet where these conditions hold as well.
    ///
    /// Quotients and remainders cost the solver variables, and products and divisors that are no constants are hard on it.
    /// It is asked without them first, with the sums that they make together.
    fn refuted(&self, more: &[Less]) -> bool {
        let with = |name: &Name| Some(Index::var(&self.second(name)));
        let there = self.b.indices.iter().map(|it| it.subst(&with));
        let equal: Vec<_> = self.a.indices.iter().cloned().zip(there).collect();
        let mut conditions = more.to_vec();
        conditions.extend(self.a.conditions.iter().cloned());
        conditions.extend(self.b.conditions.iter().map(|it| it.subst(&with)));
        let mut vars = self.a.vars.clone();
        vars.extend(self.b.vars.iter().map(|(name, extent)| (self.second(name), extent.subst(&with))));

        let mut bounds = Bounds::default();
        self.dims.iter().for_each(|it| bounds.insert_dim(it));
        for (name, extent) in &vars {
            bounds.insert(name, extent);
        }
        let mut sums = all_recombined(equal.clone(), &bounds, &|_| true);
        sums.retain(|(a, b)| is_linear(a) && is_linear(b));
        let linear: Vec<_> =
            conditions.iter().filter(|it| is_linear(&it.lhs) && is_linear(&it.rhs)).cloned().collect();
        let most = |extent: &Index| if is_linear(extent) { extent.clone() } else { Index::int(LARGEST) };
        let wider: Vec<_> = vars.iter().map(|(name, extent)| (name.clone(), most(extent))).collect();
        self.solve(&wider, &sums, &linear).is_never() || self.solve(&vars, &equal, &conditions).is_never()
    }

    fn solve(&self, vars: &[(Name, Index)], equal: &[(Index, Index)], conditions: &[Less]) -> Answer {
        let mut problem = Problem::new();
        self.dims.iter().for_each(|dim| problem.dim(dim));
        for (name, extent) in vars {
            problem.index(name, extent);
        }
        for (a, b) in equal {
            problem.equal(a, b);
        }
        for it in conditions {
            problem.less(it);
        }
        problem.solve()
    }
}

/// The equations, and whatever sums of two of them there are in which quotients and remainders come together on both
/// sides, sums of sums included. The factor by which one is multiplied has to be the same on both sides, so `is_common`
/// says of one that looks the same whether it is.
pub fn all_recombined(
    mut equal: Vec<(Index, Index)>,
    bounds: &Bounds,
    is_common: &dyn Fn(&Index) -> bool,
) -> Vec<(Index, Index)> {
    // The normal forms of those that were tried.
    let mut sums = Vec::new();
    while sums.len() < equal.len() && equal.len() < MOST_EQUATIONS {
        let tried = sums.len();
        let (a, b) = &equal[tried];
        sums.push((bounds.sum(a), bounds.sum(b)));
        for other in 0..tried {
            for (high, low) in [(tried, other), (other, tried)] {
                let ((high_a, high_b), (low_a, low_b)) = (&sums[high], &sums[low]);
                let sum = recombined(high_a, low_a, bounds).and_then(|(factor, a)| {
                    if (high_a, low_a) == (high_b, low_b) {
                        return is_common(&factor).then(|| (a.clone(), a));
                    }
                    let (same, b) = recombined(high_b, low_b, bounds)?;
                    (factor == same && is_common(&factor)).then_some((a, b))
                });
                equal.extend(sum.filter(|it| !equal.contains(it)));
            }
        }
    }
    equal
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
        | IndexKind::Xor(..) => false,
    }
}
