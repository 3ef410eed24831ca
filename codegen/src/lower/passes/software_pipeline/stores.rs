//! Stores by the copy engine that are under way when the loop that starts them ends.

use std::collections::BTreeSet;

use ir::{
    Block, Func, Group, Instr, Loop, Name, Stmt, Wait,
    pipeline::{Emission, PipelinePlan, is_pipeline},
};

use super::{kernel_of, ledger::members};
use crate::lower::marks;

/// Whether the stores of a pipeline, which loops `around` it run again and again, may outlast a run of it. A run waits before it writes to
/// a slot for the stores from there, whoever has started them; so they may if each run begins with the slot behind the last one of the run
/// before, and nothing else touches what is stored and where to. The result waits for the last stores, behind all runs.
///
/// If they could not, a block that stays on its multiprocessor would multiply nothing until the last part of its tile has been read.
pub(crate) fn outlasting(
    func: &Func,
    plan: &PipelinePlan,
    emission: &Emission,
    around: &[&Loop],
) -> Option<Stmt> {
    // The steps of a pipeline around it, some of them written out, would have to be followed.
    if around.iter().any(|it| is_pipeline(it)) {
        return None;
    }
    let copies = members(Group::Bulk, func, plan);
    let role = plan.role(*copies.first()?);
    let begins_behind = |extent: i64| extent > 0 && plan.slots.values().all(|it| extent % it.count() == 0);
    let comes_round = plan.extent.as_int().is_some_and(begins_behind);
    if !comes_round || plan.last_stage() > 0 || emission.is_dynamic {
        return None;
    }
    let of = |at: &usize| {
        let it = &plan.components[*at];
        it.reads().into_iter().chain(it.writes())
    };
    let touched: BTreeSet<Name> = copies.iter().flat_map(of).collect();
    let uses = |it: &&&Block| it.reads().iter().chain(&it.writes()).any(|it| touched.contains(&it.buffer));
    let kernel = kernel_of(func, &plan.var).blocks();
    let inside = func.find_loop(&plan.var)?.body.blocks();
    if kernel.iter().filter(uses).count() > inside.iter().filter(uses).count() {
        return None;
    }

    let buffers = touched.into_iter().collect();
    let wait = Wait { group: Group::Bulk, reads_only: true, in_flight: 0, buffers };
    Some(marks::in_role(marks::instruction("async_wait", Instr::Wait(wait)), role))
}
