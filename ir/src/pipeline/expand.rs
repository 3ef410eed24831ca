//! From annotated loops to plans, and to the program they stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    Component, Emission, PipelineError, PipelinePlan, STAGE, Section, SlotCount, Style,
    annotation::{check_numbers, components_of, expect_serial, is_pipeline, numbers},
    benign::benign,
    depend::Setting,
    emit,
    judge::Judge,
    lifetimes::{split, used_outside},
    materialize::{Parts, Writer, with_slots},
    private::{kept_for, private},
};
use crate::{Annotation, Block, Func, Index, Loop, LoopKind, Name, Role, Stmt, StorageAlign, arith::Bounds};

/// What a lowering adds to the expansion.
pub trait Hooks {
    /// Whether a buffer is known to carry nothing between the iterations of a loop, beside those that are seen to.
    fn is_private(&self, _var: &Name, _buffer: &Name) -> bool {
        false
    }

    /// Statements to put between the components of a loop that stands in these loops.
    fn insertions(&mut self, _plan: &PipelinePlan, _emission: &Emission, _around: &[&Loop]) -> Insertions {
        Insertions::new()
    }

    /// What is declared of a loop whose components have roles, before each role gets its own pace.
    fn declared(&mut self, _plan: &PipelinePlan, _emission: &Emission) {}

    /// Called when a loop has been expanded; `home` is the loop around it.
    fn expanded(&mut self, _plan: &PipelinePlan, _home: Option<&Name>) {}
}

/// Nothing is added.
pub(super) struct NoHooks;

impl Hooks for NoHooks {}

/// Statements by the place that they go to.
pub type Insertions = BTreeMap<EmissionPoint, Vec<Stmt>>;

/// Before the instance `at` of a step, or after its last one. The step after the last of an epilogue is the end of all; the first place of a
/// prologue, which is there even where that has no steps, is the start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the sentence above and the field's names say it")]
pub struct EmissionPoint {
    pub section: Section,
    pub step: usize,
    pub at: usize,
}

impl EmissionPoint {
    /// Before everything else.
    pub const START: EmissionPoint = EmissionPoint { section: Section::Prologue, step: 0, at: 0 };
}

/// Refuses a program with a pipeline that breaks a dependence; only those loops are judged that `wanted` wants.
///
/// # Errors
/// What is wrong with the first such loop.
pub fn check(func: &Func, wanted: &dyn Fn(&Loop) -> bool) -> Result<(), PipelineError> {
    let is_wanted = |it: &&Loop| is_pipeline(it) && wanted(it);
    if !func.loops().iter().any(is_wanted) {
        return Ok(());
    }
    let (func, origins) = &split(func.clone());
    for it in func.loops().into_iter().filter(is_wanted) {
        let path = func.path_to_loop(&it.var).expect("it is one of the program's");
        let around = &path[..path.len().saturating_sub(1)];
        let mut none = NoHooks;
        let mut expander = Expander::new(func, &mut none);
        expander.writer.origins.extend(origins.clone());
        expander.plan(it, around, false)?;
    }
    Ok(())
}

/// The program with its pipelined loops expanded, inner ones before outer ones, each with its own temporaries
/// ([`super::split_lifetimes`]).
///
/// # Errors
/// What is wrong with the first loop that cannot be.
pub fn expand(func: &Func, hooks: &mut dyn Hooks) -> Result<Func, PipelineError> {
    let (func, origins) = split(func.clone());
    let mut expander = Expander::new(&func, hooks);
    expander.writer.origins.extend(origins);
    let body = expander.stmt(&func.body, &[])?;
    Ok(Func { body, ..expander.func })
}

pub(super) struct Expander<'a> {
    original: &'a Func,
    /// The program with the buffers as they have become.
    pub(super) func: Func,
    writer: Writer,
    hooks: &'a mut dyn Hooks,
}

impl<'a> Expander<'a> {
    pub(super) fn new(original: &'a Func, hooks: &'a mut dyn Hooks) -> Expander<'a> {
        Expander { original, func: original.clone(), writer: Writer::new(original), hooks }
    }

    fn stmt(&mut self, stmt: &Stmt, around: &[&Loop]) -> Result<Stmt, PipelineError> {
        match stmt {
            Stmt::Loop(it) if is_pipeline(it) => {
                let Parts { prologue, body, epilogue, .. } = self.pipeline(it, around)?;
                Ok(Stmt::seq([prologue, body, epilogue]))
            }
            Stmt::Loop(it) => {
                let inside: Vec<_> = around.iter().copied().chain([&**it]).collect();
                Ok(Stmt::Loop(Arc::new(Loop { body: self.stmt(&it.body, &inside)?, ..Loop::clone(it) })))
            }
            Stmt::Seq(stmts) => {
                let stmts = stmts.iter().map(|it| self.stmt(it, around)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(stmts))
            }
            Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => Ok(stmt.clone()),
        }
    }

    fn pipeline(&mut self, it: &Loop, around: &[&Loop]) -> Result<Parts, PipelineError> {
        let mut plan = self.plan(it, around, true)?;
        for (buffer, slots) in &plan.slots {
            if slots.count() > 1 {
                let info = &mut self.func.buffers[buffer];
                info.shape.insert(0, Index::int(slots.count()));
                let moved = info.layout.align.iter().map(|it| StorageAlign { axis: it.axis + 1, ..*it });
                info.layout.align = moved.collect();
            }
        }
        // A role runs ahead into the next run of the loop: then slots go on where they were.
        let place =
            if plan.has_roles() { plan.position(around, &Index::var(&it.var)) } else { Index::var(&it.var) };
        let slot = |name: &Name| {
            let slots = plan.slots.get(name).map(|it| it.count()).filter(|it| *it > 1)?;
            Some(place.floor_mod(&Index::int(slots)))
        };
        let bodies: Vec<Stmt> = plan.components.iter().map(|it| with_slots(&it.body, &slot)).collect();
        for (component, body) in plan.components.iter_mut().zip(bodies) {
            component.body = body;
        }
        let bounds = bounds_of(&self.func, around);
        if plan.has_roles() {
            self.hooks.declared(&plan, &emit(&plan, &bounds));
            plan = plan.by_role();
        }
        let emission = emit(&plan, &bounds);
        let insertions = self.hooks.insertions(&plan, &emission, around);
        self.hooks.expanded(&plan, around.last().map(|it| &it.var));
        Ok(self.writer.write(it, &plan, &emission, &insertions, &bounds))
    }

    /// What the annotations of a loop ask for, judged; with `whole`, pipelines inside it are expanded.
    fn plan(&mut self, it: &Loop, around: &[&Loop], whole: bool) -> Result<PipelinePlan, PipelineError> {
        expect_serial(it)?;
        let stages = numbers(it, STAGE)?;
        let orders = numbers(it, super::ORDER)?;
        if let Some(missing) = missing(it, &stages, &orders) {
            return Err(missing);
        }
        check_numbers(&stages, &orders)?;
        let first = stages.values().copied().min().unwrap_or(0);
        let bodies = self.bodies(it, around, &stages, whole)?;
        let numbers = stages.iter().zip(orders.values());
        let components: Vec<Component> = bodies
            .into_iter()
            .zip(numbers)
            .map(|(body, ((name, stage), order))| Component {
                name: name.clone(),
                body,
                stage: stage - first,
                order: *order,
            })
            .collect();

        let mut private = private(self.original, it);
        let outside = used_outside(self.original, &it.var);
        private.retain(|buffer| !outside.contains(buffer));
        let temps = self.original.buffers.keys();
        private.extend(temps.filter(|name| self.hooks.is_private(&it.var, name)).cloned());
        let setting = Setting { func: &self.func, around, var: &it.var, extent: &it.extent };
        let judge = Judge::new(setting, &components, &private);
        let explained = |mut err: PipelineError| {
            if let PipelineError::Hazard { hazard } = &mut err
                && hazard.distance > 0
                && self.original.buffers.get(&hazard.buffer).is_some_and(|it| it.role == Role::Temp)
            {
                hazard.kept_for = kept_for(self.original, it, &hazard.buffer);
            }
            self.writer.with_original_names(err)
        };
        judge.check(&benign(it)?).map_err(explained)?;
        // Who only wants to know whether the plan is good does not ask for slots.
        let slots = if whole { self.slots(it, &judge, &private) } else { IndexMap::new() };
        let unroll = self.unroll(it, &slots);
        let style = style(it, &it.extent);
        let reason = match it.attrs.notes.get(super::REASON) {
            Some(Annotation::Text(it)) => Some(it.clone()),
            _ => None,
        };
        let (var, extent) = (it.var.clone(), it.extent.clone());
        Ok(PipelinePlan { var, extent, style, components, slots, unroll, reason })
    }

    /// The statement of each component.
    pub(super) fn bodies(
        &mut self,
        it: &Loop,
        around: &[&Loop],
        names: &IndexMap<Name, i64>,
        whole: bool,
    ) -> Result<Vec<Stmt>, PipelineError> {
        let inside: Vec<_> = around.iter().copied().chain([it]).collect();
        let mut parts: BTreeMap<Name, [Stmt; 3]> = BTreeMap::new();
        let mut out = Vec::new();
        for slot in components_of(it, names) {
            out.push(match (slot.part, slot.stmt) {
                (Some(part), Stmt::Loop(inner)) => {
                    if !parts.contains_key(&inner.var) {
                        let all = self.pipeline(inner, &inside)?;
                        if all.is_dynamic {
                            let (name, inner) = (it.var.clone(), inner.var.clone());
                            let part = slot.names[0].clone();
                            return Err(PipelineError::NoParts { name, inner, part });
                        }
                        parts.insert(inner.var.clone(), [all.prologue, all.body, all.epilogue]);
                    }
                    parts[&inner.var][part].clone()
                }
                (_, stmt) if whole => self.stmt(stmt, &inside)?,
                (_, stmt) => stmt.clone(),
            });
        }
        Ok(out)
    }

    /// The buffers of which iterations have their own, and how many slots of each.
    fn slots(&self, it: &Loop, judge: &Judge<'_>, private: &BTreeSet<Name>) -> IndexMap<Name, SlotCount> {
        let blocks: Vec<&Block> = it.body.blocks();
        // What a pipeline inside fills, it gives slots.
        let inside = blocks_of_pipelines(&it.body);
        let count = |name: &Name| {
            let overtaken = judge.overtaken(name);
            let collides = |slots: &i64| overtaken.iter().any(|it| it % slots == 0);
            // One more than the greatest of them divides none.
            let enough = overtaken.last().map_or(1, |it| it + 1);
            let needed = (1..enough).find(|it| !collides(it)).unwrap_or(enough);
            let writers = blocks.iter().filter(|it| it.writes().iter().any(|access| access.buffer == *name));
            let writers = writers.filter(|it| !inside.contains(&it.name));
            // More slots than needed may collide where fewer do not: of those, as many more as do not.
            let forced = writers.filter_map(|it| forced(it)).max();
            let forced = forced.and_then(|least| (least.max(1)..=least.max(enough)).find(|it| !collides(it)));
            SlotCount { needed, forced }
        };
        let buffers = self.func.buffers.keys().filter(|name| private.contains(*name));
        buffers.map(|name| (name.clone(), count(name))).collect()
    }

    /// How many steps a run of the steady loop takes so that registers are indexed by constants.
    fn unroll(&self, it: &Loop, slots: &IndexMap<Name, SlotCount>) -> i64 {
        if it.kind == LoopKind::Unrolled && it.extent.as_int().is_some() {
            return 1;
        }
        let registers = |name: &Name| self.func.buffers.get(name).is_some_and(|it| it.scope.is_registers());
        slots.iter().filter(|it| registers(it.0)).fold(1, |all, (_, slots)| lcm(all, slots.count()))
    }
}

/// The error for annotations of which one takes an inner pipeline in parts and the other does not.
fn missing(it: &Loop, stages: &IndexMap<Name, i64>, orders: &IndexMap<Name, i64>) -> Option<PipelineError> {
    let names =
        |map: &IndexMap<Name, i64>| components_of(it, map).into_iter().map(|it| it.names).collect::<Vec<_>>();
    let (in_stages, in_orders) = (names(stages), names(orders));
    let (longer, other, key) = if in_stages.len() >= in_orders.len() {
        (in_stages, in_orders, super::ORDER)
    } else {
        (in_orders, in_stages, STAGE)
    };
    let block = longer.into_iter().find(|names| !other.contains(names))?.into_iter().next()?;
    Some(PipelineError::PipelineMissing { name: it.var.clone(), key, block })
}

/// The blocks of the pipelines in a statement.
fn blocks_of_pipelines(body: &Stmt) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && is_pipeline(it)
        {
            out.extend(it.body.blocks().iter().map(|it| it.name.clone()));
        }
    });
    out
}

/// The slots that a block asks for.
pub fn forced(block: &Block) -> Option<i64> {
    block.attrs.slots.or_else(|| block.attrs.double_buffer.then_some(2))
}

/// What the loop asks for, else what costs least: no conditions where the extent is constant, no copies where it is not.
fn style(it: &Loop, extent: &Index) -> Style {
    let asked = it.attrs.pipeline.as_ref().and_then(|it| it.style);
    asked.unwrap_or(if extent.as_int().is_some() { Style::Peel } else { Style::Predicate })
}

fn bounds_of(func: &Func, around: &[&Loop]) -> Bounds {
    let mut bounds = Bounds::of_dims(func);
    for it in around {
        bounds.insert(&it.var, &it.extent);
    }
    bounds
}

/// The least common multiple of two positive numbers.
pub(super) fn lcm(a: i64, b: i64) -> i64 {
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    a / gcd(a, b) * b
}
