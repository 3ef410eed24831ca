//! Blocks of a cluster do the same, where one hears of the other, and none waits for a role that does not come.

use ir::{Index, Instr, Kernel, Less, Name, Op, Participants, Scope, SyncKind, ThreadAxis, axis_var};

use super::{
    error::{PhaseError, Remote},
    program::Program,
    survey::{Barrier, Survey, Use, fill},
};
use crate::lower::LowerError;

/// Checks that roles whose barriers are of the cluster wait for no other role there.
///
/// The hardware waits for all threads of a cluster that have not ended. Those of other roles end by themselves if they wait for nothing
/// that comes behind such a barrier, and each barrier is come to once.
pub(super) fn expect_others_end(kernel: &Kernel) -> Result<(), LowerError> {
    let is_of_cluster = |op: &Op| matches!(op, Op::Alloc(it) if it.scope == Scope::Cluster);
    let mut others = None;
    for op in kernel.body.iter().filter(|_| kernel.roles.len() > 1) {
        let Op::Role(role, body) = op else { continue };
        let Some(first) = body.iter().position(meets) else { continue };
        let mut why = others.replace("the blocks meet in another role, too");
        body[first..].iter().for_each(|op| op.walk(&mut |op| why = why.or_else(|| waits(op))));
        if let Some(why) = why {
            let memory = kernel.body.iter().find(|op| is_of_cluster(op));
            let buffer =
                memory.and_then(|op| if let Op::Alloc(it) = op { Some(it.name.clone()) } else { None });
            return Err(LowerError::ClusterMeets { buffer, role: role.clone(), why });
        }
    }
    Ok(())
}

/// Whether blocks of a cluster wait for each other in a statement.
fn meets(op: &Op) -> bool {
    let mut found = false;
    op.each_instr(&mut |it| found |= it.participants() == Participants::Cluster);
    found
}

/// Why other roles may still be under way when all of a cluster meet, in or before a statement.
fn waits(op: &Op) -> Option<&'static str> {
    match op {
        Op::For(it) if it.extent.as_int() != Some(1) && meets(op) => {
            Some("they would meet in each iteration of a loop, and the other roles do not come")
        }
        Op::Instr(it, _) if matches!(it.sync(), Some(SyncKind::Arrive(_) | SyncKind::Turn(_))) => {
            Some("other roles may wait for what it does behind that")
        }
        _ => None,
    }
}

/// Checks that what is done at mbarriers at which blocks of a cluster meet depends on none of them: then what is counted in one block is
/// true of all, and a number stands for the same iteration everywhere.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    let waits_for_all = |it: &Barrier<'_>| {
        let mut programs = survey.programs.iter().zip(&it.uses);
        programs.any(|(program, it)| it.awaits.iter().any(|it| program.is_led_for_cluster(it.node)))
    };
    let is_remote = |it: &&Barrier<'_>| it.uses.iter().any(Use::is_remote) || waits_for_all(it);
    for barrier in survey.barriers.iter().filter(is_remote) {
        expect_told(survey, barrier)?;
        for (program, uses) in survey.programs.iter().zip(&barrier.uses) {
            let all = uses.arrivals.iter().chain(&uses.awaits).chain(&uses.loads);
            if all.into_iter().any(|it| program.tells_blocks(it.node)) {
                return Err(PhaseError::Remote { barrier: barrier.name.clone(), why: Remote::Differs });
            }
        }
    }
    Ok(())
}

/// Checks that of a pair of blocks those who wait are told what both do, and no others are.
///
/// Both do the same, so a number of a phase stands for the same iteration in both. One thread of the first block multiplies for both: it waits
/// for mbarriers of its own block alone, at which then both have to arrive, and for no others does anybody arrive there. What it has done
/// concerns the memory of both, so both have to hear of it.
fn expect_told(survey: &Survey<'_>, barrier: &Barrier<'_>) -> Result<(), PhaseError> {
    let refuse = |why| Err(PhaseError::Remote { barrier: barrier.name.clone(), why });
    let at_first = barrier.uses.iter().any(|it| it.at_first);
    // An answer says the same in all blocks, so that whoever waits in his own knows what the others know.
    let claims = |(program, it): (&Program<'_>, &Use)| {
        it.loads.iter().any(|it| matches!(program.op(it.node).instr(), Some(Instr::Claim(_))))
    };
    let tells_all = survey.programs.iter().zip(&barrier.uses).any(claims);
    for (program, uses) in survey.programs.iter().zip(&barrier.uses) {
        for event in &uses.arrivals {
            if uses.at_first != at_first {
                return refuse(Remote::Elsewhere);
            }
            let reaches = |it: &Vec<ThreadAxis>| it.contains(&ThreadAxis::ClusterX);
            let is_heard = at_first || uses.along.as_ref().is_some_and(reaches);
            if program.is_led_for_cluster(event.node) && !is_heard {
                return refuse(Remote::Unheard);
            }
        }
        let mut copies = uses.loads.iter().filter_map(|it| fill(program.op(it.node).instr()?, barrier.name));
        if copies.any(|it| it.at_first != at_first) {
            return refuse(Remote::Elsewhere);
        }
        if tells_all {
            continue;
        }
        if uses.awaits.iter().any(|it| program.is_led_for_cluster(it.node) != at_first) {
            return refuse(Remote::Elsewhere);
        }
    }
    Ok(())
}

impl Program<'_> {
    /// Whether it depends on the place of a block in its cluster whether a statement is done, or how often.
    fn tells_blocks(&self, node: usize) -> bool {
        let is_place =
            |name: &Name| ThreadAxis::ALL.into_iter().any(|it| it.is_cluster() && axis_var(it) == *name);
        let depends = |it: &Index| it.any_var(&is_place);
        let tells = |it: &Less| depends(&it.lhs) || depends(&it.rhs);
        self.around(node).any(|it| match self.op(it) {
            Op::If(conditions, _) => conditions.iter().any(tells),
            Op::For(it) => depends(&it.extent),
            Op::Alloc(_) | Op::Leader(..) | Op::Role(..) | Op::Instr(..) => false,
        })
    }
}
