//! Which elements of an output are compared.

use ir::{Block, IterKind, Name};

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
    let mut out: Vec<usize> = (0..random).map(|_| below(&mut rng, len)).collect();
    let ends = |size: usize| [0, size - 1];
    for (axis, size) in shape.iter().enumerate() {
        for end in ends(*size) {
            for _ in 0..face {
                let place = shape.iter().enumerate();
                let place = place.map(|(n, it)| if n == axis { end } else { below(&mut rng, *it) });
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

/// How many values one element of a block combines.
fn reduction_length(case: &Case, block: &Block) -> u64 {
    let extents = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    // One that cannot be told is taken for short, so that more elements are compared and not fewer.
    let length = |it: &ir::Iter| case.eval(&it.extent).map_or(1, |it| it.max(1).cast_unsigned());
    extents.map(length).fold(1, u64::saturating_mul)
}
