//! `mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::{C_16X8, A_16X16, B_16X8},
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "mma_m16n8k16_bf16_f32",
    about: "Multiplies 16x16 by 16x8 elements of bf16 and adds the products up in f32.",
    needs: Feature::MmaBf16,
    types: &[],
    description: "\
func mma()
  out C: f32[16, 8] @fragment
  in A: bf16[16, 16] @fragment
  in B: bf16[16, 8] @fragment

  block C()
    for i in 0..16
      for j in 0..8
        for k in 0..16
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Mma {
        opcode: "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        c: &C_16X8,
        a: &A_16X16,
        b: &B_16X8,
    },
};
