//! What an intrinsic is, as data.

use super::{LaneMap, WARP};
use crate::{BinaryOp, DType, Feature};

/// The annotation of a tensorised block, and of the loop over lanes that a [`Instruction::Lanes`] makes.
pub const TENSORIZE: &str = "tensorize";

/// An instruction of a thread, a warp or a warpgroup, or a way to spread work over its lanes.
#[derive(PartialEq, Eq, Debug)]
pub struct Intrinsic {
    /// The word in scripts and in the text of kernels.
    pub name: &'static str,
    /// What it is good for, in a sentence or two.
    pub about: &'static str,
    /// What an architecture must have.
    pub needs: Feature,
    /// The types that `T` of the description may stand for; none where it has no `T`.
    pub types: &'static [DType],
    /// What it computes: a function in the text form with a block that has no iterators. Its buffers are the
    /// operands, the output first; their scopes are those that operands must have. Symbolic dimensions may be any
    /// size that the instruction's own rules admit.
    pub description: &'static str,
    /// How it is done.
    pub instruction: Instruction,
}

/// How an intrinsic is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// `mma.sync`: `C = C + A·B` on fragments.
    Mma {
        /// The PTX opcode.
        opcode: &'static str,
        /// How the elements of the accumulator are spread over the lanes.
        c: &'static LaneMap,
        /// The same of the left factor.
        a: &'static LaneMap,
        /// The same of the right factor, rows along `k`.
        b: &'static LaneMap,
    },
    /// `ldmatrix`: from shared memory to a fragment, 8 rows of 16 bytes a matrix.
    Ldmatrix {
        /// How many matrices: 1, 2 or 4.
        matrices: u32,
        /// Whether a lane gets elements of one column of memory (`.trans`), for types of 2 bytes only.
        transposed: bool,
    },
    /// `stmatrix`: from a fragment to shared memory, 8 rows of 16 bytes a matrix; of a warpgroup each warp stores as many.
    Stmatrix {
        /// How many matrices a warp stores: 1, 2 or 4.
        matrices: u32,
        /// Whether neighbours of a lane go to neighbouring rows of memory (`.trans`).
        transposed: bool,
    },
    /// `wgmma.mma_async`: `D = D + A·B`, where B, and A unless it has a map, are in shared memory.
    Wgmma {
        /// What stands behind the shape in the PTX opcode: the types of D, A and B.
        types: &'static str,
        /// How the elements of each eight columns of the accumulator are spread over the lanes.
        sum: &'static LaneMap,
        /// The same of a left factor in registers.
        left: Option<&'static LaneMap>,
        /// How many products an element is a sum of.
        k: i64,
        /// Whether factors may be contiguous along M and N.
        transposes: bool,
    },
    /// `tcgen05.mma`: `D = D + A·B`, where D is in tensor memory, and A and B in shared memory. One thread starts it.
    Tcgen05(ProductKind),
    /// `tcgen05.cp`: the scales of 128 rows of a factor from shared to tensor memory, 32 rows of 16 bytes. One thread starts it.
    TensorCopy,
    /// `tcgen05.ld`: from tensor memory to a fragment, each lane of a warpgroup the columns of its row, as the map says of eight.
    TensorLoad(&'static LaneMap),
    /// No instruction: the elements of a tile, each in the lane that has it by the map.
    Lanes(&'static LaneMap),
}

/// A kind of `tcgen05.mma` (PTX ISA, *Instruction descriptor*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProductKind {
    /// What stands behind `.kind::` in the opcode.
    pub name: &'static str,
    /// The number of the type of both factors in the instruction descriptor.
    pub format: u32,
    /// How many products of elements an element is a sum of.
    pub k: i64,
    /// Whether factors may be contiguous along M and N.
    pub transposes: bool,
    /// How many blocks of threads compute it together, each of which has 128 rows of the left factor and of the sum, and its share of the
    /// columns of the right factor: 1, or the two of a pair (PTX ISA, *CTA Pair*; `.cta_group` of `tcgen05.mma`).
    pub blocks: i64,
    /// How many elements along K share a scale, of factors that have scales in tensor memory (PTX ISA, *Block scaling*).
    pub scaled: Option<i64>,
}

impl ProductKind {
    /// What multiplies two elements: bytes of two floats are multiplied float by float.
    pub fn product(&self) -> BinaryOp {
        if self.name.starts_with("mxf4") { BinaryOp::DotE2m1x2 } else { BinaryOp::Mul }
    }

    /// How many scales a product reads of each row of a factor.
    pub fn scales_of_row(&self) -> i64 {
        self.scaled.map_or(0, |it| self.k / it)
    }
}

impl Intrinsic {
    /// Whether two blocks of threads compute it together.
    pub const fn is_of_pair(&self) -> bool {
        matches!(self.instruction, Instruction::Tcgen05(ProductKind { blocks: 2, .. }))
    }

    /// Whether one thread starts it, and the tensor core does it with tensor memory while all go on.
    pub const fn is_of_tensor_core(&self) -> bool {
        matches!(self.instruction, Instruction::Tcgen05(_) | Instruction::TensorCopy)
    }

    /// What its name has in common with those of products of other types, if it is a product: `wgmma` of
    /// `wgmma_m64k16_f16_f32`.
    pub fn family(&self) -> Option<&'static str> {
        let is_product = matches!(
            self.instruction,
            Instruction::Mma { .. } | Instruction::Wgmma { .. } | Instruction::Tcgen05(_)
        );
        is_product.then(|| self.name.split_once("_m").map(|it| it.0)).flatten()
    }

    /// How many lanes execute it together, along `threadIdx.x`.
    pub const fn lanes(&self) -> i64 {
        match self.instruction {
            Instruction::Mma { c, .. } => c.lanes,
            Instruction::Wgmma { sum, .. } => sum.lanes,
            Instruction::Ldmatrix { .. } | Instruction::Stmatrix { .. } => WARP,
            Instruction::Tcgen05(_) | Instruction::TensorCopy => 1,
            Instruction::TensorLoad(map) | Instruction::Lanes(map) => map.lanes,
        }
    }
}
