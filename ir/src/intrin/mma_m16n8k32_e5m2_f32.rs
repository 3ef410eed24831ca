//! `mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::{C_16X8, A_16X32, B_32X8},
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "mma_m16n8k32_e5m2_f32",
    about: "Multiplies 16x32 by 32x8 elements of f8e5m2 and adds the products up in f32.",
    needs: Feature::MmaF8,
    types: &[],
    description: "\
func mma()
  out C: f32[16, 8] @fragment
  in A: f8e5m2[16, 32] @fragment
  in B: f8e5m2[32, 8] @fragment

  block C()
    for i in 0..16
      for j in 0..8
        for k in 0..32
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Mma {
        opcode: "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
        c: &C_16X8,
        a: &A_16X32,
        b: &B_32X8,
    },
};
