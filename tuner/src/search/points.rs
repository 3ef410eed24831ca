//! A space as strategies see it.

use std::{collections::BTreeSet, sync::Arc};

use crate::data::{shuffled, stream};

/// A finite space of points: each is one of finitely many choices for each of its knobs, and has a number.
///
/// The choices of a knob are numbered from 0; the numbers that a point has chosen are its *digits*.
pub trait Points: Send + Sync {
    /// How many choices each knob has.
    fn radices(&self) -> &[usize];

    /// The digits of a point.
    fn digits(&self, index: u128) -> Vec<usize>;

    /// The point of these digits, if the space admits one: knobs that then decide nothing get their first choice, so
    /// that points that mean the same have one index.
    fn admit(&self, digits: &[usize]) -> Option<u128>;

    /// The choices of a knob that are next to one of its choices, in the sense that the two are likely to do similar.
    fn near(&self, knob: usize, digit: usize) -> Vec<usize> {
        let below = digit.checked_sub(1);
        let above = Some(digit + 1).filter(|it| *it < self.radices()[knob]);
        below.into_iter().chain(above).collect()
    }

    /// Every point that the space admits, once, in an order drawn from the seed.
    fn stream(&self, seed: u64) -> Box<dyn Iterator<Item = u128> + Send>;
}

/// A space given by a list of the points it admits: of a table of results, and for tests.
///
/// The first knob has the most significant digit.
#[derive(Clone, Debug)]
pub struct Grid {
    radices: Vec<usize>,
    admitted: Arc<BTreeSet<u128>>,
}

impl Grid {
    /// The points among all with these numbers of choices that satisfy a condition on their digits.
    pub fn new(radices: Vec<usize>, admits: &dyn Fn(&[usize]) -> bool) -> Grid {
        let size: u128 = radices.iter().map(|it| *it as u128).product();
        let mut grid = Grid { radices, admitted: Arc::default() };
        let admitted = (0..size).filter(|it| admits(&grid.digits(*it))).collect();
        grid.admitted = Arc::new(admitted);
        grid
    }

    /// How many points it admits.
    pub fn len(&self) -> usize {
        self.admitted.len()
    }

    /// Whether it admits none.
    pub fn is_empty(&self) -> bool {
        self.admitted.is_empty()
    }

    /// The points in the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = u128> + '_ {
        self.admitted.iter().copied()
    }
}

impl Points for Grid {
    fn radices(&self) -> &[usize] {
        &self.radices
    }

    fn digits(&self, index: u128) -> Vec<usize> {
        let mut rest = index;
        let mut out = vec![0; self.radices.len()];
        for (digit, radix) in out.iter_mut().zip(&self.radices).rev() {
            *digit = usize::try_from(rest % *radix as u128).expect("it is below a usize");
            rest /= *radix as u128;
        }
        out
    }

    fn admit(&self, digits: &[usize]) -> Option<u128> {
        let index = digits.iter().zip(&self.radices).fold(0, |index: u128, (digit, radix)| {
            index.wrapping_mul(*radix as u128).wrapping_add(*digit as u128)
        });
        Some(index).filter(|it| self.admitted.contains(it))
    }

    fn stream(&self, seed: u64) -> Box<dyn Iterator<Item = u128> + Send> {
        let all: Vec<u128> = self.iter().collect();
        let order = shuffled(&mut stream(seed, 0), all.len());
        Box::new(order.into_iter().map(move |at| all[at]))
    }
}
