//! Prints and parses what the tensor core does with tensor memory.

use std::fmt::{self, Display, Formatter};

use super::{
    lex::{Cursor, Failure},
    wgmma::{Starts, starts},
};
use crate::{
    Instr, Tcgen05, Tile,
    intrin::{Instruction, Intrinsic},
};

impl Display for Tcgen05 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tcgen05 { intrinsic, place, operands, starts } = self;
        write!(f, "{place} <- {}(", intrinsic.name)?;
        for (at, it) in operands.iter().enumerate() {
            write!(f, "{}{it}", if at > 0 { ", " } else { "" })?;
        }
        write!(f, "){}", Starts(starts.as_deref()))
    }
}

/// `A_pad[0; 128 x 16], B_pad[0; 256 x 16]) from zero if ko < 1`, behind the opening parenthesis.
pub(super) fn operation(
    line: &mut Cursor<'_>,
    intrinsic: &'static Intrinsic,
    place: Tile,
) -> Result<Instr, Failure> {
    let operands = line.list(")", Cursor::tile)?;
    let is_product = matches!(intrinsic.instruction, Instruction::Tcgen05(_));
    let starts = if is_product { starts(line)? } else { None };
    Ok(Instr::Tcgen05(Box::new(Tcgen05 { intrinsic, place, operands, starts })))
}
