//! What lanes of a warp reduce together.

use ir::{BinaryOp, DType};

use super::{
    exec::{Machine, Mask, lanes},
    index::WARP,
    program::Elements,
    value::binary,
};

/// A reduction with its operand resolved.
#[derive(Debug)]
pub(crate) struct WarpReduceCode {
    pub(crate) word: &'static str,
    pub(crate) op: BinaryOp,
    pub(crate) dtype: DType,
    /// How many lanes reduce together.
    pub(crate) width: u32,
    pub(crate) operand: Elements,
}

impl<'p> Machine<'p, '_, '_> {
    /// Combines lanes in pairs that differ in one bit, the highest first. All lanes of a group must be there.
    pub(crate) fn warp_reduce(
        &mut self,
        site: u32,
        place: &'p Elements,
        code: &'p WarpReduceCode,
        mask: Mask,
    ) {
        let width = code.width as usize;
        let group = |lane: usize| (Mask::MAX >> (WARP - width)) << (lane / width * width);
        let present = lanes(mask).map(group).fold(0, |all, it| all | it);
        if present != mask {
            self.partial(site, mask | !present, code.word);
        }
        let mut own = [0.0; WARP];
        self.load(site, &code.operand, 0, mask, &mut own);
        let mut bit = width / 2;
        while bit > 0 {
            let mut other = [0.0; WARP];
            (0..WARP).for_each(|lane| other[lane] = own[lane ^ bit]);
            // Operations with an identity divide by nothing.
            let _ = binary(code.op, code.dtype, mask, &mut own, &other);
            bit /= 2;
        }
        self.assign(site, place, &mut [own], mask);
    }
}
