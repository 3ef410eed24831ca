//! Work on the elements of a left factor of a warpgroup in registers, each in the lane that has it.

use crate::Feature;
use super::{Instruction, Intrinsic, lane_map::A_64X16};

pub(super) static INTRINSIC: Intrinsic = Intrinsic {
    name: "lanes_m64k16",
    about: "Runs any statement over the 64x16 elements of a left factor of 2 bytes an element, each in the lane of a \
            warpgroup that has it: what a second product needs of the result of a first.",
    needs: Feature::Ldmatrix,
    types: &[],
    description: "",
    instruction: Instruction::Lanes(&A_64X16),
};
