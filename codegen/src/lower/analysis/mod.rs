//! What passes ask about programs and kernels, and nothing that changes them.

pub(crate) mod async_completion;
pub(crate) mod bounds;
pub(crate) mod cross_block;
pub(crate) mod dependence;
pub(crate) mod disjointness;
pub(crate) mod func_accesses;
pub(crate) mod func_pairs;
pub(crate) mod kernel_accesses;
pub(crate) mod live_range;
pub(crate) mod names;
pub(crate) mod region_cover;
