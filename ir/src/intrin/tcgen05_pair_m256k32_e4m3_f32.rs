//! `tcgen05.mma.cta_group::2.kind::f8f6f4` with factors of e4m3.

use crate::Feature;
use super::{Instruction, Intrinsic, ProductKind};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_pair_m256k32_e4m3_f32",
    about: "Multiplies 256x32 by 32xN elements of f8e4m3 for a pair of blocks of a cluster, N a multiple of 32 up to 256, and adds the products up in f32 in the tensor memory of both. Each block has 128 of the rows, as described, and keeps half of the columns of the right factor for both; one thread of the first block starts it.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "\
func tcgen05_pair(n)
  out C: f32[128, n] @tensor
  in A: f8e4m3[128, 32] @shared
  in B: f8e4m3[32, n] @shared

  block C()
    for i in 0..128
      for j in 0..n
        for k in 0..32
          C[i, j] = C[i, j] + f32(A[i, k]) * f32(B[k, j])
",
    instruction: Instruction::Tcgen05(ProductKind { name: "f8f6f4", format: 0, k: 32, transposes: false, blocks: 2, scaled: None }),
};
