//! `wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::D_64X8,
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "wgmma_m64k8_tf32_f32",
    about: "Multiplies 64x8 by 8xN elements of tf32, N a multiple of 8 up to 256, and adds the products up in f32, while the warpgroup goes on.",
    needs: Feature::Wgmma,
    types: &[],
    description: "\
func wgmma(n)
  out C: f32[64, n] @fragment
  in A: tf32[64, 8] @shared
  in B: tf32[8, n] @shared

  block C()
    for i in 0..64
      for j in 0..n
        for k in 0..8
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Wgmma {
        types: ".f32.tf32.tf32",
        sum: &D_64X8,
        left: None,
        k: 8,
        transposes: false,
    },
};
