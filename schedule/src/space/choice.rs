//! What is decided for a knob.

use std::fmt;

use indexmap::IndexMap;
use ir::Name;
use serde::{Deserialize, Serialize};

/// What is decided for a knob: a number, or the factors of a tile.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Choice {
    /// A number. Of a boolean 0 or 1, of alternatives of step lists the place of one, from 0.
    Int(i64),
    /// The factors of a perfect tile, outermost first. Steps name them `tile[0]`, `tile[1]`.
    Tile(Vec<i64>),
}

/// What is decided for each knob.
pub type Decisions = IndexMap<Name, Choice>;

impl Choice {
    /// Reads what [`fmt::Display`] writes: `16`, or `8x4x2` for a tile.
    pub fn parse(text: &str) -> Option<Choice> {
        if text.contains('x') {
            return text.split('x').map(|it| it.parse().ok()).collect::<Option<_>>().map(Choice::Tile);
        }
        text.parse().ok().map(Choice::Int)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Int(it) => write!(f, "{it}"),
            Choice::Tile(parts) => {
                let words: Vec<_> = parts.iter().map(ToString::to_string).collect();
                f.write_str(&words.join("x"))
            }
        }
    }
}

impl From<i64> for Choice {
    fn from(value: i64) -> Choice {
        Choice::Int(value)
    }
}
