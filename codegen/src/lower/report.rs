//! What became of a pipeline, for people: `show --emit pipeline` draws it.

use ir::{
    Block, Func, Index, Loop, Mechanism, Name, Scope, intrin,
    pipeline::{PipelinePlan, split_lifetimes},
};

use crate::lower::{Context, MechanismChoice};

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
    /// Why it is as it is, if nobody wrote it by hand.
    pub reason: Option<String>,
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
    /// The role whose warps run it, if it names one.
    pub role: Option<Name>,
    /// Its stage, counted from the first stage there is.
    pub stage: i64,
    /// Its place in a step.
    pub order: i64,
    /// The stage and the place that the script gives it; others than the above where each role has a pace of its own.
    pub declared: (i64, i64),
    /// How it moves its data.
    pub mechanism: Mechanism,
    /// Why so, in words; empty if nothing was asked for.
    pub reason: String,
    /// Whether the script insists.
    pub is_forced: bool,
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

/// The report of a plan, whose components have these stages and places in the script.
pub(crate) fn report(
    plan: &PipelinePlan,
    declared: &[(i64, i64)],
    func: &Func,
    context: &Context,
) -> PipelineReport {
    let components = plan.components.iter().enumerate().map(|(at, it)| {
        let known = context.mechanisms.get(&(plan.var.clone(), it.name.clone())).cloned();
        let unasked =
            MechanismChoice { mechanism: Mechanism::Plain, reason: String::new(), is_forced: false };
        let MechanismChoice { mechanism, reason, is_forced } = known.unwrap_or(unasked);
        ComponentReport {
            name: it.name.clone(),
            role: plan.role(at).cloned(),
            stage: it.stage,
            order: it.order,
            declared: declared.get(at).copied().unwrap_or((it.stage, it.order)),
            mechanism,
            reason,
            is_forced,
            reads: it.reads().into_iter().collect(),
            writes: it.writes().into_iter().collect(),
        }
    });
    let buffers = plan.slots.iter().map(|(name, slots)| {
        let info = &func.buffers[name];
        let count = info.shape.iter().map(Index::as_int).product::<Option<i64>>().unwrap_or(0);
        let bytes = info.dtype.bytes_i64();
        SlotReport {
            buffer: name.clone(),
            scope: info.scope,
            slots: slots.count(),
            needed: slots.needed,
            forced: slots.forced,
            bytes: count * bytes / intrin::sharing(func, name),
        }
    });
    PipelineReport {
        var: plan.var.clone(),
        extent: plan.extent.clone(),
        style: plan.style.as_str(),
        unroll: plan.unroll,
        reason: plan.reason.clone(),
        components: components.collect(),
        buffers: buffers.collect(),
    }
}

impl SlotReport {
    /// What came of asking for slots, if the script asks for some.
    pub fn note(&self) -> Option<String> {
        let SlotReport { buffer, needed, slots, .. } = self;
        self.forced.map(|forced| {
            if *needed >= forced {
                format!("no effect: {buffer} already has {}", count(*slots))
            } else {
                format!("{buffer} has {} because the script asks for them; it needs {needed}", count(*slots))
            }
        })
    }
}

/// What a script asks for that changes nothing, in sentences.
pub fn no_effect(func: &Func, reports: &[PipelineReport]) -> Vec<String> {
    // Pipelines have buffers of their own where the script has one; the blocks are the same.
    let split = split_lifetimes(func.clone());
    let mut out = Vec::new();
    for block in func.body.blocks().into_iter().filter(|it| it.attrs.double_buffer) {
        let filled = |block: &Block| block.writes().first().map(|it| it.buffer.clone());
        let (Some(buffer), Some(own)) = (filled(block), split.find_block(&block.name).and_then(filled))
        else {
            continue;
        };
        // Those of a sum that another role reads are no matter of the pipeline.
        if block.attrs.role.is_some() && func.buffers[&buffer].scope == Scope::Tensor {
            continue;
        }
        let slots = reports.iter().flat_map(|it| &it.buffers).filter(|it| it.buffer == own);
        let told = match slots.max_by_key(|it| (it.slots > it.needed, it.slots)) {
            Some(it) if it.slots > it.needed => None,
            Some(it) => SlotReport { buffer, ..it.clone() }.note(),
            None => Some(format!(
                "no effect: {buffer} has 1 slot, since no pipelined loop fills it anew in each iteration"
            )),
        };
        let new: Vec<String> = told.into_iter().filter(|it| !out.contains(it)).collect();
        out.extend(new);
    }
    out.extend(func.loops().into_iter().filter_map(half));
    out
}

/// What a loop lacks to be a pipeline, if something of one is attached to it.
fn half(it: &Loop) -> Option<String> {
    let pipeline = it.attrs.pipeline.as_ref()?;
    let (has_part, missing) = match (pipeline.stages.is_some(), pipeline.orders.is_some()) {
        (true, false) => ("stages", "order: software_pipeline_order gives it one"),
        (false, true) => ("an order", "stages: software_pipeline_stage gives it some"),
        (false, false) if pipeline.async_stages.is_some() => {
            ("asynchronous stages", "stages: software_pipeline_stage gives it some")
        }
        (true, true) | (false, false) => return None,
    };
    Some(format!("no effect: loop {} has {has_part} and no {missing}", it.var))
}

fn count(slots: i64) -> String {
    if slots == 1 { "1 slot".to_owned() } else { format!("{slots} slots") }
}
