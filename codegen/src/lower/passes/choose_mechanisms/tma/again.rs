//! Whether copies to global memory that nothing orders may arrive in any order.

use std::{cell::LazyCell, collections::BTreeSet};

use ir::{
    Block, Func, Index, IterKind, Less, Loop, LoopKind, Name, Role, Stmt, Store,
    access::{AccessRelation, Conflict, Disjointness, Iteration},
    arith::Bounds,
    region::{Nest, Way, at_loops, starts_anew},
};

/// The outermost of the loops around a block whose iterations, run one after the other by the same threads, may store different
/// values to one element. `None` where it is shown that there is no such loop.
///
/// A block that stores an element again stores the same if its value is told by the place: see [`Told::by_place`]. Parts of a
/// loop that overlap are stored so. Otherwise the solver has to say that no element is stored twice.
pub(super) fn changes_in<'a>(func: &Func, around: &[&'a Loop], block: &Block) -> Option<&'a Loop> {
    let nests = Nest::all(func);
    let nest = nests.iter().find(|it| it.block.name == block.name)?;
    let in_turn = |it: &Loop| match it.kind {
        LoopKind::Bound(_) => it.attrs.repeats_in_block(),
        LoopKind::Serial | LoopKind::Unrolled | LoopKind::Parallel | LoopKind::Vectorized => true,
    };
    let mut repeated =
        around.iter().enumerate().filter(|(_, it)| in_turn(it) && it.extent.as_int() != Some(1));
    repeated.find_map(|(level, it)| {
        let inside: Vec<_> =
            nests.iter().filter(|nest| nest.loops.get(level).is_some_and(|of| of.var == it.var)).collect();
        let told = Told { func, nests: &nests, inside, level };
        let is_same = told.by_place(nest, &mut vec![]);
        (!is_same && !is_stored_once(func, nest, level, &in_turn)).then_some(*it)
    })
}

/// Whether the solver finds no element that a block stores in two iterations of a loop.
fn is_stored_once(func: &Func, nest: &Nest<'_>, level: usize, in_turn: &dyn Fn(&Loop) -> bool) -> bool {
    let runs_on = |name: &Name| nest.loops[level..].iter().any(|it| it.var == *name && in_turn(it));
    let when =
        |name: &Name| Iteration::same_if(nest.loops.iter().any(|it| it.var == *name) && !runs_on(name));
    let var = Index::var(&nest.loops[level].var);
    nest.accesses(Way::Write).iter().all(|access| {
        let place = nest.relation(at_loops(nest.block, access));
        // Mostly the loop is a digit of a subscript, which the solver need not be asked about.
        let is_common = |name: &Name| when(name) == Iteration::Same;
        if digits(&place.indices, nest.bounds(), &is_common).contains(&nest.loops[level].var) {
            return true;
        }
        let both = Conflict { first: &place, second: &place, dims: &func.dims, when: &when };
        both.never_where(&[Less::new(var.clone(), both.at_second(&var))])
    })
}

/// The blocks in a loop, of which the elements that they write may have the same value in all iterations.
struct Told<'a> {
    func: &'a Func,
    nests: &'a [Nest<'a>],
    /// Those in the loop.
    inside: Vec<&'a Nest<'a>>,
    /// The number of the loop among those around them.
    level: usize,
}

impl Told<'_> {
    /// Whether what a block writes to an element follows from which element it is, in whatever iteration of the loop.
    ///
    /// So it is if its iterators do, and what it reads is written outside of the loop only, or in it by blocks of which the same
    /// holds. A sum has to start anew in each iteration, and whoever reads it comes when it is complete. `open` are blocks of
    /// which this is being asked.
    fn by_place(&self, nest: &Nest<'_>, open: &mut Vec<Name>) -> bool {
        let adds = nest.accesses(Way::Write).iter().any(|it| nest.reaches(&it.buffer, Way::Read));
        if open.contains(&nest.block.name)
            || adds && (starts_anew(nest) <= Some(self.level) || !nest.block.guards.is_empty())
            || !self.tells_iterators(nest.block)
        {
            return false;
        }
        open.push(nest.block.name.clone());
        let mut reads = nest.accesses(Way::Read).iter().filter(|it| !nest.reaches(&it.buffer, Way::Write));
        let told = reads.all(|it| self.has_one_value(&it.buffer, nest, open));
        open.pop();
        told
    }

    /// Whether a buffer that a block reads has the same elements whenever it does.
    fn has_one_value(&self, buffer: &Name, reader: &Nest<'_>, open: &mut Vec<Name>) -> bool {
        let writers: Vec<_> = self.inside.iter().filter(|it| it.reaches(buffer, Way::Write)).collect();
        let is_used_outside = || {
            let used = self.nests.iter().filter(|it| it.uses(buffer)).count();
            used > self.inside.iter().filter(|it| it.uses(buffer)).count()
        };
        let is_complete = |writer: &Nest<'_>| {
            !writer.reaches(buffer, Way::Read)
                || starts_anew(writer).is_some_and(|it| reader.shared_loops(writer) <= it)
        };
        writers.is_empty()
            || self.func.buffers.get(buffer).is_some_and(|it| it.role == Role::Temp)
                && !is_used_outside()
                && writers.iter().all(|it| is_complete(it) && self.by_place(it, open))
    }

    /// Whether the places that a block writes say what its spatial iterators are, as far as its values speak of these.
    fn tells_iterators(&self, block: &Block) -> bool {
        let mut inner = Vec::new();
        let mut told = true;
        let mut stores: Vec<&Store> = Vec::new();
        for stmt in block.init.iter().chain([&block.body]) {
            stmt.walk(&mut |stmt| match stmt {
                Stmt::Loop(it) => {
                    told &= it.extent.as_int().is_some();
                    inner.push((it.var.clone(), it.extent.clone()));
                }
                Stmt::Store(it) => stores.push(it),
                Stmt::Instr(_) => told = false,
                Stmt::Block(_) | Stmt::Seq(_) => {}
            });
        }
        let iters = block.iters.iter().map(|it| (it.var.clone(), it.extent.clone()));
        let vars: Vec<_> = iters.chain(inner).collect();
        let spatial = |name: &Name| {
            let it = block.find_iter(name);
            it.is_some_and(|it| it.kind == IterKind::Spatial && it.extent.as_int() != Some(1))
        };
        told && stores.into_iter().all(|store| {
            let mut spoken = Vec::new();
            store.value.each_index(&mut |it| spoken.extend(it.vars().into_iter().filter(|it| spatial(it))));
            let place = AccessRelation {
                indices: store.place.indices.clone(),
                vars: vars.clone(),
                conditions: vec![],
            };
            let when = |_: &Name| Iteration::Any;
            let both = Conflict { first: &place, second: &place, dims: &self.func.dims, when: &when };
            // The same here.
            let known = LazyCell::new(|| {
                let mut bounds = Bounds::of_dims(self.func);
                place.vars.iter().for_each(|(name, extent)| bounds.insert(name, extent));
                digits(&place.indices, &bounds, &|name| self.func.dims.contains(name))
            });
            let shown = |name: &Name| place.indices.iter().any(|it| it.as_var() == Some(name));
            spoken.iter().all(|it| shown(it) || known.contains(it) || both.has_same(it))
        })
    }
}

/// The variables that subscripts tell, as far as a fast proof can see.
fn digits(indices: &[Index], bounds: &Bounds, is_common: &dyn Fn(&Name) -> bool) -> BTreeSet<Name> {
    Disjointness { a: indices, b: indices, bounds, is_common }.separated()
}
