//! `tcgen05.ld.sync.aligned.32x32b`.

use crate::{DType, Feature};
use super::{Instruction, Intrinsic, lane_map::D_128X8};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_ld",
    about: "Copies 128xN elements of four bytes, N a power of two from 8 to 128, from tensor memory to registers: each lane of a warpgroup gets a row, and waits for it.",
    needs: Feature::Tcgen05,
    types: &[DType::F32, DType::I32],
    description: "\
func tcgen05_ld(n)
  out D: T[128, n] @fragment
  in S: T[128, n] @tensor

  block D()
    for i in 0..128
      for j in 0..n
        D[i, j] = S[i, j]
",
    instruction: Instruction::TensorLoad(&D_128X8),
};
