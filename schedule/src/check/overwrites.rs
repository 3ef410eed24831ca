//! Blocks whose order matters because a later iteration overwrites what an earlier one wrote.

use std::{cell::LazyCell, collections::BTreeSet};

use ir::{
    Block, Func, Index, Iter, IterKind, Less, Loop, Name, Reducer, Store,
    access::{Conflict, Iteration},
    pipeline,
    region::{Nest, at_loops},
};

use crate::{ScheduleError, check::affine::tells_apart};

/// Refuses a block that writes an element in one iteration of `loops` with another value than in another iteration.
///
/// Where the subscripts tell every iterator that the value speaks of, each element has one value. Where the loop has the
/// buffer for itself, no value has to outlive an iteration.
pub(crate) fn expect_one_value(func: &Func, nest: &Nest<'_>, loops: &[&Loop]) -> Result<(), ScheduleError> {
    let Nest { block, .. } = nest;
    let mut found = None;
    block.body.each_store(&mut |store| {
        if Reducer::of_store(store).is_some() {
            return;
        }
        let mut spoken: BTreeSet<Name> = BTreeSet::new();
        store.value.each_index(&mut |index| spoken.extend(index.vars()));
        store.place.indices.iter().filter_map(Index::as_var).for_each(|shown| {
            spoken.remove(shown);
        });
        let place = LazyCell::new(|| Block { iters: by_place(block, store), ..Block::clone(block) });
        for iter in block.iters.iter().filter(|it| spoken.contains(&it.var)) {
            let moves =
                |it: &Loop| it.extent.as_int() != Some(1) && iter.binding.any_var(&|var| *var == it.var);
            let lost = loops.iter().filter(|it| moves(it)).find(|it| {
                !tells_apart(&place, &it.var, nest.bounds(), &|_| true)
                    && !is_told(func, nest, store, iter, it)
                    && !pipeline::private(func, it).contains(&store.place.buffer)
            });
            found = found.take().or(lost.map(|it| (it.var.clone(), store.place.buffer.clone())));
        }
    });
    match found {
        Some((name, buffer)) => Err(ScheduleError::Overwrites { block: block.name.clone(), buffer, name }),
        None => Ok(()),
    }
}

/// The subscripts of what a store of a block writes, as iterators.
pub(crate) fn by_place(block: &Block, store: &Store) -> Vec<Iter> {
    let bindings = at_loops(block, &store.place).into_iter();
    bindings.map(|it| Iter::new(&block.name, Index::int(1), IterKind::Spatial, it)).collect()
}

/// Whether the solver finds that two iterations of a loop, guards considered, never write one element with different
/// values of an iterator.
fn is_told(func: &Func, nest: &Nest<'_>, store: &Store, iter: &Iter, it: &Loop) -> bool {
    let outside = nest.loops.iter().take_while(|other| other.var != it.var).count();
    let is_outside = |var: &Name| nest.loops[..outside].iter().any(|it| it.var == *var);
    let (place, when) =
        (nest.relation(at_loops(nest.block, &store.place)), |var: &Name| Iteration::same_if(is_outside(var)));
    let both = Conflict { first: &place, second: &place, dims: &func.dims, when: &when };
    let var = Index::var(&it.var);
    let later = Less::new(var.clone(), both.at_second(&var));
    let (a, b) = (iter.binding.clone(), both.at_second(&iter.binding));
    let differs = [Less::new(a.clone(), b.clone()), Less::new(b, a)];
    differs.into_iter().all(|differs| both.never_where(&[later.clone(), differs]))
}
