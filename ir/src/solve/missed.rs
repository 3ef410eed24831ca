//! Whether an element was written, by assignments that write one element at each of their points.

use super::{AccessRelation, Problem, invert::point_of};
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
    /// The ways in which an element may not be written, each as a condition that does not speak of the loops.
    ///
    /// They are those in which one point is none that writes the element: the point that the subscripts, as digits of
    /// mixed-radix numbers, say it is written at. If another point writes it, one of the ways is there all the same.
    pub fn misses(&self, element: &[Index]) -> Vec<Less> {
        let values = point_of(&self.loops, &self.conditions, &self.indices, element);
        let with = |name: &Name| values.get(name).cloned();
        let bounds = Bounds::default();
        let mut out = Vec::new();
        for (var, extent) in &self.loops {
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

/// Whether each element of a buffer of that shape that `read` touches is one that `write` touches too, while the common
/// variables have the same values for both and all others of `write` run through theirs. `false` means not proved.
///
/// What is outside the shape is no element: a condition that is not among those of the place keeps it from being read.
pub fn covers(
    dims: &[Name],
    shape: &[Index],
    write: &AccessRelation,
    read: &AccessRelation,
    is_common: &dyn Fn(&Name) -> bool,
) -> bool {
    let own = write.vars.iter().filter(|it| !dims.contains(&it.0) && !is_common(&it.0));
    let own: Vec<_> = own.map(|(name, extent)| (name, Name::new(format!("{name}'")), extent)).collect();
    let with = |name: &Name| own.iter().find(|it| it.0 == name).map(|it| Index::var(&it.1));
    let writes = Writes {
        loops: own.iter().map(|it| (it.1.clone(), it.2.subst(&with))).collect(),
        indices: write.indices.iter().map(|it| it.subst(&with)).collect(),
        conditions: write.conditions.iter().map(|it| it.subst(&with)).collect(),
    };
    // Common variables may run further for the reader than for the writer.
    let is_known = |it: &&(Name, Index)| dims.contains(&it.0) || read.vars.contains(it);
    let common = write.vars.iter().filter(|it| own.iter().all(|own| *own.0 != it.0) && !is_known(it));
    let narrower = common.map(|(name, extent)| Less::new(Index::var(name), extent.clone()));
    let writes = Writes { conditions: writes.conditions.iter().cloned().chain(narrower).collect(), ..writes };
    let mut points = Problem::new();
    for dim in dims {
        points.dim(dim);
    }
    read.vars.iter().for_each(|(name, extent)| points.index(name, extent));
    read.conditions.iter().for_each(|it| points.less(it));
    for (index, size) in read.indices.iter().zip(shape) {
        points.less(&Less::new(Index::int(-1), index.clone()));
        points.less(&Less::new(index.clone(), size.clone()));
    }
    never_missed(&points, &[writes.misses(&read.indices)])
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
