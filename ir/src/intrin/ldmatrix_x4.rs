//! `ldmatrix.sync.aligned.m8n8.x4.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX, LDMATRIX_TYPES};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "ldmatrix_x4",
    about: "Loads 4 matrices of 8 rows by 16 bytes.",
    needs: Feature::Ldmatrix,
    types: LDMATRIX_TYPES,
    description: LDMATRIX,
    instruction: Instruction::Ldmatrix { matrices: 4, transposed: false },
};
