//! The space of a script, as strategies see it.

use std::collections::HashMap;

use schedule::Choice;

use super::Points;
use crate::{Space, Stream};

/// A [`Space`] that knows which choices of a knob are next to each other.
///
/// Next to a number are the next smaller and the next greater choice of its knob, in whatever order the script has
/// them. Next to a tile are those that have one prime factor in another place.
#[derive(Clone, Debug)]
pub struct Knobs {
    space: Space,
    radices: Vec<usize>,
    adjacency: Vec<Adjacency>,
}

/// Which choices of a knob are next to each other.
#[derive(Clone, Debug)]
enum Adjacency {
    /// The choices from the least number to the greatest, and the place of each in that.
    Line { sorted: Vec<usize>, places: Vec<usize> },
    /// The choice of some factors.
    Tiles(HashMap<Vec<i64>, usize>),
}

impl Knobs {
    /// Of a space.
    pub fn new(space: &Space) -> Knobs {
        let radices = space.axes().values().map(Vec::len).collect();
        let adjacency = space.axes().values().map(|it| Adjacency::of(it)).collect();
        Knobs { space: space.clone(), radices, adjacency }
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }
}

impl Adjacency {
    fn of(choices: &[Choice]) -> Adjacency {
        let tile = |(digit, it): (usize, &Choice)| match it {
            Choice::Tile(parts) => Some((parts.clone(), digit)),
            Choice::Int(_) => None,
        };
        let tiles: HashMap<_, _> = choices.iter().enumerate().filter_map(tile).collect();
        if tiles.len() == choices.len() {
            return Adjacency::Tiles(tiles);
        }
        let mut sorted: Vec<usize> = (0..choices.len()).collect();
        sorted.sort_by_key(|it| match &choices[*it] {
            Choice::Int(number) => *number,
            Choice::Tile(_) => i64::MAX,
        });
        let mut places = vec![0; choices.len()];
        for (place, digit) in sorted.iter().enumerate() {
            places[*digit] = place;
        }
        Adjacency::Line { sorted, places }
    }
}

impl Points for Knobs {
    fn radices(&self) -> &[usize] {
        &self.radices
    }

    fn digits(&self, index: u128) -> Vec<usize> {
        self.space.digits(index)
    }

    fn admit(&self, digits: &[usize]) -> Option<u128> {
        let decided = self.space.decisions(self.space.index(digits));
        self.space.index_of(&decided).filter(|it| self.space.admits(*it).is_ok())
    }

    fn near(&self, knob: usize, digit: usize) -> Vec<usize> {
        match &self.adjacency[knob] {
            Adjacency::Line { sorted, places } => {
                let place = places[digit];
                let below = place.checked_sub(1).map(|it| sorted[it]);
                below.into_iter().chain(sorted.get(place + 1).copied()).collect()
            }
            Adjacency::Tiles(digits) => {
                match self.space.axes().get_index(knob).and_then(|it| it.1.get(digit)) {
                    Some(Choice::Tile(parts)) => {
                        moved(parts).filter_map(|it| digits.get(&it).copied()).collect()
                    }
                    Some(Choice::Int(_)) | None => vec![],
                }
            }
        }
    }

    fn stream(&self, seed: u64) -> Box<dyn Iterator<Item = u128> + Send> {
        Box::new(Stream::new(&self.space, seed))
    }
}

/// The tiles that a prime factor of one part in another makes.
fn moved(parts: &[i64]) -> impl Iterator<Item = Vec<i64>> + '_ {
    let pairs = (0..parts.len()).flat_map(|from| (0..parts.len()).map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to).flat_map(move |(from, to)| {
        primes(parts[from]).into_iter().filter_map(move |prime| {
            let mut out = parts.to_vec();
            out[from] /= prime;
            out[to] = out[to].checked_mul(prime)?;
            Some(out)
        })
    })
}

/// The different prime factors of a number.
fn primes(mut number: i64) -> Vec<i64> {
    let mut out = vec![];
    let mut factor = 2;
    while number > 1 && factor * factor <= number {
        if number % factor == 0 {
            out.push(factor);
            while number % factor == 0 {
                number /= factor;
            }
        }
        factor += 1;
    }
    if number > 1 {
        out.push(number);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_of_numbers() {
        let cases: [(i64, &[i64]); 6] =
            [(1, &[]), (0, &[]), (2, &[2]), (12, &[2, 3]), (97, &[97]), (2310, &[2, 3, 5, 7, 11])];
        for (number, expected) in cases {
            assert_eq!(primes(number), expected, "{number}");
        }
    }

    #[test]
    fn numbers_are_next_to_each_other_by_size() {
        let choices = [8, 1, 32, 4].map(Choice::Int);
        let Adjacency::Line { sorted, places } = Adjacency::of(&choices) else { panic!("they are numbers") };
        assert_eq!((sorted, places), (vec![1, 3, 0, 2], vec![2, 0, 3, 1]));
    }

    #[test]
    fn tiles_are_next_to_each_other_by_a_factor() {
        let near: Vec<Vec<i64>> = moved(&[6, 1, 4]).collect();
        let expected = [[3, 2, 4], [2, 3, 4], [3, 1, 8], [2, 1, 12], [12, 1, 2], [6, 2, 2]];
        assert_eq!(near, expected);
    }
}
