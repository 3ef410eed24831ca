use indexmap::IndexMap;
use ir::{
    Annotation, Mechanism, Name,
    pipeline::{ASYNC, MECHANISM, STAGE, expect_serial},
};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{Number, PipelineError, ScheduleError, ScheduleState, error::Thing};

/// Says which stages of a pipelined loop copy in the background, so that their latency is hidden.
///
/// ```text
/// software_pipeline_async_stages(loop: "ko", stages: [0])
///
/// for ko in 0..n #{software_pipeline_stage: {A_shared: 0, C: 1}} { s }
/// ->
/// for ko in 0..n #{software_pipeline_stage: {A_shared: 0, C: 1}, software_pipeline_async_stages: [0]} { s }
/// ```
///
/// How each statement of those stages copies is chosen when the program is lowered, the first of these that it
/// allows: `cp_async` (a plain copy from global to shared memory of 4, 8 or 16 bytes a thread at a time, from sm_80
/// on), `register_staged` (loads into registers early, stores to shared memory late), `synchronous`. An optional
/// `mechanism: "cp_async"` forces one, and then lowering refuses a program where it cannot be. Lowering also says what
/// was chosen and why.
///
/// The other annotations of the pipeline may come before or after. Refuses a stage that no statement has, once the
/// stages are known: TVM ignores it. Changes no result: on a CPU all copies are synchronous.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePipelineAsyncStages {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The stages.
    pub stages: Vec<Number>,
    /// The only mechanism to be used, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Name>,
}

impl Primitive for SoftwarePipelineAsyncStages {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        expect_serial(it)?;
        let stages = self.stages.iter().map(Number::get).collect::<Result<Vec<_>, _>>()?;
        for (at, &stage) in stages.iter().enumerate() {
            let name = self.target.clone();
            if stages[..at].contains(&stage) {
                return Err(PipelineError::StageTwice { name, stage }.into());
            }
            if stage < 0 {
                return Err(PipelineError::NoSuchStage { name, stage, stages: vec![] }.into());
            }
        }
        if let Some(Annotation::Map(known)) = it.annotations.get(STAGE) {
            expect_stages(&self.target, &stages, known)?;
        }
        annotate_loop(state, &self.target, ASYNC, Annotation::List(stages))?;
        self.mechanism.iter().try_for_each(|it| force(state, &self.target, it))
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        self.stages.iter_mut().collect()
    }
}

/// Refuses asynchronous stages that no statement has.
pub(crate) fn expect_stages(
    target: &Name,
    wanted: &[i64],
    known: &IndexMap<Name, i64>,
) -> Result<(), ScheduleError> {
    let Some(&stage) = wanted.iter().find(|stage| !known.values().any(|it| it == *stage)) else {
        return Ok(());
    };
    let mut stages: Vec<_> = known.values().copied().collect();
    stages.sort_unstable();
    stages.dedup();
    Err(PipelineError::NoSuchStage { name: target.clone(), stage, stages }.into())
}

/// Attaches the mechanism that shall be used.
pub(crate) fn force(state: &mut ScheduleState, target: &Name, mechanism: &Name) -> Result<(), ScheduleError> {
    let Some(found) = Mechanism::parse(mechanism.as_str()) else {
        let known = Mechanism::ASKABLE.map(|it| Name::from(it.as_str())).to_vec();
        return Err(ScheduleError::NoSuch { thing: Thing::Mechanism, name: mechanism.clone(), known });
    };
    annotate_loop(state, target, MECHANISM, Annotation::Text(found.as_str().to_owned()))
}
