//! `tcgen05.mma.cta_group::2.kind::i8`.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_pair_m256k32_s8_s32",
    about: "Multiplies 256x32 by 32xN elements of i8 for a pair of blocks of a cluster, N a multiple of 32 up to 256, and adds the products up in i32 in the tensor memory of both. Each block has 128 of the rows, as described, and keeps half of the columns of the right factor for both; one thread of the first block starts it.",
    needs: Feature::Tcgen05I8,
    types: &[],
    description: "\
func tcgen05_pair(n)
  out C: i32[128, n] @tensor
  in A: i8[128, 32] @shared
  in B: i8[32, n] @shared

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + i32(A[i, k]) * i32(B[k, j])
",
    instruction: Instruction::Tcgen05(ProductKind { name: "i8", format: 1, k: 32, transposes: false, blocks: 2, scaled: None }),
};
