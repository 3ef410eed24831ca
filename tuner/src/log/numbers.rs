//! A set of numbers that mostly follow each other, as those of trials do.

use std::collections::BTreeMap;

/// Some numbers, as ranges with both ends included: a million trials without gaps take one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Numbers {
    ranges: BTreeMap<u64, u64>,
}

impl Numbers {
    /// Adds a number; whether it is new.
    pub(super) fn insert(&mut self, n: u64) -> bool {
        let below = self.ranges.range(..=n).next_back().map(|(start, end)| (*start, *end));
        if below.is_some_and(|(_, end)| n <= end) {
            return false;
        }
        let start = below.filter(|(_, end)| end.checked_add(1) == Some(n)).map_or(n, |(start, _)| start);
        let above = n.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(start, above.unwrap_or(n));
        true
    }

    /// Whether a number is there.
    pub(super) fn contains(&self, n: u64) -> bool {
        self.ranges.range(..=n).next_back().is_some_and(|(_, end)| n <= *end)
    }

    /// The numbers below the greatest that are not there, as ranges with both ends included.
    pub(super) fn gaps(&self) -> Vec<(u64, u64)> {
        let mut next = 0;
        let mut out = vec![];
        for (start, end) in &self.ranges {
            if next < *start {
                out.push((next, start - 1));
            }
            next = end.saturating_add(1);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn ranges_grow_together() {
        let mut numbers = Numbers::default();
        for n in [3, 1, 2, u64::MAX, 7, 6] {
            assert!(numbers.insert(n) && numbers.contains(n));
            assert!(!numbers.insert(n));
        }
        assert_eq!(numbers.gaps(), [(0, 0), (4, 5), (8, u64::MAX - 1)]);
        assert!(!numbers.contains(0) && !numbers.contains(5));
        numbers.insert(0);
        assert_eq!(numbers.ranges.len(), 3);
    }
}
