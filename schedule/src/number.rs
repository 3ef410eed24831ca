//! Numbers in steps, which a knob may stand for.

use std::fmt;

use ir::Name;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::ScheduleError;

/// A number in a step, or the name of the knob that stands for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Number {
    /// The number itself.
    Int(i64),
    /// A knob, which a [`crate::script::Script`] resolves before the step is applied.
    Knob(Name),
}

impl Number {
    /// The number. A step that is applied has no knobs left.
    pub fn get(&self) -> Result<i64, ScheduleError> {
        match self {
            Number::Int(it) => Ok(*it),
            Number::Knob(name) => Err(ScheduleError::UnresolvedKnob { name: name.clone() }),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Int(value)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Int(it) => serializer.serialize_i64(*it),
            Number::Knob(name) => serializer.serialize_str(name.as_str()),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or the name of a knob")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        i64::try_from(value).map(Number::Int).map_err(|_| E::custom("the number does not fit in 64 bits"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
        Ok(Number::Knob(Name::from(value)))
    }
}
