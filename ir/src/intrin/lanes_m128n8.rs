//! Work on the elements of a part of an accumulator that comes from tensor memory, each in the lane that has it.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::D_128X8};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_m128n8",
    about: "Runs any statement over 128x8 elements that a warpgroup has loaded from tensor memory, each in the lane that has it: \
            a lane of `threadIdx.x` has a row. Fills, conversions, epilogues, and stores of eight neighbours at once.",
    needs: Feature::Tcgen05,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&D_128X8),
};
