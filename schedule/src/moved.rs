//! What must hold when a block moves: the checks that `compute_at`, `reverse_compute_at` and `rolling_update` share.

use std::collections::BTreeSet;

use ir::{
    Block, Func, Index, IterKind, Less, LoopKind, Name, Stmt,
    access::{Conflict, Iteration},
    deps::{self, DepKind},
    region::{self, Nest, Range, Way},
};

use crate::{BlockError, ScheduleError, inverse::Inverse, nest};

/// The loop is not yet around the block, and the loops that the move leaves empty carry no marks.
pub(crate) fn expect_movable(func: &Func, block: &Name, target: &Name) -> Result<(), BlockError> {
    let loops = func.loops_of(block).expect("the block is one of the program's");
    if loops.iter().any(|it| it.var == *target) {
        return Err(BlockError::AlreadyUnder { block: block.clone(), loop_name: target.clone() });
    }
    let alone = loops.iter().filter(|it| it.body.blocks().len() == 1);
    let mut marked = alone.filter(|it| it.kind != LoopKind::Serial || !it.attrs.is_empty());
    if let Some(it) = marked.next() {
        return Err(BlockError::MarkedLoop { block: block.clone(), loop_name: it.var.clone() });
    }
    let around = nest::path(func, Some(target));
    expect_unchanged_in_loops(func, block, &|it| around.iter().any(|around| around.var == *it))
}

/// The block can be computed again where its results are read: what it reads is the same there. Loops around all
/// readers may stay around it if none of these reads what an earlier iteration of them has computed.
pub(crate) fn expect_unchanged_at_readers(
    func: &Func,
    block: &Block,
    buffer: &Name,
) -> Result<(), BlockError> {
    let readers = func.readers(buffer);
    let names: Vec<Name> = readers.iter().map(|it| it.name.clone()).collect();
    let common = nest::common_loop(func, &names);
    let around = nest::path(func, common.as_ref());
    let own = Nest::of(func, block);
    let stays = |var: &Name| {
        let level = around.iter().position(|it| it.var == *var);
        level.is_some_and(|level| {
            readers.iter().all(|it| {
                never_later(func, (&own, Way::Write), (&Nest::of(func, it), Way::Read), buffer, level)
            })
        })
    };
    expect_unchanged_in_loops(func, &block.name, &stays)
}

/// Nothing that the block has to do with in the loops that it leaves, those that `stays` does not have, comes later there than it may: it
/// reads no running sum, for one, and has none that others read.
pub(crate) fn expect_unchanged_in_loops(
    func: &Func,
    block: &Name,
    stays: &dyn Fn(&Name) -> bool,
) -> Result<(), BlockError> {
    let nests = Nest::all(func);
    let Some(at) = nests.iter().position(|it| it.block.name == *block) else { return Ok(()) };
    let own = &nests[at];
    for (number, other) in nests.iter().enumerate().filter(|it| it.0 != at) {
        let shared = own.shared_loops(other);
        let first_left = own.loops[..shared].iter().position(|it| !stays(&it.var)).unwrap_or(shared);
        // The block comes to stand behind, or before, all iterations of the other one.
        let (earlier, later) = if number < at { (own, other) } else { (other, own) };
        for dep in deps::between(earlier.block, later.block) {
            let ways = match dep.kind {
                DepKind::Raw => (Way::Write, Way::Read),
                DepKind::War => (Way::Read, Way::Write),
                DepKind::Waw => continue,
            };
            let meets = |level| !never_later(func, (earlier, ways.0), (later, ways.1), &dep.buffer, level);
            if (first_left..shared).any(meets) {
                let (block, other) = (earlier.block.name.clone(), later.block.name.clone());
                return Err(match dep.kind {
                    DepKind::War => BlockError::OverwrittenLater { block, buffer: dep.buffer, other },
                    _ => BlockError::OutOfOrder { block: other, other: block, buffer: dep.buffer },
                });
            }
        }
    }
    Ok(())
}

/// No loop that will be around the block is one that a producer reduces over: there it would read partial results.
pub(crate) fn expect_whole_results(
    func: &Func,
    block: &Name,
    producers: &[Name],
    target: &Name,
) -> Result<(), BlockError> {
    for around in nest::path(func, Some(target)) {
        for producer in producers.iter().filter_map(|it| func.find_block(it)) {
            let mut reduce = producer.iters.iter().filter(|it| it.kind == IterKind::Reduce);
            if reduce.any(|it| it.binding.any_var(&|var| *var == around.var)) {
                return Err(BlockError::PartialResult {
                    block: block.clone(),
                    producer: producer.name.clone(),
                    loop_name: around.var.clone(),
                });
            }
        }
    }
    Ok(())
}

/// A block that is to run for the whole domain of an iterator, as no range says otherwise, computes the same for all of it:
/// its values do not speak of the iterator unless its places do, and what it reads is not computed anew in a loop that
/// gave the iterator its value and stays around it.
pub(crate) fn expect_same_values(
    func: &Func,
    block: &Block,
    ranges: &[Option<Range>],
    target: &Name,
) -> Result<(), ScheduleError> {
    let mut hidden: BTreeSet<Name> = BTreeSet::new();
    block.body.each_store(&mut |store| {
        let place = Inverse::of(func, block, &store.place.indices);
        store.value.each_index(&mut |index| {
            hidden.extend(index.vars().into_iter().filter(|it| !place.tells(it)));
        });
    });
    let whole = block.iters.iter().zip(ranges).filter(|(iter, range)| {
        range.is_none() && iter.kind == IterKind::Spatial && iter.extent.as_int() != Some(1)
    });
    let around = func.loops_of(&block.name).expect("the block is one of the program's");
    let stays = |var: &Name| func.find_loop(var).is_some_and(|it| contains(&it.body, target));
    for (iter, _) in whole {
        let writes = || block.writes().first().map_or_else(|| block.name.clone(), |it| it.buffer.clone());
        if hidden.contains(&iter.var) {
            let (block, buffer, name) = (block.name.clone(), writes(), target.clone());
            return Err(ScheduleError::Overwrites { block, buffer, name });
        }
        let moves = |var: &Name| iter.binding.any_var(&|it| it == var) && stays(var);
        for it in around.iter().filter(|it| moves(&it.var)) {
            let inside = it.body.blocks();
            for read in block.reads() {
                let writes = |other: &&&Block| {
                    other.name != block.name && other.writes().iter().any(|it| it.buffer == read.buffer)
                };
                if let Some(first) = inside.iter().find(writes) {
                    let (first, second) = (first.name.clone(), block.name.clone());
                    let (name, buffer) = (it.var.clone(), read.buffer.clone());
                    return Err(ScheduleError::Carried { name, first, second, buffer });
                }
            }
        }
    }
    Ok(())
}

/// Whether a loop of that name is inside a statement.
fn contains(stmt: &Stmt, var: &Name) -> bool {
    let mut found = false;
    stmt.walk(&mut |it| found |= matches!(it, Stmt::Loop(it) if it.var == *var));
    found
}

/// Every block that depends on the moved one, or on which it depends, is still on the same side of it.
pub(crate) fn expect_same_order(old: &Func, new: &Func, moved: &Name) -> Result<(), BlockError> {
    let (were, are) = (old.body.blocks(), new.body.blocks());
    let position = |blocks: &[&Block], name: &Name| blocks.iter().position(|it| it.name == *name);
    let Some(block) = old.find_block(moved) else { return Ok(()) };
    for &other in were.iter().filter(|it| it.name != *moved) {
        let was_first = position(&were, &other.name) < position(&were, moved);
        let is_first = position(&are, &other.name) < position(&are, moved);
        let (src, dst) = if was_first { (other, block) } else { (block, other) };
        for dep in deps::between(src, dst) {
            let is_overtaken = || dep.kind == DepKind::Waw && overtakes(old, new, src, dst, &dep.buffer);
            if was_first != is_first || is_overtaken() {
                let (block, other) = (dst.name.clone(), src.name.clone());
                return Err(BlockError::OutOfOrder { block, other, buffer: dep.buffer });
            }
        }
    }
    Ok(())
}

/// Whether a block may now write elements in an earlier iteration of a loop around both than the one in which `first` does,
/// where it came after all of these.
fn overtakes(old: &Func, new: &Func, first: &Block, last: &Block, buffer: &Name) -> bool {
    let nests = |func| Some((nest_of(func, &first.name)?, nest_of(func, &last.name)?));
    let (Some(was), Some((first, last))) = (nests(old), nests(new)) else { return false };
    let (was, is) = (was.0.shared_loops(&was.1), first.shared_loops(&last));
    (was..is).any(|level| !never_later(new, (&last, Way::Write), (&first, Way::Write), buffer, level))
}

fn nest_of<'a>(func: &'a Func, name: &Name) -> Option<Nest<'a>> {
    func.find_block(name).map(|it| Nest::of(func, it))
}

/// Whether the solver finds no element that one block touches in an iteration of a loop around both, and another one
/// in a later iteration of it.
fn never_later(
    func: &Func,
    (earlier, way): (&Nest<'_>, Way),
    (later, later_way): (&Nest<'_>, Way),
    buffer: &Name,
    level: usize,
) -> bool {
    let when = |name: &Name| Iteration::same_if(!later.loops[level..].iter().any(|it| it.var == *name));
    let var = Index::var(&earlier.loops[level].var);
    let (mine, others) = (earlier.places(buffer, way), later.places(buffer, later_way));
    mine.iter().all(|mine| {
        others.iter().all(|other| {
            let both = Conflict { first: mine, second: other, dims: &func.dims, when: &when };
            both.never_where(&[Less::new(var.clone(), both.at_second(&var))])
        })
    })
}

/// The moved block reads, and its readers read, only what is written in the same iteration; and nothing it reads
/// is overwritten after it, since it may now run later or more than once.
pub(crate) fn expect_covered(old: &Func, new: &Func, moved: &Name) -> Result<(), BlockError> {
    if let Some(it) = region::uncovered(new, old) {
        let is_moved = it.writer == *moved;
        return Err(BlockError::Uncovered {
            reader: it.reader,
            writer: it.writer,
            buffer: it.buffer,
            is_moved,
        });
    }
    let Some(block) = new.find_block(moved) else { return Ok(()) };
    let blocks = new.body.blocks();
    let after = blocks.iter().skip_while(|it| it.name != *moved).skip(1);
    for other in after {
        let war = deps::between(block, other).into_iter().find(|it| it.kind == deps::DepKind::War);
        let own = |buffer: &Name| block.writes().iter().any(|it| it.buffer == *buffer);
        if let Some(dep) = war.filter(|it| !own(&it.buffer)) {
            let (block, other) = (moved.clone(), other.name.clone());
            return Err(BlockError::OverwrittenLater { block, buffer: dep.buffer, other });
        }
    }
    Ok(())
}
