//! Prints and parses asynchronous products.

use std::fmt::{self, Display, Formatter};

use super::{
    expr::All,
    lex::{Cursor, Failure},
};
use crate::{Access, Factor, Instr, Tile, Wgmma, intrin::Intrinsic};

impl Display for Wgmma {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Wgmma { intrinsic, place, left, right, starts } = self;
        write!(f, "{place} <- {}(", intrinsic.name)?;
        match left {
            Factor::Shared(it) => write!(f, "{it}")?,
            Factor::Registers(it) => write!(f, "{it}")?,
        }
        write!(f, ", {right})")?;
        match starts.as_deref() {
            None => Ok(()),
            Some([]) => f.write_str(" from zero"),
            Some(conditions) => write!(f, " from zero if {}", All(conditions)),
        }
    }
}

/// `A_pad[0; 64 x 16], B_pad[0; 16 x 256]) from zero if ko < 1`, behind the opening parenthesis.
pub(super) fn product(
    line: &mut Cursor<'_>,
    intrinsic: &'static Intrinsic,
    place: Access,
) -> Result<Instr, Failure> {
    let (first, extents) = line.boxed_with_matrix()?;
    let left = match extents {
        Some((extents, matrix)) => Factor::Shared(Tile { first, extents, matrix }),
        None => Factor::Registers(first),
    };
    line.expect(",")?;
    let right = line.tile()?;
    line.expect(")")?;
    let mut starts = None;
    if line.eat_word("from") {
        line.expect_word("zero")?;
        starts = Some(if line.eat_word("if") { line.conditions()? } else { vec![] });
    }
    Ok(Instr::Wgmma(Wgmma { intrinsic, place, left, right, starts }))
}
