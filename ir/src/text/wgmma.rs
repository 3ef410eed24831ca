//! Prints and parses asynchronous products.

use std::fmt::{self, Display, Formatter};

use super::{
    expr::All,
    lex::{Cursor, Failure},
};
use crate::{Access, Factor, Instr, Less, Tile, Wgmma, intrin::Intrinsic};

impl Display for Wgmma {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Wgmma { intrinsic, place, left, right, starts } = self;
        write!(f, "{place} <- {}(", intrinsic.name)?;
        match left {
            Factor::Shared(it) => write!(f, "{it}")?,
            Factor::Registers(it) => write!(f, "{it}")?,
        }
        write!(f, ", {right}){}", Starts(starts.as_deref()))
    }
}

/// Where a sum starts from zero, behind a product.
pub(super) struct Starts<'a>(pub(super) Option<&'a [Less]>);

impl Display for Starts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some([]) => f.write_str(" from zero"),
            Some(conditions) => write!(f, " from zero if {}", All(conditions)),
        }
    }
}

/// Nothing, ` from zero` or ` from zero if ko < 1`.
pub(super) fn starts(line: &mut Cursor<'_>) -> Result<Option<Vec<Less>>, Failure> {
    if !line.eat_word("from") {
        return Ok(None);
    }
    line.expect_word("zero")?;
    Ok(Some(if line.eat_word("if") { line.conditions()? } else { vec![] }))
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
    let starts = starts(line)?;
    Ok(Instr::Wgmma(Wgmma { intrinsic, place, left, right, starts }))
}
