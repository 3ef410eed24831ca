//! `tcgen05.cp.32x128b.warpx4`.

use crate::{DType, Feature};
use super::{Instruction, Intrinsic};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "tcgen05_cp",
    about: "Copies the scales of 128 rows of a factor from shared to tensor memory, where `tcgen05_scaled` products read them: row r and block k of the factor have element [r mod 32, r floordiv 32 * 4 + k]. One thread starts it, and the tensor core copies while all threads go on.",
    needs: Feature::Tcgen05,
    types: &[DType::F8e4m3, DType::F8e8m0],
    description: "\
func tcgen05_cp()
  out D: T[32, 16] @tensor
  in S: T[32, 16] @shared

  block D()
    for i in 0..32
      for j in 0..16
        D[i, j] = S[i, j]
",
    instruction: Instruction::TensorCopy,
};
