//! `tcgen05.mma.cta_group::1.kind::tf32` with factors of tf32.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_m128k8_tf32_f32",
    about: "Multiplies 128x8 by 8xN elements of tf32, N a multiple of 16 up to 256, and adds the products up in f32 in tensor memory. One thread starts it, and the tensor core works while all threads go on.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "\
func tcgen05(n)
  out C: f32[128, n] @tensor
  in A: tf32[128, 8] @shared
  in B: tf32[8, n] @shared

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..8
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Tcgen05(ProductKind { name: "tf32", format: 2, k: 8, transposes: false, blocks: 1, scaled: None }),
};
