//! Orders of `0..len` that are drawn from a seed and not stored.

/// An order of `0..len`: the same seed gives the same one anywhere.
///
/// Short ones are shuffled lists. Long ones are computed: a balanced Feistel network permutes the next power of four,
/// and what falls outside is sent through again until it falls inside, which is less than four rounds on average.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u128,
    kind: PermutationKind,
}

#[derive(Clone, Debug)]
enum PermutationKind {
    List(Vec<u16>),
    Feistel { half: u32, keys: [u64; ROUNDS] },
}

/// Four rounds are enough against anyone who does not look for the pattern; eight cost little and mix short halves.
const ROUNDS: usize = 8;

/// What is shuffled as a list.
const SHORT: u128 = 1 << 12;

impl Permutation {
    /// An order drawn from a seed.
    pub fn new(len: u128, seed: u64) -> Permutation {
        let mut state = seed;
        if len <= SHORT {
            let mut list: Vec<u16> = (0..).take(usize::try_from(len).expect("it is short")).collect();
            for end in (1..list.len()).rev() {
                list.swap(end, below(end + 1, &mut state));
            }
            return Permutation { len, kind: PermutationKind::List(list) };
        }
        let bits = u128::BITS - (len - 1).leading_zeros();
        let keys = std::array::from_fn(|_| next(&mut state));
        Permutation { len, kind: PermutationKind::Feistel { half: bits.div_ceil(2), keys } }
    }

    /// The number at a place below the length.
    pub fn at(&self, place: u128) -> u128 {
        match &self.kind {
            PermutationKind::List(list) => {
                usize::try_from(place).ok().and_then(|it| list.get(it)).map_or(place, |it| u128::from(*it))
            }
            PermutationKind::Feistel { half, keys } => {
                let mut it = place;
                loop {
                    it = feistel(it, *half, keys);
                    if it < self.len {
                        return it;
                    }
                }
            }
        }
    }
}

fn feistel(it: u128, half: u32, keys: &[u64; ROUNDS]) -> u128 {
    let mask = if half == 64 { u64::MAX } else { (1 << half) - 1 };
    let low = |it: u128| u64::try_from(it & u128::from(mask)).expect("the mask has 64 bits");
    let (mut left, mut right) = (low(it >> half), low(it));
    for key in keys {
        (left, right) = (right, left ^ (mix(right ^ key) & mask));
    }
    (u128::from(left) << half) | u128::from(right)
}

/// The next number of a stream (SplitMix64).
pub(super) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

fn mix(it: u64) -> u64 {
    let it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}

/// A number below a bound, all equally likely but for one in 2^50.
fn below(bound: usize, state: &mut u64) -> usize {
    let wide = u128::from(next(state)) * bound as u128;
    usize::try_from(wide >> 64).expect("it is less than the bound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for len in (0..70).chain([4095, 4096, 4097, 5000, 65_535, 65_536, 65_537, 100_003]) {
            for seed in [0, 1, u64::MAX] {
                let order = Permutation::new(len, seed);
                let mut all: Vec<u128> = (0..len).map(|it| order.at(it)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..len), "{len} by {seed}");
            }
        }
    }

    #[test]
    fn orders_differ_by_seed_and_are_not_in_order() {
        for len in [100u128, 1 << 20, 10u128.pow(30), u128::MAX / 2] {
            let take = |seed| (0..20).map(|it| Permutation::new(len, seed).at(it)).collect::<Vec<_>>();
            assert_ne!(take(1), take(2));
            assert!(take(1).iter().all(|it| *it < len));
            assert!(!take(1).is_sorted());
            let high = (0..100).filter(|it| Permutation::new(len, 3).at(*it) >= len / 2).count();
            assert!((25..75).contains(&high), "{high} of 100 in the upper half of {len}");
        }
    }
}
