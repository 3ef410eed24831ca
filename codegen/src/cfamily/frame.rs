//! What the printer knows of the kernel that it prints, and of the place in it.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use ir::arith::Bounds;
use ir::{Alloc, DType, Kernel, Module, Name, Op};

use super::Dialect;
use crate::lower::analysis::bounds::kernel_bounds;

/// What is known of a kernel and of the place in it.
#[derive(Default)]
pub(super) struct Frame {
    /// The symbol of the kernel.
    pub(super) symbol: String,
    /// The types of the buffers.
    pub(super) types: BTreeMap<Name, DType>,
    /// The allocations that are variables, with their lanes.
    pub(super) registers: BTreeMap<Name, u32>,
    /// What is known of the variables in scope.
    pub(super) bounds: Bounds,
    /// Whether indices need 64 bits.
    pub(super) wide: bool,
    /// The loops around the place, outer first.
    pub(super) loops: Vec<Name>,
    /// Those of the loops around the place whose iterations the compiler writes out one after the other.
    pub(super) written_out: Vec<Name>,
    /// The ring counters of the loops around the place.
    pub(super) counters: Vec<Name>,
    /// The allocations in scope at the place.
    pub(super) allocs: Vec<Alloc>,
    /// The arguments of the kernel, and whether it writes them.
    pub(super) args: IndexMap<Name, bool>,
    /// Where each shared buffer starts, in bytes.
    pub(super) shared_offsets: IndexMap<Name, i64>,
    /// Whether the place is inside a loop that runs on several threads.
    pub(super) is_parallel: bool,
}

impl Frame {
    /// At the start of a kernel.
    pub(super) fn of(dialect: Dialect, module: &Module, kernel: &Kernel) -> Frame {
        let mut frame = Frame {
            symbol: super::symbol(&kernel.name).into_owned(),
            types: module.args.iter().map(|(name, arg)| (name.clone(), arg.dtype)).collect(),
            wide: dialect.is_c() || kernel.wide,
            bounds: kernel_bounds(module, kernel),
            ..Frame::default()
        };
        for op in &kernel.body {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op {
                    frame.types.insert(it.name.clone(), it.dtype);
                    if it.is_register {
                        let lanes = u32::try_from(it.elements()).expect("a variable has few elements");
                        frame.registers.insert(it.name.clone(), lanes);
                    }
                }
            });
        }
        frame
    }
}
