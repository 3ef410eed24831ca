//! Looks back from where a slot is given back, or filled again, for touches of it that may not be over.

use ir::{Completion, Group, Index, Instr, Less, Name, Participants, SyncKind};

use super::{
    groups::GroupsLeft,
    walk::{Search, View},
    windows::{ByNode, Ring},
};

/// Which numbers statements are about.
#[derive(Clone, Default)]
pub(super) struct Numbers {
    /// Those of the slots that are touched.
    pub(super) touches: ByNode<Vec<Index>>,
    /// Those of the phases that are waited for.
    pub(super) awaits: ByNode<Index>,
}

/// The search for what may not be over of numbers up to a limit.
pub(super) struct GivenBack<'s, 'a> {
    ring: &'s Ring<'s, 'a>,
    numbers: Numbers,
    limit: Index,
    /// Who of those who touch is spoken for; none where each speaks for itself.
    leader: Option<Participants>,
    /// Whether it is for other threads, so that what one of them has waited for is nothing to the others.
    for_others: bool,
    /// Whether hardware goes on reading what it is told to.
    is_late: bool,
    /// Whether it is one thread that tells it so.
    is_led: bool,
    /// The buffer that is touched.
    pub(super) found: Option<Name>,
}

impl<'s, 'a> GivenBack<'s, 'a> {
    /// From an arrival that gives slots back up to a number.
    pub(super) fn arrived(ring: &'s Ring<'s, 'a>, node: usize, numbers: Numbers, limit: Index) -> Self {
        let program = &ring.survey.programs[ring.reader];
        let mut out = GivenBack::new(ring, numbers, limit, program.leader(node), false);
        // It stands for the end of all products before it.
        let is_late = |it: &Instr| matches!(it, Instr::Arrive(it) if it.is_late);
        out.is_late &= !program.op(node).instr().is_some_and(is_late);
        out
    }

    /// From a box that comes to the slot of a number, in the program that touches it.
    pub(super) fn refilled(ring: &'s Ring<'s, 'a>, node: usize, numbers: Numbers, limit: Index) -> Self {
        let leader = ring.survey.programs[ring.reader].leader(node);
        GivenBack::new(ring, numbers, limit, leader, true)
    }

    fn new(
        ring: &'s Ring<'s, 'a>,
        mut numbers: Numbers,
        limit: Index,
        leader: Option<Participants>,
        for_others: bool,
    ) -> Self {
        let program = &ring.survey.programs[ring.reader];
        // What the same thread has waited for, nobody else has to have seen.
        numbers.awaits.retain(|node, _| leader.is_none() || program.leader(*node) != leader);
        let late = |node: &usize| program.op(*node).instr().is_some_and(is_late);
        let is_late = numbers.touches.keys().any(late);
        let led = |it: &Instr| it.completion() == Completion::WithGroup(Group::Tcgen05);
        let is_led = numbers.touches.keys().any(|node| program.op(*node).instr().is_some_and(led));
        GivenBack { ring, numbers, limit, leader, for_others, is_late, is_led, found: None }
    }

    /// What a search begins with.
    pub(super) fn state(&self) -> GroupsLeft {
        self.nothing_waited(self.leader.is_none())
    }

    fn nothing_waited(&self, met: bool) -> GroupsLeft {
        if self.is_late { GroupsLeft::unknown(met) } else { GroupsLeft::none(met) }
    }

    /// Whether a number is surely beyond the limit.
    fn is_beyond(&self, number: &Index, view: &View) -> bool {
        let less = Less::new(view.at_start(&self.limit), view.shown(number));
        view.bounds.prove(&less) == Some(true)
    }

    /// Whether those who touch meet at an instruction.
    fn meets(&self, it: &Instr) -> bool {
        match it.sync() {
            Some(SyncKind::Barrier) => self.leader.is_none_or(|of| it.participants() >= of),
            // The warp has, and who leads it goes on with it.
            Some(SyncKind::Wait(it)) => it.group == Group::Wgmma && self.leader == Some(Participants::Warp),
            _ => false,
        }
    }
}

impl Search for GivenBack<'_, '_> {
    type State = GroupsLeft;

    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut GroupsLeft) {
        let leader = self.ring.survey.programs[self.ring.reader].leader(node);
        let is_own = leader.is_some() && leader == self.leader;
        if let Some(numbers) = self.numbers.touches.get(&node) {
            let is_over = match it.completion() {
                // Whoever leads has started it and waits for it.
                Completion::WithGroup(Group::Tcgen05) => state.groups_are_over() && (state.met || is_own),
                Completion::WithGroup(Group::Wgmma) => state.are_over(),
                // What the same thread has read is over.
                _ => state.met || is_own,
            };
            if !is_over && !numbers.iter().all(|it| self.is_beyond(it, view)) {
                self.found.get_or_insert_with(|| first_buffer(self.ring, it));
            }
        }
        if let Some(number) = self.numbers.awaits.get(&node)
            && !state.met
            && !self.is_beyond(number, view)
        {
            self.found.get_or_insert_with(|| self.ring.full.name.clone());
        }
        match it.sync() {
            Some(SyncKind::Wait(it)) if it.group == Group::Tcgen05 && (state.met || is_own) => {
                state.wait(it.in_flight);
            }
            Some(SyncKind::Commit(Group::Tcgen05)) => state.commit(),
            _ => {}
        }
        if leader.is_some() {
            return;
        }
        match it.sync() {
            Some(SyncKind::Wait(it)) if it.group == Group::Wgmma => state.wait(it.in_flight),
            Some(SyncKind::Commit(Group::Wgmma)) => state.commit(),
            _ => {}
        }
        if !state.met && self.meets(it) {
            state.met = true;
            // Others may not have waited yet for what this thread has.
            if self.for_others && !self.is_led {
                *state = self.nothing_waited(true);
            }
        }
    }

    fn done(&self, state: &GroupsLeft) -> bool {
        self.found.is_some() || state.are_over()
    }
}

/// Whether an instruction goes on reading when the thread does.
fn is_late(it: &Instr) -> bool {
    matches!(it.completion(), Completion::WithGroup(Group::Wgmma | Group::Tcgen05))
}

fn first_buffer(ring: &Ring<'_, '_>, it: &Instr) -> Name {
    let mut out = None;
    it.each_effect(&mut |effect| {
        if ring.buffers.contains(&&effect.access.buffer) {
            out.get_or_insert(effect.access.buffer.clone());
        }
    });
    out.unwrap_or_else(|| ring.full.name.clone())
}
