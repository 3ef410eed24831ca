//! the elements of a left factor of 1 byte each.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::A_16X32};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_m16k32",
    about: "Runs any statement over the elements of a left factor of 1 byte each, each in the lane that has it: for what no matrix load can fill.",
    needs: Feature::Ldmatrix,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&A_16X32),
};
