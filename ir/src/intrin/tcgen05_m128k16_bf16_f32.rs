//! `tcgen05.mma.cta_group::1.kind::f16` with factors of bf16.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_m128k16_bf16_f32",
    about: "Multiplies 128x16 by 16xN elements of bf16, N a multiple of 16 up to 256, and adds the products up in f32 in tensor memory. One thread starts it, and the tensor core works while all threads go on.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "\
func tcgen05(n)
  out C: f32[128, n] @tensor
  in A: bf16[128, 16] @shared
  in B: bf16[16, n] @shared

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..16
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Tcgen05(ProductKind { name: "f16", format: 1, k: 16, transposes: true, blocks: 1, scaled: None }),
};
