//! `stmatrix.sync.aligned.m8n8.x2.trans.shared.b16`.

use crate::Feature;
use super::{Instruction, Intrinsic, LDMATRIX_TRANS_TYPES, STMATRIX};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "stmatrix_x2_trans",
    about: "Stores 2 matrices of 8 rows by 16 bytes, transposed: neighbours of a lane go to neighbouring rows.",
    needs: Feature::Stmatrix,
    types: LDMATRIX_TRANS_TYPES,
    description: STMATRIX,
    instruction: Instruction::Stmatrix { matrices: 2, transposed: true },
};
