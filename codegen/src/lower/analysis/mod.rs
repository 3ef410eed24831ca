//! What passes ask about kernels, and nothing that changes them. What they ask about programs of blocks is in
//! [`ir::access`] and [`ir::region`].

pub(crate) mod async_completion;
pub(crate) mod bounds;
pub(crate) mod copy_box;
pub(crate) mod cross_block;
pub(crate) mod dependence;
pub(crate) mod kernel_accesses;
pub(crate) mod live_range;
pub(crate) mod locals;
pub(crate) mod multicast;
pub(crate) mod names;
pub(crate) mod own_copy;
pub(crate) mod pairs;
pub(crate) mod roles;
pub(crate) mod thread_reduction;
