//! `mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::{C_16X8, A_16X8, B_8X8},
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "mma_m16n8k8_tf32_f32",
    about: "Multiplies 16x8 by 8x8 elements of tf32 and adds the products up in f32.",
    needs: Feature::MmaTf32,
    types: &[],
    description: "\
func mma()
  out C: f32[16, 8] @fragment
  in A: tf32[16, 8] @fragment
  in B: tf32[8, 8] @fragment

  block C()
    for i in 0..16
      for j in 0..8
        for k in 0..8
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Mma {
        opcode: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        c: &C_16X8,
        a: &A_16X8,
        b: &B_8X8,
    },
};
