//! `ldmatrix.sync.aligned.m8n8.x2.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX, LDMATRIX_TYPES};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "ldmatrix_x2",
    about: "Loads 2 matrices of 8 rows by 16 bytes.",
    needs: Feature::Ldmatrix,
    types: LDMATRIX_TYPES,
    description: LDMATRIX,
    instruction: Instruction::Ldmatrix { matrices: 2, transposed: false },
};
