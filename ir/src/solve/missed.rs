//! Whether an element was written, by assignments that write one element at each of their points.

use super::Problem;
use crate::{Index, Less, Name, arith::Bounds};

/// The most questions that are asked about one element.
const MAX_QUESTIONS: usize = 200;

/// An assignment to one element of a buffer at each point of its loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writes {
    /// The loops that are its own, with their extents. No other expression speaks of them.
    pub loops: Vec<(Name, Index)>,
    /// The element.
    pub indices: Vec<Index>,
    /// What must hold for it to happen.
    pub conditions: Vec<Less>,
}

impl Writes {
    /// The ways in which an element may not be written, each as a condition that does not speak of the loops; none if
    /// the assignment cannot be solved for the point at which it writes a given element.
    ///
    /// It can be where each loop is in one subscript alone, with the factor one, or in none.
    pub fn misses(&self, element: &[Index]) -> Option<Vec<Less>> {
        let is_own = |name: &Name| self.loops.iter().any(|it| it.0 == *name);
        let mut solved: Vec<(&Name, Index)> = Vec::new();
        let mut out = Vec::new();
        let bounds = Bounds::default();
        for (place, wanted) in self.indices.iter().zip(element) {
            let free = self.loops.iter().find(|it| place.any_var(&|name| *name == it.0));
            let Some((var, extent)) = free else {
                out.push(Less::new(place.clone(), wanted.clone()));
                out.push(Less::new(wanted.clone(), place.clone()));
                continue;
            };
            let rest = bounds.simplify(&(place - &Index::var(var)));
            if rest.any_var(&is_own) || extent.any_var(&is_own) || solved.iter().any(|it| it.0 == var) {
                return None;
            }
            let value = wanted - &rest;
            out.push(Less::new(value.clone(), Index::int(0)));
            out.push(Less::new(extent.clone(), value.clone() + 1));
            solved.push((var, value));
        }
        // A loop that does not matter to the place may as well be at its beginning, if it has one.
        for (var, extent) in &self.loops {
            if !solved.iter().any(|it| it.0 == var) {
                out.push(Less::new(extent.clone(), Index::int(1)));
                solved.push((var, Index::int(0)));
            }
        }
        let with = |name: &Name| solved.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        out.extend(self.conditions.iter().map(|it| Less::new(it.rhs.subst(&with), it.lhs.subst(&with) + 1)));
        (!out.iter().any(|it| it.lhs.any_var(&is_own) || it.rhs.any_var(&is_own))).then_some(out)
    }
}

/// Whether at each point some assignment writes the element, given the ways in which each may miss it.
///
/// An element that none writes is missed by each in some way: of every choice of ways, the solver has to say that it
/// never happens.
pub fn never_missed(points: &Problem, misses: &[Vec<Less>]) -> bool {
    !misses.is_empty() && never(points, misses, &mut 0)
}

fn never(problem: &Problem, misses: &[Vec<Less>], questions: &mut usize) -> bool {
    let Some((ways, others)) = misses.split_first() else { return false };
    ways.iter().all(|way| {
        *questions += 1;
        let mut problem = problem.clone();
        problem.less(way);
        *questions <= MAX_QUESTIONS && (problem.solve().is_never() || never(&problem, others, questions))
    })
}
