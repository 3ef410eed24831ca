//! Where a program that is refused is wrong, and what to do instead.

use std::ops::Range;

use super::{Part, VerifyError, VerifyErrorKind as E};
use crate::text::Listing;

impl VerifyError {
    /// Whether it is a buffer that is wrong: a block may have the same name.
    pub fn is_of_buffer(&self) -> bool {
        matches!(
            self.kind,
            E::ParameterScope { .. }
                | E::Align { .. }
                | E::Swizzle(_)
                | E::SwizzleScope { .. }
                | E::NeverWritten
                | E::NotInScope { part: Part::Shape, .. }
                | E::Extent { part: Part::Shape, .. }
        )
    }

    /// The bytes of the line that introduces what is wrong.
    pub fn place<'a>(&self, listing: &'a Listing) -> Option<&'a Range<usize>> {
        let declared = listing.buffers.get(&self.at).filter(|_| self.is_of_buffer());
        declared.or_else(|| listing.heads.get(&self.at))
    }
}

impl E {
    /// What to do instead, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            E::InvalidName { .. } | E::ReservedName { .. } | E::NameTaken { .. } => "give it another name",
            E::NotInScope { is_loop: true, .. } => "give the block an iterator that is bound to the loop",
            E::ParameterScope { .. } => "copy it to that memory in a block, into a `temp`",
            E::SwizzleScope { .. } => "let it be `@shared`, or leave the swizzle out",
            E::NeverWritten => "write it in a block, or leave it out",
            E::InputWritten { .. } => "make it an `out`, or write another buffer",
            E::StoreOutsideBlock { .. } => "put the store into a block",
            E::NestedBlock { .. } => "put one block after the other, or make one of both",
            E::InnerLoop { .. } => "take the loop out of the block, around it",
            E::EmptyLoop | E::NoStore => "leave it out",
            E::AxisTwice { .. } => "bind the inner loop to another axis",
            E::InitWithoutReduction => "leave the init out, or make one of the iterators `reduce`",
            E::InitWritesOther { .. } => "let the init write what the body writes",
            E::Lanes { .. } => "leave the lanes to `vectorize`",
            E::Instruction { .. } => {
                "write the loops; lowering puts instructions in, those of warps where `tensorize` asks for them"
            }
            E::IndexType { .. } => "convert it to an integer first, and that to the wanted type",
            E::OperandTypes { .. } | E::StoreType { .. } => "convert one of them: `f32(x)`",
            E::OutOfDomain { .. } => "guard the block, or make the domain larger",
            E::OutOfBounds { .. } => "read the element under a `select`, or make the buffer larger",
            E::DomainOverflow { .. } | E::SubscriptOverflow { .. } => "use smaller factors",
            E::TooLarge => "make the buffers smaller",
            E::Below => "leave `below` out, or make it an `in` of integers",
            E::Element { .. } => {
                "declare the input as `in ids: i32[n] below v`, and read `E[assume(ids[vi] < v), vj]`"
            }
            E::NotInScope { is_loop: false, .. }
            | E::Extent { .. }
            | E::Align { .. }
            | E::Swizzle(_)
            | E::Sequence
            | E::EmptyKey
            | E::Divisor { .. }
            | E::NoSuchBuffer { .. }
            | E::Rank { .. }
            | E::Literal { .. }
            | E::OperandType { .. } => return None,
        };
        Some(help.to_owned())
    }
}
