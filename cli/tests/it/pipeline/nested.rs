//! Pipelines inside the components of a pipeline, by brute force.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    model::{BufferUse, Component, THREADS},
    oracle::{Instance, Oracle, Run, Times, Touch, Violation, reads_before_writing},
};

/// What is asked of the loop in a component.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    /// The stage and the order of each block.
    pub(crate) times: Times,
    /// Whether its prologue, steady loop and epilogue are three pieces of the pipeline around.
    pub(crate) in_parts: bool,
}

/// What has a time of its own: a component, or one of the three parts of the pipeline in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) component: usize,
    pub(crate) part: Option<usize>,
}

/// A pipelined inner loop that keeps its dependences.
pub(crate) struct Arranged {
    /// The element of the tile and the number of the block, in the order in which they run; and the part.
    sequence: Vec<((i64, usize), usize)>,
    /// How many elements of the tile have their own of a buffer.
    slots: BTreeMap<usize, i64>,
}

impl Arranged {
    pub(crate) fn sequence(&self, part: Option<usize>) -> Vec<(i64, usize)> {
        let wanted = |it: &&((i64, usize), usize)| part.is_none_or(|part| part == it.1);
        self.sequence.iter().filter(wanted).map(|it| it.0).collect()
    }

    pub(crate) fn slot(&self, buffer: usize, tile: i64) -> i64 {
        self.slots.get(&buffer).map_or(0, |slots| tile % slots)
    }
}

impl Component {
    /// The element of the tile and the number of the block, in program order.
    pub(crate) fn sequence(&self) -> Vec<(i64, usize)> {
        (0..self.tile).flat_map(|tile| (0..self.blocks.len()).map(move |block| (tile, block))).collect()
    }
}

/// Runs a component in the order of these times, or says which dependence that turns around. `forced` are the slots that
/// a buffer has at least.
pub(crate) fn arrange(
    oracle: &Oracle<'_>,
    component: usize,
    times: &Times,
    forced: &dyn Fn(usize) -> i64,
) -> Result<Arranged, Violation> {
    let own: BTreeSet<usize> =
        (0..oracle.program.buffers.len()).filter(|it| is_own(oracle, component, *it)).collect();
    let mut all_overtaken: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
    for (trip, thread) in (0..oracle.trips).flat_map(|it| (0..THREADS).map(move |thread| (it, thread))) {
        let all: Vec<(Run, Touch)> = touches(oracle, component, trip, thread);
        for (then_at, (then, b)) in all.iter().enumerate() {
            for (first, a) in &all[..then_at] {
                let in_order = time(times, first) < time(times, then);
                let same_run = (first.tile, first.block) == (then.tile, then.block);
                if a.element != b.element || !(a.write || b.write) || same_run || in_order {
                    continue;
                }
                let buffer = a.element.0;
                if !own.contains(&buffer) || first.tile == then.tile {
                    let place = Instance { trip, piece: component };
                    return Err(Violation { kind: "inner", first: place, then: place, buffer });
                }
            }
        }
        for &buffer in &own {
            all_overtaken.entry(buffer).or_default().extend(overtaken(&all, times, buffer));
        }
    }
    let slots = all_overtaken.into_iter().map(|(buffer, overtaken): (usize, BTreeSet<i64>)| {
        let least = forced(buffer);
        let most = overtaken.last().map_or(1, |it| it + 1).max(least);
        let count = (least..=most).find(|slots| overtaken.iter().all(|it| it % slots != 0));
        (buffer, count.expect("one more than the greatest divides none"))
    });
    let slots = slots.collect();
    Ok(Arranged { sequence: in_time(&oracle.program.components[component], times), slots })
}

/// By how many elements writes come before uses of an earlier one are over.
fn overtaken(all: &[(Run, Touch)], times: &Times, buffer: usize) -> BTreeSet<i64> {
    let of = |it: &&(Run, Touch)| it.1.element.0 == buffer;
    let mut out = BTreeSet::new();
    for (user, a) in all.iter().filter(of) {
        let meets = |it: &&(Run, Touch)| it.1.write && it.1.element == a.element && it.0.tile > user.tile;
        for (writer, _) in all.iter().filter(of).filter(meets) {
            if time(times, writer) <= time(times, user) {
                out.insert(writer.tile - user.tile);
            }
        }
    }
    out
}

fn time(times: &Times, it: &Run) -> (i64, i64) {
    let (stage, order) = times[it.block];
    (it.tile + stage, order)
}

fn touches(oracle: &Oracle<'_>, component: usize, trip: i64, thread: i64) -> Vec<(Run, Touch)> {
    let it = &oracle.program.components[component];
    let runs = it.sequence().into_iter().map(|(tile, block)| Run { component, block, trip, thread, tile });
    let runs = runs.filter(|run| it.blocks[run.block].guard.holds(trip));
    runs.flat_map(|run| oracle.touches_of(run).into_iter().map(move |touch| (run, touch))).collect()
}

/// Whether a buffer is of this component only, and each element of the tile fills of it what it reads.
fn is_own(oracle: &Oracle<'_>, component: usize, buffer: usize) -> bool {
    let program = oracle.program;
    let uses = |at: usize| {
        let blocks = &program.components[at].blocks;
        blocks.iter().any(|it| it.reads.iter().chain([&it.place]).any(|it| it.buffer == Some(buffer)))
    };
    let fills = |trip: i64, thread: i64, tile: i64| {
        let all = touches(oracle, component, trip, thread);
        !reads_before_writing(all.into_iter().filter(|it| it.0.tile == tile).map(|it| it.1), buffer)
    };
    matches!(program.buffers[buffer].kind, BufferUse::Inner(_))
        && (0..program.components.len()).all(|it| uses(it) == (it == component))
        && (0..oracle.trips).all(|trip| {
            (0..THREADS)
                .all(|thread| (0..program.components[component].tile).all(|it| fills(trip, thread, it)))
        })
}

/// The runs of a tile by their times, and the part that each is in: what runs while not all blocks do is prologue or
/// epilogue, and where they never all do, all is prologue.
fn in_time(it: &Component, times: &Times) -> Vec<((i64, usize), usize)> {
    let first = times.iter().map(|it| it.0).min().unwrap_or(0);
    let last = times.iter().map(|it| it.0).max().unwrap_or(0) - first;
    let mut all = it.sequence();
    all.sort_by_key(|(tile, block)| (tile + times[*block].0, times[*block].1));
    let part = |(tile, block): (i64, usize)| {
        let time = tile + times[block].0 - first;
        if it.tile <= last || time < last { 0 } else { 1 + usize::from(time >= it.tile) }
    };
    all.into_iter().map(|it| (it, part(it))).collect()
}
