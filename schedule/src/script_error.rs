//! Why a text is no script, or its knobs cannot be decided.

use std::ops::Range;

use ir::{Code, Coded};

use crate::ron_text::{RonError, RonProblem};

/// A text that is not a script.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    /// What sort of thing is wrong.
    pub problem: ScriptProblem,
    /// What is wrong.
    pub message: String,
    /// Where, in bytes.
    pub span: Range<usize>,
    /// What to try instead, if there is one thing to say.
    pub help: Option<String>,
    /// What else is wrong and has nothing to do with it, in the order of the text.
    pub more: Vec<ScriptError>,
}

/// What is found to be wrong while reading goes on.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<ScriptError>);

impl Errors {
    /// What could be read; what is wrong otherwise is kept.
    pub(crate) fn keep<T>(&mut self, res: Result<T, impl Into<ScriptError>>) -> Option<T> {
        res.map_err(|err| self.add(err)).ok()
    }

    /// Keeps an error.
    pub(crate) fn add(&mut self, err: impl Into<ScriptError>) {
        let mut err = err.into();
        let more = std::mem::take(&mut err.more);
        self.0.push(err);
        self.0.extend(more);
    }

    /// Whether nothing was wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them as one, the first in the text first.
    pub(crate) fn into_one(mut self) -> Option<ScriptError> {
        self.0.sort_by_key(|it| it.span.start);
        let mut all = self.0.into_iter();
        let first = all.next()?;
        Some(ScriptError { more: all.collect(), ..first })
    }

    /// The value, if nothing was wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, ScriptError> {
        self.into_one().map_or(Ok(value), Err)
    }
}

/// The sorts of things that can be wrong with the text of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptProblem {
    /// It is not RON.
    Syntax,
    /// It is longer, or nests deeper, than scripts may.
    TooLarge,
    /// It has a field that does not exist there.
    UnknownField,
    /// A field is missing.
    MissingField,
    /// A field or a key stands twice.
    Twice,
    /// A value is of another type, or out of its range.
    WrongType,
    /// There is no such primitive.
    UnknownPrimitive,
    /// There is no such target.
    UnknownTarget,
    /// A text is no expression.
    Expression,
    /// The name of a knob or a value cannot be one.
    BadName,
    /// There is no such knob or parameter.
    UnknownName,
    /// A knob has no choices, too many, or ones that cannot be.
    Choices,
    /// There are too many knobs.
    TooManyKnobs,
    /// The value given to a knob is none of its choices' form.
    Decision,
    /// A tile is used as a number, or a number as a tile.
    Part,
    /// A number is needed where a parameter is none.
    NotANumber,
    /// An expression has no value.
    NoValue,
    /// The alternatives of `choose` and the choices of its knob do not fit.
    Alternatives,
    /// There is no such library, or it cannot be read.
    Library,
    /// A procedure is not well defined.
    Procedure,
    /// The arguments of a call are not those that its procedure takes.
    Arguments,
    /// A text names no parameter in its braces, or one that cannot stand within a text.
    Placeholder,
    /// A procedure calls itself, or calls never end.
    Recursion,
}

ir::codes!(ScriptProblem {
    Syntax = 101,
    TooLarge = 102,
    UnknownField = 103,
    MissingField = 104,
    Twice = 105,
    WrongType = 106,
    UnknownPrimitive = 107,
    UnknownTarget = 108,
    Expression = 109,
    BadName = 110,
    UnknownName = 111,
    Choices = 112,
    TooManyKnobs = 113,
    Decision = 114,
    Part = 115,
    NotANumber = 116,
    NoValue = 117,
    Alternatives = 118,
    Library = 119,
    Procedure = 120,
    Arguments = 121,
    Placeholder = 122,
    Recursion = 123,
});

impl ScriptError {
    /// An error without help.
    pub fn new(problem: ScriptProblem, message: impl Into<String>, span: Range<usize>) -> ScriptError {
        ScriptError { problem, message: message.into(), span, help: None, more: vec![] }
    }

    /// Whether something of it is wrong within these bytes of the text.
    pub fn is_in(&self, range: &Range<usize>) -> bool {
        range.contains(&self.span.start) || self.more.iter().any(|it| it.is_in(range))
    }

    /// With what to try instead.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> ScriptError {
        ScriptError { help: Some(help.into()), ..self }
    }
}

impl Coded for ScriptError {
    fn code(&self) -> Code {
        self.problem.code()
    }
}

impl From<RonError> for ScriptError {
    fn from(err: RonError) -> ScriptError {
        let problem = match err.problem {
            RonProblem::Syntax => ScriptProblem::Syntax,
            RonProblem::UnknownField => ScriptProblem::UnknownField,
            RonProblem::MissingField => ScriptProblem::MissingField,
            RonProblem::Twice => ScriptProblem::Twice,
            RonProblem::WrongType => ScriptProblem::WrongType,
        };
        ScriptError { problem, message: err.message, span: err.span, help: err.help, more: vec![] }
    }
}
