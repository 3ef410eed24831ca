//! `mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::{C_16X8, A_16X32, B_32X8},
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "mma_m16n8k32_s8_s32",
    about: "Multiplies 16x32 by 32x8 elements of i8 and adds the products up in i32.",
    needs: Feature::MmaI8,
    types: &[],
    description: "\
func mma()
  out C: i32[16, 8] @fragment
  in A: i8[16, 32] @fragment
  in B: i8[32, 8] @fragment

  block C()
    for i in 0..16
      for j in 0..8
        for k in 0..32
          C[i, j] = C[i, j] + i32(A[i, k]) * i32(B[k, j])
",
    instruction: Instruction::Mma {
        opcode: "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        c: &C_16X8,
        a: &A_16X32,
        b: &B_32X8,
    },
};
