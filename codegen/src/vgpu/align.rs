//! Where accesses of several elements may begin: a GPU moves 2, 4, 8 or 16 bytes with one instruction, and only from addresses
//! that are multiples of as many.

use ir::{DType, intrin::Instruction};

use super::{
    Finding,
    exec::{Machine, Mask, lanes},
    index::WARP,
    program::Elements,
    tell::MISALIGNED,
};

/// The most bytes that one instruction moves for a thread; a row of a matrix load or store is as long.
const PIECE: i64 = 16;

/// The bytes of a register, which tensor instructions take whole.
pub(crate) const REGISTER: i64 = 4;

/// What adjacent elements begin at a multiple of, in bytes. Longer vectors than [`PIECE`], and those of no power of two, move in
/// pieces.
pub(crate) fn of_vector(dtype: DType, lanes: u32) -> i64 {
    let bytes = dtype.bytes() * lanes as usize;
    if lanes == 1 { 1 } else { 1 << bytes.trailing_zeros().min(PIECE.trailing_zeros()) }
}

/// What an operand of an intrinsic begins at a multiple of.
pub(crate) fn of_operand(instruction: Instruction) -> i64 {
    match instruction {
        Instruction::Ldmatrix { .. } => PIECE,
        Instruction::Stmatrix { .. }
        | Instruction::Mma { .. }
        | Instruction::Wgmma { .. }
        | Instruction::Tcgen05(_)
        | Instruction::TensorCopy
        | Instruction::TensorLoad(_)
        | Instruction::Lanes(_) => REGISTER,
    }
}

/// What the place of its result begins at a multiple of.
pub(crate) fn of_result(instruction: Instruction) -> i64 {
    match instruction {
        Instruction::Stmatrix { .. } => PIECE,
        Instruction::Ldmatrix { .. }
        | Instruction::Mma { .. }
        | Instruction::Wgmma { .. }
        | Instruction::Tcgen05(_)
        | Instruction::TensorCopy
        | Instruction::TensorLoad(_)
        | Instruction::Lanes(_) => REGISTER,
    }
}

impl Machine<'_, '_, '_> {
    /// Looks whether the addresses of some lanes are multiples of what the access asks for.
    pub(crate) fn expect_aligned(&mut self, site: u32, place: &Elements, mask: Mask) {
        if place.align <= 1 {
            return;
        }
        let buffer = &self.program.buffers[place.buffer];
        let each = buffer.dtype.bytes_i64();
        let mut offsets = [0; WARP];
        self.index(&place.index, &mut offsets);
        let byte = |lane: usize| offsets[lane].wrapping_mul(each).wrapping_add(buffer.start);
        let is_odd = |lane: &usize| byte(*lane) & (place.align - 1) != 0;
        if let Some(lane) = lanes(mask).find(is_odd) {
            self.misaligned(site, place, offsets[lane], byte(lane), lane);
        }
    }

    #[cold]
    fn misaligned(&mut self, site: u32, place: &Elements, element: i64, byte: i64, lane: usize) {
        let key = self.key(MISALIGNED, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, lane));
            let buffer = &self.program.buffers[place.buffer];
            let (name, align, shared) = (buffer.name.clone(), place.align, buffer.space.is_of_blocks());
            self.run
                .sink
                .keep(key, Finding::Misaligned { buffer: name, element, byte, shared, align, access });
        }
    }
}
