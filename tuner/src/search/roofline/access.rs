//! What an access of a warp asks of the memory.

use std::collections::HashMap;

use codegen::expected::accesses;
use ir::{Index, Less, Name};

/// The lanes of a warp: the value of each thread axis in each.
pub(super) type Warp = Vec<HashMap<Name, i64>>;

/// Values of the dimensions, of the blocks' axes and of the variables of loops around.
pub(super) type Known = HashMap<Name, i64>;

/// The offset of each lane in elements; lanes where it cannot be told are left out.
pub(super) fn offsets(index: &Index, warp: &[&HashMap<Name, i64>], known: &Known) -> Vec<i64> {
    let of =
        |lane: &&HashMap<Name, i64>| index.eval(&|name| known.get(name).or_else(|| lane.get(name)).copied());
    warp.iter().filter_map(of).collect()
}

/// Whether conditions hold in a lane.
pub(super) fn holds(conditions: &[Less], lane: &HashMap<Name, i64>, known: &Known) -> bool {
    conditions.iter().all(|it| {
        let value = |index: &Index| index.eval(&|name| known.get(name).or_else(|| lane.get(name)).copied());
        value(&it.lhs).zip(value(&it.rhs)).is_none_or(|(a, b)| a < b)
    })
}

/// The wavefronts of an access to shared memory. Parts of a warp that read the same bytes are partly served together.
pub(super) fn wavefronts(starts: &[i64], width: i64) -> f64 {
    let parts = accesses::wavefronts(starts, width);
    f64::midpoint(parts, accesses::served_together(starts, width).max(1.0).min(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bank_conflicts() {
        let starts = |step: i64| (0..32).map(|lane| lane * step).collect::<Vec<i64>>();
        let cases = [
            (4, 4, 1.0),
            (0, 4, 1.0),
            (8, 4, 2.0),
            (128, 4, 32.0),
            (16, 16, 4.0),
            (8, 8, 2.0),
            (64, 16, 16.0),
        ];
        for (step, width, expected) in cases {
            assert!((wavefronts(&starts(step), width) - expected).abs() < 1e-9, "{step} {width}");
        }
        assert_eq!(accesses::touched(&[0, 31, 40], 4, 32), [0, 1]);
    }
}
