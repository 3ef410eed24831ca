//! What an architecture does in a cycle, in the terms of the clock.

use ir::{Arch, Caps, DType, Paces};
use serde::Serialize;

/// A part of a multiprocessor, or of what all of them share, that does one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The tensor cores.
    Tensor,
    /// Shared memory: what threads, products and the copy engine read and write there.
    Shared,
    /// The way from the second-level cache.
    Loads,
    /// The way to it.
    Stores,
    /// The issue slots of the warp schedulers.
    Issue,
}

impl Resource {
    pub(super) const ALL: [Resource; 5] =
        [Resource::Tensor, Resource::Shared, Resource::Loads, Resource::Stores, Resource::Issue];

    /// The words in sentences.
    pub const fn as_str(self) -> &'static str {
        match self {
            Resource::Tensor => "tensor cores",
            Resource::Shared => "shared memory",
            Resource::Loads => "copies",
            Resource::Stores => "stores",
            Resource::Issue => "issue slots",
        }
    }
}

/// Warp schedulers of a multiprocessor.
pub(super) const SCHEDULERS: f64 = 4.0;
/// The bytes that global memory is read and written by.
pub(super) const SECTOR: i64 = 32;

/// Cycles, and units a cycle of one multiprocessor.
#[derive(Clone, Debug)]
pub(super) struct Rates<'a> {
    caps: &'a Caps,
    paces: &'a Paces,
}

impl<'a> Rates<'a> {
    /// Those of an architecture; nothing where nobody measured them.
    pub(super) fn of(arch: &'a Arch) -> Option<Rates<'a>> {
        let caps = arch.caps();
        Some(Rates { caps, paces: caps.latencies.paces.as_ref()? })
    }

    fn of_table(&self, it: impl Fn(&ir::Latencies) -> u32) -> f64 {
        f64::from(it(&self.caps.latencies))
    }

    /// Operations of the tensor cores on factors of a type; of one that is not known, as many as in f16.
    pub(super) fn tensor(&self, dtype: DType) -> f64 {
        let rates = &self.caps.tensor;
        rates.of(dtype).or(rates.f16).map_or(1024.0, f64::from)
    }

    /// The share of them that products of warps reach.
    pub(super) fn product_share(&self) -> f64 {
        self.of_table(|it| it.product_percent) / 100.0
    }

    pub(super) fn product(&self) -> f64 {
        self.of_table(|it| it.product)
    }

    pub(super) fn warpgroup_product(&self) -> f64 {
        self.of_table(|it| it.warpgroup_product)
    }

    pub(super) fn barrier(&self) -> f64 {
        self.of_table(|it| it.barrier)
    }

    pub(super) fn shared_bytes(&self) -> f64 {
        self.of_table(|it| it.shared_bytes)
    }

    pub(super) fn shared(&self) -> f64 {
        self.of_table(|it| it.shared)
    }

    pub(super) fn matrix(&self) -> f64 {
        self.of_table(|it| it.matrix)
    }

    /// A load that the second-level cache has.
    pub(super) fn load(&self) -> f64 {
        self.of_table(|it| it.cached)
    }

    /// Where the numbers are from.
    pub(super) fn record(&self) -> &'static str {
        self.paces.record
    }

    pub(super) fn copy(&self) -> f64 {
        self.of_table(|it| it.copy)
    }

    /// What a box takes beyond a load and its bytes.
    pub(super) fn bulk(&self) -> f64 {
        self.paces.bulk_cached.into()
    }

    /// Bytes of boxes that come from the second-level cache where so many multiprocessors ask for the same at a time.
    pub(super) fn box_bytes(&self, sharing: f64) -> f64 {
        let (own, most) = (f64::from(self.paces.own_box_bytes), f64::from(self.paces.box_bytes));
        (own * sharing.max(1.0)).min(most)
    }

    /// Bytes of loads.
    pub(super) fn load_bytes(&self) -> f64 {
        self.of_table(|it| it.cached_bytes)
    }

    /// Bytes of whole sectors that go to it, and of those of which a part is written.
    pub(super) fn store_bytes(&self, is_whole: bool) -> f64 {
        if is_whole { self.paces.stored_bytes.into() } else { self.paces.stored_part_bytes.into() }
    }

    pub(super) fn hand_over(&self) -> f64 {
        self.paces.hand_over.into()
    }

    pub(super) fn launch(&self) -> f64 {
        self.paces.launch.into()
    }

    pub(super) fn block(&self) -> f64 {
        self.paces.block.into()
    }
}
