use std::fmt;

use indexmap::IndexMap;
use ir::{
    ForcedMechanism, Loop, Mechanism, Name, Numbers,
    pipeline::{ASYNC, ASYNC_BLOCKS, MECHANISM, expect_serial},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor, value::MapAccessDeserializer},
};

use super::{Primitive, annotate_loop};
use crate::{Number, PipelineError, ScheduleError, ScheduleState, error::Thing, ron_text::Unique};

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
/// How each statement of those stages copies is chosen when the program is lowered, the first of these that it allows:
///
/// * `tma`, from sm_90 on: one thread has the copy engine fill a tile, and whoever reads it waits until all bytes have come. The
///   statement is one block that copies unchanged from global to shared memory, or writes zero where the source ends. All its loops are
///   serial, none bound to threads or vectorized, and what they run over is one box of each side, the same for all threads of a
///   block. Rows of the source, and of the box, are multiples of 16 bytes.
/// * `cp_async`, from sm_80 on: a plain copy from global to shared memory of 4, 8 or 16 bytes a thread at a time.
/// * `register_staged`: loads into registers early, stores to shared memory late.
/// * `synchronous`: in its place.
///
/// An optional `mechanism: "cp_async"` forces one, and `mechanism: {"A_shared": "cp_async"}` one for each of some statements, named
/// by one of their blocks; then lowering refuses a program where it cannot be. With `tma` forced, loops bound to threads do not
/// matter. Lowering also says what was chosen and why. Products that `tensorize` gives to a warpgroup (`wgmma_`) need no word: they
/// are asynchronous in any pipeline.
///
/// `blocks: ["C_unpad"]` names statements instead of stages, or beside them, where others of their stage are to stay as they are.
///
/// The other annotations of the pipeline may come before or after. Refuses a stage that no statement has, once the
/// stages are known: TVM ignores it. Changes no result: on a CPU all copies are synchronous.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// Any of: stages | blocks
pub struct SoftwarePipelineAsyncStages {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Number>,
    /// Further statements, each named by one of its blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Name>,
    /// The only mechanism to be used, if there is one, for all or for each of some blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Forced>,
}

/// Mechanisms that a script insists on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Forced {
    /// One for all that copies asynchronously.
    All(Name),
    /// One for each statement that is named by one of its blocks.
    Each(IndexMap<Name, Name>),
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
        if let Some(Numbers::Map(known)) = it.attrs.pipeline.as_ref().and_then(|it| it.stages.as_ref()) {
            expect_stages(&self.target, &stages, known)?;
        }

        expect_blocks(it, &self.blocks)?;

        if !stages.is_empty() || self.blocks.is_empty() {
            annotate_loop(state, &self.target, ASYNC, |it| it.pipeline_mut().async_stages = Some(stages))?;
        }
        if !self.blocks.is_empty() {
            let blocks = self.blocks.clone();
            annotate_loop(state, &self.target, ASYNC_BLOCKS, |it| {
                it.pipeline_mut().async_blocks = Some(blocks);
            })?;
        }
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

/// Attaches the mechanisms that shall be used.
pub(crate) fn force(state: &mut ScheduleState, target: &Name, asked: &Forced) -> Result<(), ScheduleError> {
    let forced = match asked {
        Forced::All(word) => ForcedMechanism::All(mechanism(word)?),
        Forced::Each(map) => {
            expect_blocks(state.expect_loop(target)?, map.keys())?;
            let each = map.iter().map(|(block, word)| Ok((block.clone(), mechanism(word)?)));
            ForcedMechanism::Each(each.collect::<Result<_, ScheduleError>>()?)
        }
    };

    annotate_loop(state, target, MECHANISM, |it| it.pipeline_mut().mechanism = Some(forced))
}

/// The mechanism of a word.
fn mechanism(word: &Name) -> Result<Mechanism, ScheduleError> {
    Mechanism::parse(word.as_str()).ok_or_else(|| {
        let known = Mechanism::ASKABLE.map(|it| Name::from(it.as_str())).to_vec();
        ScheduleError::NoSuch { thing: Thing::Mechanism, name: word.clone(), known }
    })
}

/// Refuses names that are no blocks of the loop.
fn expect_blocks<'a>(it: &Loop, names: impl IntoIterator<Item = &'a Name>) -> Result<(), ScheduleError> {
    let known: Vec<_> = it.body.blocks().into_iter().map(|it| it.name.clone()).collect();
    match names.into_iter().find(|name| !known.contains(name)) {
        Some(block) => {
            Err(PipelineError::NotInLoop { name: it.var.clone(), block: block.clone(), known }.into())
        }
        None => Ok(()),
    }
}

impl<'de> Deserialize<'de> for Forced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Forced, D::Error> {
        deserializer.deserialize_any(ForcedVisitor)
    }
}

struct ForcedVisitor;

impl<'de> Visitor<'de> for ForcedVisitor {
    type Value = Forced;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a mechanism, or a map from blocks to mechanisms")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Forced, E> {
        Ok(Forced::All(Name::new(value)))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Forced, A::Error> {
        Unique::deserialize(MapAccessDeserializer::new(map)).map(|it| Forced::Each(it.0))
    }
}
