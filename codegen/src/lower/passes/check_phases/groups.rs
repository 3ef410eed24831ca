//! How many groups of asynchronous work may still be in flight, as walks backwards count them.

/// What the waits between a place and the statement behind it that a walk began at say of the groups before that place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupsLeft {
    /// Whether the threads that have waited have met those for whom they did.
    pub(super) met: bool,
    /// How many of the latest groups may be in flight by the waits; none where nobody has waited, below zero if no group may.
    in_flight: Option<i64>,
}

impl GroupsLeft {
    /// Where nobody has waited for a group yet.
    pub(super) const fn unknown(met: bool) -> GroupsLeft {
        GroupsLeft { met, in_flight: None }
    }

    /// Where there are no groups to wait for.
    pub(super) const fn none(met: bool) -> GroupsLeft {
        GroupsLeft { met, in_flight: Some(-1) }
    }

    /// Goes back over a wait that leaves so many groups in flight.
    pub(super) fn wait(&mut self, in_flight: u32) {
        let now = i64::from(in_flight);
        self.in_flight = Some(self.in_flight.map_or(now, |it| it.min(now)));
    }

    /// Goes back over the end of a group: it is one of those that may be in flight.
    pub(super) fn commit(&mut self) {
        self.in_flight = self.in_flight.map(|it| (it - 1).max(-1));
    }

    /// Whether all groups before it are over, for those who have waited.
    pub(super) fn groups_are_over(self) -> bool {
        self.in_flight.is_some_and(|it| it < 0)
    }

    /// Whether all groups before it are over, for those who have been met.
    pub(super) fn are_over(self) -> bool {
        self.met && self.groups_are_over()
    }
}
