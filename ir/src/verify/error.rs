//! What the verifier reports: data; the messages are the defaults.

use std::fmt::{self, Display, Formatter};

use crate::{DType, Index, Literal, Name, Scope, ThreadAxis, XorSwizzle};

/// An invariant that does not hold, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{at}`: {kind}")]
pub struct VerifyError {
    /// The loop, block, buffer or dimension, or the function itself.
    pub at: Name,
    /// What is wrong with it.
    pub kind: VerifyErrorKind,
}

/// A part of a loop, block or buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// The extent of a loop.
    Extent,
    /// The shape of a buffer.
    Shape,
    /// The extent of an iterator.
    IterExtent(Name),
    /// The binding of an iterator.
    Binding(Name),
    /// The guards of a block.
    Guard,
    /// The init of a block.
    Init,
    /// The body of a block.
    Body,
}

impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Part::Extent => f.write_str("extent of the loop"),
            Part::Shape => f.write_str("shape"),
            Part::IterExtent(name) => write!(f, "domain of iterator `{name}`"),
            Part::Binding(name) => write!(f, "binding of iterator `{name}`"),
            Part::Guard => f.write_str("guard"),
            Part::Init => f.write_str("init"),
            Part::Body => f.write_str("body"),
        }
    }
}

impl Part {
    /// What an index in this part may name.
    const fn scope(&self) -> &'static str {
        match self {
            Part::Shape | Part::IterExtent(_) => "only the symbolic dimensions are",
            Part::Extent | Part::Binding(_) | Part::Guard => {
                "only the symbolic dimensions and the loops around it are"
            }
            Part::Init => "only the symbolic dimensions and its spatial iterators are",
            Part::Body => "only the symbolic dimensions and its iterators are",
        }
    }
}

/// A run of a block: the values of dimensions and loop variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example(pub Vec<(Name, i64)>);

impl Display for Example {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("in its only run");
        }
        let values = self.0.iter().map(|(name, value)| format!("{name} = {value}"));
        write!(f, "when {}", values.collect::<Vec<_>>().join(", "))
    }
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum VerifyErrorKind {
    #[error("`{name}` is no name: a letter or `_`, then letters, digits and `_`, at most 64")]
    InvalidName { name: Name },
    #[error("the name `{name}` is reserved: C, CUDA, the text form or the emitted source uses it")]
    ReservedName { name: Name },
    #[error("the name `{name}` stands for {first}, and again for {second}")]
    NameTaken { name: Name, first: &'static str, second: &'static str },
    #[error(
        "`{var}` is not in scope in the {part}: {}{}", part.scope(),
        if *is_loop { " (a loop variable is passed in by the binding of an iterator)" } else { "" }
    )]
    NotInScope { var: Name, part: Part, is_loop: bool },
    #[error("{extent} in the {part}: extents are at least 1")]
    Extent { part: Part, extent: i64 },
    #[error("inputs and outputs are in global memory, and this one is in {scope} memory")]
    ParameterScope { scope: Scope },
    #[error(
        "align({axis}, {factor}, {offset}): each dimension has at most one, with 1 <= factor and \
         0 <= offset < factor"
    )]
    Align { axis: usize, factor: i64, offset: i64 },
    #[error(
        "swizzle({}, {}, {}): it has at least 1 bit, shifts by no fewer, ends below bit 20, and its chunks hold whole \
         elements", .0.bits, .0.base, .0.shift
    )]
    Swizzle(XorSwizzle),
    #[error("buffers in shared memory are swizzled, and this one is in {scope} memory")]
    SwizzleScope { scope: Scope },
    #[error("no block writes the buffer")]
    NeverWritten,
    #[error("the input `{buffer}` is written")]
    InputWritten { buffer: Name },
    #[error("a sequence directly inside a sequence, or of one statement")]
    Sequence,
    #[error("the store to `{buffer}` stands outside any block")]
    StoreOutsideBlock { buffer: Name },
    #[error("block `{inner}` stands inside it, and blocks do not nest")]
    NestedBlock { inner: Name },
    #[error("loop `{var}` inside a block has a kind or annotations, and only plain loops stand in blocks")]
    InnerLoop { var: Name },
    #[error("the loop has no body")]
    EmptyLoop,
    #[error("the block writes nothing")]
    NoStore,
    #[error("loop `{outer}` around it is bound to {} already", axis.as_str())]
    AxisTwice { axis: ThreadAxis, outer: Name },
    #[error("the key of an annotation is empty")]
    EmptyKey,
    #[error("there is an init, but no reduction iterator")]
    InitWithoutReduction,
    #[error("the init writes `{buffer}`, which the body does not")]
    InitWritesOther { buffer: Name },
    #[error("the divisor {divisor} in `{index}` is not at least 1")]
    Divisor { divisor: i64, index: Index },
    #[error("there is no buffer `{buffer}`")]
    NoSuchBuffer { buffer: Name },
    #[error("`{buffer}` is of rank {rank}, and the number of subscripts is {subscripts}")]
    Rank { buffer: Name, rank: usize, subscripts: usize },
    #[error("the access to `{buffer}` has {lanes} lanes, and before lowering all have 1")]
    Lanes { buffer: Name, lanes: u32 },
    #[error("`{name}` is an instruction of kernels: a block says what it computes in loops and stores")]
    Instruction { name: &'static str },
    #[error("`{literal}` is not a number of its type")]
    Literal { literal: Literal },
    #[error("an index becomes a value of an integer type, not {dtype}")]
    IndexType { dtype: DType },
    #[error("`{op}` does not take {dtype}")]
    OperandType { op: &'static str, dtype: DType },
    #[error("`{op}` has operands of types {left} and {right}")]
    OperandTypes { op: &'static str, left: DType, right: DType },
    #[error("`{buffer}` holds {holds}, and {stored} is stored into it")]
    StoreType { buffer: Name, holds: DType, stored: DType },
    #[error("iterator `{iter}` is {value}, outside 0..{extent}, {example}")]
    OutOfDomain { iter: Name, value: i64, extent: i64, example: Example },
    #[error("subscript {dimension} of `{buffer}` is {value}, outside 0..{extent}, {example}")]
    OutOfBounds { buffer: Name, dimension: usize, value: i64, extent: i64, example: Example },
    #[error("iterator `{iter}` = {index} overflows 64 bits, {example}")]
    DomainOverflow { iter: Name, index: Index, example: Example },
    #[error("subscript {dimension} of `{buffer}`, {index}, overflows 64 bits, {example}")]
    SubscriptOverflow { buffer: Name, dimension: usize, index: Index, example: Example },
    #[error("`{index}`: {why}")]
    Element { index: Index, why: &'static str },
    #[error("`below` bounds the elements of an input of integers")]
    Below,
    #[error("the buffers take more than 2^40 bytes")]
    TooLarge,
}

crate::codes!(VerifyErrorKind {
    InvalidName = 401,
    ReservedName = 402,
    NameTaken = 403,
    NotInScope = 404,
    Extent = 405,
    ParameterScope = 406,
    Align = 407,
    Swizzle = 408,
    SwizzleScope = 409,
    NeverWritten = 410,
    InputWritten = 411,
    Sequence = 412,
    StoreOutsideBlock = 413,
    NestedBlock = 414,
    InnerLoop = 415,
    EmptyLoop = 416,
    NoStore = 417,
    AxisTwice = 418,
    EmptyKey = 419,
    InitWithoutReduction = 420,
    InitWritesOther = 421,
    Divisor = 422,
    NoSuchBuffer = 423,
    Rank = 424,
    Lanes = 425,
    Instruction = 426,
    Literal = 427,
    IndexType = 428,
    OperandType = 429,
    OperandTypes = 430,
    StoreType = 431,
    OutOfDomain = 432,
    OutOfBounds = 433,
    DomainOverflow = 432,
    SubscriptOverflow = 433,
    TooLarge = 434,
    Element = 435,
    Below = 435,
});
