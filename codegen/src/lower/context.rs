//! What passes are told beside the program, and what they tell beside it.
//!
//! All that a later pass has to know is in the program itself, so that each pass can be started from a text of its input.

use indexmap::IndexMap;
use ir::{Mechanism, Module, Name, Target};

use super::report::PipelineReport;

/// A program that was lowered, and what there is to tell about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lowered {
    /// The program.
    pub module: Module,
    /// What became of its pipelines, inner ones before outer ones.
    pub pipelines: Vec<PipelineReport>,
    /// How each buffer with a swizzle lies in memory, in sentences.
    pub swizzles: Vec<String>,
}

/// What passes are told, and what they tell.
pub(crate) struct Context {
    /// The machine.
    pub(crate) target: Target,
    /// Told by `choose_mechanisms`, for `software_pipeline` to report.
    pub(crate) mechanisms: IndexMap<(Name, Name), MechanismChoice>,
    /// Told by `software_pipeline`, and once more by `select_copies`.
    pub(crate) pipelines: Vec<PipelineReport>,
    /// Told by `flatten`.
    pub(crate) swizzles: Vec<String>,
}

/// How a component of a pipelined loop copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MechanismChoice {
    pub(crate) mechanism: Mechanism,
    /// A sentence that says why.
    pub(crate) reason: String,
    /// Whether the script insists.
    pub(crate) is_forced: bool,
}

impl Context {
    /// Before the first pass.
    pub(crate) fn new(target: &Target) -> Context {
        let (mechanisms, pipelines, swizzles) = Default::default();
        Context { target: target.clone(), mechanisms, pipelines, swizzles }
    }
}
