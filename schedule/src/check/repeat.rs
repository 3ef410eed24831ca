//! Whether iterations of a loop may run a second time.

use ir::{
    Func, Name,
    region::{Nest, Way},
};

use crate::{
    ScheduleError,
    check::{
        independent::{accumulates, expect_self_contained},
        once::starts_anew,
    },
};

/// Refuses a loop of which it is not shown that the last iterations may run a second time, in their order, after all of
/// them have run up to somewhere among these.
///
/// The second run has to find what the first one found. So what blocks of an iteration hand to each other they write anew in
/// it, and what a block adds to or updates starts anew in it. Whatever else is read, the loop does not write. Which of several iterations
/// writes an element last stays as it is, since all that come after the first repeated one are repeated.
pub(crate) fn expect_repeatable(func: &Func, name: &Name) -> Result<(), ScheduleError> {
    let nests = Nest::all(func);
    let at = |nest: &Nest<'_>| nest.loops.iter().position(|it| it.var == *name);
    let inside: Vec<&Nest<'_>> = nests.iter().filter(|it| at(it).is_some()).collect();
    let Some(level) = inside.first().and_then(|it| at(it)) else { return Ok(()) };
    for (n, nest) in inside.iter().enumerate() {
        let continues = |buffer: &Name| !inside[..n].iter().any(|it| it.uses(buffer));
        if accumulates(nest.block)?
            && starts_anew(nest) <= level
            && nest.accesses(Way::Write).iter().any(|it| continues(&it.buffer))
        {
            return Err(ScheduleError::RunsAgain { name: name.clone(), block: nest.block.name.clone() });
        }
    }
    let target = inside[0].loops[level];
    expect_self_contained(func, &inside, level + 1, &[target], &|_, _| false, &|_, _| false)
}
