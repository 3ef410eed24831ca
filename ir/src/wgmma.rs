//! `wgmma`: a product that a warpgroup computes asynchronously (PTX ISA, *Asynchronous warpgroup level matrix instructions*).

use crate::{Access, Less, Tile, intrin::Intrinsic};

/// `place = place + left·right`, on the registers of 128 lanes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wgmma {
    /// What is computed.
    pub intrinsic: &'static Intrinsic,
    /// The registers of the accumulator, of each lane its own.
    pub place: Access,
    /// The left factor.
    pub left: Factor,
    /// The right factor, in shared memory.
    pub right: Tile,
    /// The sum starts from zero where all of these hold; none where it never does.
    pub starts: Option<Vec<Less>>,
}

/// Where a factor of a product is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Factor {
    /// In shared memory.
    Shared(Tile),
    /// In the registers of the lanes.
    Registers(Access),
}

impl Wgmma {
    /// The factors in shared memory.
    pub fn tiles(&self) -> impl Iterator<Item = &Tile> {
        let left = match &self.left {
            Factor::Shared(it) => Some(it),
            Factor::Registers(_) => None,
        };
        left.into_iter().chain([&self.right])
    }

    /// The product with every access rewritten by `f`.
    pub(crate) fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Wgmma {
        let left = match &self.left {
            Factor::Shared(it) => Factor::Shared(Tile { first: f(&it.first), ..it.clone() }),
            Factor::Registers(it) => Factor::Registers(f(it)),
        };
        let right = Tile { first: f(&self.right.first), ..self.right.clone() };
        let starts = self.starts.clone();
        Wgmma { intrinsic: self.intrinsic, place: f(&self.place), left, right, starts }
    }
}
