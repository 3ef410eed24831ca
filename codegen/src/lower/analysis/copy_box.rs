//! Boxes: what a nest of loops copies, where that is a box of one buffer and the same box of another.

use ir::{Access, Func, Index, Less, Name, Scope, Stmt, Storage, TensorMap, Value, arith::Bounds};

/// A copy of a box between two buffers, element by element in the same order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CopyBox {
    /// Where the box begins in each of the two, over what is constant in the nest.
    pub(crate) starts: [Vec<Index>; 2],
    /// How long it is in each dimension of each of the two.
    pub(crate) extents: [Vec<i64>; 2],
}

/// The loops of a nest with their constant extents, and the two accesses in it.
type Nest = (Vec<(Name, i64)>, [Access; 2]);

/// A nest that copies one element between global and shared memory; the access to global memory is the first.
pub(crate) fn boxed_access(func: &Func, body: &Stmt) -> Option<Nest> {
    let (mut loops, mut stmt) = (Vec::new(), body);
    while let Stmt::Loop(it) = stmt {
        loops.push((it.var.clone(), it.extent.as_int()?));
        stmt = &it.body;
    }
    let Stmt::Store(store) = stmt else { return None };
    let from = match &store.value {
        Value::Select(_, from, _) => from,
        from => from,
    };
    let Value::Load(from) = from else { return None };
    let (place, from) = (store.place.clone(), from.clone());
    let stores = func.buffers[&place.buffer].scope == Scope::Global;
    Some((loops, if stores { [place, from] } else { [from, place] }))
}

/// The box that a nest copies, given the loops of the nest with constant extents and both accesses over them; or why it is none,
/// a clause.
///
/// Each loop of several iterations has to be a digit of one subscript of each access: the same one on both sides, and the
/// digits of a subscript without gaps. So each element of the box is copied once.
pub(crate) fn copy_box(
    loops: &[(Name, i64)],
    accesses: [&Access; 2],
    bounds: &Bounds,
) -> Result<CopyBox, String> {
    let mut dims = accesses.map(|it| it.indices.iter().map(|index| digits(index, loops, bounds)));
    let mut sides = [vec![], vec![]];
    for (side, (dims, access)) in sides.iter_mut().zip(dims.iter_mut().zip(accesses)) {
        for (at, found) in dims.enumerate() {
            let not = || format!("subscript {at} of `{}` is no sum of its loops", access.buffer);
            side.push(found.ok_or_else(not)?);
        }
    }
    let used = |side: &[Digits]| -> Vec<Vec<usize>> {
        let order = |it: &Digits| it.digits.iter().map(|it| it.0).collect();
        side.iter().filter(|it| !it.digits.is_empty()).map(order).collect()
    };
    let (first, second) = (used(&sides[0]), used(&sides[1]));
    if first != second {
        let [a, b] = accesses.map(|it| &it.buffer);
        return Err(format!("`{a}` and `{b}` have its elements in different orders"));
    }
    let mut known: Vec<usize> = first.into_iter().flatten().collect();
    known.sort_unstable();
    let wanted: Vec<usize> = (0..loops.len()).filter(|at| loops[*at].1 != 1).collect();
    if known != wanted {
        return Err("its loops run over some elements several times".to_owned());
    }
    let extent = |it: &Digits| {
        let mut next = 1;
        for (at, step) in &it.digits {
            if *step != next {
                return Err(format!("it leaves out elements in the loop `{}`", loops[*at].0));
            }
            next *= loops[*at].1;
        }
        Ok(next)
    };
    let extents = |side: &[Digits]| side.iter().map(extent).collect::<Result<Vec<_>, _>>();
    let extents = [extents(&sides[0])?, extents(&sides[1])?];
    let starts = sides.map(|side| side.into_iter().map(|it| it.rest).collect());
    Ok(CopyBox { starts, extents })
}

/// A subscript as a sum over loops, each by its number with its step, the least step first, and what is left.
struct Digits {
    digits: Vec<(usize, i64)>,
    rest: Index,
}

fn digits(index: &Index, loops: &[(Name, i64)], bounds: &Bounds) -> Option<Digits> {
    // A loop of one iteration moves nothing, wherever the subscript has it: also as a place of a table.
    let only = |name: &Name| loops.iter().any(|it| it.0 == *name && it.1 == 1).then(|| Index::int(0));
    let (mut rest, mut digits) = (index.subst(&only), vec![]);
    for (at, (var, _)) in loops.iter().enumerate().filter(|it| it.1.1 != 1) {
        let (step, left) = bounds.linear_in(&rest, var)?;
        if step != 0 {
            digits.push((at, step));
        }
        rest = left;
    }
    digits.sort_by_key(|it| it.1);
    Some(Digits { digits, rest: bounds.simplify(&rest) })
}

/// Whether a condition says of a subscript of an access no more than that it is in the bounds of the buffer: the copy engine
/// writes zeros for what is beyond them.
pub(crate) fn is_bound(func: &Func, condition: &Less, access: &Access, bounds: &Bounds) -> bool {
    let shape = &func.buffers[&access.buffer].shape;
    let excess = &condition.lhs - &condition.rhs;
    access.indices.iter().zip(shape).any(|(index, extent)| {
        bounds.equal(&excess, &(index - extent)) || bounds.equal(&excess, &(Index::int(-1) - index.clone()))
    })
}

/// The rows of the pattern of a swizzle, which boxes do not cut.
pub(super) const PATTERN_ROWS: i64 = 8;

/// What the place of a box in shared memory is a multiple of in bytes (PTX ISA, `cp.async.bulk.tensor`).
pub(crate) const PLACE_BYTES: i64 = 128;

/// How long the equal parts are in which the copy engine moves a side of a box, if there are such: of rows of a pattern, or of a
/// panel, whole ones.
pub(crate) fn part_of(side: i64) -> Option<i64> {
    let fits = |part: &i64| *part <= TensorMap::LONGEST_SIDE && (*part == side || part % PATTERN_ROWS == 0);
    (1..=side).filter(|count| side % count == 0).map(|count| side / count).find(fits)
}

/// The sides of the boxes that make up one, if the last dimension of its place is cut into panels of so many elements; none if
/// the copy engine can move no such parts.
pub(crate) fn parts_of(sides: &[i64], panel: Option<i64>) -> Option<Vec<i64>> {
    let last = sides.len().checked_sub(1)?;
    let part = |(at, side): (usize, &i64)| match panel.filter(|_| at == last) {
        Some(panel) => Some(panel.min(*side)),
        None => part_of(*side),
    };
    sides.iter().enumerate().map(part).collect()
}

/// Why the parts of a box do not lie in a shared buffer as the copy engine writes them: each without gaps, from a multiple of 128
/// bytes on.
///
/// `start` and `sides` have a number for each dimension of the buffer, and whole buffers may follow each other.
pub(crate) fn expect_dense(
    storage: &Storage,
    panel: Option<i64>,
    (start, sides): (&[Index], &[i64]),
    bounds: &Bounds,
) -> Result<(), String> {
    let parts = parts_of(sides, panel).ok_or("its box has a side that is too long")?;
    let mut run = 1;
    for (at, part) in parts.iter().enumerate().rev().filter(|it| *it.1 > 1) {
        if !bounds.equal(&storage.strides[at], &Index::int(run)) {
            let stride = bounds.simplify(&storage.strides[at]);
            return Err(format!(
                "its box has gaps in shared memory, neighbours in dimension {at} being {stride} elements apart"
            ));
        }
        run *= part;
    }
    let width = panel.unwrap_or(1);
    let cut = start.last().is_some_and(|it| !bounds.divides(width, it))
        || sides.last().is_some_and(|it| it % width != 0);
    if cut {
        return Err(format!("its box cuts panels of {width} elements"));
    }
    let first = storage.linear(start);
    // Panels are as far apart as they are long.
    let in_rows = if panel.is_some() { sides.len() - 1 } else { sides.len() };
    let steps = sides.iter().zip(&parts).zip(&storage.strides).take(in_rows).filter(|it| it.0.0 != it.0.1);
    let steps = steps.map(|((_, part), stride)| stride * *part);
    let panels = storage.panel().cloned();
    let all = [first, storage.len.clone()].into_iter().chain(steps).chain(panels);
    let bytes = |it: Index| it * storage.element_bytes();
    match all.map(bytes).find(|it| !bounds.divides(PLACE_BYTES, it)) {
        Some(it) => {
            let bytes = bounds.simplify(&it);
            Err(format!(
                "its boxes begin {bytes} bytes apart, and the copy engine writes to multiples of {PLACE_BYTES}"
            ))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A nest, and for each subscript of both accesses the step by which each loop moves it.
    #[derive(Clone, Debug)]
    struct Nest {
        extents: Vec<i64>,
        steps: [Vec<Vec<i64>>; 2],
    }

    /// Nests whose loops are dealt to subscripts, as digits of them, of which a few are then spoilt.
    fn nests() -> impl Strategy<Value = Nest> {
        let loops = prop::collection::vec(1..4i64, 0..4);
        let spoilt = prop::option::weighted(0.3, (0..2usize, 0..3usize, 0..4usize, 0..3i64));
        let sides = prop::collection::vec(0..3usize, 4);
        (loops, sides, any::<bool>(), any::<bool>(), spoilt).prop_map(
            |(extents, dims, inner_first, shifts, spoilt)| {
                let mut steps = [vec![vec![0; extents.len()]; 3], vec![vec![0; extents.len()]; 3]];
                let order: Vec<usize> = if inner_first {
                    (0..extents.len()).collect()
                } else {
                    (0..extents.len()).rev().collect()
                };
                for (side, steps) in steps.iter_mut().enumerate() {
                    let mut next = [1; 3];
                    for &at in &order {
                        // The other side may have its dimensions further up, with one of no extent below.
                        let dim = if shifts && side == 1 && dims[..extents.len()].iter().all(|it| *it < 2) {
                            dims[at] + 1
                        } else {
                            dims[at]
                        };
                        steps[dim][at] = next[dim];
                        next[dim] *= extents[at];
                    }
                }
                if let Some((side, dim, at, step)) = spoilt
                    && at < extents.len()
                {
                    steps[side][dim][at] = step;
                }
                Nest { extents, steps }
            },
        )
    }

    /// All points of a nest.
    fn points(extents: &[i64]) -> Vec<Vec<i64>> {
        extents.iter().fold(vec![vec![]], |all, extent| {
            all.iter().flat_map(|it| (0..*extent).map(|at| [&it[..], &[at]].concat())).collect()
        })
    }

    proptest! {
        /// What is said to be a box is one: the nest comes to each of its elements once, and to the same one on both sides.
        #[test]
        fn boxes_are_what_the_loops_run_over(nest in nests()) {
            let Nest { extents, steps } = nest;
            let loops: Vec<_> = extents.iter().enumerate().map(|(at, it)| (Name::new(format!("l{at}")), *it)).collect();
            let access = |side: usize| {
                let index = |(dim, steps): (usize, &Vec<i64>)| {
                    let terms = loops.iter().zip(steps).map(|(it, step)| Index::var(&it.0) * *step);
                    terms.fold(Index::var(&Name::from("b")) * (i64::try_from(dim).unwrap() + 2), |sum, it| sum + it)
                };
                let indices = steps[side].iter().enumerate().map(index).collect();
                Access { buffer: Name::from(["A", "S"][side]), indices, lanes: 1 }
            };
            let mut bounds = Bounds::default();
            bounds.insert(&Name::from("b"), &Index::int(8));
            for (name, extent) in &loops {
                bounds.insert(name, &Index::int(*extent));
            }
            let sides = [access(0), access(1)];
            let found = copy_box(&loops, [&sides[0], &sides[1]], &bounds);
            let value = |point: &[i64], it: &Index| {
                let of = |name: &Name| match loops.iter().position(|it| it.0 == *name) {
                    Some(at) => Some(point[at]),
                    None => Some(5),
                };
                it.eval(&of).unwrap()
            };
            // Where each point comes to, from the start of the box, in the dimensions that it has.
            let Ok(CopyBox { starts, extents: boxed }) = found else { return Ok(()) };
            let mut times: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
            for point in points(&extents) {
                let [from, to] = [0, 1].map(|side| {
                    let indices = sides[side].indices.iter().zip(&starts[side]).zip(&boxed[side]);
                    let moved = indices.map(|((index, start), extent)| (value(&point, index) - value(&[], start), *extent));
                    moved.collect::<Vec<_>>()
                });
                prop_assert!(from.iter().chain(&to).all(|(at, extent)| (0..*extent).contains(at)));
                let [from, to] = [from, to].map(|it| {
                    it.into_iter().filter(|it| it.1 > 1).map(|it| it.0).collect::<Vec<_>>()
                });
                prop_assert_eq!(&from, &to);
                *times.entry(from).or_default() += 1;
            }
            prop_assert!(times.values().all(|it| *it == 1));
            prop_assert_eq!(i64::try_from(times.len()).unwrap(), boxed[0].iter().product::<i64>());
        }

        /// Parts of a side are equal, whole groups of rows, and not too long.
        #[test]
        fn parts_make_up_sides(side in 1..3000i64) {
            if let Some(part) = part_of(side) {
                prop_assert!(side % part == 0 && part <= TensorMap::LONGEST_SIDE && (part == side || part % PATTERN_ROWS == 0));
            } else {
                prop_assert!(side > TensorMap::LONGEST_SIDE);
            }
        }
    }

    /// A loop of one iteration moves nothing, also where a table says the coordinate.
    #[test]
    fn coordinates_may_be_elements() {
        let [once, i, g] = ["once", "i", "g"].map(Name::from);
        let mut bounds = Bounds::default();
        bounds.insert(&g, &Index::int(5));
        let loops = [(once.clone(), 1), (i.clone(), 8)];
        for (name, extent) in &loops {
            bounds.insert(name, &Index::int(*extent));
        }
        let element = |at| Index::element(&Name::from("expert"), at, Index::int(3));
        let of = |buffer, indices| Access { buffer: Name::from(buffer), indices, lanes: 1 };
        let from = of("W", vec![element(Index::var(&g) + Index::var(&once)), Index::var(&i)]);
        let place = of("S", vec![Index::var(&once), Index::var(&i)]);
        let found = copy_box(&loops, [&from, &place], &bounds).unwrap();
        assert_eq!(found.extents, [vec![1, 8], vec![1, 8]]);
        assert_eq!(found.starts[0], [element(Index::var(&g)), Index::int(0)]);
        // Elements of several places are no box.
        let from = of("W", vec![element(Index::var(&i)), Index::var(&once)]);
        assert!(copy_box(&loops, [&from, &place], &bounds).is_err());
    }

    /// Nests that are spoilt are not all that is tried.
    #[test]
    fn dealt_loops_are_boxes() {
        let [i, j] = [Name::from("i"), Name::from("j")];
        let mut bounds = Bounds::default();
        let loops = [(i.clone(), 4), (j.clone(), 8)];
        for (name, extent) in &loops {
            bounds.insert(name, &Index::int(*extent));
        }
        let from =
            Access { buffer: Name::from("A"), indices: vec![Index::var(&i), Index::var(&j)], lanes: 1 };
        let found = |place: Vec<Index>| {
            let place = Access { buffer: Name::from("S"), indices: place, lanes: 1 };
            copy_box(&loops, [&from, &place], &bounds)
        };
        let whole = found(vec![Index::int(3), Index::var(&i), Index::var(&j) + 8]).unwrap();
        assert_eq!(whole.extents, [vec![4, 8], vec![1, 4, 8]]);
        assert_eq!(whole.starts[1], [Index::int(3), Index::int(0), Index::int(8)]);
        assert!(found(vec![Index::var(&j), Index::var(&i)]).is_err());
        assert!(found(vec![Index::var(&i) * 8 + Index::var(&j)]).is_err());
    }
}
