//! What hardware still uses, nobody else touches: registers of products, and shared memory that is on its way out.

use std::collections::BTreeSet;

use ir::{
    Access, Arrival, Completion, Group, Index, Instr, Less, Mode, Name, Participants, Scope, SyncKind,
    ThreadAxis, access::Disjointness, axis_var,
};

use super::{
    error::PhaseError,
    groups::GroupsLeft,
    program::Program,
    survey::Survey,
    walk::{Search, View, Walk},
};

/// What is in a group of a kind, for messages.
const fn what_of(group: Group) -> &'static str {
    match group {
        Group::Bulk | Group::CpAsync => "a copy to global memory in flight",
        Group::Wgmma | Group::Tcgen05 => "a product in flight",
    }
}

/// Checks touches of what products and copies in flight use, and that nothing is in flight at the end.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    for program in &survey.programs {
        let used = |group: Group| -> BTreeSet<&Name> {
            let mut out = BTreeSet::new();
            for (_, it) in program.instrs().filter(|it| it.1.completion() == Completion::WithGroup(group)) {
                it.each_effect(&mut |effect| {
                    out.insert(&effect.access.buffer);
                });
            }
            out
        };
        for group in [Group::Wgmma, Group::Tcgen05, Group::Bulk] {
            let used = used(group);
            if used.is_empty() {
                continue;
            }
            // Of products, where their sums are; what boxes fill for them goes by phases. Of copies, that which they read.
            let scope = match group {
                Group::Wgmma => Scope::Local,
                Group::Tcgen05 => Scope::Tensor,
                Group::Bulk | Group::CpAsync => Scope::Shared,
            };
            let is_used =
                |name: &Name| used.contains(name) && survey.alloc(name).is_some_and(|it| it.scope == scope);
            for (node, it) in program.instrs() {
                let is_own = it.completion() == Completion::WithGroup(group);
                let mut refused = None;
                it.each_effect(&mut |effect| {
                    let reads_only = group == Group::Bulk && effect.mode == Mode::Read;
                    if refused.is_none() && is_used(&effect.access.buffer) && !reads_only && !is_own {
                        refused = touched(survey, program, node, effect.access, group);
                    }
                });
                refused.map_or(Ok(()), Err)?;
            }
            let mut search = InFlight { survey, program, group, access: None, found: None };
            let walked = Walk::new(program, &mut search).before_end(GroupsLeft::unknown(true));
            if let Some(buffer) = search.found {
                return Err(PhaseError::Outstanding { buffer, what: what_of(group) });
            }
            let any = used.first().expect("something is used");
            walked.map_err(|it| it.about(any))?;
        }
    }
    Ok(())
}

/// Why a touch is refused, if it is.
fn touched(
    survey: &Survey<'_>,
    program: &Program<'_>,
    node: usize,
    access: &Access,
    group: Group,
) -> Option<PhaseError> {
    let mut search = InFlight { survey, program, group, access: Some(access), found: None };
    // A product uses registers of the thread itself; what a leader starts it waits for, for all others behind a barrier.
    let met = group == Group::Wgmma;
    let walked =
        Walk::new(program, &mut search).before(node, &program.bounds(node), GroupsLeft::unknown(met));
    let what = what_of(group);
    let found = search.found.map(|buffer| PhaseError::InFlight { buffer, what });
    found.or_else(|| Some(walked.err()?.about(&access.buffer)))
}

/// The search for what may be in flight.
struct InFlight<'s, 'a> {
    survey: &'s Survey<'a>,
    program: &'s Program<'a>,
    group: Group,
    /// What is touched; all there is at the end.
    access: Option<&'s Access>,
    found: Option<Name>,
}

impl InFlight<'_, '_> {
    /// Where an instruction uses what is touched.
    fn meets(&self, it: &Instr, view: &View) -> Option<Name> {
        let mut out = None;
        it.each_effect(&mut |effect| {
            let used = effect.access;
            let meets =
                self.access.is_none_or(|own| own.buffer == used.buffer && !are_apart(own, used, view));
            let is_meant = self.access.is_some() || self.group != Group::Bulk || effect.mode == Mode::Read;
            if meets && is_meant {
                out.get_or_insert(used.buffer.clone());
            }
        });
        out
    }
}

impl Search for InFlight<'_, '_> {
    type State = GroupsLeft;

    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut GroupsLeft) {
        if it.completion() == Completion::WithGroup(self.group) && !state.are_over() {
            let meets = self.meets(it, view);
            self.found = self.found.take().or(meets);
        }
        match it.sync() {
            Some(SyncKind::Wait(it)) if it.group == self.group && state.met && self.is_of_those(node) => {
                state.wait(it.in_flight);
            }
            Some(SyncKind::Commit(group)) if group == self.group => state.commit(),
            // All products before it are over when other roles have waited for all its phases, which has been proved.
            Some(SyncKind::Arrive(it)) if it.is_late && self.access.is_none() && self.is_told(it) => {
                *state = GroupsLeft::none(true);
            }
            Some(SyncKind::Barrier) if self.is_wide(it) && self.program.leader(node).is_none() => {
                state.met = true;
            }
            _ => {}
        }
    }

    fn done(&self, state: &GroupsLeft) -> bool {
        self.found.is_some() || state.are_over()
    }
}

impl InFlight<'_, '_> {
    /// Whether an arrival tells other roles of sums.
    fn is_told(&self, it: &Arrival) -> bool {
        self.group == Group::Tcgen05
            && self.survey.barriers.iter().any(|of| *of.name == it.barrier && !of.sums.is_empty())
    }

    /// Who starts what is in flight: one of so many, or each thread.
    fn leaders(&self) -> impl Iterator<Item = Option<Participants>> {
        let of_group = |it: &Instr| it.completion() == Completion::WithGroup(self.group);
        self.program.instrs().filter(move |it| of_group(it.1)).map(|(node, _)| self.program.leader(node))
    }

    /// Whether the leaders of copies meet those whom they lead at a barrier.
    fn is_wide(&self, it: &Instr) -> bool {
        self.leaders().flatten().all(|leader| it.participants() >= leader)
    }

    /// Whether those come to a wait whose groups it is for: a thread waits for its own alone.
    fn is_of_those(&self, wait: usize) -> bool {
        self.leaders().all(|leader| leader == self.program.leader(wait))
    }
}

/// Whether two accesses are to different elements, as a subscript of theirs says that is the same for all threads.
pub(super) fn are_apart(own: &Access, used: &Access, view: &View) -> bool {
    let is_thread = |name: &Name| ThreadAxis::ALL.iter().any(|it| axis_var(*it) == *name);
    // The last subscript stands for several elements.
    let slots = own.indices.iter().zip(&used.indices).rev().skip(1);
    slots.filter(|(a, b)| !a.any_var(&is_thread) && !b.any_var(&is_thread)).any(|(a, b)| {
        let (a, b) = (view.at_start(a), view.shown(b));
        // As remainders they are compared as they stand, before what is known of them makes something else of one.
        let [one, other] = [&a, &b].map(std::slice::from_ref);
        let pair = Disjointness { a: one, b: other, bounds: &view.bounds, is_common: &|_| true };
        let less = |a: &Index, b: &Index| view.bounds.prove(&Less::new(a.clone(), b.clone())) == Some(true);
        pair.disjoint() || less(&a, &b) || less(&b, &a)
    })
}
