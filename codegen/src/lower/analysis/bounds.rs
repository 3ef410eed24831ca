//! What is known of the variables of a kernel before any loop.

use ir::{Index, Kernel, Less, Module, arith::Bounds, axis_var};

/// The symbolic dimensions are at least 1, as is the number of blocks that one stands for, and each launch axis is below its extent.
pub(crate) fn kernel_bounds(module: &Module, kernel: &Kernel) -> Bounds {
    let mut bounds = Bounds::default();
    module.dims.iter().chain(&kernel.claims).for_each(|it| bounds.insert_dim(it));
    if let Some(count) = &kernel.claims {
        let [x, y, z] = kernel.grid();
        bounds.assume(&Less::new(Index::var(count), x * y * z + 1));
    }
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
