//! Phases follow each other: none is waited for that nobody begins, none is over twice before all have seen it, and nobody waits in
//! a circle.
//!
//! Roles run loops of the same names in the same order, as slices of one program do. So there is one order of all that they do, the
//! *witness*: iteration by iteration, and in each iteration those who copy before those who read. If each wait finds the arrivals that it
//! is for before it in that order, nobody waits in a circle: whatever each of them waits for is earlier, and so is what that waits for.

use ir::{Index, Instr, Less};

use super::{
    error::PhaseError,
    program::Program,
    survey::{Barrier, Event, Survey, Use, arrival, phase},
    witness,
};

/// Checks all three.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    for barrier in &survey.barriers {
        totals(survey, barrier)?;
        for (program, uses) in barrier.uses.iter().enumerate() {
            if !uses.awaits.is_empty() && !is_seen(survey, barrier, program)? {
                return Err(PhaseError::Ahead { barrier: barrier.name.clone() });
            }
        }
    }
    witness::check(survey)
}

/// As many phases are begun as are waited for, and those in which boxes come are all waited for.
fn totals(survey: &Survey<'_>, barrier: &Barrier<'_>) -> Result<(), PhaseError> {
    let name = barrier.name;
    let waits = |it: &Instr| i64::from(phase(it, name).is_some());
    let arrives = |it: &Instr| i64::from(arrival(it, name).is_some());
    let uncounted = || PhaseError::Uncounted { barrier: name.clone(), instr: "await" };
    // What comes to the memory of a block it has to wait for before it ends: boxes, and what other blocks do there.
    // Pairs of blocks whose threads tell each other something that nobody waits for any more meet when they give tensor memory back.
    let is_late = |program: &Program<'_>, it: &Event| {
        program.op(it.node).instr().and_then(|it| arrival(it, name)).is_some_and(|it| it.is_late)
    };
    let is_met = |program: &Program<'_>, it: &Use| {
        let meets = it.at_first || survey.multiplies_in_pairs();
        meets && it.loads.is_empty() && !it.arrivals.iter().any(|it| is_late(program, it))
    };
    let has_to_end = survey
        .programs
        .iter()
        .zip(&barrier.uses)
        .any(|(program, it)| !it.loads.is_empty() || it.is_remote() && !is_met(program, it));
    let mut is_awaited = false;
    for (filler, _) in survey.programs.iter().zip(&barrier.uses).filter(|it| !it.1.arrivals.is_empty()) {
        let begun = filler.total(&arrives).ok_or_else(uncounted)?;
        for (program, uses) in survey.programs.iter().zip(&barrier.uses).filter(|it| !it.1.awaits.is_empty())
        {
            is_awaited = true;
            let awaited = program.total(&waits).ok_or_else(uncounted)? + uses.offset;
            let known = filler.known();
            let is_enough = known.prove(&Less::new(begun.clone(), awaited.clone())) == Some(false);
            if !is_enough || (has_to_end && !known.equal(&awaited, &begun)) {
                return Err(PhaseError::Unfinished { barrier: name.clone(), awaited, begun });
            }
        }
        if has_to_end && !is_awaited {
            let awaited = Index::int(0);
            return Err(PhaseError::Unfinished { barrier: name.clone(), awaited, begun });
        }
    }
    Ok(())
}

/// Whether a program that waits has surely seen each phase before the next but one is over in that slot.
///
/// That takes an arrival at this mbarrier `V` numbers later, which stands behind a wait for an arrival of the program that waits, which
/// stands behind the wait in question.
fn is_seen(survey: &Survey<'_>, barrier: &Barrier<'_>, waiting: usize) -> Result<bool, PhaseError> {
    let own = &barrier.uses[waiting];
    // Whoever waits has arrived: the same thread, or a lane of the same warp behind what the whole warp did.
    let stands_for = |of: &Use| {
        let both = of.arriving.as_ref().zip(own.waiting.as_ref());
        both.is_some_and(|(arriving, waiting)| arriving.arrives_on_behalf_of(waiting))
    };
    for (filler, uses) in barrier.uses.iter().enumerate().filter(|it| !it.1.arrivals.is_empty()) {
        let arrives = |it: &Instr| i64::from(arrival(it, barrier.name).is_some());
        let begun = survey.programs[filler].total(&arrives);
        let once = |it: &Index| {
            let less = Less::new(it.clone(), Index::int(barrier.slots + 1));
            survey.programs[filler].known().prove(&less) == Some(true)
        };
        if begun.as_ref().is_some_and(once) {
            return Ok(true);
        }
        if filler == waiting {
            // Where one thread fills for all, the barrier before it is looked for when its slots are.
            let is_seen = !stands_for(uses) && !uses.loads.is_empty()
                || lead(survey, filler, barrier, barrier)?.is_some_and(|it| it + barrier.slots >= 0);
            if is_seen {
                return Ok(true);
            }
            continue;
        }
        for other in &survey.barriers {
            if other.uses[filler].awaits.is_empty() || !stands_for(&other.uses[waiting]) {
                continue;
            }
            let there = lead(survey, filler, barrier, other)?;
            let back = lead(survey, waiting, other, barrier)?;
            if there.zip(back).is_some_and(|(there, back)| barrier.slots + there + back >= 0) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// How far waits for an mbarrier are at least ahead of arrivals at another, in a program.
fn lead(
    survey: &Survey<'_>,
    program: usize,
    at: &Barrier<'_>,
    of: &Barrier<'_>,
) -> Result<Option<i64>, PhaseError> {
    let waits = |it: &Instr| i64::from(phase(it, of.name).is_some());
    let (uses, awaited) = (&at.uses[program], &of.uses[program]);
    let both = awaited.waiting.as_ref().zip(uses.arriving.as_ref());
    if !both.is_some_and(|(waiting, arriving)| waiting.waits_on_behalf_of(arriving)) {
        return Ok(None);
    }
    let mut least = None::<i64>;
    for event in &uses.arrivals {
        let before = survey.programs[program].before(event.node, &waits, &event.bounds);
        let uncounted = || PhaseError::Uncounted { barrier: of.name.clone(), instr: "await" };
        let number = before.ok_or_else(uncounted)? + (awaited.offset - 1);
        let Some(own) = event.bounds.interval(&(&number - &event.number)).0 else { return Ok(None) };
        least = Some(least.map_or(own, |it| it.min(own)));
    }
    Ok(least)
}
