//! The primitives, one a file: a serde struct whose `apply` first refuses and then rewrites.

mod cache_read;
mod cache_write;
mod compute_at;
mod compute_inline;
mod decompose_reduction;
mod reverse_compute_at;
mod reverse_compute_inline;
mod rfactor;
mod split;

pub use cache_read::CacheRead;
pub use cache_write::CacheWrite;
pub use compute_at::ComputeAt;
pub use compute_inline::ComputeInline;
pub use decompose_reduction::DecomposeReduction;
pub use reverse_compute_at::ReverseComputeAt;
pub use reverse_compute_inline::ReverseComputeInline;
pub use rfactor::Rfactor;
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
    CacheRead(CacheRead),
    CacheWrite(CacheWrite),
    ComputeAt(ComputeAt),
    ComputeInline(ComputeInline),
    DecomposeReduction(DecomposeReduction),
    ReverseComputeAt(ReverseComputeAt),
    ReverseComputeInline(ReverseComputeInline),
    Rfactor(Rfactor),
    Split(Split),
}

impl Step {
    /// The primitive of the step.
    pub fn get(&self) -> &dyn Primitive {
        match self {
            Step::CacheRead(it) => it,
            Step::CacheWrite(it) => it,
            Step::ComputeAt(it) => it,
            Step::ComputeInline(it) => it,
            Step::DecomposeReduction(it) => it,
            Step::ReverseComputeAt(it) => it,
            Step::ReverseComputeInline(it) => it,
            Step::Rfactor(it) => it,
            Step::Split(it) => it,
        }
    }

    /// The primitive of the step, to put values in place of its knobs.
    pub fn get_mut(&mut self) -> &mut dyn Primitive {
        match self {
            Step::CacheRead(it) => it,
            Step::CacheWrite(it) => it,
            Step::ComputeAt(it) => it,
            Step::ComputeInline(it) => it,
            Step::DecomposeReduction(it) => it,
            Step::ReverseComputeAt(it) => it,
            Step::ReverseComputeInline(it) => it,
            Step::Rfactor(it) => it,
            Step::Split(it) => it,
        }
    }

    /// The word in scripts.
    pub const fn name(&self) -> &'static str {
        match self {
            Step::CacheRead(_) => "cache_read",
            Step::CacheWrite(_) => "cache_write",
            Step::ComputeAt(_) => "compute_at",
            Step::ComputeInline(_) => "compute_inline",
            Step::DecomposeReduction(_) => "decompose_reduction",
            Step::ReverseComputeAt(_) => "reverse_compute_at",
            Step::ReverseComputeInline(_) => "reverse_compute_inline",
            Step::Rfactor(_) => "rfactor",
            Step::Split(_) => "split",
        }
    }
}

/// The source of each primitive, whose first doc comment is its manual.
const SOURCES: &[(&str, &str)] = &[
    ("cache_read", include_str!("cache_read.rs")),
    ("cache_write", include_str!("cache_write.rs")),
    ("compute_at", include_str!("compute_at.rs")),
    ("compute_inline", include_str!("compute_inline.rs")),
    ("decompose_reduction", include_str!("decompose_reduction.rs")),
    ("reverse_compute_at", include_str!("reverse_compute_at.rs")),
    ("reverse_compute_inline", include_str!("reverse_compute_inline.rs")),
    ("rfactor", include_str!("rfactor.rs")),
    ("split", include_str!("split.rs")),
];

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
