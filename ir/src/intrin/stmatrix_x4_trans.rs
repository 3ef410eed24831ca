//! `stmatrix.sync.aligned.m8n8.x4.trans.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX_TRANS_TYPES, STMATRIX};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "stmatrix_x4_trans",
    about: "Stores 4 matrices of 8 rows by 16 bytes, transposed: neighbours of a lane go to neighbouring rows.",
    needs: Feature::Stmatrix,
    types: LDMATRIX_TRANS_TYPES,
    description: STMATRIX,
    instruction: Instruction::Stmatrix { matrices: 4, transposed: true },
};
