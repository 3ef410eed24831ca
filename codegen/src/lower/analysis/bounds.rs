//! What is known of the variables of a kernel before any loop.

use ir::{Kernel, Module, arith::Bounds, axis_var};

/// The symbolic dimensions are at least 1, and each launch axis is below its extent.
pub(crate) fn kernel_bounds(module: &Module, kernel: &Kernel) -> Bounds {
    let mut bounds = Bounds::default();
    module.dims.iter().for_each(|it| bounds.insert_dim(it));
    for (axis, extent) in &kernel.launch {
        bounds.insert(&axis_var(*axis), extent);
    }
    bounds
}
