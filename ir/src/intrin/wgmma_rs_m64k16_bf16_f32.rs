//! `wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16`, the left factor in registers.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::{A_64X16, D_64X8},
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "wgmma_rs_m64k16_bf16_f32",
    about: "Multiplies 64x16 by 16xN elements of bf16 with the left factor in registers, N a multiple of 8 up to 256, and adds the products up in f32, while the warpgroup goes on.",
    needs: Feature::Wgmma,
    types: &[],
    description: "\
func wgmma(n)
  out C: f32[64, n] @fragment
  in A: bf16[64, 16] @fragment
  in B: bf16[16, n] @shared

  block C()
    for i in 0..64
      for j in 0..n
        for k in 0..16
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Wgmma {
        types: ".f32.bf16.bf16",
        sum: &D_64X8,
        left: Some(&A_64X16),
        k: 16,
        transposes: true,
    },
};
