//! `tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale` with factors of e2m1 and scales of ue4m3.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_scaled_m128k64_e2m1_e4m3_f32",
    about: "Multiplies 128x64 by 64xN floats e2m1, two in each byte, N 128 or 256, where each 16 of a row of the left factor and of a column of the right one have a scale of their own, and adds the products up in f32 in tensor memory: the format NVFP4. Scales are read as ue4m3, without a sign. `tcgen05_cp` brings them to tensor memory.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "\
func tcgen05_scaled(n)
  out C: f32[128, n] @tensor
  in A: u8[128, 32] @shared
  in SA: f8e4m3[32, 16] @tensor
  in B: u8[32, n] @shared
  in SB: f8e4m3[(n + 127) floordiv 128, 32, 16] @tensor

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + dot_e2m1x2(A[i, k], B[k, j]) * (abs(f32(SA[i mod 32, i floordiv 32 * 4 + k floordiv 8])) * abs(f32(SB[j floordiv 128, j mod 32, j floordiv 32 mod 4 * 4 + k floordiv 8])))
",
    instruction: Instruction::Tcgen05(ProductKind { name: "mxf4nvf4", format: 1, k: 32, transposes: false, blocks: 1, scaled: Some(8) }),
};
