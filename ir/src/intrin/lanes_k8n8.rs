//! the elements of a right factor of 4 bytes each.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::B_8X8};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_k8n8",
    about: "Runs any statement over the elements of a right factor of 4 bytes each, each in the lane that has it: for what no matrix load can fill.",
    needs: Feature::Ldmatrix,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&B_8X8),
};
