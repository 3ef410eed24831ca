//! The iterators of a block as scripts name them, and the loops that run through them.

use ir::{Block, Iter, Loop, Name};

use crate::{ScheduleError, TileError, error::Thing};

/// The place of an iterator, by its name or that of its loop.
pub(crate) fn iterator(block: &Block, name: &Name) -> Result<usize, ScheduleError> {
    let named = |it: &Iter| it.var == *name;
    let driven = |it: &Iter| it.binding.as_var() == Some(name);
    let found = block.iters.iter().position(named).or_else(|| block.iters.iter().position(driven));
    found.ok_or_else(|| {
        let both = block.iters.iter().flat_map(|it| [Some(&it.var), it.binding.as_var()]);
        let known = both.flatten().cloned().collect();
        ScheduleError::NoSuch { thing: Thing::Iterator, name: name.clone(), known }
    })
}

/// The loop that runs an iterator through all of its domain, and drives nothing else.
pub(crate) fn own_loop<'a>(block: &Block, iter: &Iter, loops: &'a [Loop]) -> Result<&'a Name, TileError> {
    let drives = |it: &&Iter, var: &Name| it.binding.any_var(&|name| name == var);
    let own = loops.iter().find(|it| {
        iter.binding.as_var() == Some(&it.var)
            && it.extent == iter.extent
            && block.iters.iter().filter(|iter| drives(iter, &it.var)).count() == 1
    });
    own.map(|it| &it.var).ok_or_else(|| {
        let (block, iter, binding) = (block.name.clone(), iter.var.clone(), iter.binding.clone());
        TileError::NotALoop { block, iter, binding }
    })
}
