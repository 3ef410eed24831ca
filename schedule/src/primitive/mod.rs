//! The primitives, one a file: a serde struct whose `apply` first refuses and then rewrites.

mod split;

pub use split::Split;

use serde::{Deserialize, Serialize};

use crate::{Number, ScheduleError, ScheduleState};

/// A checked rewrite.
pub trait Primitive {
    /// Rewrites the program, or refuses. What it leaves behind on refusal is thrown away by the session.
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError>;

    /// The places where a knob may stand, so that a script can put its value there.
    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![]
    }
}

/// One step of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant holds the type that documents it")]
pub enum Step {
    Split(Split),
}

impl Step {
    /// The primitive of the step.
    pub fn get(&self) -> &dyn Primitive {
        match self {
            Step::Split(it) => it,
        }
    }

    /// The primitive of the step, to put values in place of its knobs.
    pub fn get_mut(&mut self) -> &mut dyn Primitive {
        match self {
            Step::Split(it) => it,
        }
    }

    /// The word in scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Step::Split(_) => "split",
        }
    }
}

/// The source of each primitive, whose first doc comment is its manual.
const SOURCES: &[(&str, &str)] = &[("split", include_str!("split.rs"))];

/// The names of all primitives, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(name, _)| *name)
}

/// The manual of a primitive: the doc comment of its type, as Markdown. Its first ```` ```text ```` block is the
/// rewrite rule.
pub fn explain(name: &str) -> Option<String> {
    let (_, source) = SOURCES.iter().find(|(it, _)| *it == name)?;
    let lines = source.lines().skip_while(|it| !it.starts_with("///"));
    let doc = lines.map_while(|it| it.strip_prefix("///")).map(|it| it.strip_prefix(' ').unwrap_or(it));
    Some(doc.collect::<Vec<_>>().join("\n"))
}
