//! Slots are touched within their phases: behind the wait for what is in them, and over before they are given back.
//!
//! What a program touches of a slot has the number of the latest wait before it, or of one few waits earlier, whichever is for that slot;
//! the next box for the slot has that number and `V`. Another role that fills the slot waits for an arrival of that number, made by
//! those who touched it, and only then comes the box. Where the same threads fill it, a barrier of theirs has to be between.

use std::collections::BTreeMap;

use ir::{Access, Index, Instr, Less, Name, arith::Bounds};

use super::{
    error::{Outside, PhaseError, Remote},
    exchange::touching,
    fences,
    given_back::{GivenBack, Numbers},
    program::{ActiveThreads, Program},
    refill::source,
    survey::{Barrier, Event, Survey, Who, arrival, equal, fill, phase, sum},
    walk::Walk,
};

/// By statement.
pub(super) type ByNode<T> = BTreeMap<usize, T>;

/// A ring: slots that a program fills, and one that touches them.
pub(super) struct Ring<'s, 'a> {
    pub(super) survey: &'s Survey<'a>,
    pub(super) full: &'s Barrier<'a>,
    pub(super) buffers: Vec<&'a Name>,
    pub(super) filler: usize,
    pub(super) reader: usize,
}

/// Checks all touches of what boxes fill.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    for full in &survey.barriers {
        let fillers = full.uses.iter().enumerate().filter(|it| !it.1.loads.is_empty());
        for (filler, _) in fillers {
            let mut buffers = filled(survey, full);
            buffers.sort();
            buffers.dedup();
            // By which of two mbarriers its boxes came, nobody could tell.
            let other = survey.barriers.iter().filter(|it| it.name != full.name);
            if let Some(buffer) = other.flat_map(|it| filled(survey, it)).find(|it| buffers.contains(it)) {
                let (buffer, barrier, why) = (buffer.clone(), full.name.clone(), Outside::NotAwaited);
                return Err(PhaseError::Window { buffer, barrier, why });
            }
            for reader in 0..survey.programs.len() {
                let ring = Ring { survey, full, buffers: buffers.clone(), filler, reader };
                if reader == filler {
                    ring.own()?;
                }
                // Other blocks fill its slots, too, and are others in that.
                if reader != filler || !full.uses[filler].sent.is_empty() {
                    ring.of_another()?;
                }
                ring.is_answered()?;
            }
        }
    }
    Ok(())
}

/// The buffers whose boxes count for some mbarriers, and those of the sums that do.
fn filled<'a>(survey: &Survey<'a>, full: &Barrier<'a>) -> Vec<&'a Name> {
    let instrs = survey.programs.iter().flat_map(Program::instrs);
    let box_of = |it| Some(&fill(it, full.name)?.place.buffer);
    instrs.filter_map(|(_, it)| box_of(it)).chain(full.sums.iter().copied()).collect()
}

impl Ring<'_, '_> {
    /// Refuses boxes that go to other blocks of a cluster where a program waits for them that does not give slots back: it says nothing to
    /// those who send them.
    fn is_answered(&self) -> Result<(), PhaseError> {
        let uses = &self.full.uses;
        let waits = !uses[self.reader].awaits.is_empty();
        let touches = touching(&self.survey.programs[self.reader], &self.buffers).next().is_some();
        if uses[self.filler].sent.is_empty() || !waits || touches {
            return Ok(());
        }
        Err(PhaseError::Remote { barrier: self.full.name.clone(), why: Remote::NotFree })
    }

    /// Touches by the program that fills the slots.
    fn own(&self) -> Result<(), PhaseError> {
        let program = &self.survey.programs[self.filler];
        let mut numbers = Numbers::default();
        for (node, it) in touching(program, &self.buffers) {
            let bounds = program.bounds(node);
            let awaited = self.awaited(node, it, &bounds)?;
            for behind in source(self, node, it, &bounds)? {
                if behind < 0 {
                    return Err(self.outside(it, Outside::NotAwaited));
                }
                let number = bounds.simplify(&(&awaited + (-1 - behind)));
                numbers.touches.entry(node).or_default().push(number);
            }
        }
        self.add_awaits(&mut numbers);
        // Threads that only fill need not meet others to fill again.
        if numbers.touches.is_empty() && numbers.awaits.is_empty() {
            return Ok(());
        }
        let uses = &self.full.uses[self.filler];
        let begun = uses.arrivals.iter().map(|it| (it, 0)).chain(uses.loads.iter().map(|it| (it, -1)));
        for (event, more) in begun {
            let limit = number_of(event, more - self.full.slots);
            let search = GivenBack::refilled(self, event.node, numbers.clone(), limit);
            self.search(event, search, Outside::FilledAgain)?;
        }
        Ok(())
    }

    /// Touches by another program than that which fills the slots.
    fn of_another(&self) -> Result<(), PhaseError> {
        let program = &self.survey.programs[self.reader];
        let touches: Vec<_> = touching(program, &self.buffers).collect();
        let Some((_, first)) = touches.first() else { return Ok(()) };
        self.are_in_slots()?;
        let mut numbers = Numbers::default();
        for (node, it) in &touches {
            let bounds = program.bounds(*node);
            numbers.touches.insert(*node, self.numbers(*node, it, &bounds)?);
        }
        self.add_awaits(&mut numbers);
        let mut refused = self.outside(first, Outside::NotFree);
        for empty in &self.survey.barriers {
            if empty.uses[self.reader].arrivals.is_empty() || !self.is_waited_for(empty)? {
                continue;
            }
            // Boxes come from all blocks along those axes: each of them has to hear it.
            let along = empty.uses[self.reader].along.as_deref().unwrap_or_default();
            if !self.full.uses[self.filler].sent.iter().all(|it| along.contains(it)) {
                refused = PhaseError::Remote { barrier: self.full.name.clone(), why: Remote::NotFree };
                continue;
            }
            match self.given_back(empty, &numbers) {
                Ok(()) => return Ok(()),
                Err(err) => refused = err,
            }
        }
        Err(refused)
    }

    /// Each box goes to the slot of its number.
    fn are_in_slots(&self) -> Result<(), PhaseError> {
        let slots = self.full.slots;
        for Event { node, number, bounds } in &self.full.uses[self.filler].loads {
            let it = self.survey.programs[self.filler].op(*node).instr();
            let Some((first, extents)) = it.and_then(|it| self.filled_by(it)) else { continue };
            let number = bounds.simplify(&(number + -1));
            let slot = self.survey.slot(first, extents, slots, bounds);
            if !slot.as_ref().is_some_and(|slot| is_of(slot, &number, slots, bounds)) {
                let (barrier, what, phase) = (self.full.name.clone(), "copy", None);
                let slot = slot.unwrap_or_else(|| first.indices.first().cloned().unwrap_or(Index::int(0)));
                return Err(PhaseError::OutOfStep { barrier, what, number, slot, phase, slots });
            }
        }
        Ok(())
    }

    /// What a statement fills of a slot: the first element, and how many in each dimension.
    fn filled_by<'i>(&self, it: &'i Instr) -> Option<(&'i Access, &'i [i64])> {
        let of_box = fill(it, self.full.name).map(|it| (it.place, it.extents));
        of_box.or_else(|| sum(it, &self.full.sums).map(|it| (&it.first, &*it.extents)))
    }

    /// Which numbers a touch has: one for each slot that it is to.
    fn numbers(&self, node: usize, it: &Instr, bounds: &Bounds) -> Result<Vec<Index>, PhaseError> {
        let awaited = self.awaited(node, it, bounds)?;
        let slots = self.full.slots;
        let mut out = vec![];
        let mut refused = None;
        it.each_effect(&mut |effect| {
            if !self.buffers.contains(&&effect.access.buffer) {
                return;
            }
            let slot = self.survey.slot(effect.access, effect.extents, slots, bounds);
            let number = (1..=slots).map(|behind| bounds.simplify(&(&awaited - &Index::int(behind))));
            let is_slot = |it: &Index| slot.as_ref().is_some_and(|slot| is_of(slot, it, slots, bounds));
            let has_come = |it: &Index| bounds.prove(&Less::new(Index::int(-1), it.clone())) == Some(true);
            match number.into_iter().find(is_slot).filter(has_come) {
                Some(number) if !out.contains(&number) => out.push(number),
                Some(_) => {}
                None => refused = Some(self.outside(it, Outside::NotAwaited)),
            }
        });
        refused.map_or(Ok(out), Err)
    }

    /// How many phases have been waited for before a touch, by those who touch.
    pub(super) fn awaited(&self, node: usize, it: &Instr, bounds: &Bounds) -> Result<Index, PhaseError> {
        let program = &self.survey.programs[self.reader];
        let name = self.full.name;
        let waits = |it: &Instr| i64::from(phase(it, name).is_some());
        let waiting = &self.full.uses[self.reader].waiting;
        let own = Who::perhaps_at(program, node);
        // Nobody has waited, or not all those who touch.
        if waiting.as_ref().is_some_and(|it| !it.waits_on_behalf_of(&own)) {
            return Err(self.outside(it, Outside::NotAwaited));
        }
        let uncounted = || PhaseError::Uncounted { barrier: name.clone(), instr: "await" };
        program.before(node, &waits, bounds).ok_or_else(uncounted)
    }

    fn add_awaits(&self, numbers: &mut Numbers) {
        let uses = &self.full.uses[self.reader];
        numbers.awaits = uses.awaits.iter().map(|it| (it.node, it.number.clone())).collect();
    }

    /// Whether each box comes only when the arrival of its number less `V` at another mbarrier has.
    fn is_waited_for(&self, empty: &Barrier<'_>) -> Result<bool, PhaseError> {
        let waiting = &empty.uses[self.filler];
        let program = &self.survey.programs[self.filler];
        let both = waiting.waiting.as_ref().zip(self.full.uses[self.filler].arriving.as_ref());
        if !both.is_some_and(|(waiting, copying)| waiting.waits_on_behalf_of(copying)) {
            return Ok(false);
        }
        let waits = |it: &Instr| i64::from(phase(it, empty.name).is_some());
        for event in &self.full.uses[self.filler].loads {
            let uncounted = || PhaseError::Uncounted { barrier: empty.name.clone(), instr: "await" };
            let awaited = program.before(event.node, &waits, &event.bounds).ok_or_else(uncounted)?;
            // The number of the box is that of the arrivals before it less one.
            let needed = &event.number + (-1 - self.full.slots);
            let is_waited = Less::new(needed, awaited + waiting.offset);
            if event.bounds.prove(&is_waited) != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that slots are given back when all touches of them are over, and touched no more.
    fn given_back(&self, empty: &Barrier<'_>, numbers: &Numbers) -> Result<(), PhaseError> {
        let program = &self.survey.programs[self.reader];
        let arrives = |it: &Instr| i64::from(arrival(it, empty.name).is_some());
        for (node, own) in &numbers.touches {
            let bounds = program.bounds(*node);
            let given = program.before(*node, &arrives, &bounds);
            let is_kept = |number: &Index| {
                let less = given.as_ref().map(|it| Less::new(number.clone(), it.clone()));
                less.is_some_and(|it| bounds.prove(&it) == Some(false))
            };
            let touching = Who::perhaps_at(program, *node).active;
            let arriving = empty.uses[self.reader].arriving.as_ref().map(|it| &it.active);
            let is_told = arriving.is_some_and(|it| *it == ActiveThreads::All || *it == touching);
            if !is_told || !own.iter().all(is_kept) {
                let it = program.op(*node).instr();
                let err = it.map(|it| self.outside(it, Outside::GivenBack));
                return err.map_or(Ok(()), Err);
            }
        }
        for event in &empty.uses[self.reader].arrivals {
            let search = GivenBack::arrived(self, event.node, numbers.clone(), number_of(event, 0));
            self.search(event, search, Outside::NotOver)?;
            fences::given_back(self.survey, program, (event.node, &event.bounds), &self.buffers)?;
        }
        Ok(())
    }

    fn search(&self, event: &Event, mut search: GivenBack<'_, '_>, why: Outside) -> Result<(), PhaseError> {
        let program = &self.survey.programs[self.reader];
        let state = search.state();
        let walked = Walk::new(program, &mut search).before(event.node, &event.bounds, state);
        match search.found {
            Some(buffer) => Err(PhaseError::Window { buffer, barrier: self.full.name.clone(), why }),
            None => walked.map_err(|it| it.about(self.buffers.first().expect("boxes fill something"))),
        }
    }

    pub(super) fn outside(&self, it: &Instr, why: Outside) -> PhaseError {
        let mut buffer = None;
        it.each_effect(&mut |effect| {
            if self.buffers.contains(&&effect.access.buffer) {
                buffer.get_or_insert(effect.access.buffer.clone());
            }
        });
        let buffer = buffer.unwrap_or_else(|| self.full.name.clone());
        PhaseError::Window { buffer, barrier: self.full.name.clone(), why }
    }
}

/// Whether a slot is that of a number.
fn is_of(slot: &Index, number: &Index, slots: i64, bounds: &Bounds) -> bool {
    equal(bounds, slot, &number.floor_mod(&Index::int(slots)))
}

/// The number of an arrival, and so much more.
fn number_of(event: &Event, more: i64) -> Index {
    event.bounds.simplify(&(&event.number + more))
}
