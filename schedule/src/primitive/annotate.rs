use std::fmt;

use indexmap::IndexMap;
use ir::{
    Annotation, BLOCKS_PER_SM, Name, PROGRAMMATIC_LAUNCH,
    pipeline::{ASYNC, DOUBLE, MECHANISM, ORDER, SLOTS, STAGE},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    DoubleBufferScope, Primitive, SoftwarePipelineAsyncStages, SoftwarePipelineOrder, SoftwarePipelineStage,
    annotate_block, annotate_loop, double_buffer_scope,
    software_pipeline_async_stages::{self as async_stages, Forced},
    software_pipeline_order::Order,
    software_pipeline_stage::Stages,
};
use crate::{Number, ScheduleError, ScheduleState, error::Thing, ron_text::Unique};

/// Attaches a request to a loop or a block.
///
/// ```text
/// annotate(loop: "k", key: "note", value: "stays in cache")
///
/// for k in 0..n { s }
/// ->
/// for k in 0..n #{note: "stays in cache"} { s }
/// ```
///
/// Keys are known and values checked: `software_pipeline_stage`, `software_pipeline_order` and
/// `software_pipeline_async_stages` on loops and `double_buffer_scope` on blocks are the primitives of the same names;
/// `software_pipeline_mechanism` on loops and `double_buffer_slots` on blocks are what their options attach;
/// `blocks_per_sm` on a loop says how many of its kernel's blocks a multiprocessor of a GPU shall be able to hold at
/// once, so that the compiler of the kernel spends no more registers than that leaves;
/// `programmatic_launch: 1` on a loop lets its kernel start before the one ahead of it in the stream has ended, where the GPU can (from
/// Hopper on; elsewhere it starts as always): it sets up its barriers, then waits for the results of the other; `note` is a text on either that
/// no pass reads. A key is given once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// One of: target | block
pub struct Annotate {
    /// The loop, if it is one.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Name>,
    /// The block, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Name>,
    /// What is asked for.
    pub key: Name,
    /// How much of it.
    pub value: AnnotationValue,
}

/// The value of an annotation in a script.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum AnnotationValue {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Numbers in order.
    List(Vec<i64>),
    /// A number for each named block.
    Map(IndexMap<Name, i64>),
}

const NOTE: &str = "note";
const LOOP_KEYS: [&str; 7] = [NOTE, BLOCKS_PER_SM, PROGRAMMATIC_LAUNCH, STAGE, ORDER, ASYNC, MECHANISM];
const BLOCK_KEYS: [&str; 3] = [NOTE, DOUBLE, SLOTS];

/// The keys that loops and blocks take.
pub(crate) fn annotation_keys() -> impl Iterator<Item = &'static str> {
    let blocks = BLOCK_KEYS.into_iter().filter(|it| !LOOP_KEYS.contains(it));
    LOOP_KEYS.into_iter().chain(blocks)
}

impl Primitive for Annotate {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        match (&self.target, &self.block) {
            (Some(target), None) => self.on_loop(state, target),
            (None, Some(block)) => self.on_block(state, block),
            (None, None) | (Some(_), Some(_)) => Err(ScheduleError::LoopOrBlock { primitive: "annotate" }),
        }
    }

    fn moves_work(&self) -> bool {
        false
    }
}

impl Annotate {
    fn on_loop(&self, state: &mut ScheduleState, target: &Name) -> Result<(), ScheduleError> {
        let wanted = "a number for each block, or a list of numbers";
        match self.key.as_str() {
            NOTE => {
                let note = self.text(target)?;
                annotate_loop(state, target, NOTE, |it| drop(it.notes.insert(NOTE.to_owned(), note)))
            }
            BLOCKS_PER_SM => match self.value {
                AnnotationValue::Int(it @ 1..=32) => {
                    annotate_loop(state, target, BLOCKS_PER_SM, |attrs| attrs.blocks_per_sm = Some(it))
                }
                _ => Err(self.bad_value(target, "a number from 1 to 32")),
            },
            PROGRAMMATIC_LAUNCH => match self.value {
                AnnotationValue::Int(1) => annotate_loop(state, target, PROGRAMMATIC_LAUNCH, |attrs| {
                    attrs.programmatic_launch = true;
                }),
                _ => Err(self.bad_value(target, "1")),
            },
            STAGE => {
                let stages = match &self.value {
                    AnnotationValue::Map(map) => Stages::Map(numbers(map)),
                    AnnotationValue::List(list) => Stages::List(list.iter().map(|it| (*it).into()).collect()),
                    AnnotationValue::Int(_) | AnnotationValue::Text(_) => {
                        return Err(self.bad_value(target, wanted));
                    }
                };
                {
                    let (target, style, benign) = (target.clone(), None, vec![]);
                    SoftwarePipelineStage { target, stages, style, benign }.apply(state)
                }
            }
            ORDER => {
                let order = match &self.value {
                    AnnotationValue::Map(map) => Order::Map(numbers(map)),
                    AnnotationValue::List(list) => Order::List(list.clone()),
                    AnnotationValue::Int(_) | AnnotationValue::Text(_) => {
                        return Err(self.bad_value(target, wanted));
                    }
                };
                SoftwarePipelineOrder { target: target.clone(), order }.apply(state)
            }
            ASYNC => {
                let AnnotationValue::List(list) = &self.value else {
                    return Err(self.bad_value(target, "a list of stages"));
                };
                let stages = list.iter().map(|it| (*it).into()).collect();
                let target = target.clone();
                SoftwarePipelineAsyncStages { target, stages, blocks: vec![], mechanism: None }.apply(state)
            }
            MECHANISM => {
                let AnnotationValue::Text(mechanism) = &self.value else {
                    return Err(self.bad_value(target, "the name of a mechanism"));
                };
                state.expect_serial_loop(target)?;
                async_stages::force(state, target, &Forced::All(Name::new(mechanism.as_str())))
            }
            _ => Err(self.unknown_key(&LOOP_KEYS)),
        }
    }

    fn on_block(&self, state: &mut ScheduleState, block: &Name) -> Result<(), ScheduleError> {
        match self.key.as_str() {
            NOTE => {
                let note = self.text(block)?;
                annotate_block(state, block, NOTE, |it| drop(it.notes.insert(NOTE.to_owned(), note)))
            }
            DOUBLE if self.value == AnnotationValue::Int(0) => {
                DoubleBufferScope { block: block.clone(), slots: None }.apply(state)
            }
            DOUBLE => Err(self.bad_value(block, "0, the one buffer that the block writes")),
            SLOTS => match self.value {
                AnnotationValue::Int(slots) => double_buffer_scope::ask_slots(state, block, slots),
                AnnotationValue::Text(_) | AnnotationValue::List(_) | AnnotationValue::Map(_) => {
                    Err(self.bad_value(block, "a number of slots"))
                }
            },
            _ => Err(self.unknown_key(&BLOCK_KEYS)),
        }
    }

    fn text(&self, name: &Name) -> Result<Annotation, ScheduleError> {
        match &self.value {
            AnnotationValue::Text(text) => Ok(Annotation::Text(text.clone())),
            AnnotationValue::Int(_) | AnnotationValue::List(_) | AnnotationValue::Map(_) => {
                Err(self.bad_value(name, "a text"))
            }
        }
    }

    fn bad_value(&self, name: &Name, wanted: &'static str) -> ScheduleError {
        ScheduleError::AnnotationValue { name: name.clone(), key: self.key.to_string(), wanted }
    }

    fn unknown_key(&self, known: &[&str]) -> ScheduleError {
        let known = known.iter().map(|it| Name::from(*it)).collect();
        ScheduleError::NoSuch { thing: Thing::Annotation, name: self.key.clone(), known }
    }
}

fn numbers(map: &IndexMap<Name, i64>) -> IndexMap<Name, Number> {
    map.iter().map(|(name, number)| (name.clone(), (*number).into())).collect()
}

impl<'de> Deserialize<'de> for AnnotationValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnnotationValue, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = AnnotationValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, a list of numbers or a map from blocks to numbers")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<AnnotationValue, E> {
        Ok(AnnotationValue::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<AnnotationValue, E> {
        let value = i64::try_from(value).map_err(|_| E::custom("the number does not fit in 64 bits"))?;
        Ok(AnnotationValue::Int(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<AnnotationValue, E> {
        Ok(AnnotationValue::Text(value.to_owned()))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<AnnotationValue, A::Error> {
        Unique::deserialize(MapAccessDeserializer::new(map)).map(|it| AnnotationValue::Map(it.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AnnotationValue, A::Error> {
        let mut list = Vec::new();
        while let Some(number) = seq.next_element()? {
            list.push(number);
        }
        Ok(AnnotationValue::List(list))
    }
}
