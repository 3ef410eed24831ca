//! Overlaps the iterations of loops annotated with pipeline stages.

use std::collections::BTreeSet;
use std::sync::Arc;

use ir::{Annotations, Block, Func, Index, Less, Loop, Name, Stmt, StorageAlign, Value, arith::Bounds};

use super::{
    Context, LowerError,
    stages::{ORDER, Plan, STAGE, plan},
};

/// ```text
/// for k in 0..8 #{software_pipeline_stage: {A_shared: 0, C: 1}, software_pipeline_order: {A_shared: 0, C: 1}}
///   A_shared[i] = A[k, i]
///   C[i] = C[i] + A_shared[i]
/// ->
/// A_shared[0, i] = A[0, i]
/// for k in 0..7
///   A_shared[(k + 1) mod 2, i] = A[k + 1, i]
///   C[i] = C[i] + A_shared[k mod 2, i]
/// C[i] = C[i] + A_shared[1, i]
/// ```
///
/// Statement s of iteration i runs at time `(i + stage, order)`. Buffers that live in an iteration get as many slots
/// as iterations are in flight. A loop of constant extent is peeled; any other runs `extent + last stage` times, each
/// statement under a guard, so that short and empty loops need no case of their own. Copies are renamed. Inner
/// loops are pipelined before outer ones. The copies stay synchronous.
pub(crate) fn software_pipeline(func: Func, context: &mut Context) -> Result<Func, LowerError> {
    let mut taken: BTreeSet<Name> = func.loops().iter().map(|it| it.var.clone()).collect();
    taken.extend(func.body.blocks().iter().map(|it| it.name.clone()));
    taken.extend(func.buffers.keys().chain(&func.dims).cloned());
    let body = func.body.clone();
    let mut pass = Pipeliner { func, context, taken };
    let body = pass.stmt(&body, &[])?;
    Ok(Func { body, ..pass.func })
}

struct Pipeliner<'a> {
    func: Func,
    context: &'a mut Context,
    taken: BTreeSet<Name>,
}

impl Pipeliner<'_> {
    fn stmt(&mut self, stmt: &Stmt, around: &[&Loop]) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::Loop(it) => {
                let inside: Vec<_> = around.iter().copied().chain([&**it]).collect();
                let Some(plan) = plan(it, &self.func, &self.context.homes)? else {
                    return Ok(Stmt::Loop(Arc::new(Loop {
                        body: self.stmt(&it.body, &inside)?,
                        ..Loop::clone(it)
                    })));
                };
                let mut components = Vec::new();
                for component in &plan.components {
                    let body = self.stmt(&component.body, &inside)?;
                    components.push(component.with_body(body));
                }
                Ok(self.expand(it, Plan { components, ..plan }, around))
            }
            Stmt::Block(it) => {
                Ok(Stmt::Block(Arc::new(Block { body: self.stmt(&it.body, around)?, ..Block::clone(it) })))
            }
            Stmt::Seq(stmts) => {
                let stmts = stmts.iter().map(|it| self.stmt(it, around)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(stmts))
            }
            Stmt::Store(_) => Ok(stmt.clone()),
        }
    }

    fn expand(&mut self, old: &Loop, mut plan: Plan, around: &[&Loop]) -> Stmt {
        let home = around.last().map(|it| it.var.clone());
        let report = super::PipelineReport {
            var: old.var.clone(),
            extent: old.extent.clone(),
            style: if old.extent.as_int().is_some() { "peel" } else { "predicate" },
            unroll: 1,
            components: plan
                .components
                .iter()
                .map(|it| super::ComponentReport {
                    name: it.body.blocks().last().unwrap().name.clone(),
                    stage: it.stage,
                    order: it.order,
                    mechanism: ir::Mechanism::Plain,
                    reason: String::new(),
                    reads: it
                        .body
                        .blocks()
                        .iter()
                        .flat_map(|b| b.reads().into_iter().map(|a| a.buffer.clone()).collect::<Vec<_>>())
                        .collect(),
                    writes: it
                        .body
                        .blocks()
                        .iter()
                        .flat_map(|b| b.writes().into_iter().map(|a| a.buffer.clone()).collect::<Vec<_>>())
                        .collect(),
                })
                .collect(),
            buffers: plan
                .slots
                .iter()
                .map(|(b, slots)| {
                    let i = &self.func.buffers[b];
                    let l = super::flatten::strides(i).len;
                    super::SlotReport {
                        buffer: b.clone(),
                        scope: i.scope,
                        slots: *slots,
                        needed: *slots,
                        forced: None,
                        bytes: l.as_int().unwrap_or(0) * i.dtype.bytes() as i64,
                    }
                })
                .collect(),
        };
        self.context.reports.push(report);
        for (buffer, slots) in &plan.slots {
            self.context.homes.insert(buffer.clone(), home.clone());
            if *slots > 1 {
                let info = &mut self.func.buffers[buffer];
                info.shape.insert(0, Index::int(*slots));
                let moved = info.layout.align.iter().map(|it| StorageAlign { axis: it.axis + 1, ..*it });
                info.layout.align = moved.collect();
            }
        }
        let slot = |name: &Name| {
            let slots = plan.slots.get(name).copied().filter(|it| *it > 1)?;
            Some(Index::var(&old.var).floor_mod(&Index::int(slots)))
        };
        for component in &mut plan.components {
            component.body = with_slots(&component.body, &slot);
        }
        plan.components.sort_by_key(|it| it.order);

        let mut bounds = Bounds::of_dims(&self.func);
        for it in around {
            bounds.insert(&it.var, &it.extent);
        }
        match bounds.simplify(&old.extent).as_int() {
            Some(extent) => self.peeled(old, &plan, extent, &bounds),
            None => predicated(old, &plan, &bounds),
        }
    }

    /// Prologue, steady loop and epilogue; only straight code where the loop is shorter than the pipeline.
    fn peeled(&mut self, old: &Loop, plan: &Plan, extent: i64, bounds: &Bounds) -> Stmt {
        let last = plan.components.iter().map(|it| it.stage).max().unwrap_or(0);
        let mut out = Vec::new();
        for time in 0..extent + last {
            if (last..extent).contains(&time) {
                if time == last {
                    out.push(steady(old, plan, extent - last, last, bounds));
                }
                continue;
            }
            for component in plan.components.iter().filter(|it| (0..extent).contains(&(time - it.stage))) {
                let value = Index::int(time - component.stage);
                let copy = at(&component.body, &old.var, &value, bounds);
                out.push(self.renamed(&copy));
            }
        }
        Stmt::seq(out)
    }

    /// The statement with fresh names for its loops and blocks.
    fn renamed(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Loop(it) => {
                let var = self.fresh(&it.var);
                let with = |name: &Name| (*name == it.var).then(|| Index::var(&var));
                let body = self.renamed(&it.body.subst(&with));
                Stmt::Loop(Arc::new(Loop { var, body, ..Loop::clone(it) }))
            }
            Stmt::Block(it) => {
                let name = self.fresh(&it.name);
                let init = it.init.as_ref().map(|it| self.renamed(it));
                let body = self.renamed(&it.body);
                Stmt::Block(Arc::new(Block { name, init, body, ..Block::clone(it) }))
            }
            Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| self.renamed(it)).collect()),
            Stmt::Store(_) => stmt.clone(),
        }
    }

    fn fresh(&mut self, name: &Name) -> Name {
        let fresh = Name::fresh(name.as_str(), |it| self.taken.contains(it));
        self.taken.insert(fresh.clone());
        fresh
    }
}

/// The loop in which every statement runs, each for its own iteration.
fn steady(old: &Loop, plan: &Plan, extent: i64, last: i64, bounds: &Bounds) -> Stmt {
    let mut bounds = bounds.clone();
    bounds.insert(&old.var, &Index::int(extent));
    let body = plan.components.iter().map(|it| {
        let value = Index::var(&old.var) + (last - it.stage);
        at(&it.body, &old.var, &value, &bounds)
    });
    let (extent, annotations) = (Index::int(extent), rest(&old.annotations));
    Stmt::Loop(Arc::new(Loop { extent, annotations, body: Stmt::seq(body), ..old.clone() }))
}

/// One loop over all times, each statement guarded: right for every extent.
fn predicated(old: &Loop, plan: &Plan, bounds: &Bounds) -> Stmt {
    let last = plan.components.iter().map(|it| it.stage).max().unwrap_or(0);
    let extent = bounds.simplify(&(&old.extent + last));
    let mut bounds = bounds.clone();
    bounds.insert(&old.var, &extent);
    let time = Index::var(&old.var);
    let body = plan.components.iter().map(|it| {
        let value = time.clone() - it.stage;
        let started = Less::new(Index::int(it.stage), time.clone() + 1);
        let running = Less::new(value.clone(), old.extent.clone());
        let guards = [started, running].into_iter().filter(|it| bounds.prove(it) != Some(true));
        let mut body = at(&it.body, &old.var, &value, &bounds);
        guard(&mut body, &guards.collect::<Vec<_>>());
        body
    });
    let (body, annotations) = (Stmt::seq(body), rest(&old.annotations));
    Stmt::Loop(Arc::new(Loop { extent, annotations, body, ..old.clone() }))
}

/// The statement for a given iteration.
fn at(stmt: &Stmt, var: &Name, value: &Index, bounds: &Bounds) -> Stmt {
    let with = |name: &Name| (name == var).then(|| value.clone());
    stmt.map_indices(&mut |index| {
        if index.any_var(&|name| name == var) { bounds.simplify(&index.subst(&with)) } else { index.clone() }
    })
}

fn guard(stmt: &mut Stmt, guards: &[Less]) {
    stmt.walk_mut(&mut |stmt| match stmt {
        Stmt::Block(it) => {
            Arc::make_mut(it).guards.extend(guards.iter().cloned());
            false
        }
        Stmt::Loop(_) | Stmt::Seq(_) | Stmt::Store(_) => true,
    });
}

/// The annotations without those of this pass.
fn rest(annotations: &Annotations) -> Annotations {
    annotations
        .iter()
        .filter(|it| it.0 != STAGE && it.0 != ORDER)
        .map(|(a, b)| (a.clone(), b.clone()))
        .collect()
}

/// The statement with a leading subscript for the slot on each access to a buffer that has slots.
fn with_slots(stmt: &Stmt, slot: &dyn Fn(&Name) -> Option<Index>) -> Stmt {
    let access = |it: &ir::Access| match slot(&it.buffer) {
        Some(slot) => {
            let indices = std::iter::once(slot).chain(it.indices.iter().cloned()).collect();
            ir::Access { indices, ..it.clone() }
        }
        None => it.clone(),
    };
    match stmt {
        Stmt::Loop(it) => Stmt::Loop(Arc::new(Loop { body: with_slots(&it.body, slot), ..Loop::clone(it) })),
        Stmt::Block(it) => {
            let init = it.init.as_ref().map(|it| with_slots(it, slot));
            Stmt::Block(Arc::new(Block { init, body: with_slots(&it.body, slot), ..Block::clone(it) }))
        }
        Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| with_slots(it, slot)).collect()),
        Stmt::Store(it) => {
            Stmt::store(access(&it.place), it.value.map_loads(&mut |load| Value::Load(access(load))))
        }
    }
}
