use std::sync::Arc;

use ir::{Access, Block, BlockAttrs, Buffer, Index, Iter, IterKind, Loop, Name, Scope, Stmt, Value};
use serde::{Deserialize, Serialize};

use crate::{Primitive, ScheduleError, ScheduleState, nest, scan::ScanNest};

/// Computes a scan by a running sum, which goes along with the results.
///
/// ```text
/// rolling_scan(loop: "k")
///
/// for i in 0..m { for j in 0..n { for k in 0..n { Y[i, j] += select(k <= j, X[i, k], 0) } } }
/// ->
/// for i in 0..m {
///   Y_run[i] = 0
///   for j in 0..n {
///     Y_run[i] += X[i, j]
///     Y[i, j] = Y_run[i]
///   }
/// }
/// ```
///
/// So a scan takes as many steps as it has terms, one after the other. The blocks are `{block}_run_init`, `{block}_run` and the old one; the reduction
/// loop is gone, and the other loops stay as they are. An exclusive scan has its result before it takes the term of the same place, and a backward one
/// has the last element first. `decompose_scan` makes scans that run in parallel, and this one of what tiles carry to each other.
///
/// The block must be a scan as `decompose_scan` has it. The terms are combined in their order, so that sums are those of a loop that adds them up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollingScan {
    /// The reduction loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for RollingScan {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let nest = ScanNest::of(state, &self.target)?;
        let func = &mut state.func;
        let fresh = |stem: String| Name::nth(&stem, |it| func.is_taken(it));
        let running = Running { nest: &nest, run: fresh(format!("{}_run", nest.block.name)) };
        let along = ScanNest::loop_of(&nest.along);
        let outer = nest.loops.iter().take_while(|it| it.var != *along);
        let outer: Vec<(Name, Index)> = outer.map(|it| (it.var.clone(), it.extent.clone())).collect();
        let inner = nest.loops[outer.len()..].iter().filter(|it| it.var != self.target);
        let inner: Vec<(Name, Index)> = inner.map(|it| (it.var.clone(), it.extent.clone())).collect();
        let outer: Vec<(Name, Index)> = outer.into_iter().filter(|it| it.0 != self.target).collect();
        let renamed: Vec<(Name, Name)> =
            inner[1..].iter().map(|it| (it.0.clone(), fresh(format!("{}_init", it.0)))).collect();

        let init_loops: Vec<(Name, Index)> =
            renamed.iter().zip(&inner[1..]).map(|(names, it)| (names.1.clone(), it.1.clone())).collect();
        let init = nest::wrap(&init_loops, running.init(fresh(format!("{}_init", running.run)), &renamed));
        let step = nest::wrap(&inner, running.step());
        let stmts = nest::wrap(&outer, Stmt::seq([init, step]));
        let buffer = Buffer::temp(nest.scan.identity.dtype, nest.other_extents(), Scope::Global);
        func.buffers.insert(running.run.clone(), buffer);
        func.replace_loop(&nest.loops[0].var, |_: Loop| stmts);
        Ok(())
    }
}

/// What the new blocks are made of.
struct Running<'a> {
    nest: &'a ScanNest,
    /// The running sum: its buffer, and the block that adds to it.
    run: Name,
}

impl Running<'_> {
    fn place(&self) -> Access {
        Access::new(&self.run, self.nest.other_indices())
    }

    /// The running sum before the first term.
    fn init(&self, name: Name, renamed: &[(Name, Name)]) -> Stmt {
        let new = |it: &Name| renamed.iter().find(|names| names.0 == *it).map(|names| Index::var(&names.1));
        let others = self.nest.others.iter();
        let iters = others.map(|it| Iter { binding: it.binding.subst(&new), ..it.clone() }).collect();
        Self::block(name, iters, Stmt::store(self.place(), Value::Const(self.nest.scan.identity)))
    }

    /// One place along the scan: its result, and the term that comes with it.
    fn step(&self) -> Stmt {
        let nest = self.nest;
        let place = Index::var(ScanNest::loop_of(&nest.along));
        let at = if nest.scan.is_backward { &nest.along.extent - 1 - place } else { place };
        let mut iters = nest.others.clone();
        iters.push(Iter { binding: at.clone(), ..nest.over.clone() });
        let sum = Value::binary(nest.scan.reducer.op, Value::Load(self.place()), nest.scan.term.clone());
        let run = Self::block(self.run.clone(), iters, Stmt::store(self.place(), sum));
        let spatial = nest.block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let binding = |it: &Iter| if it.var == nest.along.var { at.clone() } else { it.binding.clone() };
        let result = Block {
            iters: spatial.map(|it| Iter { binding: binding(it), ..it.clone() }).collect(),
            init: None,
            body: Stmt::store(nest.scan.reducer.place.clone(), Value::Load(self.place())),
            ..nest.block.clone()
        };
        let result = Stmt::Block(Arc::new(result));
        Stmt::seq(if nest.scan.is_inclusive { [run, result] } else { [result, run] })
    }

    fn block(name: Name, iters: Vec<Iter>, body: Stmt) -> Stmt {
        let attrs = BlockAttrs::default();
        Stmt::Block(Arc::new(Block { name, iters, guards: vec![], attrs, init: None, body }))
    }
}
