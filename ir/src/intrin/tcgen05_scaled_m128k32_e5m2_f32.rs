//! `tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale` with factors of e5m2.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_scaled_m128k32_e5m2_f32",
    about: "Multiplies 128x32 by 32xN elements of f8e5m2, N 128 or 256, each row of the left factor and each column of the right one by a scale of its own, and adds the products up in f32 in tensor memory: the format MXFP8. `tcgen05_cp` brings scales to tensor memory. One thread starts it, and the tensor core works while all threads go on.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "\
func tcgen05_scaled(n)
  out C: f32[128, n] @tensor
  in A: f8e5m2[128, 32] @shared
  in SA: f8e8m0[32, 16] @tensor
  in B: f8e5m2[32, n] @shared
  in SB: f8e8m0[(n + 127) floordiv 128, 32, 16] @tensor

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(SA[i mod 32, i floordiv 32 * 4]) * (f32(B[k, j]) * f32(SB[j floordiv 128, j mod 32, j floordiv 32 mod 4 * 4]))
",
    instruction: Instruction::Tcgen05(ProductKind { name: "mxf8f6f4", format: 1, k: 32, transposes: false, blocks: 1, scaled: Some(32) }),
};
