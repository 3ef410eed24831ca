//! What became of a pipeline, for people: `show --emit pipeline` draws it.

use ir::{Func, Index, Mechanism, Name, Scope, pipeline::Plan};

use super::Context;

/// A pipelined loop as it was lowered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineReport {
    /// The loop.
    pub var: Name,
    /// How many iterations it has.
    pub extent: Index,
    /// How prologue and epilogue are emitted: `peel` or `predicate`.
    pub style: &'static str,
    /// How many iterations one run of the steady loop takes.
    pub unroll: i64,
    /// The components in program order.
    pub components: Vec<ComponentReport>,
    /// The buffers of which each iteration has its own, in declaration order.
    pub buffers: Vec<SlotReport>,
}

/// A component of a pipelined loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComponentReport {
    /// What annotations call it.
    pub name: Name,
    /// Its stage, counted from the first stage there is.
    pub stage: i64,
    /// Its place in a step.
    pub order: i64,
    /// How it moves its data.
    pub mechanism: Mechanism,
    /// Why so, in words; empty if nothing was asked for.
    pub reason: String,
    /// The buffers that it reads.
    pub reads: Vec<Name>,
    /// The buffers that it writes.
    pub writes: Vec<Name>,
}

/// The slots of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotReport {
    /// The buffer.
    pub buffer: Name,
    /// Its memory.
    pub scope: Scope,
    /// How many slots it has.
    pub slots: i64,
    /// How many it needs.
    pub needed: i64,
    /// How many the script asks for.
    pub forced: Option<i64>,
    /// The bytes of one slot; 0 if its size is not a constant.
    pub bytes: i64,
}

/// The report of a plan.
pub(crate) fn report(plan: &Plan, func: &Func, context: &Context) -> PipelineReport {
    let components = plan.components.iter().map(|it| {
        let known = context.mechanisms.get(&(plan.var.clone(), it.name.clone()));
        let (mechanism, reason) = known.cloned().unwrap_or((Mechanism::Plain, String::new()));
        ComponentReport {
            name: it.name.clone(),
            stage: it.stage,
            order: it.order,
            mechanism,
            reason,
            reads: it.reads().into_iter().collect(),
            writes: it.writes().into_iter().collect(),
        }
    });
    let buffers = plan.slots.iter().map(|(name, slots)| {
        let info = &func.buffers[name];
        let count = info.shape.iter().map(Index::as_int).product::<Option<i64>>().unwrap_or(0);
        let bytes = i64::try_from(info.dtype.bytes()).unwrap_or(0);
        SlotReport {
            buffer: name.clone(),
            scope: info.scope,
            slots: slots.count(),
            needed: slots.needed,
            forced: slots.forced,
            bytes: count * bytes,
        }
    });
    PipelineReport {
        var: plan.var.clone(),
        extent: plan.extent.clone(),
        style: plan.style.as_str(),
        unroll: plan.unroll,
        components: components.collect(),
        buffers: buffers.collect(),
    }
}
