//! `ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX, LDMATRIX_TRANS_TYPES};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "ldmatrix_x1_trans",
    about: "Loads 1 matrix of 8 rows by 16 bytes, transposed: a lane gets elements of a column of shared memory.",
    needs: Feature::Ldmatrix,
    types: LDMATRIX_TRANS_TYPES,
    description: LDMATRIX,
    instruction: Instruction::Ldmatrix { matrices: 1, transposed: true },
};
