use std::fmt;

use indexmap::IndexMap;
use ir::{
    Name, Numbers,
    pipeline::{BENIGN, STAGE, STYLE, Style, async_stages, expect_serial, in_program_order, named},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{Primitive, annotate_loop, software_pipeline_async_stages::expect_stages};
use crate::{Number, PipelineError, ScheduleError, ScheduleState, error::Thing, ron_text::Unique};

/// Says how many iterations later each statement of a loop runs, so that iterations overlap.
///
/// ```text
/// software_pipeline_stage(loop: "ko", stages: {"A_shared": 0, "C": 1})
///
/// for ko in 0..n { s }
/// ->
/// for ko in 0..n #{software_pipeline_stage: {A_shared: 0, C: 1}} { s }
/// ```
///
/// The statements directly in the loop are its components; each is named by one of its blocks, and each has to
/// have a stage. A list as in TVM, one stage a statement, is taken too. An inner loop that is pipelined already may
/// count as three: its prologue, its steady loop and its epilogue, named `ki_prologue`, `ki_body` and `ki_epilogue`
/// for a loop `ki`, so that one tile's last steps overlap with the next tile's first. Nothing happens before
/// `software_pipeline_order` is given as well; then every dependence is checked.
///
/// `style: "peel"` writes prologue and epilogue out around a loop without conditions, the default where the extent is
/// constant; `style: "predicate"` makes one loop of conditions, the default where it is not; `style: "peel_prologue"` writes the
/// prologue out, and puts conditions in the loop on what runs ahead alone.
///
/// `benign: ["C_local"]` says that a block stores the same elements in every iteration, so that only the last
/// decides, and that what it reads may be overwritten before it has read it. It is refused where that is not so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePipelineStage {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The stage of each statement.
    pub stages: Stages,
    /// How prologue and epilogue are emitted, if not as the extent suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<Name>,
    /// The blocks whose stores only the last iteration decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benign: Vec<Name>,
}

/// Stages by name, or by position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Stages {
    /// By the name of a block in each statement.
    Map(IndexMap<Name, Number>),
    /// One a statement, in program order.
    List(Vec<Number>),
}

impl Primitive for SoftwarePipelineStage {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        expect_serial(it)?;
        let stages = match &self.stages {
            Stages::Map(map) => map
                .iter()
                .map(|(name, stage)| Ok((name.clone(), stage.get()?)))
                .collect::<Result<_, ScheduleError>>()?,
            Stages::List(list) => named(it, &list.iter().map(Number::get).collect::<Result<Vec<_>, _>>()?)?,
        };
        let stages = in_program_order(it, STAGE, &stages)?;
        if let Some((block, stage)) = stages.iter().find(|(_, stage)| **stage < 0) {
            return Err(PipelineError::NegativeStage { block: block.clone(), stage: *stage }.into());
        }
        expect_stages(&self.target, async_stages(it), &stages)?;

        if !self.benign.is_empty() {
            let benign = self.benign.clone();
            annotate_loop(state, &self.target, BENIGN, |it| it.pipeline_mut().benign = Some(benign))?;
        }
        if let Some(style) = &self.style {
            let Some(style) = Style::parse(style.as_str()) else {
                let known = [Style::Peel, Style::Predicate].map(|it| Name::new(it.as_str())).to_vec();
                return Err(ScheduleError::NoSuch { thing: Thing::Style, name: style.clone(), known });
            };
            annotate_loop(state, &self.target, STYLE, |it| it.pipeline_mut().style = Some(style))?;
        }
        annotate_loop(state, &self.target, STAGE, |it| it.pipeline_mut().stages = Some(Numbers::Map(stages)))
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        match &mut self.stages {
            Stages::Map(map) => map.values_mut().collect(),
            Stages::List(list) => list.iter_mut().collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Stages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Stages, D::Error> {
        deserializer.deserialize_any(StagesVisitor)
    }
}

struct StagesVisitor;

impl<'de> Visitor<'de> for StagesVisitor {
    type Value = Stages;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from blocks to stages, or a list of stages")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Stages, A::Error> {
        Unique::deserialize(MapAccessDeserializer::new(map)).map(|it| Stages::Map(it.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Stages, A::Error> {
        let mut list = Vec::new();
        while let Some(number) = seq.next_element()? {
            list.push(number);
        }
        Ok(Stages::List(list))
    }
}
