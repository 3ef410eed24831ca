use std::sync::Arc;

use ir::{Name, Stmt};
use serde::{Deserialize, Serialize};

use crate::{Primitive, ScheduleError, ScheduleState, tile::blockized};

/// Takes the loops over the elements of a tile into the block, which then works on one tile at a time.
///
/// ```text
/// blockize(loop: "ii")
///
/// for io in 0..n/16 { for jo in 0..m { for ii in 0..16 { C[vi, vj] = f(vi, vj) with vi = io*16 + ii, vj = jo } } }
/// ->
/// for io in 0..n/16 { for jo in 0..m { with vi = io, vj = jo: for ii in 0..16 { C[vi*16 + ii, vj] = f(vi*16 + ii, vj) } } }
/// ```
///
/// The loop and all loops in it, down to one block, come into the block's body, where later steps leave them alone.
/// The iterators that they drive count tiles from then on; the block keeps its name. An init gets loops of its own,
/// named `{loop}_init`. Each such iterator has to be `outer*T + x`, where the loops make `x` run through `0..T`, and
/// `T` has to divide its extent; the loops are of constant extents, serial or unrolled, without annotations, and no
/// guard of the block is about them; an unrolled loop is a plain one inside the block. What the program computes, and in which order, does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blockize {
    /// The outermost of the loops that come into the block.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for Blockize {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = blockized(state, &self.target)?;

        state.func.replace_loop(&self.target, |_| Stmt::Block(Arc::new(block)));
        Ok(())
    }
}
