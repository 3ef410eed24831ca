//! `tcgen05.mma`: a product that one thread starts, with its sum in tensor memory (PTX ISA, *Tensor Memory* and *tcgen05.mma*).

use crate::{Access, Less, Mode, Tile, intrin::Intrinsic};

/// `sum = sum + left·right`, by the tensor core of a block of threads while they all go on.
///
/// Products of one thread happen in the order in which it starts them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tcgen05 {
    /// What is computed.
    pub intrinsic: &'static Intrinsic,
    /// The accumulator: rows and columns of tensor memory.
    pub sum: Tile,
    /// The left factor, in shared memory.
    pub left: Tile,
    /// The right factor, in shared memory.
    pub right: Tile,
    /// The sum starts from zero where all of these hold; none where it never does.
    pub starts: Option<Vec<Less>>,
}

impl Tcgen05 {
    /// Whether it may add to what is in the accumulator.
    pub fn adds(&self) -> bool {
        self.starts.as_ref().is_none_or(|it| !it.is_empty())
    }

    /// What it reads and writes, in that order: its own sum first, if it adds to that.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&Tile, Mode)> {
        let before = self.adds().then_some((&self.sum, Mode::Read));
        let factors = [(&self.left, Mode::Read), (&self.right, Mode::Read)];
        before.into_iter().chain(factors).chain([(&self.sum, Mode::Write)])
    }

    /// The product with every access rewritten by `f`.
    pub(crate) fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Tcgen05 {
        let mut moved = |it: &Tile| Tile { first: f(&it.first), ..it.clone() };
        let (sum, left, right) = (moved(&self.sum), moved(&self.left), moved(&self.right));
        Tcgen05 { intrinsic: self.intrinsic, sum, left, right, starts: self.starts.clone() }
    }
}
