use std::sync::Arc;

use ir::{Access, Block, Buffer, Func, Index, Iter, IterKind, Less, Loop, Name, Reducer, Scope, Stmt, Value};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    check::{
        chain::expect_alone,
        once::{expect_no_point_twice, expect_start},
    },
    nest,
};

/// Factors a reduction loop out: partial results in parallel, then a reduction over them.
///
/// ```text
/// rfactor(loop: "ki", factor_axis: 0)
///
/// for i in 0..n { for ko in 0..m { for ki in 0..4 { C[i] += A[i, ko*4 + ki] } } }
/// ->
/// for i_rf in 0..n { for ko_rf in 0..m { for ki_rf in 0..4 { C_rf[ki_rf, i_rf] += A[i_rf, ko_rf*4 + ki_rf] } } }
/// for i in 0..n { for ki in 0..4 { C[i] += C_rf[ki, i] } }
/// ```
///
/// The loop becomes dimension `factor_axis` of a new buffer `{buffer}_rf` (negative axes count from the end), and a
/// spatial iterator of the new block `{block}_rf`, whose loops are the old ones with `_rf` appended; where these names
/// are taken, by an earlier step of this kind, a number follows: `{block}_rf2`. The block keeps
/// its name and its loops, less the other reduction loops. How often a reduction loop runs must not depend on another loop. The reduction must be a sum, product, minimum or maximum
/// alone in its nest. Floating-point results change by rounding, since the order of the reduction does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rfactor {
    /// The reduction loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// Which dimension of the new buffer it becomes.
    pub factor_axis: i64,
}

impl Primitive for Rfactor {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        state.expect_plain_loop(&self.target)?;
        let func = &state.func;
        let block = self.only_block(func)?.clone();
        let loops: Vec<Loop> = func
            .loops_of(&block.name)
            .expect("the block is one of the program's")
            .into_iter()
            .cloned()
            .collect();
        expect_alone(&block, &loops)?;
        self.expect_reduction(&block, &loops)?;
        let reducer = Reducer::of(&block).filter(|_| block.init.is_some());
        let reducer = reducer.ok_or(BlockError::NotReducer { block: block.name.clone() })?;
        let axis = self.axis(&block, reducer.place.indices.len())?;
        expect_no_point_twice(func, &block)?;
        expect_start(func, &block)?;

        let func = &mut state.func;
        let parts = Parts::new(func, &block, &loops, &self.target, reducer, axis);
        let dtype = func.buffers[&parts.reducer.place.buffer].dtype;
        let extent = loops.iter().find(|it| it.var == self.target).map(|it| it.extent.clone());
        let mut shape = func.buffers[&parts.reducer.place.buffer].shape.clone();
        shape.insert(axis, extent.unwrap_or_else(|| Index::int(1)));
        let (partial, last) = (parts.partial_nest(dtype), parts.last_nest());
        func.buffers.insert(parts.buffer.clone(), Buffer::temp(dtype, shape, Scope::Global));
        func.replace_loop(&loops[0].var, |_| Stmt::seq([partial, last]));
        Ok(())
    }
}

impl Rfactor {
    fn only_block<'a>(&self, func: &'a Func) -> Result<&'a Block, BlockError> {
        let blocks = func.find_loop(&self.target).map(|it| it.body.blocks()).unwrap_or_default();
        match blocks.as_slice() {
            [one] => Ok(one),
            [] | [_, ..] => Err(BlockError::NotAlone {
                block: blocks.first().map_or(self.target.clone(), |it| it.name.clone()),
                loop_name: self.target.clone(),
            }),
        }
    }

    /// The loop drives reduction iterators only, and no loop drives both kinds.
    fn expect_reduction(&self, block: &Block, loops: &[Loop]) -> Result<(), ScheduleError> {
        let drives = |it: &Name, kind: IterKind| {
            let mut iters = block.iters.iter().filter(|iter| iter.kind == kind);
            iters.any(|iter| iter.binding.any_var(&|var| var == it))
        };
        let (name, target) = (block.name.clone(), self.target.clone());
        if !drives(&self.target, IterKind::Reduce) || drives(&self.target, IterKind::Spatial) {
            return Err(BlockError::NotReductionLoop { block: name, loop_name: target }.into());
        }
        // Partial results have a dimension for it, and the others become iterators.
        for it in loops.iter().filter(|it| drives(&it.var, IterKind::Reduce)) {
            if let Some(on) = loops.iter().find(|on| it.extent.any_var(&|var| *var == on.var)) {
                let (name, on) = (it.var.clone(), on.var.clone());
                return Err(ScheduleError::DependentExtent { name, on });
            }
        }
        let mixed =
            loops.iter().find(|it| drives(&it.var, IterKind::Reduce) && drives(&it.var, IterKind::Spatial));
        if let Some(it) = mixed {
            return Err(BlockError::MixedLoop { block: name, loop_name: it.var.clone() }.into());
        }
        // A guard may be on spatial or on reduction loops, since the two end in different places.
        let on = |guard: &Less, kind: IterKind| {
            let drives = |var: &Name| drives(var, kind);
            guard.lhs.any_var(&drives) || guard.rhs.any_var(&drives)
        };
        match block.guards.iter().find(|it| on(it, IterKind::Spatial) && on(it, IterKind::Reduce)) {
            None => Ok(()),
            Some(_) => Err(BlockError::MixedLoop { block: name, loop_name: target }.into()),
        }
    }

    /// The dimension of the new buffer.
    fn axis(&self, block: &Block, rank: usize) -> Result<usize, BlockError> {
        let rank = i64::try_from(rank + 1).expect("dimensions are in memory");
        let axis =
            if self.factor_axis < 0 { self.factor_axis.saturating_add(rank) } else { self.factor_axis };
        let valid = usize::try_from(axis).ok().filter(|_| axis < rank);
        valid.ok_or(BlockError::FactorAxis { block: block.name.clone(), axis: self.factor_axis, rank })
    }
}

/// What the two new nests are made of.
struct Parts<'a> {
    block: &'a Block,
    loops: &'a [Loop],
    target: &'a Name,
    reducer: Reducer,
    axis: usize,
    buffer: Name,
    name: Name,
    renamed: Vec<(Name, Name)>,
    factor: Name,
}

impl<'a> Parts<'a> {
    fn new(
        func: &Func,
        block: &'a Block,
        loops: &'a [Loop],
        target: &'a Name,
        reducer: Reducer,
        axis: usize,
    ) -> Parts<'a> {
        let fresh = |stem: String| Name::nth(&stem, |it| func.is_taken(it));
        let renamed = loops.iter().map(|it| (it.var.clone(), fresh(format!("{}_rf", it.var)))).collect();
        let buffer = fresh(format!("{}_rf", reducer.place.buffer));
        let factor = Name::fresh(&format!("v_{target}"), |it| block.find_iter(it).is_some());
        Parts {
            block,
            loops,
            target,
            reducer,
            axis,
            buffer,
            name: fresh(format!("{}_rf", block.name)),
            renamed,
            factor,
        }
    }

    fn rf_place(&self) -> Access {
        let mut indices = self.reducer.place.indices.clone();
        indices.insert(self.axis, Index::var(&self.factor));
        Access::new(&self.buffer, indices)
    }

    fn rf_var(&self, var: &Name) -> Option<Index> {
        self.renamed.iter().find(|(old, _)| old == var).map(|(_, new)| Index::var(new))
    }

    fn is_reduction_loop(&self, it: &Loop) -> bool {
        let mut iters = self.block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
        iters.any(|iter| iter.binding.any_var(&|var| *var == it.var))
    }

    fn is_on_reduction(&self, guard: &Less) -> bool {
        let on = |var: &Name| self.loops.iter().any(|it| it.var == *var && self.is_reduction_loop(it));
        guard.lhs.any_var(&on) || guard.rhs.any_var(&on)
    }

    fn spatial_guards(&self) -> impl Iterator<Item = &Less> {
        self.block.guards.iter().filter(|it| !self.is_on_reduction(it))
    }

    /// The update where the guards on the reduction hold, else the identity: a partial result that gets no
    /// iteration at all must still be written, because the last reduction reads it.
    fn masked(
        &self,
        update: Value,
        identity: Option<&Value>,
        with: &dyn Fn(&Name) -> Option<Index>,
    ) -> Value {
        let guards = self.block.guards.iter().filter(|it| self.is_on_reduction(it));
        let cond: Vec<Less> = guards.map(|it| it.subst(with)).collect();
        match identity {
            Some(identity) if !cond.is_empty() => {
                Value::Select(cond, Arc::new(update), Arc::new(identity.clone()))
            }
            Some(_) | None => update,
        }
    }

    /// Partial results: the factored loop is spatial, each other reduction loop an iterator of its own.
    fn partial_nest(&self, dtype: ir::DType) -> Stmt {
        let mut iters: Vec<Iter> = Vec::new();
        let spatial = self.block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        iters.extend(spatial.map(|it| Iter { binding: it.binding.subst(&|v| self.rf_var(v)), ..it.clone() }));
        let iter_name =
            |var: &Name| Name::fresh(&format!("v_{var}"), |it| self.block.find_iter(it).is_some());
        for it in self.loops.iter().filter(|it| self.is_reduction_loop(it)) {
            let kind = if it.var == *self.target { IterKind::Spatial } else { IterKind::Reduce };
            let binding = self.rf_var(&it.var).unwrap_or_else(|| Index::int(0));
            iters.push(Iter::new(&iter_name(&it.var), it.extent.clone(), kind, binding));
        }
        // Sizes may be symbolic: a dimension is no loop and stays.
        let of_loop = |var: &Name| {
            let is_loop = self.loops.iter().any(|it| it.var == *var);
            is_loop.then(|| Index::var(&iter_name(var)))
        };
        let of_reduce = |var: &Name| {
            let iter = self.block.find_iter(var).filter(|it| it.kind == IterKind::Reduce)?;
            Some(iter.binding.subst(&of_loop))
        };
        let place = self.rf_place();
        let identity = self.reducer.op.identity(dtype).map(Value::Const);
        let update = self.reducer.term.subst(&of_reduce);
        let update = self.masked(update, identity.as_ref(), &of_loop);
        let reduces = iters.iter().any(|it| it.kind == IterKind::Reduce);
        let block = Block {
            name: self.name.clone(),
            iters,
            guards: self.spatial_guards().map(|it| it.subst(&|v| self.rf_var(v))).collect(),
            attrs: ir::BlockAttrs::default(),
            init: identity.clone().filter(|_| reduces).map(|it| Stmt::store(place.clone(), it)),
            body: Stmt::store(
                place.clone(),
                if reduces { Value::binary(self.reducer.op, Value::Load(place), update) } else { update },
            ),
        };
        let loops: Vec<_> = self
            .loops
            .iter()
            .zip(&self.renamed)
            .map(|(it, (_, new))| (new.clone(), it.extent.subst(&|var| self.rf_var(var))))
            .collect();
        nest::wrap(&loops, Stmt::Block(Arc::new(block)))
    }

    /// The reduction over the partial results, under the old names.
    fn last_nest(&self) -> Stmt {
        let spatial = self.block.iters.iter().filter(|it| it.kind == IterKind::Spatial).cloned();
        let target = self.loops.iter().find(|it| it.var == *self.target);
        let extent = target.map_or_else(|| Index::int(1), |it| it.extent.clone());
        let factor = Iter::new(&self.factor, extent, IterKind::Reduce, Index::var(self.target));
        let partial = Value::Load(self.rf_place());
        let block = Block {
            iters: spatial.chain([factor]).collect(),
            guards: self.spatial_guards().cloned().collect(),
            init: self.block.init.clone(),
            body: self.reducer.combining(partial),
            ..self.block.clone()
        };
        let kept = self.loops.iter().filter(|it| it.var == *self.target || !self.is_reduction_loop(it));
        let loops: Vec<_> = kept.map(|it| (it.var.clone(), it.extent.clone())).collect();
        nest::wrap(&loops, Stmt::Block(Arc::new(block)))
    }
}
