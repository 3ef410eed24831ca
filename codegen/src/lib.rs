//! Lowering, printers and devices.
//!
//! [`compile_module`] brings a scheduled program to its lowered form, a printer turns that into source, a compiler
//! into machine code, and [`program`] puts machine code and launches together for a [`device::Machine`].

mod cfamily;
pub mod device;
pub mod emit;
pub mod expected;
mod launch;
pub mod lower;
pub mod timeline;
pub mod vgpu;

use ir::{Func, Module, Target};
pub use launch::{
    DISTANCE_RULE, LaunchError, SIZE_RULE, SymbolicMap, argument_alignment, program, shared_layout,
    tensor_maps,
};
use lower::LowerError;

/// Lowers a verified program for a target.
pub fn compile_module(func: &Func, target: &Target) -> Result<Module, LowerError> {
    lower::lower(func, target, &mut |_, _| {})
}
