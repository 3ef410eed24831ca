//! Why a step that moves, copies or merges blocks is refused.

use ir::Name;

/// Why a primitive on blocks is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum BlockError {
    #[error("block `{block}` does not read buffer `{buffer}`")]
    DoesNotRead { block: Name, buffer: Name, reads: Vec<Name> },
    #[error("block `{block}` writes no buffer")]
    WritesNothing { block: Name },
    #[error("block `{block}` writes `{buffer}`, which `{other}` also writes")]
    NotOnlyWriter { block: Name, buffer: Name, other: Name },
    #[error("loop `{loop_name}` is already around block `{block}`")]
    AlreadyUnder { block: Name, loop_name: Name },
    #[error(
        "block `{block}` writes `{buffer}`, an output, and only temporaries can be computed again or elsewhere"
    )]
    WritesOutput { block: Name, buffer: Name },
    #[error("nothing reads what block `{block}` writes")]
    NoReaders { block: Name },
    #[error("nothing that block `{block}` reads is computed by another block")]
    NoProducers { block: Name },
    #[error("`{other}` reads `{buffer}` of block `{block}` outside loop `{loop_name}`")]
    ReaderOutside { block: Name, other: Name, buffer: Name, loop_name: Name },
    #[error("`{other}` writes `{buffer}` for block `{block}` outside loop `{loop_name}`")]
    ProducerOutside { block: Name, other: Name, buffer: Name, loop_name: Name },
    #[error("block `{block}` would run before `{other}` although it depends on it through `{buffer}`")]
    OutOfOrder { block: Name, other: Name, buffer: Name },
    #[error(
        "there, block `{reader}` would read parts of `{buffer}` that `{writer}` has not yet written in the same iteration"
    )]
    Uncovered { reader: Name, writer: Name, buffer: Name, is_moved: bool },
    #[error(
        "loop `{loop_name}` is a reduction of `{producer}`: inside it `{block}` would read partial results"
    )]
    PartialResult { block: Name, producer: Name, loop_name: Name },
    #[error("block `{block}` reduces, and under loop `{loop_name}` some of its iterations might run twice")]
    RunsTwice { block: Name, loop_name: Name },
    #[error(
        "loop `{loop_name}` of block `{block}` is bound or annotated, and moving the block would drop that"
    )]
    MarkedLoop { block: Name, loop_name: Name },
    #[error("block `{block}` is a reduction, and only elementwise blocks can be inlined")]
    InlineReduction { block: Name },
    #[error("block `{block}` is guarded, and a guarded block cannot be inlined")]
    InlineGuarded { block: Name },
    #[error("block `{block}` is more than one assignment, and only one can be put in the place of a read")]
    NotOneStore { block: Name },
    #[error(
        "which iteration of block `{block}` an element of `{buffer}` belongs to does not follow from its subscripts"
    )]
    NotElementwise { block: Name, buffer: Name },
    #[error("block `{block}` reads the buffer `{buffer}` that it writes")]
    ReadsItself { block: Name, buffer: Name },
    #[error("`{other}` overwrites `{buffer}` after block `{block}` has read it")]
    OverwrittenLater { block: Name, buffer: Name, other: Name },
    #[error("block `{block}` has several producers (`{first}`, `{second}`), and one is needed")]
    SeveralProducers { block: Name, first: Name, second: Name },
    #[error("`{other}` also reads `{buffer}`, and then it cannot be merged away")]
    OtherReader { block: Name, buffer: Name, other: Name },
    #[error("block `{block}` runs for elements of `{buffer}` that block `{producer}` does not compute")]
    OtherDomain { block: Name, producer: Name, buffer: Name },
    #[error("block `{block}` has no init to take out: it does not reduce, or is decomposed already")]
    NoInit { block: Name },
    #[error("loop `{loop_name}` is not around block `{block}`")]
    NotAround { block: Name, loop_name: Name },
    #[error("loop `{outer}`, a reduction of block `{block}`, is outside loop `{loop_name}`")]
    ReductionOutside { block: Name, outer: Name, loop_name: Name },
    #[error("loop `{loop_name}` drives spatial and reduction iterators of block `{block}` at once")]
    MixedLoop { block: Name, loop_name: Name },
    #[error("loop `{loop_name}` is not a reduction of block `{block}`")]
    NotReductionLoop { block: Name, loop_name: Name },
    #[error("block `{block}` is not of the form `x = x op y` with a commutative op and its init")]
    NotReducer { block: Name },
    #[error("other statements stand beside block `{block}` in loop `{loop_name}`")]
    NotAlone { block: Name, loop_name: Name },
    #[error("the factor axis {axis} is outside -{rank}..={last}", last = *rank - 1)]
    FactorAxis { block: Name, axis: i64, rank: i64 },
    #[error("block `{block}` may run for some of the values of its iterators only")]
    PartOfDomain { block: Name },
    #[error(
        "block `{block}` does not start each of its sums once, in the first iteration of what is in loop `{loop_name}`"
    )]
    InitNotFirst { block: Name, loop_name: Name },
}

ir::codes!(BlockError {
    DoesNotRead = 1101,
    WritesNothing = 1102,
    NotOnlyWriter = 1103,
    AlreadyUnder = 1104,
    WritesOutput = 1105,
    NoReaders = 1106,
    NoProducers = 1107,
    ReaderOutside = 1108,
    ProducerOutside = 1109,
    OutOfOrder = 1110,
    Uncovered = 1111,
    PartialResult = 1112,
    RunsTwice = 1113,
    MarkedLoop = 1114,
    InlineReduction = 1115,
    InlineGuarded = 1116,
    NotOneStore = 1117,
    NotElementwise = 1118,
    ReadsItself = 1119,
    OverwrittenLater = 1120,
    SeveralProducers = 1121,
    OtherReader = 1122,
    OtherDomain = 1123,
    NoInit = 1124,
    NotAround = 1125,
    ReductionOutside = 1126,
    MixedLoop = 1127,
    NotReductionLoop = 1128,
    NotReducer = 1129,
    NotAlone = 1130,
    FactorAxis = 1131,
    PartOfDomain = 1132,
    InitNotFirst = 1133,
});

impl BlockError {
    /// The names that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use BlockError as E;
        match self {
            E::DoesNotRead { block, buffer, reads: _ } => vec![buffer, block],
            E::WritesNothing { block }
            | E::NoReaders { block }
            | E::NoProducers { block }
            | E::InlineReduction { block }
            | E::InlineGuarded { block }
            | E::NotOneStore { block }
            | E::NoInit { block }
            | E::NotReducer { block }
            | E::PartOfDomain { block }
            | E::FactorAxis { block, axis: _, rank: _ } => vec![block],
            E::NotOnlyWriter { block, buffer, other }
            | E::OutOfOrder { block, other, buffer }
            | E::OverwrittenLater { block, buffer, other }
            | E::OtherReader { block, buffer, other } => vec![block, other, buffer],
            E::AlreadyUnder { block, loop_name }
            | E::RunsTwice { block, loop_name }
            | E::MarkedLoop { block, loop_name }
            | E::NotAround { block, loop_name }
            | E::MixedLoop { block, loop_name }
            | E::NotReductionLoop { block, loop_name }
            | E::InitNotFirst { block, loop_name }
            | E::NotAlone { block, loop_name } => vec![loop_name, block],
            E::WritesOutput { block, buffer }
            | E::NotElementwise { block, buffer }
            | E::ReadsItself { block, buffer } => vec![block, buffer],
            E::ReaderOutside { block, other, buffer, loop_name }
            | E::ProducerOutside { block, other, buffer, loop_name } => {
                vec![loop_name, other, block, buffer]
            }
            E::Uncovered { reader, writer, buffer, is_moved: _ } => vec![reader, writer, buffer],
            E::PartialResult { block, producer, loop_name } => vec![loop_name, block, producer],
            E::OtherDomain { block, producer, buffer } => vec![block, producer, buffer],
            E::SeveralProducers { block, first, second } => vec![block, first, second],
            E::ReductionOutside { block, outer, loop_name } => vec![loop_name, outer, block],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        use BlockError as E;
        match self {
            E::DoesNotRead { reads, .. } => {
                let reads: Vec<_> = reads.iter().map(|it| format!("`{it}`")).collect();
                Some(format!("it reads {}", reads.join(", ")))
            }
            E::MarkedLoop { .. } => Some("move the block first, then bind, vectorize or annotate".into()),
            E::PartialResult { producer, .. } => {
                Some(format!("name a loop outside the reduction of `{producer}`"))
            }
            E::ReductionOutside { outer, .. } => Some(format!("name `{outer}` or a loop outside it")),
            E::InlineReduction { .. } => Some(
                "move it instead: `compute_at` under its readers, `reverse_compute_at` under its producers"
                    .into(),
            ),
            E::ReaderOutside { .. } => {
                Some("name a loop around all readers, or `cache_read` for one of them".into())
            }
            E::WritesOutput { block, .. } => {
                Some(format!("`cache_write` makes a temporary of `{block}`'s own, and that is moved"))
            }
            E::NotOnlyWriter { .. } => {
                Some("move the block before `decompose_reduction` makes two of it".into())
            }
            E::NoReaders { .. } => {
                Some("`reverse_compute_at` moves a block under one whose results it reads".into())
            }
            E::NoProducers { .. } => Some("`compute_at` moves a block under what reads it".into()),
            E::ProducerOutside { other, .. } => Some(format!("move `{other}` under the loop first")),
            E::Uncovered { writer, is_moved, .. } => Some(uncovered_help(writer, *is_moved)),
            E::InlineGuarded { .. } => Some("inline it before its loops are split".into()),
            E::ReadsItself { .. } => Some("`cache_write` makes a copy of what a block has written".into()),
            E::SeveralProducers { .. } | E::OtherReader { .. } => Some(
                "`reverse_compute_at` moves it under a producer, `compute_inline` puts a producer into it"
                    .into(),
            ),
            E::MixedLoop { .. } | E::NotAlone { .. } => {
                Some("do this step before the loops are fused or shared".into())
            }
            E::InitNotFirst { .. } => {
                Some("name a loop inside, so that fewer iterations share one init".into())
            }
            E::NotAround { .. } => Some("name a loop around the block".into()),
            E::PartOfDomain { .. } => {
                Some("let the loops around it run through all values of its iterators".into())
            }
            E::WritesNothing { .. }
            | E::AlreadyUnder { .. }
            | E::OutOfOrder { .. }
            | E::RunsTwice { .. }
            | E::NotOneStore { .. }
            | E::NotElementwise { .. }
            | E::OverwrittenLater { .. }
            | E::OtherDomain { .. }
            | E::NoInit { .. }
            | E::NotReductionLoop { .. }
            | E::NotReducer { .. }
            | E::FactorAxis { .. } => None,
        }
    }
}

/// What to try where a block would read what `writer` has not written: moving that, unless the step did just that.
fn uncovered_help(writer: &Name, is_moved: bool) -> String {
    if is_moved {
        return "which part is needed is not known there: name a loop further out, or give symbolic sizes values".into();
    }
    format!("`compute_at` of `{writer}` moves as much as is read")
}
