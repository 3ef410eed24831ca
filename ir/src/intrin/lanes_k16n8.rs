//! the elements of a right factor of 2 bytes each.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::B_16X8};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_k16n8",
    about: "Runs any statement over the elements of a right factor of 2 bytes each, each in the lane that has it: for what no matrix load can fill.",
    needs: Feature::Ldmatrix,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&B_16X8),
};
