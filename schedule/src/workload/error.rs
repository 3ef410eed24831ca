//! What is wrong with a workload or with the parameters given to it.

use std::ops::Range;

use ir::{BinaryOp, DType};

use crate::ron_text::RonError;

/// A problem and its place in the workload's text.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{problem}")]
pub struct WorkloadError {
    /// What is wrong.
    pub problem: Box<Problem>,
    /// Where, in bytes of the workload's text. `None` where the parameters are to blame, not the text.
    pub span: Option<Range<usize>>,
}

/// What can be wrong.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Problem {
    /// Not RON, or not of a workload's form.
    #[error("{0}")]
    Ron(RonError),
    /// An expression that cannot be read.
    #[error("expected {expected}, found {found}")]
    Syntax { expected: &'static str, found: String },
    /// An expression that is longer than the compiler takes.
    #[error("the expression is too long or too deeply nested")]
    TooLong,
    /// A name that is no identifier.
    #[error("`{0}` is not a name: a letter or `_`, then letters, digits and `_`, 64 at most")]
    BadName(String),
    /// A name that makes one that other languages have.
    #[error(
        "`{name}` cannot be a name: `{made}` is reserved for C, CUDA, the text form or the emitted source"
    )]
    Reserved { name: String, made: String },
    /// A name too long to build others from.
    #[error("`{name}` is longer than {most} letters")]
    LongName { name: String, most: usize },
    /// More stages than the compiler takes.
    #[error("a workload has at most {most} stages")]
    TooManyStages { most: usize },
    /// A name with two meanings.
    #[error("`{name}` already names {other}")]
    Taken { name: String, other: &'static str },
    /// A key that stands twice in a map.
    #[error("`{0}` stands here twice")]
    Twice(String),
    /// A word that means nothing here.
    #[error("there is no {what} `{name}`")]
    Unknown { what: &'static str, name: String, near: Option<String> },
    /// Something declared for nothing.
    #[error("{what} `{name}` is never used")]
    Unused { what: &'static str, name: String },
    /// Something that must not be empty.
    #[error("there are no {0}")]
    None(&'static str),
    /// A choice that leaves out a value of its parameter.
    #[error("there is no case for the value `{value}` of `{param}`")]
    NoCase { param: String, value: String },
    /// A choice by something that is not chosen among words.
    #[error("`{0}` has no list of values to choose by")]
    NotChosen(String),
    /// A parameter's default that it does not allow.
    #[error("the default is not allowed: {0}")]
    BadDefault(Box<Problem>),
    /// A stored order that is not one.
    #[error("the stored order must name each of the {rank} dimensions once, from 0 to {}", rank.saturating_sub(1))]
    BadOrder { rank: usize },
    /// Too many or too few subscripts.
    #[error("`{tensor}` has {rank} dimension{}, not {given}", if *rank == 1 { "" } else { "s" })]
    Rank { tensor: String, rank: usize, given: usize },
    /// Too many or too few arguments.
    #[error("`{function}` takes {expected} argument{}, not {given}", if *expected == 1 { "" } else { "s" })]
    Arity { function: String, expected: usize, given: usize },
    /// A stage that is not an assignment to an element named by axes.
    #[error("a stage writes an element named by axes, each once: `C[i, j] = …`")]
    BadTarget,
    /// A stage that writes what the caller filled.
    #[error("`{0}` is an input and cannot be written")]
    WritesInput(String),
    /// Two stages that write one tensor.
    #[error("`{0}` is written by an earlier stage already")]
    WrittenTwice(String),
    /// An output or temporary that no stage writes.
    #[error("no stage writes `{0}`")]
    NeverWritten(String),
    /// A stage that reads what no earlier stage writes.
    #[error("`{0}` is read before a stage writes it")]
    ReadTooEarly(String),
    /// An axis to reduce over in a stage that does not reduce.
    #[error("axis `{axis}` stands only on the right, but `=` does not reduce")]
    NotReduced { axis: String },
    /// A reduction over nothing.
    #[error("nothing is reduced: every axis on the right stands on the left, too")]
    NothingReduced,
    /// A value where an index must stand.
    #[error("{0} cannot stand in an index")]
    NotAnIndex(&'static str),
    /// An element of a tensor of which nobody says how large it is, where an index must stand.
    #[error("an element of `{0}` cannot stand in an index: nothing says how large it may be")]
    NotATable(String),
    /// A bound of elements where none belongs.
    #[error("`below` bounds the elements of an input of integers, and this is {0}")]
    BelowOf(&'static str),
    /// An index or a condition where a value must stand.
    #[error("{0} cannot stand for a value")]
    NotAValue(&'static str),
    /// An index where a value must stand.
    #[error(
        "`{0}` is an index; to compute with it, convert it to the type of the rest: `f32({0})` or `i32({0})`"
    )]
    NotConverted(String),
    /// Something else where a condition must stand.
    #[error("the first argument of `select` is a condition: `0 <= i && i < n`")]
    NotACondition,
    /// A value where a condition compares indices.
    #[error("{0} cannot stand in a condition")]
    NotCompared(&'static str),
    /// Operands of two types.
    #[error("{left} and {right} meet; convert one of them")]
    Types { left: DType, right: DType },
    /// A function of floats on integers.
    #[error("`{function}` takes a floating-point number, not {dtype}")]
    NotFloat { function: &'static str, dtype: DType },
    /// An operator on a type that it does not compute on.
    #[error("`{op}` does not compute on {dtype}")]
    Operand { op: &'static str, dtype: DType },
    /// An operation on two numbers whose type neither they nor its result say.
    #[error("nothing says of which type these numbers are")]
    Untyped,
    /// A number that its type cannot hold.
    #[error("{number} is not a number of type {dtype}")]
    BadLiteral { number: String, dtype: DType },
    /// A tolerance that is none.
    #[error("{0} is no tolerance: that is a number from 0, in parts of an output's largest magnitude")]
    BadTolerance(String),
    /// An axis that does not run over the dimension that it stands for.
    #[error("axis `{axis}` runs over {extent}, but dimension {dimension} of `{tensor}` has the size {size}")]
    Extent { axis: String, extent: String, tensor: String, dimension: usize, size: String },
    /// A subscript that leaves its tensor.
    #[error(
        "the subscript runs from {low} to {high}, but dimension {dimension} of `{tensor}` has the size {size}"
    )]
    OutOfBounds { tensor: String, dimension: usize, low: i128, high: i128, size: i64 },
    /// A subscript that 64 bits do not hold.
    #[error("the subscript overflows 64 bits")]
    Overflow,
    /// A computed size that is not a size.
    #[error("{what} is {value}, not at least 1")]
    BadSize { what: String, value: String },
    /// A workload that no machine holds.
    #[error("the tensors take more than 2^40 bytes")]
    TooLarge,
    /// A parameter that the workload does not have.
    #[error("the workload has no parameter `{name}`")]
    UnknownParam { name: String, near: Option<String>, known: Vec<String> },
    /// A parameter without default that was not given.
    #[error("parameter `{name}` has no default and was not given")]
    MissingParam { name: String },
    /// A parameter's value of the wrong form.
    #[error("parameter `{name}` is {expected}, not {given}")]
    ParamType { name: String, expected: &'static str, given: String },
    /// A parameter's value outside its range.
    #[error("parameter `{name}` is {value}, outside {least}..={most}")]
    ParamRange { name: String, value: i64, least: i64, most: i64 },
    /// A parameter's value that is not one of its words.
    #[error("parameter `{name}` is `{value}`, not one of {}", allowed.join(", "))]
    ParamWord { name: String, value: String, allowed: Vec<String>, near: Option<String> },
    /// A symbolic dimension with a name that is none.
    #[error("parameter `{name}`: `{dim}` is neither a size nor a name for a dimension")]
    BadDim { name: String, dim: String },
    /// A symbolic dimension with a name that other languages have.
    #[error(
        "parameter `{name}`: the dimension cannot be called `{dim}`, which is reserved for C, CUDA, the text form or \
         the emitted source"
    )]
    ReservedDim { name: String, dim: String },
    /// A symbolic dimension with a name that something else has.
    #[error("parameter `{name}`: the dimension cannot be called `{dim}`, which names {other}")]
    DimTaken { name: String, dim: String, other: &'static str },
}

ir::codes!(Problem {
    Ron = 201,
    Syntax = 202,
    TooLong = 203,
    BadName = 204,
    Reserved = 204,
    LongName = 204,
    TooManyStages = 203,
    Taken = 205,
    Twice = 205,
    Unknown = 206,
    Unused = 207,
    None = 208,
    NoCase = 209,
    NotChosen = 209,
    BadOrder = 210,
    Rank = 211,
    Arity = 211,
    BadTarget = 212,
    WritesInput = 212,
    WrittenTwice = 212,
    NeverWritten = 213,
    ReadTooEarly = 213,
    NotReduced = 214,
    NothingReduced = 214,
    NotAnIndex = 215,
    NotAValue = 215,
    NotConverted = 216,
    NotACondition = 215,
    NotCompared = 215,
    Types = 216,
    NotFloat = 216,
    Operand = 216,
    Untyped = 216,
    BadLiteral = 217,
    Extent = 218,
    OutOfBounds = 219,
    Overflow = 219,
    BadSize = 220,
    TooLarge = 203,
    UnknownParam = 221,
    MissingParam = 222,
    ParamType = 223,
    ParamRange = 223,
    ParamWord = 223,
    BadDim = 224,
    ReservedDim = 224,
    DimTaken = 224,
    BadTolerance = 225,
    NotATable = 226,
    BelowOf = 226,
} of { BadDefault });

impl ir::Coded for WorkloadError {
    fn code(&self) -> ir::Code {
        self.problem.code()
    }
}

impl WorkloadError {
    pub(super) fn new(problem: Problem, span: Range<usize>) -> WorkloadError {
        WorkloadError { problem: Box::new(problem), span: Some(span) }
    }

    /// A problem with what was given, not with the text.
    pub(super) fn given(problem: Problem) -> WorkloadError {
        WorkloadError { problem: Box::new(problem), span: None }
    }

    /// The given parameter that the message is about, if it is about one.
    pub fn param(&self) -> Option<&str> {
        match &*self.problem {
            Problem::UnknownParam { name, .. }
            | Problem::MissingParam { name }
            | Problem::ParamType { name, .. }
            | Problem::ParamRange { name, .. }
            | Problem::ParamWord { name, .. }
            | Problem::BadDim { name, .. }
            | Problem::ReservedDim { name, .. }
            | Problem::DimTaken { name, .. }
                if self.span.is_none() =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        match &*self.problem {
            Problem::Unknown { near: Some(near), .. }
            | Problem::UnknownParam { near: Some(near), .. }
            | Problem::ParamWord { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Problem::UnknownParam { known, .. } => {
                let known: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
                Some(format!("it has {}", known.join(", ")))
            }
            Problem::Ron(err) => err.help.clone(),
            Problem::NotReduced { .. } => Some("write `+=`, `*=`, `max=` or `min=`".to_owned()),
            Problem::NotCompared(_) => Some(
                "`select` compares indices: axes, sizes and integers; between values `where` chooses"
                    .to_owned(),
            ),
            Problem::Types { left, .. } => Some(format!("write the type around one of them: `{left}(…)`")),
            Problem::NotFloat { .. } => Some("convert it first: `f32(…)`".to_owned()),
            Problem::Operand { op, .. } if *op == BinaryOp::DotE2m1x2.as_str() => {
                Some("it is for bytes that hold two floats each; convert first: `u8(…)`".to_owned())
            }
            Problem::Operand { dtype, .. } if dtype.is_float() => {
                Some("it is for integers; convert first: `i32(…)`".to_owned())
            }
            Problem::Untyped => Some("write a type around one of them: `f32(…)`".to_owned()),
            Problem::NotATable(tensor) => Some(format!(
                "an input of integers may say so: `\"{tensor}\": input(dtype: \"i32\", shape: [\u{2026}], below: \"n\")`"
            )),
            Problem::TooLarge => Some("give smaller sizes".to_owned()),
            Problem::NothingReduced => Some("write `=`".to_owned()),
            _ => None,
        }
    }
}

impl From<RonError> for WorkloadError {
    fn from(err: RonError) -> WorkloadError {
        let span = err.span.clone();
        WorkloadError::new(Problem::Ron(err), span)
    }
}
