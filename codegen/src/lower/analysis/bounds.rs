//! What is known of the variables of a kernel before any loop.

use ir::{Index, Kernel, Module, arith::Bounds, axis_var};

/// The symbolic dimensions are at least 1, and each launch axis is below its extent.
pub(crate) fn kernel_bounds(module: &Module, kernel: &Kernel) -> Bounds {
    let mut bounds = Bounds::default();
    module.dims.iter().for_each(|it| bounds.insert_dim(it));
    for (axis, extent) in &kernel.launch {
        bounds.insert(&axis_var(*axis), extent);
    }
    // Each role has axes of its own; what all of them are below holds in any.
    for role in kernel.roles.values() {
        for (axis, extent) in &role.axes {
            let widest = kernel.roles.values().filter_map(|it| it.axes.get(axis)).max();
            bounds.insert(&axis_var(*axis), &Index::int(*widest.unwrap_or(extent)));
        }
    }
    bounds
}
