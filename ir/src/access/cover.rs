//! Whether an element was written, by accesses that write one element at each of their points.

use super::AccessRelation;
use crate::{Index, Less, Name, solve::Problem};

/// The most questions that are asked about one element.
const MAX_QUESTIONS: usize = 200;

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
    let is_own = |name: &Name| !dims.contains(name) && !is_common(name);
    let mut writes = write.of_own(&is_own);
    // Common variables may run further for the reader than for the writer.
    let is_known = |it: &(Name, Index)| is_own(&it.0) || dims.contains(&it.0) || read.vars.contains(it);
    let common = write.vars.iter().filter(|it| !is_known(it));
    writes.conditions.extend(common.map(|(name, extent)| Less::new(Index::var(name), extent.clone())));
    let mut points = read.points(dims);
    for (index, size) in read.indices.iter().zip(shape) {
        points.less(&Less::new(Index::int(-1), index.clone()));
        points.less(&Less::new(index.clone(), size.clone()));
    }
    never_missed(&points, &[writes.misses(&read.indices)])
}

/// Whether at each point some access writes the element, given the ways in which each may miss it
/// ([`AccessRelation::misses`]).
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
