//! Where a reduction starts: in which loops its init runs before anything is added.

use super::{Nest, Way, covers, writes_box};
use crate::{Block, Index, IterKind, Less, Loop, Name};

/// For a block that reads what it writes, under how many of the loops around it each element starts anew: in every iteration of
/// those, and of no more, the first access to an element that the block touches is that of its init. None if it is not so.
///
/// The init runs where all reduction iterators are zero. So in the first iterations of the loops that drive them these
/// have to be zero; and that point has to be there for each element which a later one touches: no guard, no extent and no
/// spatial iterator inside may depend on those loops, except that a guard may keep out later iterations.
pub fn starts_anew(nest: &Nest<'_>) -> Option<usize> {
    let reduce = || nest.block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    let drives = |it: &Loop| reduce().any(|iter| iter.binding.any_var(&|var| *var == it.var));
    let first = nest.loops.iter().position(|it| drives(it)).unwrap_or(nest.loops.len());
    let inner = &nest.loops[first..];
    let is_driving = |var: &Name| inner.iter().any(|it| it.var == *var && drives(it));
    let zero = |var: &Name| is_driving(var).then(|| Index::int(0));
    let at_zero = |it: &Index| nest.bounds().simplify(&it.subst(&zero)).as_int() == Some(0);
    let starts = |guard: &Less| {
        let at_first = guard.subst(&zero);
        at_first == *guard || nest.bounds().prove(&at_first) == Some(true)
    };
    let mut spatial = nest.block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
    (inits_all(nest)
        && reads_own_places(nest)
        && reduce().all(|it| at_zero(&it.binding))
        && !spatial.any(|it| it.binding.any_var(&is_driving))
        && !inner.iter().any(|it| it.extent.any_var(&is_driving))
        && nest.block.guards.iter().all(starts))
    .then_some(first)
}

/// Whether a block reads of each buffer that it writes only what it writes in the same point.
pub fn reads_own_places(nest: &Nest<'_>) -> bool {
    let writes = nest.accesses(Way::Write);
    let own = |read| writes.contains(read);
    nest.accesses(Way::Read).iter().all(|read| own(read) || writes.iter().all(|it| it.buffer != read.buffer))
}

/// Whether the init of a block writes whatever else the block reads of the buffers that it writes.
fn inits_all(nest: &Nest<'_>) -> bool {
    let Some(init) = nest.block.init.clone() else { return false };
    let init = Block { body: init, init: None, ..nest.block.clone() };
    let body = Block { init: None, ..nest.block.clone() };
    let (init, body) = (nest.with(&init), nest.with(&body));
    let own = body.accesses(Way::Write).iter().map(|it| &it.buffer).filter(|it| body.reaches(it, Way::Read));
    own.into_iter().all(|buffer| {
        let reads = || body.accesses_to(buffer, Way::Read);
        let same = || reads().all(|read| init.accesses_to(buffer, Way::Write).any(|it| it == read));
        let box_of = |nest: &Nest<'_>, way| nest.touched_in_one(buffer, nest.loops.len(), way);
        init.reaches(buffer, Way::Write)
            && (same()
                || writes_box(&init, body.block, buffer, init.loops.len())
                    && covers(
                        &box_of(&init, Way::Write),
                        &box_of(&body, Way::Read),
                        nest.shape(buffer),
                        nest.bounds(),
                    ))
    })
}
