//! Why a step is refused: data with names and numbers. Only the command line renders it.

use std::fmt;

use ir::{Index, Name, ThreadAxis};

use crate::{
    Blame, BlockError, CrossBlockError, LayoutError, PipelineError, RoleError, TileError,
    error_table::error_table,
};

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
    Role,
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
            Thing::Role => "role",
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

error_table! {
    /// Why a step is refused. A refused step changes nothing.
    pub enum ScheduleError {
        1001 Unsound { step: &'static str, message: String }
            ("{step} would leave a program that breaks a rule: {message}")
            names [];

        // What is named.
        1002 NoSuch { thing: Thing, name: Name, known: Vec<Name> }
            ("there is no {thing} `{name}`")
            names [name]
            help candidates(name, known, *thing);
        1003 WrongThing { name: Name, found: Thing, wanted: Thing }
            ("`{name}` is a {found}, and a {wanted} is needed here")
            names [name];
        1004 NotAName { name: Name }
            ("`{name}` is not a name: a letter or `_`, then letters, digits and `_`, at most 64")
            names [name];
        1005 Reserved { name: Name }
            ("the name `{name}` is reserved: C, CUDA or the emitted source uses it")
            names [name];
        1006 InsideBlock { name: Name }
            ("loop `{name}` is inside a block, and steps leave the bodies of blocks alone")
            names [name]
            help "rewrite the loop before blockize or tensorize puts it into a block";
        1007 NameTaken { name: Name }
            ("the name `{name}` is already taken")
            names [name]
            help "choose a name that no loop, block, buffer or size has";
        1008 NamedTwice { name: Name }
            ("`{name}` is given twice")
            names [name]
            at [Blame::Again]
            help "name each once";
        1009 UnresolvedKnob { name: Name }
            ("the knob `{name}` has no value")
            names [name];
        1010 TooFewLoops { primitive: &'static str, needed: usize }
            ("{primitive} needs at least {needed} loop{}", if *needed == 1 { "" } else { "s" })
            names [];

        // Splitting.
        1011 FactorNotPositive { name: Name, factor: i64 }
            ("the factor of `{name}` is {factor}, and factors are at least 1")
            names [name]
            help "give a whole number from 1; in split one factor may be `None`";
        1012 TwoInferred { first: Name, second: Name }
            ("`{first}` and `{second}` are both `None`, and only one factor can be inferred")
            names [second, first]
            help "give all factors but one";
        1013 FactorsTooSmall { name: Name, extent: Index, product: i64 }
            ("{product} iterations do not cover the {extent} of loop `{name}`")
            names [name]
            help "leave one factor `None` to have it inferred";
        1014 FactorsTooLarge { name: Name }
            ("the factors of loop `{name}` multiply to more than {}", i32::MAX)
            names [name];
        1042 PartTooLong { name: Name, extent: Index, part: Index }
            (
                "a part is {part} iterations long, and loop `{name}` is not known to have as many: it has {extent}"
            )
            names [name]
            help "take shorter parts, or leave `overlap` out: what is left over is then guarded";
        1043 RunsAgain { name: Name, block: Name }
            ("block `{block}` updates what it finds, and some iterations of loop `{name}` would run twice")
            names [name, block]
            help "leave `overlap` out, or take a loop that is not around what the block updates";

        // The shape of loop nests.
        1015 LoopHasKind { name: Name, kind: &'static str }
            ("loop `{name}` is {kind}")
            names [name]
            help "split, fuse and reorder loops first; bind, vectorize, unroll and annotate them afterwards";
        1016 LoopHasAnnotation { name: Name, key: String }
            ("loop `{name}` has the annotation `{key}`")
            names [name]
            help "split, fuse and reorder loops first; bind, vectorize, unroll and annotate them afterwards";
        1017 NotNested { outer: Name, inner: Name }
            ("loop `{inner}` is not directly inside loop `{outer}`, alone")
            names [inner, outer]
            help "fuse takes loops from the outermost on, each the whole body of the one before";
        1018 NotAround { outer: Name, inner: Name }
            ("loop `{outer}` is not around loop `{inner}`")
            names [outer, inner];
        1019 NotAChain { first: Name, second: Name }
            ("`{first}` and `{second}` are not in one chain of loops with nothing else between them")
            names [second, first];
        1044 NotBeside { first: Name, second: Name }
            ("loops `{first}` and `{second}` do not stand beside each other in the same loop")
            names [second, first]
            help "merge the loops around them first, or take loops that are both outermost";
        1045 OtherLength { first: Name, second: Name }
            ("loops `{first}` and `{second}` are not known to have the same number of iterations")
            names [second, first]
            help "split the longer one, and merge the part that is as long";
        1046 InTheWay { first: Name, second: Name, block: Name }
            ("block `{block}` stands between loops `{first}` and `{second}`: it needs what the first does, and the second needs it")
            names [block, first, second]
            help format!("move `{block}` into one of the loops first, by `compute_at` or `reverse_compute_at`");
        1020 DependentExtent { name: Name, on: Name }
            ("how often loop `{name}` runs depends on loop `{on}`")
            names [name, on];
        1021 UnknownExtent { name: Name }
            ("how often loop `{name}` runs is not known before the program runs")
            names [name]
            help "split it by a constant, and take the inner loop";
        1041 TooDeep { name: Name, depth: usize, limit: usize }
            ("{depth} loops would stand one in the other down to loop `{name}`, and steps make {limit} at most")
            names [name]
            help "fuse loops that are run as one";

        // What blocks allow.
        1022 ReductionLoop { name: Name, block: Name, iter: Name }
            ("block `{block}` reduces over loop `{name}` through `{iter}`: its iterations are not independent")
            names [name, block]
            help
                "split the loop and use rfactor to make partial results, or bind another; to blockIdx, see cross_block_reduction";
        1023 StartsInside { name: Name, block: Name }
            ("block `{block}` starts its sum in iteration 0 of loop `{name}`, which would not always come first")
            names [name, block]
            help "decompose_reduction the block at this loop or one around it first";
        1024 NotAffine { name: Name, block: Name }
            ("block `{block}` does not tell the iterations of loop `{name}` apart")
            names [name, block]
            help "use factors that divide the loops, or take the loop away from the block first";
        1039 Overwrites { block: Name, buffer: Name, name: Name }
            ("block `{block}` overwrites elements of `{buffer}` in later iterations of loop `{name}` with other values")
            names [name, block, buffer]
            help "leave the loop where it is: the iteration that comes last decides";
        1040 Reversed { name: Name }
            ("loop `{name}` runs backwards in odd iterations of another (serpentine), and cannot be a pipeline")
            names [name]
            help "unroll it without serpentine, or pipeline a loop around it";
        1025 NotAReduction { block: Name, buffer: Name }
            ("block `{block}` reads `{buffer}`, which it writes, in a way that is no reduction")
            names [block, buffer];
        1026 Carried { name: Name, first: Name, second: Name, buffer: Name }
            (
                "block `{second}` uses elements of buffer `{buffer}` that block `{first}` has in another iteration of loop `{name}`"
            )
            names [name, second, first, buffer]
            help "take a loop that only one of the two blocks is in";

        // Threads.
        1027 WrongTarget { name: Name, kind: &'static str, target: &'static str }
            ("loop `{name}` cannot be {kind} for the target `{target}`")
            names [name]
            help if *target == "cpu" {
                "use parallel and vectorize on this target"
            } else {
                "bind the loop to blockIdx.x, or to threadIdx.x"
            };
        1028 AxisTaken { outer: Name, inner: Name, axis: ThreadAxis }
            ("loops `{outer}` and `{inner}`, one in the other, cannot both be bound to `{}`", axis.as_str())
            names [inner, outer]
            help "an axis is bound again only by a loop of the same extent, where no block inside uses the outer loop";
        1029 TooMany { name: Name, count: i64, what: &'static str, limit: i64 }
            ("loop `{name}` makes {count} {what}, and there can be at most {limit}")
            names [name]
            help "split the loop and bind the inner part";

        // Buffers.
        1030 NotTemp { name: Name }
            ("`{name}` belongs to the caller")
            buffer [name]
            help "make a temporary with cache_read or cache_write, and change that";
        1031 AxisRange { name: Name, axis: i64, rank: usize }
            ("buffer `{name}` has {rank} dimensions, so its axis is not {axis}")
            buffer [name]
            at [Blame::Field("axis")]
            help "axes are counted from 0, or from the last, which is -1";
        1032 AxisNotAlignable { name: Name, axis: usize }
            ("axis {axis} of buffer `{name}` has stride 1 or a request already")
            buffer [name]
            at [Blame::Field("axis")]
            help "align the axis before the last: its stride is the length of a row";
        1033 NotAPermutation { name: Name, rank: usize }
            ("the order of the {rank} dimensions of buffer `{name}` has to name each of them once, counted from 0")
            buffer [name]
            at [Blame::Field("order")];
        1034 AlreadyAligned { name: Name }
            ("buffer `{name}` is padded already")
            buffer [name]
            help "use transform_layout before storage_align";
        1035 BadAlignment { name: Name, factor: i64, offset: i64 }
            ("no stride of buffer `{name}` is made to leave {offset} when divided by {factor}")
            buffer [name]
            at [if (1..=65_535).contains(factor) { Blame::Field("offset") } else { Blame::Field("factor") }]
            help "the factor is 1 to 65535, and the offset at least 0 and below the factor";

        // Annotations.
        1036 LoopOrBlock { primitive: &'static str }
            ("{primitive} needs either a loop or a block")
            names []
            help "write `loop: \"k\"` or `block: \"C\"`";
        1037 Annotated { name: Name, key: String }
            ("`{name}` has the annotation `{key}` already")
            names [name];
        1038 AnnotationValue { name: Name, key: String, wanted: &'static str }
            ("the value of `{key}` on `{name}` has to be {wanted}")
            names [name]
            at [Blame::Field("value")];
    } of {
        Block(BlockError), Layout(LayoutError), CrossBlock(CrossBlockError), Tile(TileError), Role(RoleError);
        Pipeline(PipelineError)
    }
}

/// "did you mean" with the nearest name, or all there are when none is near.
fn candidates(name: &Name, known: &[Name], thing: Thing) -> String {
    crate::suggestion(name.as_str(), known.iter().map(Name::as_str))
        .unwrap_or_else(|| format!("there is no {thing} at all"))
}
