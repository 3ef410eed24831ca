use std::sync::Arc;

use ir::{
    Block, Func, IterKind, Less, Loop, Name, Stmt,
    region::{Nest, Way, bounds_of, starts_anew},
};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    check::{
        affine::{is_spatial, tells_apart},
        independent::uncovered,
        once::{expect_start, expect_told_apart},
        overwrites::by_place,
    },
    nest,
};

/// Takes the init of a reduction out into a nest of its own before a loop.
///
/// ```text
/// decompose_reduction(block: "C", loop: "k")
///
/// for i in 0..n { for k in 0..m { C[i] = 0 when k == 0; C[i] += A[i, k] } }
/// ->
/// for i in 0..n {
///   C[i] = 0
///   for k in 0..m { C[i] += A[i, k] }
/// }
/// ```
///
/// The init becomes block `{block}_init`; the loops at and below the named one that drive spatial iterators are
/// repeated around it as `{loop}_init`, run in the same way. The block keeps its name. No loop that drives a
/// reduction iterator may be outside the named one. The init has to be what comes first for each element, in the nest and
/// in the loop: other blocks in the loop may use only what the block has written in the same iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecomposeReduction {
    /// The reduction.
    pub block: Name,
    /// The loop before which the init is put.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for DecomposeReduction {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        state.expect_loop(&self.target)?;
        let Some(init) = block.init.clone() else {
            return Err(BlockError::NoInit { block: self.block.clone() }.into());
        };
        let loops = self.loops(&state.func, &block)?;
        let guards = self.spatial_guards(&block, &loops)?;
        self.expect_first(&state.func, &block, &init, &loops)?;

        let func = &mut state.func;
        let nest = init_nest(func, &block, init, &guards, &loops);
        func.replace_block(&self.block, |it| Stmt::Block(Arc::new(Block { init: None, ..it })));
        func.replace_loop(&self.target, |it| Stmt::seq([nest, Stmt::Loop(Arc::new(it))]));
        Ok(())
    }
}

impl DecomposeReduction {
    /// The loops at and below the named one that drive spatial iterators, outermost first.
    fn loops(&self, func: &Func, block: &Block) -> Result<Vec<Loop>, ScheduleError> {
        let path = func.loops_of(&self.block).expect("the block is one of the program's");
        let Some(at) = path.iter().position(|it| it.var == self.target) else {
            let (block, loop_name) = (self.block.clone(), self.target.clone());
            return Err(BlockError::NotAround { block, loop_name }.into());
        };
        let drives = |it: &Loop, kind: IterKind| {
            let mut iters = block.iters.iter().filter(|iter| iter.kind == kind);
            iters.any(|iter| iter.binding.any_var(&|var| *var == it.var))
        };
        if let Some(outer) = path[..at].iter().find(|it| drives(it, IterKind::Reduce)) {
            return Err(BlockError::ReductionOutside {
                block: self.block.clone(),
                outer: outer.var.clone(),
                loop_name: self.target.clone(),
            }
            .into());
        }
        // A loop that the block repeats its work in would add to the same sums again after one init.
        expect_told_apart(func, &Nest::of(func, block), at)?;
        expect_start(func, block)?;
        let spatial: Vec<Loop> =
            path[at..].iter().filter(|it| drives(it, IterKind::Spatial)).map(|it| Loop::clone(it)).collect();
        match spatial.iter().find(|it| drives(it, IterKind::Reduce)) {
            None => Ok(spatial),
            Some(it) => {
                let (block, loop_name) = (self.block.clone(), it.var.clone());
                Err(BlockError::MixedLoop { block, loop_name }.into())
            }
        }
    }

    /// Refuses to let the init run earlier where that is not the same: it has to start each sum as it is, once, and nothing
    /// else in the loop may see the difference.
    fn expect_first(
        &self,
        func: &Func,
        block: &Block,
        init: &Stmt,
        loops: &[Loop],
    ) -> Result<(), ScheduleError> {
        let nests = Nest::all(func);
        let Some(at) = nests.iter().position(|it| it.block.name == self.block) else { return Ok(()) };
        let nest = &nests[at];
        let level = nest.loops.iter().take_while(|it| it.var != self.target).count();
        let runs = |(at, it): (usize, &&Loop)| {
            let some = Less::new(ir::Index::int(0), it.extent.clone());
            loops.iter().any(|own| own.var == it.var)
                || bounds_of(func, &nest.loops[..at]).prove(&some) == Some(true)
        };
        let mut once = starts_anew(nest).is_some() && nest.loops.iter().enumerate().skip(level).all(runs);
        init.each_store(&mut |store| {
            let place = Block { iters: by_place(block, store), ..block.clone() };
            let shows = |it: &Loop| {
                tells_apart(&place, &it.var, nest.bounds(), &|_| true)
                    || is_spatial(&place, &it.var, nest.bounds())
            };
            once &= loops.iter().all(|it| it.extent.as_int() == Some(1) || shows(it));
        });
        if !once {
            let (block, loop_name) = (self.block.clone(), self.target.clone());
            return Err(BlockError::InitNotFirst { block, loop_name }.into());
        }
        let beside = |it: &&Nest<'_>| it.loops.get(level).is_some_and(|it| it.var == self.target);
        for buffer in nest.accesses(Way::Write).iter().map(|it| &it.buffer) {
            let used = |it: &&Nest<'_>| it.uses(buffer) && beside(it);
            let before = nests[..at].iter().find(used);
            let after: Vec<_> = nests[at + 1..].iter().filter(used).collect();
            if let Some(other) = before.or_else(|| uncovered(func, level + 1, nest, &after, buffer)) {
                let (first, second) = (self.block.clone(), other.block.name.clone());
                let (name, buffer) = (self.target.clone(), buffer.clone());
                return Err(ScheduleError::Carried { name, first, second, buffer });
            }
        }
        Ok(())
    }

    /// The guards that the init keeps: those on spatial loops. A guard on the reduction lets its first iteration
    /// through, for which the init ran.
    fn spatial_guards(&self, block: &Block, loops: &[Loop]) -> Result<Vec<Less>, BlockError> {
        let reduce: Vec<Name> = block
            .iters
            .iter()
            .filter(|it| it.kind == IterKind::Reduce)
            .flat_map(|it| it.binding.vars())
            .collect();
        let mut kept = Vec::new();
        for guard in &block.guards {
            let on = |names: &dyn Fn(&Name) -> bool| guard.lhs.any_var(names) || guard.rhs.any_var(names);
            let on_reduce = on(&|var| reduce.contains(var));
            if on_reduce && let Some(it) = loops.iter().find(|it| on(&|var| *var == it.var)) {
                let (block, loop_name) = (self.block.clone(), it.var.clone());
                return Err(BlockError::MixedLoop { block, loop_name });
            }
            if !on_reduce {
                kept.push(guard.clone());
            }
        }
        Ok(kept)
    }
}

/// The init as a block in loops of its own.
fn init_nest(func: &Func, block: &Block, init: Stmt, guards: &[Less], loops: &[Loop]) -> Stmt {
    let mut renamed: Vec<(Name, Name)> = Vec::new();
    for it in loops {
        let chosen = |name: &Name| func.is_taken(name) || renamed.iter().any(|(_, new)| new == name);
        let new = Name::nth(&format!("{}_init", it.var), chosen);
        renamed.push((it.var.clone(), new));
    }
    let with = |var: &Name| renamed.iter().find(|(old, _)| old == var).map(|(_, new)| ir::Index::var(new));
    let spatial = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
    let init_block = Block {
        name: Name::nth(&format!("{}_init", block.name), |it| func.is_taken(it)),
        iters: spatial.map(|it| ir::Iter { binding: it.binding.subst(&with), ..it.clone() }).collect(),
        guards: guards.iter().map(|it| it.subst(&with)).collect(),
        attrs: ir::BlockAttrs::default(),
        init: None,
        body: init,
    };
    let nest = loops.iter().zip(&renamed).rev();
    nest.fold(Stmt::Block(Arc::new(init_block)), |body, (it, (_, new))| {
        nest::loop_like(it, new.clone(), body)
    })
}
