//! The passes, a file or a folder each; [`PASSES`](super::PASSES) is their order.

pub(crate) mod check_limits;
pub(crate) mod check_phases;
pub(crate) mod check_races;
pub(crate) mod choose_mechanisms;
pub(crate) mod collapse_unit_loops;
pub(crate) mod compact_buffers;
pub(crate) mod deal_iterations;
pub(crate) mod flatten;
pub(crate) mod index_width;
pub(crate) mod insert_barriers;
pub(crate) mod join_iterations;
pub(crate) mod lower_blocks;
pub(crate) mod lower_tensors;
pub(crate) mod mark_unrolls;
pub(crate) mod merge_shared;
pub(crate) mod place_allocs;
pub(crate) mod promote_registers;
pub(crate) mod ring_counters;
pub(crate) mod scalarize;
pub(crate) mod select_copies;
pub(crate) mod serpentine;
pub(crate) mod settle_swizzles;
pub(crate) mod simplify_indices;
pub(crate) mod software_pipeline;
pub(crate) mod unroll;
pub(crate) mod vectorize;
