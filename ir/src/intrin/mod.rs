//! Tensor intrinsics: instructions that the lanes of a warp or of a warpgroup execute together, as data.
//!
//! A tensorised block is an ordinary block with the annotation [`TENSORIZE`]: its body computes what the
//! intrinsic's [`description`](Intrinsic::description) says, element by element, and means just that to whatever asks
//! for its meaning. Only the lowering to kernels puts the instruction in the place of the body, after [`matched`] has
//! compared the two once more.
//!
//! The elements of a fragment are spread over the lanes by a [`LaneMap`]; which one, the `mma` intrinsic says that
//! computes with the fragment. What fills a fragment by a matrix load (`ldmatrix`) must put each element where that
//! map wants it.
//!
//! To add an intrinsic, write a file that has its data, and name it in the list below.

mod described;
mod fragment;
mod intrinsic;
mod lane_map;
mod matching;
mod pair;

pub use described::{of_types, operand_types};
pub use fragment::{Fragment, FragmentError, LdmatrixError, Rows, fragments, matrix_element, rows};
pub use intrinsic::{Instruction, Intrinsic, ProductKind, TENSORIZE};
pub use lane_map::{LaneMap, WARP, WARPGROUP};
pub use matching::{Extents, Matched, Mismatch, Operand, matched};
pub use pair::sharing;

use crate::DType;

/// Declares the modules of the intrinsics and lists what they hold.
macro_rules! intrinsics {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*

        /// Every intrinsic, in alphabetical order.
        pub static ALL: &[&Intrinsic] = &[$(&$file::INTRINSIC),*];
    };
}

intrinsics![
    lanes_k16n8,
    lanes_k32n8,
    lanes_k8n8,
    lanes_m128n8,
    lanes_m16k16,
    lanes_m16k32,
    lanes_m16k8,
    lanes_m16n8,
    lanes_m64k16,
    lanes_m64n8,
    ldmatrix_x1,
    ldmatrix_x1_trans,
    ldmatrix_x2,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16_bf16_f32,
    mma_m16n8k16_f16_f16,
    mma_m16n8k16_f16_f32,
    mma_m16n8k32_e4m3_f32,
    mma_m16n8k32_e5m2_f32,
    mma_m16n8k32_s8_s32,
    mma_m16n8k8_tf32_f32,
    stmatrix_x1,
    stmatrix_x1_trans,
    stmatrix_x2,
    stmatrix_x2_trans,
    stmatrix_x4,
    stmatrix_x4_trans,
    tcgen05_cp,
    tcgen05_ld,
    tcgen05_m128k16_bf16_f32,
    tcgen05_m128k16_f16_f32,
    tcgen05_m128k32_e4m3_f32,
    tcgen05_m128k32_e5m2_f32,
    tcgen05_m128k32_s8_s32,
    tcgen05_m128k8_tf32_f32,
    tcgen05_pair_m256k16_bf16_f32,
    tcgen05_pair_m256k16_f16_f32,
    tcgen05_pair_m256k32_e4m3_f32,
    tcgen05_pair_m256k32_e5m2_f32,
    tcgen05_pair_m256k32_s8_s32,
    tcgen05_pair_m256k8_tf32_f32,
    tcgen05_scaled_m128k32_e4m3_f32,
    tcgen05_scaled_m128k32_e5m2_f32,
    tcgen05_scaled_m128k64_e2m1_e4m3_f32,
    tcgen05_scaled_m128k64_e2m1_f32,
    wgmma_m64k16_bf16_f32,
    wgmma_m64k16_f16_f16,
    wgmma_m64k16_f16_f32,
    wgmma_m64k32_e4m3_f32,
    wgmma_m64k32_e5m2_f32,
    wgmma_m64k32_s8_s32,
    wgmma_m64k8_tf32_f32,
    wgmma_rs_m64k16_bf16_f32,
    wgmma_rs_m64k16_f16_f32,
];

/// The intrinsic of a name.
pub fn find(name: &str) -> Option<&'static Intrinsic> {
    ALL.iter().copied().find(|it| it.name == name)
}

/// What the names of the products begin with that differ in types and shapes only, in alphabetical order: `mma`,
/// `tcgen05`, `tcgen05_pair`, `tcgen05_scaled`, `wgmma`, `wgmma_rs`.
pub fn families() -> Vec<&'static str> {
    let mut out: Vec<_> = ALL.iter().filter_map(|it| it.family()).collect();
    out.dedup();
    out
}

/// What the descriptions of all matrix loads say: a copy of a tile whose size is that of the matrices.
const LDMATRIX: &str = "\
func ldmatrix(rows, cols)
  out D: T[rows, cols] @fragment
  in S: T[rows, cols] @shared

  block D()
    for i in 0..rows
      for j in 0..cols
        D[i, j] = S[i, j]
";

/// What the descriptions of all matrix stores say.
const STMATRIX: &str = "\
func stmatrix(rows, cols)
  out D: T[rows, cols] @shared
  in S: T[rows, cols] @fragment

  block D()
    for i in 0..rows
      for j in 0..cols
        D[i, j] = S[i, j]
";

/// The types that matrix loads move.
const LDMATRIX_TYPES: &[DType] = &[
    DType::F16,
    DType::Bf16,
    DType::Tf32,
    DType::F32,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::F8e4m3,
    DType::F8e5m2,
];

/// Those of them that transposing loads can take apart.
const LDMATRIX_TRANS_TYPES: &[DType] = &[DType::F16, DType::Bf16, DType::I16, DType::U16];

#[cfg(test)]
mod tests;
