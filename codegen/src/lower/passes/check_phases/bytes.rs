//! The bytes that a phase is told to expect are those that come in it.

use ir::{Index, Instr};

use super::{
    error::PhaseError,
    program::Program,
    survey::{Barrier, Survey, arrival, fill},
};

/// Checks that wherever a phase begins to expect bytes, as many bytes have been asked for as were expected before, and so at the end; and
/// where those who ask wait for a phase themselves, since what they would ask for behind that comes too late.
///
/// Boxes count for the phase of the last arrival, as their slots say; so those between one arrival and the next are what comes in its
/// phase, whatever loops and conditions they stand under.
pub(super) fn check(survey: &Survey<'_>, barrier: &Barrier<'_>) -> Result<(), PhaseError> {
    let name = barrier.name;
    for (program, uses) in survey.programs.iter().zip(&barrier.uses) {
        let expected = |it: &Instr| {
            let bytes = arrival(it, name).and_then(|it| it.bytes.as_ref()?.as_int());
            bytes.unwrap_or(0)
        };
        let come = |it: &Instr| fill(it, name).map_or(0, |it| survey.bytes(&it));
        let uncounted = |instr: &'static str| PhaseError::Uncounted { barrier: name.clone(), instr };
        for event in uses.arrivals.iter().chain(&uses.awaits) {
            let count = |weight: &dyn Fn(&Instr) -> i64| program.before(event.node, weight, &event.bounds);
            let (Some(expected), Some(come)) = (count(&expected), count(&come)) else {
                return Err(uncounted("bulk copy"));
            };
            if !event.bounds.equal(&expected, &come) {
                return Err(of_one(survey, barrier, program));
            }
            let it = program.op(event.node).instr().and_then(|it| arrival(it, name));
            if it.and_then(|it| it.bytes.as_ref()).is_some_and(|it| it.as_int().is_none()) {
                return Err(uncounted("expect"));
            }
        }
        let (Some(expected), Some(come)) = (program.total(&expected), program.total(&come)) else {
            return Err(uncounted("bulk copy"));
        };
        if !program.known().equal(&expected, &come) {
            return Err(of_one(survey, barrier, program));
        }
    }
    Ok(())
}

/// What is expected at once and what the boxes at the same place have, for the message.
fn of_one(survey: &Survey<'_>, barrier: &Barrier<'_>, program: &Program<'_>) -> PhaseError {
    let name = barrier.name;
    let expected = program.instrs().find_map(|(node, it)| Some((node, arrival(it, name)?.bytes.clone()?)));
    let list = expected.as_ref().and_then(|it| program.parent(it.0));
    let beside = program.children(list).iter().filter_map(|it| program.op(*it).instr());
    let come: i64 = beside.filter_map(|it| Some(survey.bytes(&fill(it, name)?))).sum();
    let expected = expected.map_or(Index::int(0), |it| it.1);
    let come = Index::int(come);
    let when = if expected == come { "not under the same conditions" } else { "beside the first of them" };
    PhaseError::Bytes { barrier: name.clone(), expected, come, when }
}
