//! `ldmatrix.sync.aligned.m8n8.x1.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX, LDMATRIX_TYPES};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "ldmatrix_x1",
    about: "Loads 1 matrix of 8 rows by 16 bytes.",
    needs: Feature::Ldmatrix,
    types: LDMATRIX_TYPES,
    description: LDMATRIX,
    instruction: Instruction::Ldmatrix { matrices: 1, transposed: false },
};
