//! `wgmma.mma_async.sync.aligned.m64nNk32.f32.e5m2.e5m2`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::D_64X8,
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "wgmma_m64k32_e5m2_f32",
    about: "Multiplies 64x32 by 32xN elements of f8e5m2, N a multiple of 8 up to 256, and adds the products up in f32, while the warpgroup goes on.",
    needs: Feature::Wgmma,
    types: &[],
    description: "\
func wgmma(n)
  out C: f32[64, n] @fragment
  in A: f8e5m2[64, 32] @shared
  in B: f8e5m2[32, n] @shared

  block C()
    for i in 0..64
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Wgmma {
        types: ".f32.e5m2.e5m2",
        sum: &D_64X8,
        left: None,
        k: 32,
        transposes: false,
    },
};
