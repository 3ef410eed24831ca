//! What the interpreter refuses and where it stops.

use std::fmt;

use crate::{DType, Name};

/// Where in the run of a program something happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Site {
    /// The innermost block, if any.
    pub block: Option<Name>,
    /// The variables of the loops around it, outer first, and their values.
    pub at: Vec<(Name, i64)>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.block {
            Some(block) => write!(f, "block `{block}`")?,
            None => f.write_str("the body")?,
        }
        for (n, (name, value)) in self.at.iter().enumerate() {
            write!(f, "{} {name} = {value}", if n == 0 { ", at" } else { "," })?;
        }
        Ok(())
    }
}

/// Why a program could not be run, or not to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum InterpError {
    /// A symbolic dimension was given no value.
    #[error("dimension `{name}` has no value")]
    NoDimension { name: Name },
    /// A dimension is zero or negative.
    #[error("dimension `{name}` is {value}, not at least 1")]
    BadDimension { name: Name, value: i64 },
    /// A value was given for a dimension that the program does not have.
    #[error("the program has no dimension `{name}`")]
    UnknownDimension { name: Name },
    /// Too many or too few inputs.
    #[error("{} inputs were given for the {} of the program: {}", given, expected.len(), list(expected))]
    InputCount { expected: Vec<Name>, given: usize },
    /// An input of another type than its buffer.
    #[error("input `{buffer}` is of type {given}, not {expected}")]
    InputType { buffer: Name, expected: DType, given: DType },
    /// An input of another shape than its buffer.
    #[error("input `{buffer}` has the shape {given:?}, not {expected:?}")]
    InputShape { buffer: Name, expected: Vec<usize>, given: Vec<usize> },
    /// An input whose data does not fill its shape.
    #[error("input `{buffer}` has {given} elements, not {expected}")]
    InputLength { buffer: Name, expected: usize, given: usize },
    /// A buffer's size is zero, negative, or more than the interpreter holds.
    #[error("buffer `{buffer}` cannot be held: its shape is [{}]", sizes(size))]
    BadSize { buffer: Name, size: Vec<Option<i64>> },
    /// A variable that no loop, iterator or dimension in scope declares.
    #[error("{}: `{name}` is not in scope", place(block.as_ref()))]
    UnknownVariable { name: Name, block: Option<Name> },
    /// A buffer that the program does not declare.
    #[error("{}: there is no buffer `{name}`", place(block.as_ref()))]
    UnknownBuffer { name: Name, block: Option<Name> },
    /// An access with too many or too few subscripts.
    #[error("{}: `{buffer}` takes {expected} subscripts, not {given}", place(block.as_ref()))]
    Rank { buffer: Name, expected: usize, given: usize, block: Option<Name> },
    /// Operands of different types, or a store of another type than its buffer.
    #[error("{}: {found} where {expected} is needed", place(block.as_ref()))]
    Types { expected: DType, found: DType, block: Option<Name> },
    /// An operation on a type that it does not compute on.
    #[error("{}: `{op}` does not compute on {found}", place(block.as_ref()))]
    Operand { op: &'static str, found: DType, block: Option<Name> },
    /// An access to several adjacent elements, which only lowered programs have.
    #[error("{}: an access to {lanes} elements of `{buffer}`", place(block.as_ref()))]
    Lanes { buffer: Name, lanes: u32, block: Option<Name> },
    /// An instruction of a kernel, which only lowered programs have.
    #[error("{}: the instruction `{name}`", place(block.as_ref()))]
    Instruction { name: &'static str, block: Option<Name> },
    /// An access outside a buffer.
    #[error("{site}: {} {buffer}{index:?}, outside its shape {shape:?}", if *write { "writes" } else { "reads" })]
    OutOfBounds { buffer: Name, index: Vec<i64>, shape: Vec<usize>, write: bool, site: Site },
    /// A read of an element of a temporary or output before anything wrote it.
    #[error("{site}: reads {buffer}{index:?}, which nothing has written")]
    Unwritten { buffer: Name, index: Vec<i64>, site: Site },
    /// An iterator's binding is outside its domain.
    #[error("{site}: iterator `{iter}` is {value}, outside 0..{extent}")]
    OutsideDomain { iter: Name, value: i64, extent: i64, site: Site },
    /// An index that overflows 64 bits or divides by a number that is not positive.
    #[error("{site}: an index overflows or divides by a number that is not positive")]
    BadIndex { site: Site },
    /// An integer divided by zero.
    #[error("{site}: an integer is divided by zero")]
    DivisionByZero { site: Site },
    /// The program ended with an element of an output unwritten.
    #[error("the program ends without writing {buffer}{index:?}")]
    OutputUnwritten { buffer: Name, index: Vec<i64> },
    /// A buffer's element was asked for that it does not have.
    #[error("{buffer}{index:?} is outside the shape {shape:?}")]
    NoElement { buffer: Name, index: Vec<i64>, shape: Vec<usize> },
    /// A program that is not as a workload makes it, or one of which a single element depends on too many steps.
    #[error("{}: {reason}", place(block.as_ref()))]
    NotPlain { block: Option<Name>, reason: &'static str },
}

crate::codes!(InterpError {
    NoDimension = 501,
    BadDimension = 501,
    UnknownDimension = 501,
    InputCount = 501,
    InputType = 501,
    InputShape = 501,
    InputLength = 501,
    BadSize = 501,
    UnknownVariable = 501,
    UnknownBuffer = 501,
    Rank = 501,
    Types = 501,
    Operand = 501,
    Lanes = 501,
    Instruction = 501,
    OutOfBounds = 501,
    Unwritten = 501,
    OutsideDomain = 501,
    BadIndex = 501,
    DivisionByZero = 501,
    OutputUnwritten = 501,
    NoElement = 501,
    NotPlain = 501,
});

fn place(block: Option<&Name>) -> String {
    block.map_or("the body".to_owned(), |it| format!("block `{it}`"))
}

fn list(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

fn sizes(shape: &[Option<i64>]) -> String {
    let size = |it: &Option<i64>| it.map_or("overflow".to_owned(), |it| it.to_string());
    shape.iter().map(size).collect::<Vec<_>>().join(", ")
}
