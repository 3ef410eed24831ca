use std::sync::Arc;

use indexmap::IndexMap;
use ir::{Block, Func, Index, Iter, Loop, Name, Stmt, arith::Bounds};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{
    BlockError, ScheduleError, ScheduleState, TileError,
    check::{chain::expect_chain, independent::expect_reorderable},
    iterators::{iterator, own_loop},
    nest,
    ron_text::unique,
};

/// Makes one iterator and one loop of each group of a block's iterators.
///
/// ```text
/// transform_block_layout(block: "Y", into: {"i": ["y", "x"], "k": ["c"]})
///
/// for y in 0..h { for x in 0..w { for c in 0..n { Y[y, x] += f(y, x, c) } } }
/// ->
/// for i in 0..h*w { for k in 0..n { Y[i floordiv w, i mod w] += f(i floordiv w, i mod w, k) } }
/// ```
///
/// `into` has the new loops, outermost first, each with the iterators that it runs through, the last one fastest; an iterator
/// is named by itself or by its loop. Iterators that are not named stay as they are, before the new ones, and their loops around the
/// new ones. A new iterator is named after its loop: `vi` of `i`. Where `fuse` makes one loop of several and leaves the block its iterators, here the block has one iterator too, so
/// that a convolution becomes a product of matrices: `reindex` then gives it matrices to read.
///
/// Each iterator named has to be a loop of its own, with nothing but the block in it; neither it nor a loop inside it may be bound
/// or marked yet. A group has iterators of one kind, spatial or reducing, and the loops have to be free to run in another order. Sums of floats are added
/// in another order where reducing loops change places. TVM takes a map of subscripts, for which sizes have to be known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformBlockLayout {
    /// The block.
    pub block: Name,
    /// The loops to make, outermost first, and the iterators that become each of them.
    #[serde(deserialize_with = "unique")]
    pub into: IndexMap<Name, Vec<Name>>,
}

impl Primitive for TransformBlockLayout {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        let around = state.func.loops_of(&self.block).expect("the block is one of the program's");
        let loops: Vec<Loop> = around.into_iter().cloned().collect();
        let groups = self.groups(&block, &loops)?;
        let own: Vec<Name> = groups.iter().flat_map(|it| it.loops.iter().cloned()).collect();
        let top = loops.iter().position(|it| own.contains(&it.var)).unwrap_or(0);
        for it in &loops[top..] {
            state.expect_plain_loop(&it.var)?;
        }
        if let Some(it) = loops[top..].iter().find(|it| it.body.blocks().len() > 1) {
            let (block, loop_name) = (self.block.clone(), it.var.clone());
            return Err(BlockError::NotAlone { block, loop_name }.into());
        }
        self.into.keys().filter(|it| !own.contains(it)).try_for_each(|it| state.expect_fresh(it))?;
        let names: Vec<Name> = loops[top..].iter().map(|it| it.var.clone()).collect();
        let chain = expect_chain(state, &names)?;
        for it in &chain {
            if let Some(on) = it.extent.vars().into_iter().find(|on| own.contains(on)) {
                return Err(ScheduleError::DependentExtent { name: it.var.clone(), on });
            }
        }
        expect_reorderable(state, &chain)?;

        let body = Stmt::Block(Arc::new(fused(&state.func, &block, &groups)));
        let made = groups.iter().map(|it| (it.name.clone(), it.extent.clone())).collect::<Vec<_>>();
        let kept = loops[top..].iter().filter(|it| !own.contains(&it.var));
        let nest = kept
            .rev()
            .fold(nest::wrap(&made, body), |body, it| Stmt::Loop(Arc::new(Loop { body, ..it.clone() })));
        state.func.replace_loop(&names[0], |_| nest);
        Ok(())
    }
}

/// Iterators of a block that become one.
struct Group<'a> {
    name: Name,
    iters: Vec<&'a Iter>,
    /// The loops that run through them.
    loops: Vec<Name>,
    extent: Index,
}

impl TransformBlockLayout {
    fn groups<'a>(&self, block: &'a Block, loops: &[Loop]) -> Result<Vec<Group<'a>>, ScheduleError> {
        let (mut seen, mut groups) = (Vec::new(), Vec::new());
        for (name, members) in &self.into {
            let (mut iters, mut own) = (Vec::new(), Vec::new());
            for member in members {
                let at = iterator(block, member)?;
                if seen.contains(&at) {
                    return Err(ScheduleError::NamedTwice { name: member.clone() });
                }
                seen.push(at);
                own.push(own_loop(block, &block.iters[at], loops)?.clone());
                iters.push(&block.iters[at]);
            }
            let Some(first) = iters.first() else {
                return Err(
                    TileError::EmptyGroup { block: self.block.clone(), loop_name: name.clone() }.into()
                );
            };
            if let Some(other) = iters.iter().find(|it| it.kind != first.kind) {
                let (block, loop_name) = (self.block.clone(), name.clone());
                let (first, other) = (first.var.clone(), other.var.clone());
                return Err(TileError::MixedGroup { block, loop_name, first, other }.into());
            }
            let extent = iters.iter().fold(Index::int(1), |all, it| all * it.extent.clone());
            groups.push(Group { name: name.clone(), iters, loops: own, extent });
        }
        if groups.is_empty() {
            return Err(ScheduleError::TooFewLoops { primitive: "transform_block_layout", needed: 1 });
        }
        Ok(groups)
    }
}

/// The block with an iterator for each group, behind those that stay.
fn fused(func: &Func, block: &Block, groups: &[Group<'_>]) -> Block {
    let (mut values, mut bindings) = (IndexMap::new(), IndexMap::new());
    let is_kept = |it: &&Iter| groups.iter().all(|group| group.iters.iter().all(|own| own.var != it.var));
    let kept: Vec<Iter> = block.iters.iter().filter(is_kept).cloned().collect();
    let mut made: Vec<Iter> = Vec::new();
    for group in groups {
        let var = nest::iterator_named(func, &format!("v{}", group.name), |name| {
            kept.iter().chain(&made).any(|it| it.var == *name)
        });
        let extents: Vec<&Index> = group.iters.iter().map(|it| &it.extent).collect();
        values.extend(group.iters.iter().map(|it| it.var.clone()).zip(nest::unfused(&var, &extents)));
        bindings.extend(group.loops.iter().cloned().zip(nest::unfused(&group.name, &extents)));
        made.push(Iter::new(&var, group.extent.clone(), group.iters[0].kind, Index::var(&group.name)));
    }
    let mut bounds = Bounds::of_dims(func);
    kept.iter().chain(&made).for_each(|it| bounds.insert(&it.var, &it.extent));
    let mut new = block.map_inside(&mut |index| {
        let at = index.subst(&|it| values.get(it).cloned());
        if at == *index { at } else { bounds.simplify(&at) }
    });
    // Bindings of the iterators that stay have none of the loops that go: each of these runs through one iterator alone.
    new.guards = block.guards.iter().map(|it| it.subst(&|name| bindings.get(name).cloned())).collect();
    new.iters = kept.into_iter().chain(made).collect();
    new
}
