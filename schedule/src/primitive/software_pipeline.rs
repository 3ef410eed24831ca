use std::sync::Arc;

use indexmap::IndexMap;
use ir::{
    Annotation, Block, LoopAttrs, Name, Numbers, Stmt, Target,
    modulo::{Candidate, candidates},
    pipeline::{ASYNC, ASYNC_BLOCKS, ORDER, REASON, STAGE, expect_serial},
};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{Number, PipelineError, ScheduleError, ScheduleState};

/// Works out stages, an order, slots and what copies asynchronously for a loop, and asks for them.
///
/// ```text
/// software_pipeline(loop: "ko")
///
/// for ko in 0..n { s }
/// ->
/// for ko in 0..n #{software_pipeline_stage: {A_shared: 0, C: 1}, software_pipeline_order: {A_shared: 0, C: 1}, software_pipeline_async_stages: [0], software_pipeline_reason: "…"} { s }
/// ```
///
/// What it asks for is what `software_pipeline_stage`, `software_pipeline_order`, `software_pipeline_async_stages` and `double_buffer_scope`
/// ask for, and a note on the loop says why; `show --emit pipeline` shows both. Nothing else knows that nobody wrote it by hand. Loops inside come
/// first: a pipeline of theirs counts as its prologue, its steady loop and its epilogue.
///
/// It goes by the dependences between the statements of the loop, by the bytes that they move and what they compute, by a table of
/// the latencies and rates of the architecture, and by the shared memory and registers that slots take. From these follows the least interval
/// between two iterations, and by how many of these copies have to run ahead. So the answer differs between architectures, and
/// between tiles. Up to eight of the best answers are legal by the exact rule and ranked; `choice: 1` takes the second, and a knob there lets the
/// tuner measure them. `slots: 3` allows three slots of a buffer in shared memory at most.
///
/// Refuses a loop for a CPU, and one whose statements do an amount of work that is known only at run time. Comes after the steps
/// that bind, vectorize and tensorize what is in the loop, and after `persistent`, because these tell what it goes by. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePipeline {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// Which of the answers, the best of which is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Number>,
    /// The most slots of a buffer in shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Number>,
}

/// The most slots that are looked at, where a script does not say it: those that a block can ask for.
const MOST_SLOTS: i64 = 16;

impl Primitive for SoftwarePipeline {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        expect_serial(it)?;
        let entries = it.attrs.entries();
        let taken =
            [STAGE, ORDER, ASYNC, ASYNC_BLOCKS, REASON].into_iter().find(|key| entries.contains_key(*key));
        if let Some(key) = taken {
            return Err(ScheduleError::Annotated { name: self.target.clone(), key: key.to_owned() });
        }
        let name = self.target.clone();
        let Some(Target::Cuda(arch)) = &state.target else {
            return Err(PipelineError::NoGpu { name }.into());
        };
        let most_slots = self.slots.as_ref().map_or(Ok(MOST_SLOTS), Number::get)?.min(MOST_SLOTS);
        let choice = self.choice.as_ref().map_or(Ok(0), Number::get)?;
        let all = candidates(&state.func, &self.target, arch, most_slots)?;
        let count = all.len();
        let chosen = usize::try_from(choice).ok().and_then(|at| all.into_iter().nth(at));
        let chosen = chosen.ok_or(PipelineError::NoSuchChoice { name, choice, count })?;

        ask_slots(state, &chosen.slots);
        let note = format!("{} of {count}: {}", choice + 1, chosen.reason);
        annotate_loop(state, &self.target, REASON, |it| ask(it, chosen, note))
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        self.choice.iter_mut().chain(&mut self.slots).collect()
    }
}

/// Asks of a loop what a candidate says.
fn ask(it: &mut LoopAttrs, chosen: Candidate, note: String) {
    let Candidate { stages, order, asynchronous, .. } = chosen;
    let place = |name: &Name| order.iter().zip(0..).find(|it| it.0 == name).map_or(0, |it| it.1);
    let orders: IndexMap<Name, i64> = stages.keys().map(|name| (name.clone(), place(name))).collect();
    let is_asynchronous = |name: &Name| asynchronous.contains(name);
    let spec = it.pipeline_mut();
    let mut whole: Vec<i64> = stages.iter().filter(|it| is_asynchronous(it.0)).map(|it| *it.1).collect();
    whole.sort_unstable();
    whole.dedup();
    if whole.iter().any(|stage| stages.iter().any(|it| it.1 == stage && !is_asynchronous(it.0))) {
        spec.async_blocks = Some(asynchronous);
    } else if !whole.is_empty() {
        spec.async_stages = Some(whole);
    }
    (spec.stages, spec.orders) = (Some(Numbers::Map(stages)), Some(Numbers::Map(orders)));
    it.notes.insert(REASON.to_owned(), Annotation::Text(note));
}

/// Asks for slots of what blocks fill, no fewer than they ask for already.
fn ask_slots(state: &mut ScheduleState, slots: &IndexMap<Name, i64>) {
    for (name, &count) in slots {
        state.func.replace_block(name, |mut it: Block| {
            it.attrs.double_buffer = true;
            it.attrs.slots = Some(it.attrs.slots.unwrap_or(0).max(count));
            Stmt::Block(Arc::new(it))
        });
    }
}
