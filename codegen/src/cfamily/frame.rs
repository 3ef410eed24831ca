//! What the printer knows of the kernel that it prints, and of the place in it.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use ir::arith::Bounds;
use ir::{Alloc, DType, Index, Kernel, Module, Name, Op, Scope, ThreadAxis};

use super::{
    Dialect,
    cluster::ClusterShape,
    team::{NamedBarriers, Team},
};
use crate::lower::analysis::bounds::kernel_bounds;

/// What is known of a kernel and of the place in it.
#[derive(Default)]
pub(super) struct Frame {
    /// The symbol of the kernel.
    pub(super) symbol: String,
    /// The types of the buffers, and which memory they are in.
    pub(super) memory: BTreeMap<Name, (DType, Scope)>,
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
    /// The number of the block in its cluster.
    pub(super) block_in_cluster: Option<Index>,
    /// The axes whose variables the kernel declares.
    pub(super) axes: Vec<ThreadAxis>,
    /// The variable that counts for how many blocks of the grid one has stood.
    pub(super) claims: Option<Name>,
    /// How its blocks of threads make clusters.
    pub(super) cluster: ClusterShape,
    /// The threads that run the place.
    pub(super) team: Team,
    /// The roles of the kernel.
    pub(super) roles: Vec<Team>,
    /// How many registers their threads start with.
    pub(super) registers_at_start: i64,
    /// Their named barriers.
    pub(super) named_barriers: NamedBarriers,
    /// Of a kernel that has tensor memory, for how many groups of products it has mbarriers; else none.
    pub(super) tensor_groups: Option<i64>,
    /// Whether two blocks compute products together in the kernel.
    pub(super) multiplies_in_pairs: bool,
    /// Whether the place is inside a loop that runs on several threads.
    pub(super) is_parallel: bool,
}

impl Frame {
    /// At the start of a kernel.
    pub(super) fn of(dialect: Dialect, module: &Module, kernel: &Kernel) -> Frame {
        let memory = memory(module, kernel);
        let mut frame = Frame {
            symbol: super::symbol(&kernel.name).into_owned(),
            memory,
            wide: dialect.is_c() || kernel.wide,
            bounds: kernel_bounds(module, kernel),
            claims: kernel.claims.clone(),
            cluster: ClusterShape::of(kernel),
            block_in_cluster: Some(kernel.block_in_cluster()),
            ..Frame::default()
        };
        for op in &kernel.body {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op
                    && it.is_register
                {
                    let lanes = u32::try_from(it.elements()).expect("a variable has few elements");
                    frame.registers.insert(it.name.clone(), lanes);
                }
            });
        }
        frame
    }
}

/// The types of a kernel's buffers, and which memory each is in.
pub(crate) fn memory(module: &Module, kernel: &Kernel) -> BTreeMap<Name, (DType, Scope)> {
    let args = module.args.iter().map(|(name, it)| (name.clone(), (it.dtype, Scope::Global)));
    let mut out: BTreeMap<_, _> = args.collect();
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op {
                out.insert(it.name.clone(), (it.dtype, it.scope));
            }
        });
    }
    out
}
