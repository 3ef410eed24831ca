//! Which elements of an output are compared.

use std::collections::{BTreeSet, HashMap};

use ir::{Block, IterKind, Name};
use rand::rngs::ChaCha8Rng;

use crate::{
    Case,
    data::{below, stream},
};

/// Outputs up to this many reductions steps in all are compared whole.
const FULL: u128 = 1 << 20;
/// How many random elements of a large output are compared.
const RANDOM: usize = 1024;
/// How many random elements of each face of a large output are compared.
const FACE: usize = 32;
/// How many of each where an element is not cheap.
const FEW: [usize; 2] = [128, 4];
/// How many terms the random elements may combine in all before they stand in the same rows and columns.
const SCATTERED: u128 = 1 << 28;
/// How many coordinates of each dimension they have then, the ends included.
const LINES: usize = 32;

/// The flat offsets to compare, in order.
pub(super) fn places(case: &Case, buffer: &Name, shape: &[usize], index: u64, is_cheap: bool) -> Vec<usize> {
    let [random, face] = if is_cheap { [RANDOM, FACE] } else { FEW };
    let len: usize = shape.iter().product();
    let blocks = case.func.body.blocks();
    let steps = blocks.iter().map(|it| u128::from(reduction_length(case, it))).sum::<u128>().max(1);
    if len <= random || (is_cheap && len as u128 * steps <= FULL) {
        return (0..len).collect();
    }
    // The name takes part so that no two outputs are sampled at the same places.
    let salt = buffer.as_str().bytes().fold(index, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut rng = stream(case.seed, (1 << 63) | (salt >> 1));
    let ends = |size: usize| [0, size - 1];
    let lines = are_dear(case, buffer, random).then(|| lines(shape, &mut rng));
    let along = |axis: usize, rng: &mut ChaCha8Rng| match &lines {
        None => below(rng, shape[axis]),
        Some(lines) => lines[axis][below(rng, lines[axis].len())],
    };
    let mut out = Vec::new();
    for _ in 0..random {
        out.push(match &lines {
            None => below(&mut rng, len),
            Some(_) => flat(shape, (0..shape.len()).map(|axis| along(axis, &mut rng))),
        });
    }
    for (axis, size) in shape.iter().enumerate() {
        for end in ends(*size) {
            for _ in 0..face {
                let place = (0..shape.len()).map(|n| if n == axis { end } else { along(n, &mut rng) });
                out.push(flat(shape, place));
            }
        }
    }
    for corner in 0..1usize << shape.len().min(8) {
        out.push(flat(shape, shape.iter().enumerate().map(|(n, it)| ends(*it)[(corner >> n) & 1])));
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn flat(shape: &[usize], place: impl Iterator<Item = usize>) -> usize {
    place.zip(shape).fold(0, |at, (it, size)| at * size + it)
}

/// Coordinates of each dimension, the ends among them. Elements of one row depend on the same elements of earlier stages,
/// which are computed once.
fn lines(shape: &[usize], rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let line =
        |size: &usize| [0, size - 1].into_iter().chain((2..LINES).map(|_| below(rng, *size))).collect();
    shape.iter().map(line).collect()
}

/// Whether so many elements of a buffer combine too many terms to be scattered: those of elements that they depend on count each time,
/// but no more than all of the program.
fn are_dear(case: &Case, buffer: &Name, count: usize) -> bool {
    let mut of: HashMap<&Name, u128> = HashMap::new();
    let mut all: u128 = 0;
    for block in case.func.body.blocks() {
        let length = u128::from(reduction_length(case, block));
        for place in block.writes() {
            let read: BTreeSet<_> = block.reads().into_iter().map(|it| &it.buffer).collect();
            let earlier = read.into_iter().filter(|it| **it != place.buffer).filter_map(|it| of.get(it));
            let each = earlier.fold(1, |sum: u128, it| sum.saturating_add(*it));
            of.insert(&place.buffer, length.saturating_mul(each));
        }
        all = all.saturating_add(u128::from(iterations(case, block, |_| true)));
    }
    let each = of.get(buffer).copied().unwrap_or(1);
    each.saturating_mul(count as u128).min(all) > SCATTERED
}

/// How many values one element of a block combines.
fn reduction_length(case: &Case, block: &Block) -> u64 {
    iterations(case, block, |it| it.kind == IterKind::Reduce)
}

/// How often the iterators of a block that are asked for run together.
fn iterations(case: &Case, block: &Block, is_asked: impl Fn(&ir::Iter) -> bool) -> u64 {
    // One that cannot be told is taken for short, so that more elements are compared and not fewer.
    let length = |it: &ir::Iter| case.eval(&it.extent).map_or(1, |it| it.max(1).cast_unsigned());
    block.iters.iter().filter(|it| is_asked(it)).map(length).fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use schedule::workload;

    use super::*;

    /// A product of `n` rows, and behind it another one if there is a `second`.
    fn rows_sampled(n: i64, second: &str) -> usize {
        let text = format!(
            r#"workload(
                name: "chain", about: "Two products.",
                params: {{"n": size(default: {n})}},
                axes: {{"i": "n", "j": "n", "k": "n", "l": "n"}},
                tensors: {{
                    "A": input(dtype: "f32", shape: ["n", "n"]),
                    "H": temp(dtype: "f32", shape: ["n", "n"]),
                    "C": output(dtype: "f32", shape: ["n", "n"]),
                }},
                stages: ["H[i, j] += A[i, k] * A[k, j]", "{second}"],
            )"#
        );
        let func = workload::parse(&text).unwrap().instantiate(&IndexMap::new()).unwrap();
        let case = Case::new(func, IndexMap::new(), 1).unwrap();
        let n = usize::try_from(n).unwrap();
        let found = places(&case, &Name::new("C"), &[n, n], 0, true);
        assert!(found.len() > RANDOM / 2, "{}", found.len());
        found.iter().map(|it| it / n).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn what_depends_on_much_is_sampled_in_few_rows() {
        assert!(rows_sampled(4096, "C[i, l] = H[i, l] + 1") > 500);
        assert!(rows_sampled(4096, "C[i, l] += H[i, j] * A[j, l]") <= LINES);
        assert!(rows_sampled(256, "C[i, l] += H[i, j] * A[j, l]") > 200);
    }
}
