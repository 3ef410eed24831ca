//! `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX, LDMATRIX_TRANS_TYPES};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "ldmatrix_x4_trans",
    about: "Loads 4 matrices of 8 rows by 16 bytes, transposed: a lane gets elements of a column of shared memory.",
    needs: Feature::Ldmatrix,
    types: LDMATRIX_TRANS_TYPES,
    description: LDMATRIX,
    instruction: Instruction::Ldmatrix { matrices: 4, transposed: true },
};
