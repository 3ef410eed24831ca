//! Numbers that may be missing.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct Number(#[serde(with = "super")] f64);

#[expect(clippy::ref_option, reason = "serde asks for a reference")]
pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map(Number).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Number>::deserialize(from)?.map(|it| it.0))
}
