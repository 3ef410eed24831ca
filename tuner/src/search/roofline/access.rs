//! What an access of a warp asks of the memory.

use std::collections::HashMap;

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

/// The parts of `unit` bytes that accesses of `width` bytes touch, each once, in order.
pub(super) fn touched(starts: &[i64], width: i64, unit: i64) -> Vec<i64> {
    let range = |start: &i64| start.div_euclid(unit)..=(start + width - 1).div_euclid(unit);
    let mut all: Vec<i64> = starts.iter().flat_map(range).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The wavefronts of an access to shared memory: 32 banks of 4 bytes, 128 bytes of lanes at a time.
pub(super) fn wavefronts(starts: &[i64], width: i64) -> f64 {
    let part = usize::try_from(128 / width.clamp(4, 128)).expect("1 to 32");
    let of = |lanes: &[i64]| {
        let mut banks = [0u32; 32];
        for word in touched(lanes, width, 4) {
            banks[usize::try_from(word.rem_euclid(32)).expect("below 32")] += 1;
        }
        f64::from(banks.into_iter().max().unwrap_or(0))
    };
    let parts: f64 = starts.chunks(part).map(of).sum();
    // Parts that read the same bytes are partly served together.
    f64::midpoint(parts, of(starts).max(1.0).min(parts))
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
        assert_eq!(touched(&[0, 31, 40], 4, 32), [0, 1]);
    }
}
