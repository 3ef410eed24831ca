//! Lets each thread reduce its own part before threads reduce together.

use std::sync::Arc;

use ir::{
    Access, Block, Buffer, Func, Index, Iter, IterKind, Less, Literal, Loop, LoopAttrs, LoopKind, Name,
    Origin, Reducer, Scope, Stmt, Target, Value,
    pipeline::is_pipeline,
    thread_group::{condition_depends_within, group_width},
};

use crate::lower::{
    LowerError,
    analysis::thread_reduction::{reduces_over, thread_axis},
};

/// ```text
/// for ko in 0..4                                  for t_init in 0..32 @threadIdx.x
///   for t in 0..32 @threadIdx.x                     block B_in_thread_init(..)
///     block B(vk: reduce 128 = ko*32 + t)             B_in_thread[vt] = 0.0f32
///       init                                      for ko in 0..4
///         B[0] = 0.0f32                             for t in 0..32 @threadIdx.x
///       B[0] = B[0] + A[vk]                  ->       block B_in_thread(.., vko: reduce 4 = ko)
///                                                       B_in_thread[vt] = B_in_thread[vt] + A[vko*32 + vt]
///                                                 for t_all in 0..32 @threadIdx.x
///                                                   block B(vt: reduce 32 = t_all)
///                                                     init
///                                                       B[0] = 0.0f32
///                                                     B[0] = B[0] + B_in_thread[vt]
/// ```
///
/// What is left for threads to do together, `lower_blocks` puts in: of a block that has no other reduction loops and no condition on
/// them, it can take the terms as they are. (TVM: `LowerCrossThreadReduction`.)
///
/// # Errors
/// [`LowerError::ThreadReduction`] for a block that reduces over blocks of threads as well, or whose parts are not told
/// apart by its loops.
pub(crate) fn factor_reductions(mut func: Func, target: &Target) -> Result<Func, LowerError> {
    if *target == Target::Cpu {
        return Ok(func);
    }
    let names: Vec<Name> = func.body.blocks().into_iter().map(|it| it.name.clone()).collect();
    for name in names {
        let Some(plan) = Plan::of(&func, &name)? else { continue };
        func = plan.apply(func);
    }
    Ok(func)
}

/// A block that threads reduce together, and how it is taken apart.
struct Plan {
    block: Block,
    reducer: Reducer,
    identity: Literal,
    /// The outermost loop that it reduces over.
    top: Loop,
    /// Whether what takes its place has to be one statement, as it is: a kernel, or a component of a pipeline.
    is_one: bool,
    /// The loops from there on that tell parts apart: those over threads, and spatial ones.
    parts: Vec<Part>,
    /// The loops around these that it reduces over as well, each with an iterator for it: what it has already stays from one of their
    /// iterations to the next.
    around: Vec<(Name, Loop)>,
    /// The other loops that it reduces over.
    serial: Vec<Loop>,
    /// The partial results, and the names of the new blocks.
    partial: Name,
    started: Name,
    updated: Name,
}

/// A loop that becomes a dimension of the partial results.
struct Part {
    like: Loop,
    /// The iterator for it.
    iter: Name,
    /// Whether threads reduce over it.
    is_reduced: bool,
}

impl Plan {
    fn of(func: &Func, name: &Name) -> Result<Option<Plan>, LowerError> {
        let (Some(block), Some(loops)) = (func.find_block(name), func.loops_of(name)) else {
            return Ok(None);
        };
        let Some(at) = top(func, block, &loops) else { return Ok(None) };
        let inner = &loops[at..];
        let over: Vec<&Loop> = inner.iter().copied().filter(|it| reduces_over(block, &it.var)).collect();
        let (threads, serial): (Vec<&Loop>, Vec<&Loop>) =
            over.iter().partition(|it| thread_axis(it).is_some());
        if threads.is_empty() {
            return Ok(None);
        }
        let refused = |why| LowerError::ThreadReduction { block: name.clone(), why };
        let reducer =
            Reducer::of(block).ok_or_else(|| refused("it is no sum, product, minimum or maximum"))?;
        let identity = func.dtype_of(&reducer.place.buffer).and_then(|it| reducer.op.identity(it));
        let identity = identity.ok_or_else(|| refused("what it combines has no identity"))?;
        expect_of_terms(block, &serial).map_err(refused)?;
        if serial.is_empty() && !block.guards.iter().any(|it| is_on(it, &over)) {
            return Ok(None);
        }
        let mut taken: Vec<Name> = vec![];
        let parts = parts_of(func, block, inner, &serial, &mut taken).map_err(refused)?;
        let is_inner = |name: &Name| inner.iter().any(|it| it.var == *name) || func.dims.contains(name);
        let mut around: Vec<(Name, Loop)> = Vec::new();
        for it in loops[..at].iter().filter(|it| reduces_over(block, &it.var)) {
            around.push((fresh(func, &format!("v_{}", it.var), &mut taken), Loop::clone(it)));
        }
        let is_known = |var: &Name| is_inner(var) || around.iter().any(|it| it.1.var == *var);
        if block
            .iters
            .iter()
            .any(|it| it.kind == IterKind::Reduce && it.binding.any_var(&|var| !is_known(var)))
        {
            return Err(refused("a loop around decides which terms it takes"));
        }
        let buffer = &reducer.place.buffer;
        let (partial, started, updated) = (
            Name::nth(&format!("{buffer}_in_thread"), |it| func.is_taken(it)),
            Name::nth(&format!("{name}_in_thread_init"), |it| func.is_taken(it)),
            Name::nth(&format!("{name}_in_thread"), |it| func.is_taken(it)),
        );
        let (top, serial) = (inner[0].clone(), serial.into_iter().cloned().collect());
        let is_one = at == 0 || is_pipeline(loops[at - 1]);
        let block = block.clone();
        Ok(Some(Plan {
            block,
            reducer,
            identity,
            top,
            is_one,
            parts,
            around,
            serial,
            partial,
            started,
            updated,
        }))
    }

    fn apply(&self, mut func: Func) -> Func {
        let dtype = self.identity.dtype;
        let shape = self.parts.iter().map(|it| it.like.extent.clone()).collect();
        func.buffers.insert(self.partial.clone(), Buffer::temp(dtype, shape, Scope::Local));
        let mut taken = vec![];
        let mut renamed = |suffix: &str| -> Vec<Name> {
            let name = |it: &Part| fresh(&func, &format!("{}_{suffix}", it.like.var), &mut taken);
            self.parts.iter().map(name).collect()
        };
        let (first, last) = (renamed("init"), renamed("all"));
        let (start, update, combine) = (self.start(&first), self.update(&func), self.combine(&last));
        func.replace_block(&self.block.name, |_| update);
        // The new block of that name comes in behind, so that names stay unique on the way.
        let one = fresh(&func, &format!("{}_once", self.top.var), &mut taken);
        func.replace_loop(&self.top.var, |old| {
            let mut old = Stmt::Loop(Arc::new(old));
            self.rename_components(&mut old);
            let all = Stmt::seq([start, old, combine]);
            if self.is_one { Stmt::serial(&one, Index::int(1), all) } else { all }
        });
        func
    }

    /// Pipelines inside know the block by its new name.
    fn rename_components(&self, stmt: &mut Stmt) {
        stmt.walk_mut(&mut |stmt| {
            if let Stmt::Loop(it) = stmt
                && it.attrs.pipeline.is_some()
                && let Some(spec) = &mut Arc::make_mut(it).attrs.pipeline
            {
                spec.rename_block(&self.block.name, &self.updated);
            }
            matches!(stmt, Stmt::Loop(_) | Stmt::Seq(_))
        });
    }

    fn place(&self) -> Access {
        Access::new(&self.partial, self.parts.iter().map(|it| Index::var(&it.iter)).collect())
    }

    /// The iterators for the loops of the partial results, which have other names here.
    fn iters<'a>(&'a self, vars: &'a [Name]) -> impl Iterator<Item = (Iter, &'a Part)> {
        self.parts.iter().zip(vars).map(|(part, var)| {
            (Iter::new(&part.iter, part.like.extent.clone(), IterKind::Spatial, Index::var(var)), part)
        })
    }

    fn block(&self, name: &Name, iters: Vec<Iter>, guards: Vec<Less>, body: Stmt) -> Block {
        let origin = &self.block.attrs.origin;
        let origin = if origin.is_unknown() { Origin::of(&self.block.name) } else { origin.clone() };
        let attrs = ir::BlockAttrs { origin, ..self.block.attrs.clone() };
        Block { name: name.clone(), iters, guards, attrs, init: None, body }
    }

    /// Each partial result starts as what changes nothing.
    fn start(&self, vars: &[Name]) -> Stmt {
        let iters = self.iters(vars).map(|it| it.0).collect();
        let body = Stmt::store(self.place(), Value::Const(self.identity));
        wrap(vars, self.parts.iter(), Stmt::Block(Arc::new(self.block(&self.started, iters, vec![], body))))
    }

    /// The block as it was, but into partial results.
    fn update(&self, func: &Func) -> Stmt {
        let vars: Vec<Name> = self.parts.iter().map(|it| it.like.var.clone()).collect();
        let mut taken = vec![];
        let serial: Vec<(Iter, &Name)> = self
            .serial
            .iter()
            .map(|it| {
                let var = fresh(func, &format!("v_{}", it.var), &mut taken);
                (Iter::new(&var, it.extent.clone(), IterKind::Reduce, Index::var(&it.var)), &it.var)
            })
            .collect();
        let of_loop = |var: &Name| {
            let part = self.parts.iter().find(|it| it.like.var == *var).map(|it| &it.iter);
            let serial = || serial.iter().find(|it| it.1 == var).map(|it| &it.0.var);
            let around = || self.around.iter().find(|it| it.1.var == *var).map(|it| &it.0);
            part.or_else(serial).or_else(around).map(Index::var)
        };
        let of_reduced = |var: &Name| {
            let iter = self.block.find_iter(var).filter(|it| it.kind == IterKind::Reduce)?;
            Some(iter.binding.subst(&of_loop))
        };
        let spatial = self.block.iters.iter().filter(|it| it.kind == IterKind::Spatial).cloned();
        let around = self
            .around
            .iter()
            .map(|(var, it)| Iter::new(var, it.extent.clone(), IterKind::Spatial, Index::var(&it.var)));
        let parts = self.iters(&vars).map(|it| it.0);
        let iters = spatial.chain(around).chain(parts).chain(serial.iter().map(|it| it.0.clone()));
        let term = self.reducer.term.subst(&of_reduced);
        let place = self.place();
        let body = Stmt::store(place.clone(), Value::binary(self.reducer.op, Value::Load(place), term));
        let guards = self.block.guards.clone();
        Stmt::Block(Arc::new(self.block(&self.updated, iters.collect(), guards, body)))
    }

    /// What threads do together, under the old name.
    fn combine(&self, vars: &[Name]) -> Stmt {
        let renamed = |var: &Name| {
            let at = self.parts.iter().position(|it| it.like.var == *var)?;
            Some(Index::var(&vars[at]))
        };
        let spatial = self.block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let spatial = spatial.map(|it| Iter { binding: it.binding.subst(&renamed), ..it.clone() });
        let parts = self.iters(vars).map(|(it, part)| {
            let kind = if part.is_reduced { IterKind::Reduce } else { IterKind::Spatial };
            Iter { kind, ..it }
        });
        let serial: Vec<&Loop> = self.serial.iter().collect();
        // What threads that reduce together fulfil alike is a condition on the result.
        let is_on_terms = |guard: &&Less| {
            let mut reduced = self.parts.iter().filter(|it| it.is_reduced).map(|it| &it.like);
            is_on(guard, &serial) || reduced.any(|it| is_on_place(guard, &self.block, it))
        };
        let guards = self.block.guards.iter().filter(|it| !is_on_terms(it));
        let guards = guards.map(|it| it.subst(&renamed)).collect();
        let body = self.reducer.combining(Value::Load(self.place()));
        let block = self.block(&self.block.name, spatial.chain(parts).collect(), guards, body);
        let block = Block { init: self.block.init.clone(), ..block };
        // Threads come together innermost: all loops around are theirs alone.
        let (threads, spatial): (Vec<_>, Vec<_>) =
            self.parts.iter().zip(vars).partition(|it| it.0.is_reduced);
        let order: Vec<_> = spatial.into_iter().chain(threads).collect();
        let names: Vec<Name> = order.iter().map(|it| it.1.clone()).collect();
        wrap(&names, order.iter().map(|it| it.0), Stmt::Block(Arc::new(block)))
    }
}

/// Loops over terms are of one thread, and say nothing of results.
fn expect_of_terms(block: &Block, serial: &[&Loop]) -> Result<(), &'static str> {
    if serial.iter().any(|it| matches!(it.kind, LoopKind::Bound(_)) && it.extent.as_int() != Some(1)) {
        return Err("it reduces over blocks of threads as well");
    }
    // Fused with others, a loop may be of a result and of its terms at once.
    let is_of_result = |it: &&Loop| {
        let mut spatial = block.iters.iter().filter(|iter| iter.kind == IterKind::Spatial);
        spatial.any(|iter| iter.binding.any_var(&|var| *var == it.var))
    };
    if serial.iter().any(is_of_result) {
        return Err("a loop that it reduces over also decides which result it is");
    }
    Ok(())
}

/// The loops that tell parts apart.
fn parts_of(
    func: &Func,
    block: &Block,
    inner: &[&Loop],
    serial: &[&Loop],
    taken: &mut Vec<Name>,
) -> Result<Vec<Part>, &'static str> {
    let mut parts = Vec::new();
    for it in inner.iter().filter(|it| !serial.iter().any(|other| other.var == it.var)) {
        if it.extent.as_int().is_none() {
            return Err("a loop inside one that it reduces over has no constant extent");
        }
        let iter = fresh(func, &format!("v_{}", it.var), taken);
        let is_reduced = thread_axis(it).is_some() && reduces_over(block, &it.var);
        parts.push(Part { like: (*it).clone(), iter, is_reduced });
    }
    Ok(parts)
}

/// The number of the outermost loop in which a block reduces with nobody else: one that has no init goes on with what it has, and others may use
/// that between two iterations of the loops around.
fn top(func: &Func, block: &Block, loops: &[&Loop]) -> Option<usize> {
    let place = &Reducer::of(block)?.place.buffer;
    let is_alone = |it: &Loop| {
        let mut others = it.body.blocks().into_iter().filter(|it| it.name != block.name);
        !others.any(|other| other.any_access(&mut |access, _| access.buffer == *place))
    };
    let is_taken = func.writers(place).len() > 1;
    loops.iter().position(|it| reduces_over(block, &it.var) && (!is_taken || is_alone(it)))
}

/// Loops as those of the parts are, of other names.
fn wrap<'a>(
    vars: &[Name],
    parts: impl DoubleEndedIterator<Item = &'a Part> + ExactSizeIterator,
    body: Stmt,
) -> Stmt {
    parts.zip(vars).rev().fold(body, |body, (part, var)| {
        let (extent, attrs) = (part.like.extent.clone(), LoopAttrs::default());
        let kind = match part.like.kind {
            LoopKind::Vectorized => LoopKind::Unrolled,
            kind => kind,
        };
        Stmt::Loop(Arc::new(Loop { var: var.clone(), extent, kind, attrs, body }))
    })
}

/// Whether a condition tells threads apart that reduce together along the axis of a loop.
fn is_on_place(guard: &Less, block: &Block, it: &Loop) -> bool {
    let extent = it.extent.as_int().unwrap_or(1);
    let width = group_width(block, &it.var, extent).unwrap_or(extent);
    is_on(guard, &[it]) && condition_depends_within(guard, &it.var, extent, width)
}

/// Whether a condition is on one of the loops.
fn is_on(guard: &Less, loops: &[&Loop]) -> bool {
    let is_one = |name: &Name| loops.iter().any(|it| it.var == *name);
    guard.lhs.any_var(&is_one) || guard.rhs.any_var(&is_one)
}

/// A name that neither the program has nor anyone took before.
fn fresh(func: &Func, stem: &str, taken: &mut Vec<Name>) -> Name {
    let name = Name::nth(stem, |it| func.is_taken(it) || taken.contains(it));
    taken.push(name.clone());
    name
}
