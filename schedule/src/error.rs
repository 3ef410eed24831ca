//! Why a step is refused: data with names and numbers. Only the command line renders it.

use std::fmt;

use ir::{Index, Name, ThreadAxis};

/// A kind of thing that a step names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are the words")]
pub enum Thing {
    Loop,
    Block,
    Buffer,
    Iterator,
    Scope,
    Axis,
    Annotation,
    Knob,
    Style,
    Mode,
    Mechanism,
    Intrinsic,
}

impl Thing {
    /// The word in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Thing::Loop => "loop",
            Thing::Block => "block",
            Thing::Buffer => "buffer",
            Thing::Iterator => "iterator",
            Thing::Scope => "scope",
            Thing::Axis => "axis",
            Thing::Annotation => "annotation",
            Thing::Knob => "knob",
            Thing::Style => "style",
            Thing::Mode => "mode",
            Thing::Mechanism => "mechanism",
            Thing::Intrinsic => "intrinsic",
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a step is refused. A refused step changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum ScheduleError {
    #[error(transparent)]
    Block(#[from] crate::BlockError),
    #[error(transparent)]
    Layout(#[from] crate::LayoutError),
    #[error(transparent)]
    Pipeline(#[from] crate::PipelineError),
    #[error(transparent)]
    CrossBlock(#[from] crate::CrossBlockError),
    #[error(transparent)]
    Tile(#[from] crate::TileError),

    #[error("{step} would leave a program that breaks a rule: {message}")]
    Unsound { step: &'static str, message: String },

    // What is named.
    #[error("there is no {thing} `{name}`")]
    NoSuch { thing: Thing, name: Name, known: Vec<Name> },
    #[error("`{name}` is a {found}, and a {wanted} is needed here")]
    WrongThing { name: Name, found: Thing, wanted: Thing },
    #[error("`{name}` is not a name: a letter or `_`, then letters, digits and `_`, at most 64")]
    NotAName { name: Name },
    #[error("the name `{name}` is reserved: C, CUDA or the emitted source uses it")]
    Reserved { name: Name },
    #[error("loop `{name}` is inside a block, and steps leave the bodies of blocks alone")]
    InsideBlock { name: Name },
    #[error("the name `{name}` is already taken")]
    NameTaken { name: Name },
    #[error("`{name}` is given twice")]
    NamedTwice { name: Name },
    #[error("the knob `{name}` has no value")]
    UnresolvedKnob { name: Name },
    #[error("{primitive} needs at least {needed} loop{}", if *needed == 1 { "" } else { "s" })]
    TooFewLoops { primitive: &'static str, needed: usize },

    // Splitting.
    #[error("the factor of `{name}` is {factor}, and factors are at least 1")]
    FactorNotPositive { name: Name, factor: i64 },
    #[error("`{first}` and `{second}` are both `None`, and only one factor can be inferred")]
    TwoInferred { first: Name, second: Name },
    #[error("{product} iterations do not cover the {extent} of loop `{name}`")]
    FactorsTooSmall { name: Name, extent: Index, product: i64 },
    #[error("the factors of loop `{name}` multiply to more than {}", i32::MAX)]
    FactorsTooLarge { name: Name },

    // The shape of loop nests.
    #[error("loop `{name}` is {kind}")]
    LoopHasKind { name: Name, kind: &'static str },
    #[error("loop `{name}` has the annotation `{key}`")]
    LoopHasAnnotation { name: Name, key: String },
    #[error("loop `{inner}` is not directly inside loop `{outer}`, alone")]
    NotNested { outer: Name, inner: Name },
    #[error("loop `{outer}` is not around loop `{inner}`")]
    NotAround { outer: Name, inner: Name },
    #[error("`{first}` and `{second}` are not in one chain of loops with nothing else between them")]
    NotAChain { first: Name, second: Name },
    #[error("how often loop `{name}` runs depends on loop `{on}`")]
    DependentExtent { name: Name, on: Name },
    #[error("how often loop `{name}` runs is not known before the program runs")]
    UnknownExtent { name: Name },
    #[error(
        "{depth} loops would stand one in the other down to loop `{name}`, and steps make {limit} at most"
    )]
    TooDeep { name: Name, depth: usize, limit: usize },

    // What blocks allow.
    #[error(
        "block `{block}` reduces over loop `{name}` through `{iter}`: its iterations are not independent"
    )]
    ReductionLoop { name: Name, block: Name, iter: Name },
    #[error(
        "block `{block}` starts its sum in iteration 0 of loop `{name}`, which would not always come first"
    )]
    StartsInside { name: Name, block: Name },
    #[error("block `{block}` does not tell the iterations of loop `{name}` apart")]
    NotAffine { name: Name, block: Name },
    #[error(
        "block `{block}` overwrites elements of `{buffer}` in later iterations of loop `{name}` with other values"
    )]
    Overwrites { block: Name, buffer: Name, name: Name },
    #[error(
        "loop `{name}` runs backwards in odd iterations of another (serpentine), and cannot be a pipeline"
    )]
    Reversed { name: Name },
    #[error("block `{block}` reads `{buffer}`, which it writes, in a way that is no reduction")]
    NotAReduction { block: Name, buffer: Name },
    #[error(
        "block `{second}` uses elements of buffer `{buffer}` that block `{first}` has in another iteration of loop `{name}`"
    )]
    Carried { name: Name, first: Name, second: Name, buffer: Name },

    // Threads.
    #[error("loop `{name}` cannot be {kind} for the target `{target}`")]
    WrongTarget { name: Name, kind: &'static str, target: &'static str },
    #[error("loops `{outer}` and `{inner}`, one in the other, cannot both be bound to `{}`", axis.as_str())]
    AxisTaken { outer: Name, inner: Name, axis: ThreadAxis },
    #[error("loop `{name}` makes {count} {what}, and there can be at most {limit}")]
    TooMany { name: Name, count: i64, what: &'static str, limit: i64 },

    // Buffers.
    #[error("`{name}` belongs to the caller")]
    NotTemp { name: Name },
    #[error("buffer `{name}` has {rank} dimensions, so its axis is not {axis}")]
    AxisRange { name: Name, axis: i64, rank: usize },
    #[error("axis {axis} of buffer `{name}` has stride 1 or a request already")]
    AxisNotAlignable { name: Name, axis: usize },
    #[error(
        "the order of the {rank} dimensions of buffer `{name}` has to name each of them once, counted from 0"
    )]
    NotAPermutation { name: Name, rank: usize },
    #[error("buffer `{name}` is padded already")]
    AlreadyAligned { name: Name },
    #[error("no stride of buffer `{name}` is made to leave {offset} when divided by {factor}")]
    BadAlignment { name: Name, factor: i64, offset: i64 },

    // Annotations.
    #[error("annotate needs either a loop or a block")]
    AnnotateWhat,
    #[error("`{name}` has the annotation `{key}` already")]
    Annotated { name: Name, key: String },
    #[error("the value of `{key}` on `{name}` has to be {wanted}")]
    AnnotationValue { name: Name, key: String, wanted: &'static str },
}

ir::codes!(ScheduleError {
    Unsound = 1001,
    NoSuch = 1002,
    WrongThing = 1003,
    NotAName = 1004,
    Reserved = 1005,
    InsideBlock = 1006,
    NameTaken = 1007,
    NamedTwice = 1008,
    UnresolvedKnob = 1009,
    TooFewLoops = 1010,
    FactorNotPositive = 1011,
    TwoInferred = 1012,
    FactorsTooSmall = 1013,
    FactorsTooLarge = 1014,
    LoopHasKind = 1015,
    LoopHasAnnotation = 1016,
    NotNested = 1017,
    NotAround = 1018,
    NotAChain = 1019,
    DependentExtent = 1020,
    UnknownExtent = 1021,
    ReductionLoop = 1022,
    StartsInside = 1023,
    NotAffine = 1024,
    NotAReduction = 1025,
    Carried = 1026,
    WrongTarget = 1027,
    AxisTaken = 1028,
    TooMany = 1029,
    NotTemp = 1030,
    AxisRange = 1031,
    AxisNotAlignable = 1032,
    NotAPermutation = 1033,
    AlreadyAligned = 1034,
    BadAlignment = 1035,
    AnnotateWhat = 1036,
    Annotated = 1037,
    AnnotationValue = 1038,
    Overwrites = 1039,
    Reversed = 1040,
    TooDeep = 1041,
} of { Block, Layout, Pipeline, CrossBlock, Tile });

impl ScheduleError {
    /// The names in the script and in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use ScheduleError as E;
        match self {
            E::Block(it) => it.names(),
            E::Layout(it) => it.names(),
            E::Pipeline(it) => it.names(),
            E::CrossBlock(it) => it.names(),
            E::Tile(it) => it.names(),
            E::NoSuch { name, .. }
            | E::WrongThing { name, .. }
            | E::NotAName { name }
            | E::NameTaken { name }
            | E::Reserved { name }
            | E::InsideBlock { name }
            | E::NamedTwice { name }
            | E::UnresolvedKnob { name }
            | E::FactorNotPositive { name, .. }
            | E::FactorsTooSmall { name, .. }
            | E::FactorsTooLarge { name }
            | E::LoopHasKind { name, .. }
            | E::LoopHasAnnotation { name, .. }
            | E::UnknownExtent { name }
            | E::WrongTarget { name, .. }
            | E::TooMany { name, .. }
            | E::NotTemp { name }
            | E::AxisRange { name, .. }
            | E::AxisNotAlignable { name, .. }
            | E::BadAlignment { name, .. }
            | E::NotAPermutation { name, .. }
            | E::AlreadyAligned { name }
            | E::TooDeep { name, .. }
            | E::Annotated { name, .. }
            | E::AnnotationValue { name, .. }
            | E::Reversed { name } => vec![name],
            E::TwoInferred { first, second } | E::NotAChain { first, second } => vec![second, first],
            E::NotAround { outer, inner } => vec![outer, inner],
            E::NotNested { outer, inner } | E::AxisTaken { outer, inner, .. } => vec![inner, outer],
            E::DependentExtent { name, on } => vec![name, on],
            E::ReductionLoop { name, block, .. }
            | E::StartsInside { name, block }
            | E::NotAffine { name, block } => vec![name, block],
            E::Overwrites { block, buffer, name } => vec![name, block, buffer],
            E::NotAReduction { block, buffer } => vec![block, buffer],
            E::Carried { name, first, second, buffer } => vec![name, second, first, buffer],
            E::TooFewLoops { .. } | E::AnnotateWhat | E::Unsound { .. } => vec![],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        use ScheduleError as E;
        match self {
            E::Block(it) => it.help(),
            E::Layout(it) => it.help(),
            E::Pipeline(it) => it.help(),
            E::CrossBlock(it) => Some(it.help().to_owned()),
            E::Tile(it) => it.help(),
            E::NoSuch { name, known, thing } => Some(candidates(name, known, *thing)),
            _ => self.own_help().map(str::to_owned),
        }
    }

    /// The same of the errors that have no more to say than what they are.
    fn own_help(&self) -> Option<&'static str> {
        use ScheduleError as E;
        let help = match self {
            E::AxisRange { .. } => "axes are counted from 0, or from the last, which is -1",
            E::FactorsTooSmall { .. } => "leave one factor `None` to have it inferred",
            E::FactorNotPositive { .. } => "give a whole number from 1; in split one factor may be `None`",
            E::TwoInferred { .. } => "give all factors but one",
            E::LoopHasKind { .. } | E::LoopHasAnnotation { .. } => {
                "split, fuse and reorder loops first; bind, vectorize, unroll and annotate them afterwards"
            }
            E::NotNested { .. } => {
                "fuse takes loops from the outermost on, each the whole body of the one before"
            }
            E::ReductionLoop { .. } => {
                "split the loop and use rfactor to make partial results, or bind another; to blockIdx, see cross_block_reduction"
            }
            E::Overwrites { .. } => "leave the loop where it is: the iteration that comes last decides",
            E::Reversed { .. } => "unroll it without serpentine, or pipeline a loop around it",
            E::StartsInside { .. } => "decompose_reduction the block at this loop or one around it first",
            E::NotAffine { .. } => {
                "use factors that divide the loops, or take the loop away from the block first"
            }
            E::Carried { .. } => "take a loop that only one of the two blocks is in",
            E::UnknownExtent { .. } => "split it by a constant, and take the inner loop",
            E::WrongTarget { target: "cpu", .. } => "use parallel and vectorize on this target",
            E::WrongTarget { .. } => "bind the loop to blockIdx.x, or to threadIdx.x",
            E::AxisTaken { .. } => {
                "an axis is bound again only by a loop of the same extent, where no block inside uses the outer loop"
            }
            E::TooMany { .. } => "split the loop and bind the inner part",
            E::NotTemp { .. } => "make a temporary with cache_read or cache_write, and change that",
            E::AxisNotAlignable { .. } => "align the axis before the last: its stride is the length of a row",
            E::BadAlignment { .. } => {
                "the factor is 1 to 65535, and the offset at least 0 and below the factor"
            }
            E::AlreadyAligned { .. } => "use transform_layout before storage_align",
            E::InsideBlock { .. } => "rewrite the loop before blockize or tensorize puts it into a block",
            E::NameTaken { .. } => "choose a name that no loop, block, buffer or size has",
            E::NamedTwice { .. } => "name each once",
            E::TooDeep { .. } => "fuse loops that are run as one",
            E::AnnotateWhat => "write `loop: \"k\"` or `block: \"C\"`",
            _ => return None,
        };
        Some(help)
    }
}

/// "did you mean" with the nearest name, or all there are when none is near.
fn candidates(name: &Name, known: &[Name], thing: Thing) -> String {
    crate::suggestion(name.as_str(), known.iter().map(Name::as_str))
        .unwrap_or_else(|| format!("there is no {thing} at all"))
}
