//! Lowering: from a scheduled function to a module ready to print.

mod bounds;
mod lanes;
mod names;
mod collapse_unit_loops;
mod scalarize;
mod simplify_indices;
mod unroll;
mod vectorize;

pub(crate) use bounds::kernel_bounds;
pub use collapse_unit_loops::collapse_unit_loops;
pub use scalarize::scalarize;
pub use simplify_indices::simplify_indices;
pub use unroll::unroll;
pub use vectorize::{vector_bytes, vectorize};
