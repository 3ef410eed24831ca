//! What is known of the variables of a kernel before any loop.

use indexmap::IndexMap;
use ir::{Func, Kernel, Module, Stmt, arith::Bounds, axis_var};

/// The symbolic dimensions are at least 1, and each launch axis is below its extent.
pub(crate) fn kernel_bounds(module: &Module, kernel: &Kernel) -> Bounds {
    let mut bounds = dim_bounds(module);
    for (axis, extent) in &kernel.launch {
        bounds.insert(&axis_var(*axis), extent);
    }
    bounds
}

fn dim_bounds(module: &Module) -> Bounds {
    Bounds::of_dims(&Func {
        name: module.name.clone(),
        dims: module.dims.clone(),
        buffers: IndexMap::new(),
        body: Stmt::Seq(Vec::new()),
    })
}
