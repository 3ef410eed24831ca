//! Turns of warpgroups: who may go on, and what it then knows.
//!
//! On the hardware the beginning of a turn is a barrier for two warpgroups, at which the one before only arrives. Here a turn is a number that
//! goes on when all four warps of its warpgroup have ended it; so a beginning and an end that do not belong together are found, and not only
//! where they leave somebody waiting.

use ir::{Name, SemaphoreKind};

use super::{
    Finding,
    clock::{Agents, Clock},
    exec::{Machine, Mask},
    findings::WaitingTurn,
    index::{IndexCode, WARP},
    program::Program,
    tell::TURN,
};

/// The beginning or the end of a turn.
#[derive(Debug)]
pub(crate) struct TurnCode {
    pub(crate) kind: SemaphoreKind,
    /// Which of the kernel's loops in turns it is.
    pub(crate) of: usize,
    pub(crate) turn: IndexCode,
    pub(crate) count: IndexCode,
}

/// The turns in a loop.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Which turn it is.
    now: i64,
    /// How many warps have ended it.
    ended: usize,
    /// What they have told, and what those of the turn before had.
    told: Clock,
    over: Clock,
    /// The turn that each warp is in.
    of: Vec<Option<i64>>,
}

/// A turn that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AwaitedTurn {
    pub(crate) of: usize,
    pub(crate) turn: i64,
}

/// The warps of a warpgroup.
const WARPS: usize = 4;

/// The turns of the blocks of a cluster, one block after the other, when they begin.
pub(crate) fn begun(program: &Program, agents: Agents) -> Vec<Turns> {
    let one = |_: &Name| {
        let (told, over) = (Clock::new(agents), Clock::new(agents));
        Turns { now: 0, ended: 0, told, over, of: vec![None; program.scope.count / WARP] }
    };
    (0..program.cluster.blocks()).flat_map(|_| program.turns.iter().map(one)).collect()
}

impl Machine<'_, '_, '_> {
    /// The turn that a warp comes to.
    pub(crate) fn turn_of(&mut self, code: &TurnCode, mask: Mask) -> AwaitedTurn {
        let mut turns = [0; WARP];
        self.index(&code.turn, &mut turns);
        let before = self.program.cluster.block_of(self.base) * self.program.turns.len();
        AwaitedTurn { of: before + code.of, turn: turns[mask.trailing_zeros() as usize % WARP] }
    }

    /// Whether it is a turn now.
    pub(crate) fn is_turn(&self, it: AwaitedTurn) -> bool {
        self.team_turns[it.of].now == it.turn
    }

    /// A warp begins its turn: it knows what those before it did and knew.
    pub(crate) fn begin_turn(&mut self, it: AwaitedTurn, mask: Mask) {
        let warp = self.base / WARP;
        self.team_turns[it.of].of[warp] = Some(it.turn);
        let over = std::mem::take(&mut self.team_turns[it.of].over);
        if it.turn > 0 {
            self.hear(mask, &over);
        }
        self.team_turns[it.of].over = over;
    }

    /// A warp ends its turn.
    pub(crate) fn end_turn(&mut self, site: u32, code: &TurnCode, mask: Mask) {
        let it = self.turn_of(code, mask);
        let warp = self.base / WARP;
        let began = self.team_turns[it.of].of[warp].take();
        if began != Some(it.turn) {
            self.out_of_turn(site, it, began, mask);
            return;
        }
        let mut counts = [0; WARP];
        self.index(&code.count, &mut counts);
        let is_last = it.turn.saturating_add(1) >= counts[mask.trailing_zeros() as usize % WARP];
        let told = self.publish(mask);
        let turns = &mut self.team_turns[it.of];
        turns.told.join(&told);
        turns.ended += 1;
        if turns.ended == WARPS && !is_last {
            (turns.now, turns.ended) = (turns.now + 1, 0);
            turns.over = std::mem::replace(&mut turns.told, Clock::new(self.agents));
        }
    }

    /// What is told of a warp that waits for a turn.
    pub(crate) fn waiting_turn(&self, it: AwaitedTurn, role: Option<Name>, warp: i64) -> WaitingTurn {
        let of = self.program.turns[it.of % self.program.turns.len()].clone();
        WaitingTurn { role, warps: vec![warp], of, turn: it.turn, under_way: self.team_turns[it.of].now }
    }

    #[cold]
    fn out_of_turn(&mut self, site: u32, it: AwaitedTurn, began: Option<i64>, mask: Mask) {
        let key = self.key(TURN, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, mask.trailing_zeros() as usize % WARP));
            let of = self.program.turns[it.of % self.program.turns.len()].clone();
            self.run.sink.keep(key, Finding::OutOfTurn { of, turn: it.turn, began, access });
        }
        self.run.report.stopped = true;
    }
}
