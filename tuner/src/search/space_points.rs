//! The space of a script as strategies see it.

use super::Points;
use crate::{Refusal, Space, Stream};

/// A space with the number of choices of each knob at hand.
pub(super) struct SpacePoints {
    space: Space,
    radices: Vec<usize>,
}

impl SpacePoints {
    pub(super) fn new(space: &Space) -> SpacePoints {
        SpacePoints { space: space.clone(), radices: space.axes().values().map(Vec::len).collect() }
    }
}

impl Points for SpacePoints {
    fn radices(&self) -> &[usize] {
        &self.radices
    }

    fn digits(&self, index: u128) -> Vec<usize> {
        self.space.digits(index)
    }

    fn admit(&self, digits: &[usize]) -> Option<u128> {
        let mut digits = digits.to_vec();
        loop {
            match self.space.admits_digits(&digits) {
                Ok(()) => return Some(self.space.index(&digits)),
                Err(Refusal::Constraint(_)) => return None,
                // One knob fewer has another than its first choice, so this ends.
                Err(Refusal::Inactive(name)) => digits[self.space.axes().get_index_of(&name)?] = 0,
            }
        }
    }

    fn stream(&self, seed: u64) -> Box<dyn Iterator<Item = u128> + Send> {
        Box::new(Stream::new(&self.space, seed))
    }
}
