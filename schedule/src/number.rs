//! Numbers in steps, which an expression may stand for.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::{Expr, ScheduleError};

/// A number in a step, or an expression over knobs and parameters that stands for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Number {
    /// The number itself.
    Int(i64),
    /// An expression, which a [`crate::script::Script`] evaluates before the step is applied.
    Expr(Expr),
}

impl Number {
    /// The number. A step that is applied has no expressions left.
    pub fn get(&self) -> Result<i64, ScheduleError> {
        match self {
            Number::Int(it) => Ok(*it),
            Number::Expr(it) => Err(ScheduleError::UnresolvedKnob { name: it.text().into() }),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Int(value)
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Number {
        Number::Int(value.into())
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Number {
        Number::Int(value.into())
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Int(it) => serializer.serialize_i64(*it),
            Number::Expr(it) => serializer.serialize_str(it.text()),
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
        f.write_str("a whole number, the name of a knob, or an expression")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        i64::try_from(value).map(Number::Int).map_err(|_| E::custom("the number does not fit in 64 bits"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
        Expr::parse(value).map(Number::Expr).map_err(|err| E::custom(format!("`{value}`: {err}")))
    }
}
