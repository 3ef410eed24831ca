//! The fewest points that hit all intervals, on a line or around a circle.

/// `length` gaps from `start` on, around the circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CircularInterval {
    /// The first gap.
    pub(crate) start: usize,
    /// How many: at least one, and at most as many as there are.
    pub(crate) length: usize,
}

impl CircularInterval {
    /// Whether a gap of a circle of so many lies in it.
    pub(crate) fn contains(self, gap: usize, gaps: usize) -> bool {
        (gap + gaps - self.start) % gaps < self.length
    }

    fn end(self, gaps: usize) -> usize {
        (self.start + self.length - 1) % gaps
    }
}

/// The fewest gaps such that each interval contains one, in order, each as late as can be.
///
/// On a line (where no interval passes the end), taking the earliest end again and again is optimal. A circle becomes a
/// line by cutting it at a gap that is taken; the end of some interval is one in some optimal choice.
pub(crate) fn fewest(intervals: &[CircularInterval], gaps: usize, circle: bool) -> Vec<usize> {
    if !circle {
        return greedy(intervals, gaps, 0, vec![]);
    }
    let mut ends: Vec<_> = intervals.iter().map(|it| it.end(gaps)).collect();
    ends.sort_unstable();
    ends.dedup();
    let choices = ends.into_iter().map(|cut| greedy(intervals, gaps, cut, vec![cut]));
    choices.min_by_key(Vec::len).unwrap_or_default()
}

/// Gaps beside those taken already, from the cut on.
fn greedy(intervals: &[CircularInterval], gaps: usize, cut: usize, mut taken: Vec<usize>) -> Vec<usize> {
    let from_cut = |gap: usize| (gap + gaps - cut) % gaps;
    let mut rest: Vec<_> =
        intervals.iter().filter(|it| !taken.iter().any(|&gap| it.contains(gap, gaps))).collect();
    rest.sort_by_key(|it| from_cut(it.end(gaps)));
    for interval in rest {
        if !taken.iter().any(|&gap| interval.contains(gap, gaps)) {
            taken.push(interval.end(gaps));
        }
    }
    taken.sort_unstable();
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn intervals() -> impl Strategy<Value = (usize, bool, Vec<CircularInterval>)> {
        (1..9_usize, any::<bool>()).prop_flat_map(|(gaps, circle)| {
            let interval = (0..gaps, 0..gaps).prop_map(move |(start, more)| {
                let length = more + 1;
                CircularInterval { start, length: if circle { length } else { length.min(gaps - start) } }
            });
            (Just(gaps), Just(circle), proptest::collection::vec(interval, 0..8))
        })
    }

    /// Whether each interval has one of the gaps, given as bits.
    fn hits_all(intervals: &[CircularInterval], gaps: usize, bits: u32) -> bool {
        intervals
            .iter()
            .all(|interval| (0..gaps).any(|gap| bits >> gap & 1 == 1 && interval.contains(gap, gaps)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn no_fewer_gaps_hit_all_arcs((gaps, circle, intervals) in intervals()) {
            let found = fewest(&intervals, gaps, circle);
            prop_assert!(found.is_sorted());
            let bits = found.iter().fold(0, |bits, gap| bits | 1 << gap);
            prop_assert!(hits_all(&intervals, gaps, bits));
            let least = (0..1_u32 << gaps).filter(|&it| hits_all(&intervals, gaps, it)).map(u32::count_ones).min();
            prop_assert_eq!(least, Some(u32::try_from(found.len()).unwrap()));
        }
    }
}
