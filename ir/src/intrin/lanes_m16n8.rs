//! Work on the elements of an accumulator, each in the lane that has it.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::C_16X8};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_m16n8",
    about: "Runs any statement over the 16x8 elements of an accumulator, each in the lane that has it: fills, \
            conversions, epilogues, and stores of two neighbours at once.",
    needs: Feature::Ldmatrix,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&C_16X8),
};
