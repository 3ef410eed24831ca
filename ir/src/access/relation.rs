//! An access as a relation.

use crate::{Index, Less, Name, arith::Bounds, solve::Problem, solve::point_of};

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

impl AccessRelation {
    /// The points at which it happens.
    pub fn points(&self, dims: &[Name]) -> Problem {
        let mut out = Problem::new();
        for dim in dims {
            out.dim(dim);
        }
        for (name, extent) in &self.vars {
            out.index(name, extent);
        }
        for it in &self.conditions {
            out.less(it);
        }
        out
    }

    /// The access with the variables for which `is_own` holds alone, under names that no other access has. The others are
    /// those of whom it is asked about.
    #[must_use]
    pub fn of_own(&self, is_own: &dyn Fn(&Name) -> bool) -> AccessRelation {
        let with = |name: &Name| is_own(name).then(|| Index::var(&second(name)));
        let own = self.vars.iter().filter(|it| is_own(&it.0));
        AccessRelation {
            indices: self.indices.iter().map(|it| it.subst(&with)).collect(),
            vars: own.map(|(name, extent)| (second(name), extent.subst(&with))).collect(),
            conditions: self.conditions.iter().map(|it| it.subst(&with)).collect(),
        }
    }

    /// The ways in which it may not touch an element, each as a condition that does not speak of its variables.
    ///
    /// They are those in which one point is none that touches the element: the point that the subscripts, as digits of
    /// mixed-radix numbers, say it is touched at. If another point touches it, one of the ways is there all the same.
    pub fn misses(&self, element: &[Index]) -> Vec<Less> {
        let values = point_of(&self.vars, &self.conditions, &self.indices, element);
        let with = |name: &Name| values.get(name).cloned();
        let bounds = Bounds::default();
        let mut out = Vec::new();
        for (var, extent) in &self.vars {
            let (value, extent) = (values[var].clone(), extent.subst(&with));
            out.push(Less::new(value.clone(), Index::int(0)));
            out.push(Less::new(extent, value + 1));
        }
        for (place, wanted) in self.indices.iter().zip(element) {
            let place = place.subst(&with);
            if !bounds.equal(&place, wanted) {
                out.push(Less::new(place.clone(), wanted.clone()));
                out.push(Less::new(wanted.clone(), place));
            }
        }
        out.extend(self.conditions.iter().map(|it| Less::new(it.rhs.subst(&with), it.lhs.subst(&with) + 1)));
        out.retain(|it| bounds.prove(it) != Some(false));
        out
    }
}

/// The variable of the second of two accesses that has the role of one of the first. No program has a name like it.
pub(super) fn second(name: &Name) -> Name {
    Name::new(format!("{name}'"))
}
