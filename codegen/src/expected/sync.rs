//! How teams wait for each other: mbarriers, barriers, turns.

use ir::{Arrival, Name, Participants, Phase, SemaphoreKind, Turn};

use super::{
    play::{Phases, Play, Went, eval, team_frame},
    team::Team,
};

impl<'a> Play<'a> {
    pub(super) fn wait(&mut self, at: usize, it: &'a Phase) -> Option<Went> {
        let team = &self.teams[at];
        let (slot, phase) = (eval(&it.slot, team)?, eval(&it.phase, team)?);
        let Ok(phase) = usize::try_from(phase) else { return Some(Went::On) };
        let all = self.phases.entry((team.block, &it.barrier, slot)).or_default();
        let Some(over) = all.over.get(phase).copied() else { return Some(Went::Not) };
        self.teams[at].now = self.teams[at].now.max(over);
        self.issue(at, 2.0 * self.teams[at].doing().0);
        Some(Went::On)
    }

    pub(super) fn arrive(&mut self, at: usize, it: &'a Arrival) -> Option<()> {
        let team = &self.teams[at];
        if it.is_late || it.at_first {
            return None;
        }
        let slot = eval(&it.slot, team)?;
        let bytes = it.bytes.as_ref().map_or(Some(0), |it| eval(it, team))?;
        // Other blocks of the cluster do the same at the same time.
        let others = self.kernel.blocks_along(&it.along) as f64;
        let (block, threads, now) = (team.block, team.doing().1, team.now);
        let seen = now + if it.bytes.is_some() { 0.0 } else { self.rates.hand_over() };
        self.issue(at, self.teams[at].doing().0 * others);
        self.count((block, &it.barrier, slot), (threads * others, bytes as f64, 0.0), seen);
        Some(())
    }

    /// Counts arrivals, bytes that are expected, and bytes that come at a time for an mbarrier.
    pub(super) fn count(
        &mut self,
        key: (usize, &'a Name, i64),
        (arrivals, expected, come): (f64, f64, f64),
        time: f64,
    ) {
        let needed = self.kernel.mbarriers.get(key.1).map_or(1, |it| it.arrivals) as f64;
        let it = self.phases.entry(key).or_default();
        it.arrivals += arrivals;
        it.expected += expected;
        it.come += come;
        it.latest = it.latest.max(time);
        if it.arrivals >= needed && it.come >= it.expected {
            it.over.push(it.latest);
            *it = Phases { over: std::mem::take(&mut it.over), ..Phases::default() };
            self.wake(key.0);
        }
    }

    /// Lets all of a block look again whether what they wait for is there.
    fn wake(&mut self, block: usize) {
        self.teams.iter_mut().filter(|it| it.block == block).for_each(|it| it.is_waiting = false);
    }

    pub(super) fn meet(&mut self, at: usize, among: Participants) -> Went {
        let team = &self.teams[at];
        let (block, role, now) = (team.block, team.role, team.now);
        let is_with = |it: &Team<'_>| match among {
            Participants::Thread | Participants::Warp | Participants::Warpgroup => false,
            Participants::Role => it.block == block && it.role == role,
            Participants::Block | Participants::Cluster => it.block == block,
        };
        let members: Vec<usize> = (0..self.teams.len()).filter(|it| is_with(&self.teams[*it])).collect();
        if among <= Participants::Warp {
            return Went::On;
        }
        if members.len() < 2 {
            self.teams[at].now += self.rates.barrier();
            return Went::On;
        }
        let role = role.filter(|_| among == Participants::Role);
        let meeting = self.meetings.entry((block, role, among)).or_default();
        if meeting.came.iter().any(|it| it.0 == at) {
            return Went::Not;
        }
        meeting.came.push((at, now));
        if meeting.came.len() < members.len() {
            return Went::Not;
        }
        let latest = meeting.came.iter().map(|it| it.1).fold(0.0, f64::max) + self.rates.barrier();
        meeting.came.clear();
        for member in members {
            let team = &mut self.teams[member];
            team.now = latest;
            if member != at {
                // They stand before the barrier, and go on behind it.
                team.is_waiting = false;
                team_frame(team).at += 1;
            }
        }
        Went::On
    }

    pub(super) fn turn(&mut self, at: usize, it: &'a Turn) -> Option<Went> {
        let team = &self.teams[at];
        let number = eval(&it.turn, team)?;
        let (block, now) = (team.block, team.now);
        let ended = self.turns.entry((block, &it.of)).or_default();
        match it.kind {
            SemaphoreKind::Acquire if number > 0 => {
                let Some(before) = ended.get(&(number - 1)).copied() else { return Some(Went::Not) };
                self.teams[at].now = now.max(before + self.rates.barrier());
            }
            SemaphoreKind::Acquire => {}
            SemaphoreKind::Release => {
                ended.insert(number, now);
                self.wake(block);
            }
        }
        Some(Went::On)
    }
}
