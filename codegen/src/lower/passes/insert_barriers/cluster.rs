//! Barriers of clusters: for memory that the blocks of one see as one.
//!
//! Each block has a part of that memory, in its own shared memory. So beside the dependences between blocks there are two with the
//! block itself: nobody may touch its part before it has begun, or when it has ended (CUDA C++ Programming Guide, *Distributed Shared
//! Memory*). Both are taken as writes of the whole part by its block, in front of all statements and behind them.

use indexmap::IndexMap;
use ir::{Index, Instr, Kernel, Name, Op, Origin, Participants, Scope, axis_var};

use super::{
    Team,
    flow::{Flow, Item},
};
use crate::lower::analysis::kernel_accesses::{KernelAccess, Limits};

/// The axes of a cluster with several blocks, and how many.
pub(super) fn blocks(kernel: &Kernel) -> Vec<(Name, i64)> {
    let axes = kernel.launch.iter().filter(|(axis, _)| axis.is_cluster());
    let counts = axes.filter_map(|(&axis, extent)| Some((axis_var(axis), extent.as_int()?)));
    counts.filter(|it| it.1 > 1).collect()
}

/// All threads of a cluster, if its blocks have memory that they see as one.
pub(super) fn team(kernel: &Kernel) -> Option<Team> {
    let has_memory = kernel.body.iter().any(|op| matches!(op, Op::Alloc(it) if it.scope == Scope::Cluster));
    let apart: Vec<Name> = blocks(kernel).into_iter().map(|it| it.0).collect();
    (has_memory && !apart.is_empty()).then(|| Team { among: Participants::Cluster, apart, same: vec![] })
}

/// What a block has of the memory of its cluster.
pub(super) fn lives(kernel: &Kernel) -> Vec<KernelAccess> {
    let own = kernel.block_in_cluster();
    let allocs = kernel.body.iter().filter_map(|op| match op {
        Op::Alloc(it) if it.scope == Scope::Cluster => Some(it),
        _ => None,
    });
    let life = |it: &ir::Alloc| {
        let extents = it.shape.iter().enumerate().skip(1);
        // No program has names like these.
        let var = |at: usize| Name::new(format!("{}~{at}", it.name));
        let vars: IndexMap<Name, Index> =
            extents.map(|(at, extent)| (var(at), Index::int(*extent))).collect();
        KernelAccess {
            buffer: it.name.clone(),
            indices: [own.clone()].into_iter().chain(vars.keys().map(Index::var)).collect(),
            lanes: 1,
            write: true,
            vars,
            conditions: vec![],
            limits: Limits::new(),
            is_life: true,
        }
    };
    allocs.map(life).collect()
}

/// The statements of a kernel between the beginning and the end of its block.
pub(super) fn with_lives(items: Vec<Item>, lives: &[KernelAccess]) -> Vec<Item> {
    let last = items.iter().rev().find_map(|it| it.op.first_origin()).cloned();
    let op = |origin: Option<Origin>| Op::comment("", origin.unwrap_or_default());
    let begin = Item { op: op(None), flow: Flow { after: lives.to_vec(), ..Flow::default() } };
    let end = Item { op: op(last), flow: Flow { before: lives.to_vec(), ..Flow::default() } };
    [begin].into_iter().chain(items).chain([end]).collect()
}

/// The statements without what stands for beginning and end.
pub(super) fn without_lives(ops: &mut Vec<Op>) {
    let is_life = |op: &Op| matches!(op.instr(), Some(Instr::Comment(text)) if text.is_empty());
    ops.retain(|op| !is_life(op));
}
