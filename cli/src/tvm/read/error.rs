//! Why a file of TVM's is not read.

use std::ops::Range;

/// What is wrong with a file of TVM's. The messages are written where they are raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ImportProblem {
    /// The file is not Python, or longer than anybody writes.
    Python,
    /// There is no such function, or there are several.
    Function,
    /// Something that TVM's own parser would not take either, or a name that means nothing here.
    Form,
    /// Something that TVM has and programs here have not.
    Unsayable,
}

ir::codes!(ImportProblem { Python = 4501, Function = 4502, Form = 4503, Unsayable = 4504 });

/// A refusal, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) problem: ImportProblem,
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Refusal {
    /// With a way out.
    pub(super) fn help(self, help: impl Into<String>) -> Refusal {
        Refusal { help: Some(help.into()), ..self }
    }
}

/// A refusal without a way out yet.
pub(super) fn refuse(problem: ImportProblem, span: Range<usize>, message: impl Into<String>) -> Refusal {
    Refusal { problem, span, message: message.into(), help: None }
}

/// Something that is not as TVM's parser takes it.
pub(super) fn malformed(span: Range<usize>, message: impl Into<String>) -> Refusal {
    refuse(ImportProblem::Form, span, message)
}

/// Something that programs here have not, with what to do about it.
pub(super) fn unsayable(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Refusal {
    refuse(ImportProblem::Unsayable, span, message).help(help)
}
