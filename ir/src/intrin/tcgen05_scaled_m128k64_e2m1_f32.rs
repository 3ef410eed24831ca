//! `tcgen05.mma.cta_group::1.kind::mxf4.block_scale` with factors of e2m1 and scales of ue8m0.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_scaled_m128k64_e2m1_f32",
    about: "Multiplies 128x64 by 64xN floats e2m1, two in each byte, N 128 or 256, where each 32 of a row of the left factor and of a column of the right one have a power of two as their scale, and adds the products up in f32 in tensor memory: the format MXFP4. `tcgen05_cp` brings scales to tensor memory, those of two products at once.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "\
func tcgen05_scaled(n)
  out C: f32[128, n] @tensor
  in A: u8[128, 32] @shared
  in SA: f8e8m0[32, 16] @tensor
  in B: u8[32, n] @shared
  in SB: f8e8m0[(n + 127) floordiv 128, 32, 16] @tensor

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + dot_e2m1x2(A[i, k], B[k, j]) * (f32(SA[i mod 32, i floordiv 32 * 4 + k floordiv 16]) * f32(SB[j floordiv 128, j mod 32, j floordiv 32 mod 4 * 4 + k floordiv 16]))
",
    instruction: Instruction::Tcgen05(ProductKind { name: "mxf4", format: 1, k: 32, transposes: false, blocks: 1, scaled: Some(16) }),
};
