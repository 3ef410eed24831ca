//! Prints and parses products whose sums are in tensor memory.

use std::fmt::{self, Display, Formatter};

use super::{
    lex::{Cursor, Failure},
    wgmma::{Starts, starts},
};
use crate::{Instr, Tcgen05, Tile, intrin::Intrinsic};

impl Display for Tcgen05 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tcgen05 { intrinsic, sum, left, right, starts } = self;
        write!(f, "{sum} <- {}({left}, {right}){}", intrinsic.name, Starts(starts.as_deref()))
    }
}

/// `A_pad[0; 128 x 16], B_pad[0; 256 x 16]) from zero if ko < 1`, behind the opening parenthesis.
pub(super) fn product(
    line: &mut Cursor<'_>,
    intrinsic: &'static Intrinsic,
    sum: Tile,
) -> Result<Instr, Failure> {
    let left = line.tile()?;
    line.expect(",")?;
    let right = line.tile()?;
    line.expect(")")?;
    Ok(Instr::Tcgen05(Box::new(Tcgen05 { intrinsic, sum, left, right, starts: starts(line)? })))
}
