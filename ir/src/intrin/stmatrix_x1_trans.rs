//! `stmatrix.sync.aligned.m8n8.x1.trans.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX_TRANS_TYPES, STMATRIX};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "stmatrix_x1_trans",
    about: "Stores 1 matrix of 8 rows by 16 bytes, transposed: neighbours of a lane go to neighbouring rows.",
    needs: Feature::Stmatrix,
    types: LDMATRIX_TRANS_TYPES,
    description: STMATRIX,
    instruction: Instruction::Stmatrix { matrices: 1, transposed: true },
};
