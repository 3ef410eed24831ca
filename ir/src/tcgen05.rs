//! What the tensor core does with tensor memory when one thread starts it: products with their sums there (`tcgen05.mma`), and copies of the
//! scales of their factors to there (`tcgen05.cp`; PTX ISA, *Tensor Memory* and *tcgen05.mma*).

use crate::{
    Access, Less, Mode, Tile,
    intrin::{Instruction, Intrinsic},
};

/// `place = place + left·right`, or a copy to `place`, by the tensor core of a block of threads while they all go on.
///
/// What one thread starts happens in the order in which it starts it. That of products, and of a copy before a product, is documented (PTX
/// ISA, *Pipelined tcgen05 instructions*); that a copy does not overtake the products before it is what the pipelines of CUTLASS and of
/// Triton for such products rely on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tcgen05 {
    /// What is computed.
    pub intrinsic: &'static Intrinsic,
    /// Rows and columns of tensor memory: the accumulator, or where scales go.
    pub place: Tile,
    /// The factors, in shared memory, each with its scales in tensor memory behind it if the product has some; of a copy what is copied.
    pub operands: Vec<Tile>,
    /// The sum starts from zero where all of these hold; none where it never does.
    pub starts: Option<Vec<Less>>,
}

impl Tcgen05 {
    /// The two factors of a product.
    pub fn factors(&self) -> Option<[&Tile; 2]> {
        match self.operands.as_slice() {
            [left, right] | [left, _, right, _] => Some([left, right]),
            _ => None,
        }
    }

    /// What the factors are scaled by, row by row of the left one and column by column of the right one, if the product scales them.
    pub fn scales(&self) -> Option<[&Tile; 2]> {
        match self.operands.as_slice() {
            [_, left, _, right] => Some([left, right]),
            _ => None,
        }
    }

    /// Whether it may add to what is in the accumulator.
    pub fn adds(&self) -> bool {
        let is_product = matches!(self.intrinsic.instruction, Instruction::Tcgen05(_));
        is_product && self.starts.as_ref().is_none_or(|it| !it.is_empty())
    }

    /// What it reads and writes, in that order: its own sum first, if it adds to that.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&Tile, Mode)> {
        let before = self.adds().then_some((&self.place, Mode::Read));
        let operands = self.operands.iter().map(|it| (it, Mode::Read));
        before.into_iter().chain(operands).chain([(&self.place, Mode::Write)])
    }

    /// The same with every access rewritten by `f`.
    pub(crate) fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Tcgen05 {
        let mut moved = |it: &Tile| Tile { first: f(&it.first), ..it.clone() };
        let place = moved(&self.place);
        let operands = self.operands.iter().map(moved).collect();
        Tcgen05 { intrinsic: self.intrinsic, place, operands, starts: self.starts.clone() }
    }
}
