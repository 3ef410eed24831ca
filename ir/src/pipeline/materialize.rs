//! From a plan and its times to statements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Emission, EmissionPoint, Insertions, Instance, PipelineError, PipelinePlan, Section, Step};
use crate::{
    Access, Block, Func, Index, Less, Loop, LoopAttrs, Name, Origin, PipelineStep, Stmt, arith::Bounds,
};

/// An expanded loop.
pub(super) struct Parts {
    pub(super) prologue: Stmt,
    pub(super) body: Stmt,
    pub(super) epilogue: Stmt,
    /// Whether what runs in each part is known only at run time.
    pub(super) is_dynamic: bool,
}

/// Writes copies of statements under names of their own.
pub(super) struct Writer {
    taken: BTreeSet<Name>,
    /// What copies are copies of.
    pub(super) origins: BTreeMap<Name, Name>,
}

impl Writer {
    pub(super) fn new(func: &Func) -> Writer {
        let mut taken: BTreeSet<Name> = func.loops().iter().map(|it| it.var.clone()).collect();
        taken.extend(func.body.blocks().iter().map(|it| it.name.clone()));
        taken.extend(func.buffers.keys().chain(&func.dims).cloned());
        Writer { taken, origins: BTreeMap::new() }
    }

    /// The statements of an emission. The first step of the steady loop keeps the names there are.
    pub(super) fn write(
        &mut self,
        old: &Loop,
        plan: &PipelinePlan,
        emission: &Emission,
        insertions: &Insertions,
        bounds: &Bounds,
    ) -> Parts {
        let mut straight = |section: Section, steps: &[Step]| {
            let steps = steps.iter().enumerate();
            let all = steps.map(|(n, step)| self.step(plan, step, insertions, (section, n), bounds, true));
            all.collect::<Vec<_>>()
        };
        let mut before = straight(Section::Prologue, &emission.prologue);
        let mut leftover = straight(Section::Epilogue, &emission.epilogue);
        let mut epilogue = leftover.split_off(emission.leftover);
        let end = EmissionPoint { section: Section::Epilogue, step: emission.epilogue.len(), at: 0 };
        let place = |it: EmissionPoint| {
            let (section, step) = (it.section, it.step);
            PipelineStep { var: plan.var.clone(), section, step, component: None }
        };
        epilogue.extend(self.inserted(insertions.get(&end), &place(end)));
        let epilogue = Stmt::seq(epilogue);
        if emission.prologue.is_empty() {
            before = self.inserted(insertions.get(&EmissionPoint::START), &place(EmissionPoint::START));
        }
        let prologue = Stmt::seq(before);
        let body = emission.steady.as_ref().map_or_else(
            || Stmt::Seq(vec![]),
            |steady| {
                let mut bounds = bounds.clone();
                bounds.insert(&old.var, &steady.extent);
                let steps =
                    steady.steps.iter().enumerate().map(|(n, step)| {
                        self.step(plan, step, insertions, (Section::Steady, n), &bounds, n > 0)
                    });
                let body = Stmt::seq(steps.collect::<Vec<_>>());
                let attrs = LoopAttrs { pipeline: None, ..old.attrs.clone() };
                Stmt::Loop(Arc::new(Loop { extent: steady.extent.clone(), attrs, body, ..old.clone() }))
            },
        );
        let body = Stmt::seq([body].into_iter().chain(leftover));
        Parts { prologue, body, epilogue, is_dynamic: emission.is_dynamic }
    }

    fn step(
        &mut self,
        plan: &PipelinePlan,
        step: &[Instance],
        insertions: &Insertions,
        (section, number): (Section, usize),
        bounds: &Bounds,
        is_copy: bool,
    ) -> Stmt {
        let mut out = Vec::new();
        for at in 0..=step.len() {
            let place = EmissionPoint { section, step: number, at };
            let instance = step.get(at);
            let component = instance.map(|it| it.component);
            let from = PipelineStep { var: plan.var.clone(), section, step: number, component };
            out.extend(self.inserted(insertions.get(&place), &from));
            let Some(instance) = instance else { break };
            let body = &plan.components[instance.component].body;
            let mut body = at_iteration(body, &plan.var, &instance.iteration, bounds);
            guard(&mut body, &instance.guards);
            put_inside(&mut body, &from);
            out.push(if is_copy { self.renamed(&body) } else { body });
        }
        Stmt::seq(out)
    }

    /// What stands at a place of a step.
    fn inserted(&mut self, stmts: Option<&Vec<Stmt>>, place: &PipelineStep) -> Vec<Stmt> {
        let one = |stmt: &Stmt| {
            let mut stmt = self.renamed(stmt);
            put_inside(&mut stmt, place);
            stmt
        };
        stmts.into_iter().flatten().map(one).collect()
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
            Stmt::Store(_) | Stmt::Instr(_) => stmt.clone(),
        }
    }

    fn fresh(&mut self, name: &Name) -> Name {
        let fresh = Name::fresh(name.as_str(), |it| self.taken.contains(it));
        self.taken.insert(fresh.clone());
        let origin = self.origins.get(name).unwrap_or(name).clone();
        self.origins.insert(fresh.clone(), origin);
        fresh
    }

    /// The error with the names that the user gave.
    pub(super) fn with_original_names(&self, err: PipelineError) -> PipelineError {
        let PipelineError::Hazard { mut hazard } = err else { return err };
        for name in [&mut hazard.src, &mut hazard.dst, &mut hazard.buffer] {
            if let Some(origin) = self.origins.get(name) {
                *name = origin.clone();
            }
        }
        PipelineError::Hazard { hazard }
    }
}

/// The statement for a given iteration.
fn at_iteration(stmt: &Stmt, var: &Name, value: &Index, bounds: &Bounds) -> Stmt {
    let with = |name: &Name| (name == var).then(|| value.clone());
    stmt.map_indices(&mut |index| {
        if index.any_var(&|name| name == var) { bounds.simplify(&index.subst(&with)) } else { index.clone() }
    })
}

/// Puts a statement under conditions.
fn guard(stmt: &mut Stmt, guards: &[Less]) {
    if guards.is_empty() {
        return;
    }
    stmt.walk_mut(&mut |stmt| match stmt {
        Stmt::Block(it) => {
            Arc::make_mut(it).guards.extend(guards.iter().cloned());
            false
        }
        Stmt::Loop(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => true,
    });
}

/// Tells blocks in which step of a pipeline they are.
fn put_inside(stmt: &mut Stmt, step: &PipelineStep) {
    stmt.walk_mut(&mut |stmt| {
        if let Stmt::Block(it) = stmt {
            let is_inserted = matches!(it.body, Stmt::Instr(_));
            let it = Arc::make_mut(it);
            let origin = &mut it.attrs.origin;
            if origin.is_unknown() && !is_inserted {
                *origin = Origin::of(&it.name);
            }
            *origin = origin.inside(step.clone());
        }
        true
    });
}

/// The statement with a leading subscript for the slot on each access to a buffer that has slots.
pub(super) fn with_slots(stmt: &Stmt, slot: &dyn Fn(&Name) -> Option<Index>) -> Stmt {
    stmt.map_accesses(&mut |it| {
        let indices = slot(&it.buffer).into_iter().chain(it.indices.iter().cloned()).collect();
        Access { indices, ..it.clone() }
    })
}
