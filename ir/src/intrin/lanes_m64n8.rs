//! Work on the elements of an accumulator of a warpgroup, each in the lane that has it.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::D_64X8};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_m64n8",
    about: "Runs any statement over 64x8 elements of an accumulator of a warpgroup, each in the lane that has it, so \
            that the four warps of `threadIdx.x` have 16 rows each: fills, conversions, epilogues, and stores of two \
            neighbours at once.",
    needs: Feature::Ldmatrix,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&D_64X8),
};
