//! Blocks of a cluster do the same, where one hears of the other.

use ir::{Index, Less, Name, Op, ThreadAxis, axis_var};

use super::{
    error::{PhaseError, Remote},
    program::Program,
    survey::Survey,
};

/// Checks that what is done at mbarriers at which blocks of a cluster meet depends on none of them: then what is counted in one block is
/// true of all, and a number stands for the same iteration everywhere.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    for barrier in survey.barriers.iter().filter(|it| it.uses.iter().any(super::survey::Use::is_remote)) {
        for (program, uses) in survey.programs.iter().zip(&barrier.uses) {
            let all = uses.arrivals.iter().chain(&uses.awaits).chain(&uses.loads);
            if all.into_iter().any(|it| program.tells_blocks(it.node)) {
                return Err(PhaseError::Remote { barrier: barrier.name.clone(), why: Remote::Differs });
            }
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
