//! How far roles are apart: each waits for nothing but mbarriers, so that one may run ahead as far as slots are free.

use ir::{Kernel, Op, SyncKind};

use super::{Lane, Sync, clock::Clock, find::LoweredPipeline, phases::synced};

/// When each lane begins.
///
/// What is drawn is a run in which every role is as far ahead of those that wait for it as the slots between them allow. With `V`
/// slots that are given back `lag` iterations after they are read, that is `V - lag` iterations: in the step in which `i` is read, the
/// slot of `i - lag` becomes free, and `i - lag + V` goes there.
pub(super) struct Pace {
    /// How many steps after the first lane each begins.
    pub(super) behind: Vec<i64>,
    /// Whether each goes on with the next run of the loop while others finish this one.
    pub(super) goes_on: Vec<bool>,
    /// The number of steps before all statements have something to do.
    pub(super) last: i64,
}

/// Slots that one lane fills for another.
struct Between {
    writer: usize,
    reader: usize,
    /// How many iterations the writer may be ahead.
    ahead: i64,
}

impl Pace {
    /// The pace of the lanes of a pipeline.
    pub(super) fn of(clock: &Clock, found: &LoweredPipeline<'_>) -> Pace {
        let between = between(clock, found);
        let mut behind = vec![0; clock.lanes.len()];
        // A lane may read what one reads that reads: as often as there are lanes, at most.
        for _ in &clock.lanes {
            for lane in 0..behind.len() {
                let bounds = between.iter().filter(|it| it.reader == lane);
                let least = bounds.map(|it| behind[it.writer] + it.ahead).min();
                behind[lane] = least.unwrap_or(0).max(0);
            }
        }
        let most = behind.iter().max().copied().unwrap_or(0);
        let starts_at_once = |lane| clock.ranks_of(lane).all(|rank| clock.components[rank].stage == 0);
        let is_ahead = |lane: usize| behind[lane] < most && !found.around.is_empty() && starts_at_once(lane);
        let goes_on = (0..behind.len()).map(is_ahead).collect();
        let mut out = Pace { behind, goes_on, last: 0 };
        let times = (0..clock.components.len()).map(|rank| out.time(clock, rank));
        out.last = times.max().unwrap_or(0);
        out
    }

    /// How many steps after an iteration begins a statement works on it.
    pub(super) fn time(&self, clock: &Clock, rank: usize) -> i64 {
        clock.components[rank].stage + self.behind[clock.lane_of[rank]]
    }

    /// Which step of its own a lane is in; none before its first one, and after its last.
    pub(super) fn own_step(&self, lane: usize, step: i64, clock: &Clock, trips: i64) -> Option<i64> {
        let own = step - self.behind[lane];
        let all = trips.saturating_add(clock.last);
        let own = if self.goes_on[lane] && own >= all { own - all } else { own };
        (own >= 0).then_some(own)
    }

    /// The lanes, as they are told of.
    pub(super) fn lanes(&self, clock: &Clock, kernel: &Kernel) -> Vec<Lane> {
        let lane = |(at, role): (usize, &Option<ir::Name>)| {
            let warps = role.as_ref().and_then(|it| kernel.roles.get(it));
            Lane {
                role: role.clone(),
                threads: warps.map_or_else(|| super::threads(kernel), |it| Some(it.threads())),
                turns: turns(kernel, role.as_ref()),
                registers: warps.and_then(|it| it.registers),
                behind: self.behind[at],
                goes_on: self.goes_on[at],
            }
        };
        clock.lanes.iter().enumerate().map(lane).collect()
    }
}

/// How many warpgroups of a role take turns.
fn turns(kernel: &Kernel, role: Option<&ir::Name>) -> i64 {
    let mut out = 1;
    for op in &kernel.body {
        if matches!((op, role), (Op::Role(name, _), Some(role)) if name == role) {
            op.each_instr(&mut |it| {
                if let Some(SyncKind::Turn(it)) = it.sync() {
                    out = it.members;
                }
            });
        }
    }
    out
}

/// The slots that lanes fill for each other, by what tells that they are free: who waits for that writes, who arrives has read.
fn between(clock: &Clock, found: &LoweredPipeline<'_>) -> Vec<Between> {
    let mut out = Vec::new();
    for (at, it) in found.mbarriers.iter().enumerate() {
        let (mut arrives, mut waits) = (None, None);
        for ((lane, ..), step) in &found.steps {
            for (rank, sync) in synced(step) {
                match sync {
                    Sync::Arrive { mbarrier, fill } if *mbarrier == at => {
                        arrives = Some((*lane, clock.before(*lane, rank), fill.unwrap_or(0)));
                    }
                    Sync::Await { mbarrier, .. } if *mbarrier == at => waits = Some((*lane, rank)),
                    _ => {}
                }
            }
        }
        let (Some((reader, last_reader, fill)), Some((writer, first_writer))) = (arrives, waits) else {
            continue;
        };
        if reader == writer {
            continue;
        }
        let stage =
            |rank: Option<usize>| rank.and_then(|it| clock.components.get(it)).map_or(0, |it| it.stage);
        let ahead = it.slots + fill + stage(Some(first_writer)) - stage(last_reader);
        out.push(Between { writer, reader, ahead });
    }
    out
}
