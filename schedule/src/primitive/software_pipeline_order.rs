use std::fmt;

use indexmap::IndexMap;
use ir::{
    Name, Numbers,
    pipeline::{ORDER, expect_serial, in_program_order, named},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{Primitive, annotate_loop};
use crate::{Number, PipelineError, ScheduleError, ScheduleState, ron_text::Unique};

/// Says in which order the overlapping statements of a pipelined loop run.
///
/// ```text
/// software_pipeline_order(loop: "ko", order: ["C", "A_shared"])
///
/// for ko in 0..n { s }
/// ->
/// for ko in 0..n #{software_pipeline_order: {A_shared: 1, C: 0}} { s }
/// ```
///
/// The statements directly in the loop are its components, each named by one of its blocks. A map from blocks to
/// numbers and a list of numbers as in TVM are taken too. Nothing happens before `software_pipeline_stage` is given
/// as well; then every dependence is checked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePipelineOrder {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The statements, first to last.
    pub order: Order,
}

/// An order by name, or by numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Order {
    /// A block of each statement, first to last.
    Names(Vec<Name>),
    /// The number of each statement, by the name of a block in it.
    Map(IndexMap<Name, Number>),
    /// The number of each statement, in program order.
    List(Vec<i64>),
}

impl Primitive for SoftwarePipelineOrder {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        expect_serial(it)?;
        let orders = match &self.order {
            Order::Names(names) => positions(names)?,
            Order::Map(map) => map
                .iter()
                .map(|(name, order)| Ok((name.clone(), order.get()?)))
                .collect::<Result<_, ScheduleError>>()?,
            Order::List(list) => named(it, list)?,
        };
        let orders = in_program_order(it, ORDER, &orders)?;
        for (at, (second, order)) in orders.iter().enumerate() {
            if let Some((first, _)) = orders.iter().take(at).find(|(_, other)| *other == order) {
                let (first, second) = (first.clone(), second.clone());
                return Err(PipelineError::SameOrder { first, second, order: *order }.into());
            }
        }
        annotate_loop(state, &self.target, ORDER, |it| it.pipeline_mut().orders = Some(Numbers::Map(orders)))
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        match &mut self.order {
            Order::Map(map) => map.values_mut().collect(),
            Order::Names(_) | Order::List(_) => vec![],
        }
    }
}

/// The place of each name, counted from zero.
fn positions(names: &[Name]) -> Result<IndexMap<Name, i64>, ScheduleError> {
    let mut out = IndexMap::new();
    for (name, place) in names.iter().zip(0..) {
        if out.insert(name.clone(), place).is_some() {
            return Err(ScheduleError::NamedTwice { name: name.clone() });
        }
    }
    Ok(out)
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Order, D::Error> {
        deserializer.deserialize_any(OrderVisitor)
    }
}

struct OrderVisitor;

/// What a list may hold.
#[derive(Deserialize)]
#[serde(untagged)]
enum Element {
    Number(i64),
    Name(Name),
}

impl<'de> Visitor<'de> for OrderVisitor {
    type Value = Order;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of blocks, a map from blocks to numbers, or a list of numbers")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Order, A::Error> {
        Unique::deserialize(MapAccessDeserializer::new(map)).map(|it| Order::Map(it.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Order, A::Error> {
        let (mut names, mut list) = (Vec::new(), Vec::new());
        while let Some(element) = seq.next_element()? {
            match element {
                Element::Name(name) => names.push(name),
                Element::Number(number) => list.push(number),
            }
        }
        match (names.is_empty(), list.is_empty()) {
            (_, true) => Ok(Order::Names(names)),
            (true, false) => Ok(Order::List(list)),
            (false, false) => Err(serde::de::Error::custom("names and numbers are mixed")),
        }
    }
}
