//! `tcgen05.mma.cta_group::1.kind::i8`.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_m128k32_s8_s32",
    about: "Multiplies 128x32 by 32xN elements of i8, N a multiple of 16 up to 256, and adds the products up in i32 in tensor memory. One thread starts it, and the tensor core works while all threads go on.",
    needs: Feature::Tcgen05I8,
    types: &[],
    description: "\
func tcgen05(n)
  out C: i32[128, n] @tensor
  in A: i8[128, 32] @shared
  in B: i8[32, n] @shared

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + i32(A[i, k]) * i32(B[k, j])
",
    instruction: Instruction::Tcgen05(ProductKind { name: "i8", format: 1, k: 32, transposes: false, blocks: 1, scaled: None }),
};
