//! What the JSON Schemas of records and logs have that no type says.

use schemars::{JsonSchema, Schema, json_schema};

/// A number, or `NaN`, `inf` or `-inf` in words, which JSON has no numbers for.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is of use")]
pub(crate) enum NumberOrWord {
    Number(f64),
    Word(String),
}

/// Adds the checksum that each line of a log ends with to the schema of what it says.
pub(crate) fn with_crc(schema: &mut Schema) {
    let kinds = schema.get_mut("oneOf").and_then(|it| it.as_array_mut());
    for kind in kinds.into_iter().flatten() {
        let words = "CRC-32C of what stands before it, eight hexadecimal digits; only in files";
        kind["properties"]["crc"] = json_schema!({"type": "string", "description": words}).into();
    }
}
