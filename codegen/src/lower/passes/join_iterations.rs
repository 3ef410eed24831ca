//! Joins the runs of a pipelined loop in consecutive iterations of a loop around it to one run.

use std::sync::Arc;

use ir::{
    AllocScope, Func, Index, Instr, Less, Loop, LoopKind, Mode, Name, Numbers, Scope, Stmt, Wait,
    arith::Bounds,
    pipeline::{ORDER, PipelineError, STAGE, Style, numbers},
};

use crate::lower::{LowerError, marks};

/// ```text
/// for tile in 0..w
///   for ko in 0..8 #{software_pipeline_stage: {A_shared: 0, C: 1}, software_pipeline_across: "tile"}
///     s(tile, ko)
///   t(tile)
/// ->
/// for ko in 0..w*8 #{software_pipeline_stage: {A_shared: 0, C: 1, t: 1}, software_pipeline_style: "peel_prologue"}
///   s(ko floordiv 8, ko mod 8)
///   for ko_last in 0..(ko mod 8 + 1) floordiv 8
///     t(ko floordiv 8)
/// ```
///
/// All of it happens in the same order. What stands behind the loop is a statement of the last stage, in the iterations that were the last ones;
/// so the pipeline fetches for the next iteration of the outer loop while that is done. Loops over threads between the two come outside.
///
/// # Errors
/// If more than such loops is between the two, which later steps of a schedule may have put there.
pub(crate) fn join_iterations(mut func: Func) -> Result<Func, LowerError> {
    let across = |it: &Loop| Some((it.var.clone(), it.attrs.pipeline.as_ref()?.across.clone()?));
    let asked: Vec<(Name, Name)> = func.loops().into_iter().filter_map(across).collect();
    for (name, outer) in asked {
        let joined = joined(&func, &name, &outer)?;
        let path = func.path_to_loop(&outer).expect("it has just been found");
        let around = path.iter().rev().nth(1).map(|it| it.var.clone());
        for buffer in func.buffers.values_mut() {
            if buffer.alloc_scope == Some(AllocScope::Loop(outer.clone())) {
                buffer.alloc_scope = Some(around.clone().map_or(AllocScope::Program, AllocScope::Loop));
            }
        }
        func.replace_loop(&outer, |_| joined);
    }
    Ok(func)
}

fn joined(func: &Func, name: &Name, outer: &Name) -> Result<Stmt, LowerError> {
    let path = func.path_to_loop(name).expect("it is one of the program's");
    let at = path.iter().position(|it| it.var == *outer);
    let (Some(at), Some((inner, above))) = (at, path.split_last()) else {
        return Err(PipelineError::NotAround { name: name.clone(), outer: outer.clone() }.into());
    };
    let (outer, between) = (above[at], &above[at + 1..]);
    let list = match &above[above.len() - 1].body {
        Stmt::Seq(stmts) => &stmts[..],
        one => std::slice::from_ref(one),
    };
    let place = list.iter().position(|it| matches!(it, Stmt::Loop(it) if it.var == *name));
    // Each of them has but the next one in it.
    let is_nest = above[at..above.len() - 1].iter().all(|it| matches!(it.body, Stmt::Loop(_)));
    let are_threads = between.iter().all(|it| is_of_threads(it));
    let (Some(place), true) = (place, is_nest && are_threads) else {
        return Err(PipelineError::NotAround { name: name.clone(), outer: outer.var.clone() }.into());
    };
    let join = Join { func, inner, outer, before: &list[..place], behind: &list[place + 1..] };
    let out = between
        .iter()
        .rev()
        .fold(join.stmt()?, |body, it| Stmt::Loop(Arc::new(Loop { body, ..Loop::clone(it) })));
    Ok(out)
}

fn is_of_threads(it: &Loop) -> bool {
    matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread())
}

/// A loop, that around it, and what stands beside it there.
struct Join<'a> {
    func: &'a Func,
    inner: &'a Loop,
    outer: &'a Loop,
    before: &'a [Stmt],
    behind: &'a [Stmt],
}

impl Join<'_> {
    fn stmt(&self) -> Result<Stmt, LowerError> {
        let (var, count) = (Index::var(&self.inner.var), &self.inner.extent);
        let of = var.floor_mod(count);
        let is_first = (count - &of).floor_div(count);
        let is_last = (of.clone() + 1).floor_div(count);
        let mut list: Vec<Stmt> = self.once("first", is_first, self.before).into_iter().collect();
        match self.renamed(&self.inner.body, &of) {
            Stmt::Seq(stmts) => list.extend(stmts),
            one => list.push(one),
        }
        list.extend(self.once("last", is_last, self.behind));
        let mut attrs = self.inner.attrs.clone();
        attrs.is_independent = self.is_independent();
        let [stages, orders] = [STAGE, ORDER].map(|key| numbers(self.inner, key));
        let (mut stages, mut orders) = (stages?, orders?);
        let end = stages.values().copied().max().unwrap_or(0);
        // Texts have no orders below zero.
        if !self.before.is_empty() {
            let least = orders.values().copied().min().unwrap_or(0);
            orders.values_mut().for_each(|it| *it += 1 - least);
        }
        let most = orders.values().copied().max().unwrap_or(0);
        for (beside, order) in [(self.before, 0), (self.behind, most + 1)] {
            if let Some(block) = beside.iter().flat_map(Stmt::blocks).next() {
                stages.insert(block.name.clone(), end);
                orders.insert(block.name.clone(), order);
            }
        }
        let spec = attrs.pipeline_mut();
        (spec.stages, spec.orders) = (Some(Numbers::Map(stages)), Some(Numbers::Map(orders)));
        spec.across = None;
        spec.style = spec.style.or(Some(Style::PeelPrologue));
        // The prologue would be of a run that may not be.
        let there_is = Less::new(Index::int(0), self.outer.extent.clone());
        if spec.style == Some(Style::PeelPrologue) && self.bounds().prove(&there_is) != Some(true) {
            return Err(PipelineError::MayNotRun { name: self.inner.var.clone() }.into());
        }
        let extent = self.outer.extent.clone() * self.inner.extent.clone();
        let (var, kind, body) = (self.inner.var.clone(), self.inner.kind, Stmt::seq(list));
        Ok(Stmt::Loop(Arc::new(Loop { var, extent, kind, attrs, body })))
    }

    /// What is known around the outer loop.
    fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::of_dims(self.func);
        let path = self.func.path_to_loop(&self.outer.var).expect("it is one of the program's");
        let around = path.split_last().map_or(&[][..], |it| it.1);
        for it in around {
            bounds.insert(&it.var, &it.extent);
        }
        bounds
    }

    /// A statement with the joined loop's variable in the place of both.
    fn renamed(&self, stmt: &Stmt, of: &Index) -> Stmt {
        let run = Index::var(&self.inner.var).floor_div(&self.inner.extent);
        stmt.subst(&|name| match name {
            it if *it == self.inner.var => Some(of.clone()),
            it if *it == self.outer.var => Some(run.clone()),
            _ => None,
        })
    }

    /// Statements of some iterations: a loop that runs once in those, and not in the others. They wait for the products that they use,
    /// since a wait in every iteration would let none be in flight.
    fn once(&self, when: &str, times: Index, stmts: &[Stmt]) -> Option<Stmt> {
        if stmts.is_empty() {
            return None;
        }
        let var = Name::fresh(&format!("{}_{when}", self.inner.var), |it| self.func.is_taken(it));
        let of = Index::var(&self.inner.var).floor_mod(&self.inner.extent);
        let own = stmts.iter().map(|it| self.renamed(it, &of));
        let all: Vec<Stmt> = self.products_used(stmts).into_iter().chain(own).collect();
        Some(Stmt::serial(&var, times, Stmt::seq(all)))
    }

    /// The wait for the products whose results some statements touch.
    fn products_used(&self, stmts: &[Stmt]) -> Option<Stmt> {
        let products = self.inner.body.blocks();
        let mechanism = |it: &ir::Block| it.attrs.mechanism.filter(|it| it.is_product());
        let group = products.iter().find_map(|it| mechanism(it)?.group())?;
        let products = products.iter().filter(|it| mechanism(it).is_some());
        let mut buffers: Vec<Name> =
            products.flat_map(|it| it.writes()).map(|it| it.buffer.clone()).collect();
        buffers.dedup();
        buffers.retain(|name| {
            let touches = |it: &&ir::Block| it.any_access(&mut |access, _| access.buffer == *name);
            stmts.iter().flat_map(Stmt::blocks).any(|it| touches(&it))
        });
        let wait = Wait { group, reads_only: false, in_flight: 0, buffers };
        (!wait.buffers.is_empty()).then(|| marks::instruction("async_wait", Instr::Wait(wait)))
    }

    /// Whether its iterations do not meet in global memory either: those of the outer loop do not, and in each of these only what stands
    /// behind the loop touches what is written there.
    fn is_independent(&self) -> bool {
        let global = |name: &Name| self.func.buffers[name].scope == Scope::Global;
        let mut written = vec![];
        self.outer.body.blocks().iter().for_each(|it| {
            written.extend(it.writes().into_iter().map(|it| it.buffer.clone()).filter(|it| global(it)));
        });
        let touches = |stmt: &Stmt| {
            let touches =
                |it: &&ir::Block| it.any_access(&mut |access, _: Mode| written.contains(&access.buffer));
            stmt.blocks().iter().any(touches)
        };
        let inside = std::iter::once(&self.inner.body).chain(self.before).any(touches);
        self.outer.attrs.is_independent && !inside
    }
}
