//! `wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8`.

use crate::Feature;
use super::{
    Instruction, Intrinsic,
    lane_map::D_64X8,
};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "wgmma_m64k32_s8_s32",
    about: "Multiplies 64x32 by 32xN elements of i8, N 8, 16, 24 or a multiple of 16 up to 256, and adds the products up in i32, while the warpgroup goes on.",
    needs: Feature::Wgmma,
    types: &[],
    description: "\
func wgmma(n)
  out C: i32[64, n] @fragment
  in A: i8[64, 32] @shared
  in B: i8[32, n] @shared

  block C()
    for i in 0..64
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + i32(A[i, k]) * i32(B[k, j])
",
    instruction: Instruction::Wgmma {
        types: ".s32.s8.s8",
        sum: &D_64X8,
        left: None,
        k: 32,
        transposes: false,
    },
};
