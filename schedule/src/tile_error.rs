//! Why a step that makes blocks of tiles, or pads what they work on, is refused.

use ir::{
    Index, Name,
    intrin::{Extents, LaneMap, Mismatch},
};

/// Why a primitive on tiles is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum TileError {
    #[error("loop `{loop_name}` holds several statements side by side, and one block is needed")]
    NotOneBlock { loop_name: Name },
    #[error("loop `{loop_name}`, which would come into block `{block}`, is {kind}")]
    MarkedInside { block: Name, loop_name: Name, kind: &'static str },
    #[error("block `{block}` is guarded by `{guard}`, which is about a loop that would come into it")]
    GuardInside { block: Name, loop_name: Name, guard: String },
    #[error(
        "iterator `{iter}` of block `{block}` is `{binding}`, which does not run through a tile from 0 on while `{loop_name}` and the loops in it run"
    )]
    NotATile { block: Name, iter: Name, binding: Index, loop_name: Name },
    #[error("tiles of {tile} do not divide {what} `{of}` of iterator `{iter}` of block `{block}`")]
    NotWhole { block: Name, iter: Name, tile: i64, what: &'static str, of: Index },
    #[error("tensorize needs either a loop or, for an instruction, a block")]
    TensorizeWhat,
    #[error("block `{block}` is not what `{intrinsic}` does: {mismatch}")]
    Mismatch { block: Name, intrinsic: &'static str, mismatch: Mismatch },
    #[error(
        "loop `{loop_name}` and the loop in it are to be the {} rows and {} columns of {}, and run {} times",
        map.tile[0], map.tile[1], map.name, Extents(found.clone())
    )]
    LaneTile { loop_name: Name, map: &'static LaneMap, found: Vec<Index> },

    // Padding.
    #[error("block `{block}` cannot be padded: {why}")]
    NotAnEinsum { block: Name, why: &'static str },
    #[error("block `{block}` is no copy with padding: {why}")]
    NotAPadding { block: Name, why: &'static str },
    #[error(
        "block `{block}` uses `{buffer}` at `{index}`, and only iterators alone, each once, can be padded"
    )]
    NotAnIterator { block: Name, buffer: Name, index: Index },
    #[error("block `{block}` reduces over `{iter}`, and zeros beyond its end would change the result: {why}")]
    NotNeutral { block: Name, iter: Name, why: &'static str },
    #[error(
        "iterator `{iter}` of block `{block}` is `{binding}`, and each has to be a loop of its own, through all of its values"
    )]
    NotALoop { block: Name, iter: Name, binding: Index },
    #[error("{given} paddings are given for the {iters} iterators of block `{block}`")]
    PaddingCount { block: Name, given: usize, iters: usize },
    #[error(
        "the padding of iterator `{iter}` of block `{block}` is {padding}, which is not within 1..={}",
        i32::MAX
    )]
    PaddingRange { block: Name, iter: Name, padding: i64 },
}

ir::codes!(TileError {
    NotOneBlock = 1301,
    MarkedInside = 1302,
    GuardInside = 1303,
    NotATile = 1304,
    NotWhole = 1305,
    TensorizeWhat = 1306,
    Mismatch = 1307,
    LaneTile = 1308,
    NotAnEinsum = 1309,
    NotAPadding = 1310,
    NotAnIterator = 1311,
    NotNeutral = 1312,
    NotALoop = 1313,
    PaddingCount = 1314,
    PaddingRange = 1315,
});

impl TileError {
    /// The names that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use TileError as E;
        match self {
            E::NotOneBlock { loop_name } | E::LaneTile { loop_name, map: _, found: _ } => vec![loop_name],
            E::MarkedInside { block, loop_name, kind: _ }
            | E::GuardInside { block, loop_name, guard: _ }
            | E::NotATile { block, iter: _, binding: _, loop_name } => vec![loop_name, block],
            E::NotWhole { block, iter: _, tile: _, what: _, of: _ }
            | E::Mismatch { block, intrinsic: _, mismatch: _ }
            | E::NotAnEinsum { block, why: _ }
            | E::NotAPadding { block, why: _ }
            | E::PaddingCount { block, given: _, iters: _ } => vec![block],
            E::NotAnIterator { block, buffer, index: _ } => vec![block, buffer],
            E::NotNeutral { block, iter, why: _ }
            | E::NotALoop { block, iter, binding: _ }
            | E::PaddingRange { block, iter, padding: _ } => vec![iter, block],
            E::TensorizeWhat => vec![],
        }
    }

    /// What to try instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        use TileError as E;
        let help = match self {
            E::NotOneBlock { .. } => "name a loop around one block only, or move the others out of it",
            E::MarkedInside { .. } => {
                "the loops of a tile are serial; bind, vectorize and annotate those around it"
            }
            E::GuardInside { .. } | E::NotWhole { .. } => {
                "use factors that divide the loops, or `pad_einsum` the block first"
            }
            E::TensorizeWhat => "write `loop: \"ii\"` or `block: \"C\"`",
            E::Mismatch { mismatch, .. } => return mismatch.help().map(str::to_owned),
            E::LaneTile { .. } => {
                "split the two loops by the tile and reorder them: rows outside, columns inside"
            }
            E::NotATile { .. } => {
                "split each loop by the size of the tile, and reorder the inner loops to be the innermost ones"
            }
            E::NotNeutral { .. } => {
                "pad its other iterators only, or write the reduction as a sum of products"
            }
            E::NotALoop { .. } => "pad the block first, before its loops are split, fused or shared",
            E::PaddingCount { .. } => "give one number for each iterator, or a map from some of them",
            E::PaddingRange { .. } => "the extent becomes a multiple of it; 1 leaves it as it is",
            E::NotAPadding { .. } => "`pad_einsum` makes copies with padding",
            E::NotAnEinsum { .. } | E::NotAnIterator { .. } => return None,
        };
        Some(help.to_owned())
    }
}
