//! What a kernel asks of the memory: wavefronts and sectors against the fewest possible.

use ir::Name;
use serde::Serialize;

use super::{
    exec::{Machine, Mask, lanes},
    index::{LaneIndices, WARP},
    program::{Elements, PlaceInfo, Program},
};

/// What one kernel did, as a GPU would have to do it.
///
/// Shared memory has 32 banks of 4 bytes. A warp's request is served 128 bytes at a time: all lanes at once up to 4
/// bytes each, half a warp for 8, a quarter for 16. Each such part takes as many *wavefronts* as there are different
/// words in the bank that has most of them, and would take one without conflicts. Global memory moves in *sectors* of
/// 32 bytes; the fewest possible for a request are those that its different bytes would fill.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// The kernel.
    pub kernel: Name,
    /// How many blocks there are on each axis; where they make clusters, how many of those.
    pub grid: [i64; 3],
    /// How many blocks a cluster has on each axis, if there are clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[i64; 3]>,
    /// How many threads a block has on each axis.
    pub block: [i64; 3],
    /// Assignments, each thread and each element counted.
    pub steps: u64,
    /// Barriers, once for each block that passes one.
    pub barriers: u64,
    /// Waits for asynchronous copies, once for each warp.
    pub waits: u64,
    /// The accesses to shared and global memory, as they stand in the kernel.
    pub traffic: Vec<Traffic>,
}

/// What an access to shared or global memory in the text of a kernel asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traffic {
    /// The line of the kernel's text form, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// The buffer.
    pub buffer: Name,
    /// Which memory.
    pub space: &'static str,
    /// Whether it reads or writes.
    pub direction: Direction,
    /// Requests, one for each warp that comes by.
    pub requests: u64,
    /// Wavefronts of shared memory, or sectors of global memory.
    pub units: u64,
    /// The fewest possible.
    pub ideal: u64,
    /// The units of the worst request.
    pub worst: u32,
    /// The fewest possible for that request.
    pub worst_ideal: u32,
}

/// Which way data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From memory.
    Read,
    /// To memory.
    Write,
}

/// Counts of a kernel under way.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) barriers: u64,
    pub(crate) waits: u64,
    places: Vec<Count>,
}

/// Counts of one access.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requests: u64,
    units: u64,
    ideal: u64,
    worst: Cost,
    /// The last request that was worked out, and what came of it: most requests are like the one before.
    known: (usize, Mask, i64),
    cost: Cost,
}

/// What one request costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cost {
    units: u32,
    ideal: u32,
}

const BANKS: usize = 32;
const WORD: i64 = 4;
const SECTOR: i64 = 32;

impl Tally {
    pub(crate) fn new(program: &Program) -> Tally {
        Tally { steps: 0, barriers: 0, waits: 0, places: vec![Count::default(); program.places.len()] }
    }

    pub(crate) fn counters(&self, program: &Program) -> Counters {
        let traffic = |(place, it): (&PlaceInfo, &Count)| {
            let line = program.sites[place.site as usize].line;
            Traffic {
                line,
                text: program.lines.get(line - 1).cloned().unwrap_or_default(),
                buffer: program.buffers[place.buffer].name.clone(),
                space: if program.buffers[place.buffer].space.is_of_blocks() { "shared" } else { "global" },
                direction: if place.writes { Direction::Write } else { Direction::Read },
                requests: it.requests,
                units: it.units,
                ideal: it.ideal,
                worst: it.worst.units,
                worst_ideal: it.worst.ideal,
            }
        };
        Counters {
            kernel: program.name.clone(),
            grid: program.grid,
            cluster: (program.cluster.blocks() > 1).then_some(program.cluster.axes),
            block: program.block,
            steps: self.steps,
            barriers: self.barriers,
            waits: self.waits,
            traffic: program.places.iter().zip(&self.places).map(traffic).collect(),
        }
    }
}

impl Counters {
    /// Requests, units and the fewest possible units of all accesses to a memory, `shared` or `global`.
    pub fn total(&self, space: &str) -> [u64; 3] {
        let all = self.traffic.iter().filter(|it| it.space == space);
        all.fold([0; 3], |[a, b, c], it| [a + it.requests, b + it.units, c + it.ideal])
    }
}

impl Machine<'_, '_, '_> {
    /// Counts a request.
    pub(crate) fn count(&mut self, place: &Elements, offsets: &LaneIndices, mask: Mask) {
        if mask == 0 || !self.run.lockstep {
            return;
        }
        let Some(it) = self.tally.places.get_mut(place.counted as usize) else { return };
        let memory = &self.memory[place.buffer];
        let size = memory.dtype.bytes_i64();
        let first = offsets[mask.trailing_zeros() as usize].wrapping_mul(size);
        // The lanes differ by the same as before if only a scalar was added, and a whole word or sector moves nothing.
        let unit = if memory.space.is_of_blocks() { WORD } else { SECTOR };
        let key = (self.base, mask, first.rem_euclid(unit));
        if it.requests == 0 || it.known != key || !place.index.is_table() {
            let width = self.program.places[place.counted as usize].width;
            let starts = offsets.map(|it| it.wrapping_mul(size));
            it.cost = if memory.space.is_of_blocks() {
                wavefronts(&starts, mask, width)
            } else {
                sectors(&starts, mask, width)
            };
            it.known = key;
        }
        it.requests += 1;
        it.units += u64::from(it.cost.units);
        it.ideal += u64::from(it.cost.ideal);
        let (new, old) = (it.cost, it.worst);
        if u64::from(new.units) * u64::from(old.ideal) > u64::from(old.units) * u64::from(new.ideal)
            || old.ideal == 0
        {
            it.worst = new;
        }
    }
}

/// The units of `unit` bytes that some lanes touch, each once.
fn touched(starts: &LaneIndices, lanes: impl Iterator<Item = usize>, width: i64, unit: i64) -> Vec<i64> {
    let range = |lane: usize| {
        let last = starts[lane].wrapping_add(width - 1);
        starts[lane].div_euclid(unit)..=last.div_euclid(unit)
    };
    let mut all: Vec<i64> = lanes.flat_map(range).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn wavefronts(starts: &LaneIndices, mask: Mask, width: i64) -> Cost {
    let part = usize::try_from(128 / width.clamp(WORD, 128)).expect("1 to 32");
    let mut out = Cost::default();
    for first in (0..WARP).step_by(part) {
        let here = |lane: &usize| (first..first + part).contains(lane);
        let words = touched(starts, lanes(mask).filter(here), width, WORD);
        let mut banks = [0; BANKS];
        for word in &words {
            banks[usize::try_from(word.rem_euclid(32)).expect("below 32")] += 1;
        }
        out.units += banks.into_iter().max().unwrap_or(0);
        out.ideal += u32::try_from(words.len().div_ceil(BANKS)).expect("a warp asks for a few");
    }
    out
}

fn sectors(starts: &LaneIndices, mask: Mask, width: i64) -> Cost {
    let number = |it: usize| u32::try_from(it).expect("a warp asks for a few");
    let bytes = touched(starts, lanes(mask), width, 1).len();
    let units = touched(starts, lanes(mask), width, SECTOR).len();
    Cost { units: number(units), ideal: number(bytes.div_ceil(32)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(f: impl Fn(i64) -> i64) -> LaneIndices {
        std::array::from_fn(|lane| f(i64::try_from(lane).unwrap()))
    }

    fn shared(f: impl Fn(i64) -> i64, width: i64) -> (u32, u32) {
        let it = wavefronts(&starts(f), Mask::MAX, width);
        (it.units, it.ideal)
    }

    fn global(f: impl Fn(i64) -> i64, width: i64) -> (u32, u32) {
        let it = sectors(&starts(f), Mask::MAX, width);
        (it.units, it.ideal)
    }

    #[test]
    fn banks() {
        assert_eq!(shared(|lane| 4 * lane, 4), (1, 1));
        assert_eq!(shared(|_| 400, 4), (1, 1), "one word for all is a broadcast");
        assert_eq!(shared(|lane| 8 * lane, 4), (2, 1));
        assert_eq!(shared(|lane| 128 * lane, 4), (32, 1));
        assert_eq!(shared(|lane| 132 * lane, 4), (1, 1), "padded rows");
        assert_eq!(shared(|lane| 2 * lane, 2), (1, 1), "two halves of a word");
        assert_eq!(shared(|lane| 16 * lane, 16), (4, 4));
        assert_eq!(shared(|lane| 8 * lane, 8), (2, 2));
        assert_eq!(shared(|lane| 64 * lane, 16), (16, 4));
        assert_eq!(wavefronts(&starts(|lane| 128 * lane), 0b11, 4), Cost { units: 2, ideal: 1 });
    }

    #[test]
    fn sectors_of_32_bytes() {
        assert_eq!(global(|lane| 4 * lane, 4), (4, 4));
        assert_eq!(global(|lane| 4 * lane + 4, 4), (5, 4), "not aligned");
        assert_eq!(global(|lane| 4096 * lane, 4), (32, 4));
        assert_eq!(global(|_| 4, 4), (1, 1));
        assert_eq!(global(|lane| 16 * lane, 16), (16, 16));
    }
}
