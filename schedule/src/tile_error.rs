//! Why a step that makes blocks of tiles, or pads what they work on, is refused.

use ir::{Index, Name};

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
}

impl TileError {
    /// The names that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        use TileError as E;
        match self {
            E::NotOneBlock { loop_name } => vec![loop_name],
            E::MarkedInside { block, loop_name, kind: _ }
            | E::GuardInside { block, loop_name, guard: _ }
            | E::NotATile { block, iter: _, binding: _, loop_name } => vec![loop_name, block],
            E::NotWhole { block, iter: _, tile: _, what: _, of: _ } => vec![block],
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
            E::NotATile { .. } => {
                "split each loop by the size of the tile, and reorder the inner loops to be the innermost ones"
            }
        };
        Some(help.to_owned())
    }
}
