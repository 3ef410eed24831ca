//! JSON has no infinities and no NaN: they are written as words.

pub(crate) mod optional;

use serde::{Deserialize, Deserializer, Serializer};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { to.serialize_f64(*value) } else { to.collect_str(value) }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(f64),
        Word(String),
    }
    match Either::deserialize(from)? {
        Either::Number(it) => Ok(it),
        Either::Word(it) => it.parse().map_err(serde::de::Error::custom),
    }
}
