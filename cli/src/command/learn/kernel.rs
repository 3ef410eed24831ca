//! Measures of lowered kernels: what stands in their source.

use ir::{BulkCopy, BulkKind, Group, Instr, Module, Op, Role, Scope};

/// Calls `f` with each statement of all kernels, outer before inner.
fn each<'a>(module: &'a Module, f: &mut dyn FnMut(&'a Op)) {
    module.kernels.iter().flat_map(|it| &it.body).for_each(|it| it.walk(f));
}

fn count(module: &Module, is_one: &dyn Fn(&Op) -> bool) -> usize {
    let mut found = 0;
    each(module, &mut |op| found += usize::from(is_one(op)));
    found
}

/// Statements under a condition.
pub(super) fn conditions(module: &Module) -> usize {
    count(module, &|op| matches!(op, Op::If(..)))
}

/// Asynchronous copies.
pub(super) fn async_copies(module: &Module) -> usize {
    count(module, &|op| matches!(op, Op::Instr(Instr::AsyncCopy(..), _)))
}

/// Tensor instructions whose names start so.
pub(super) fn instructions(module: &Module, of: &str) -> usize {
    count(module, &|op| matches!(op, Op::Instr(Instr::Tensor(it), _) if it.intrinsic.name.starts_with(of)))
}

/// Copies of boxes to shared memory.
pub(super) fn boxes(module: &Module) -> usize {
    let is_load = |it: &BulkCopy| matches!(it.kind, BulkKind::Load { .. });
    count(module, &|op| matches!(op, Op::Instr(Instr::Bulk(it), _) if is_load(it)))
}

/// Those of them that go to several blocks of a cluster.
pub(super) fn shared_boxes(module: &Module) -> usize {
    let is_shared = |it: &BulkCopy| matches!(it.kind, BulkKind::Load { along: Some(_), .. });
    count(module, &|op| matches!(op, Op::Instr(Instr::Bulk(it), _) if is_shared(it)))
}

/// Products of warpgroups.
pub(super) fn products(module: &Module) -> usize {
    count(module, &|op| matches!(op, Op::Instr(Instr::Wgmma(_), _)))
}

/// The most roles of any kernel.
pub(super) fn roles(module: &Module) -> usize {
    module.kernels.iter().map(|it| it.roles.len()).max().unwrap_or(0)
}

/// The most registers that any role gives a thread, if one says how many.
pub(super) fn registers(module: &Module) -> Option<f64> {
    let roles = module.kernels.iter().flat_map(|it| it.roles.values());
    roles.filter_map(|it| it.registers).max().map(f64::from)
}

/// The most groups of a kind that any wait leaves under way.
pub(super) fn in_flight(module: &Module, kind: Group) -> usize {
    let mut most = 0;
    each(module, &mut |op| {
        if let Op::Instr(Instr::Wait(it), _) = op
            && it.group == kind
        {
            most = most.max(it.in_flight as usize);
        }
    });
    most
}

/// The bytes of all temporaries in a memory: of one thread, of one block, what it has of its cluster's among them, or of the program.
pub(super) fn temporary(module: &Module, scope: Scope) -> f64 {
    let args = module.args.values().filter(|it| scope == Scope::Global && it.role == Role::Temp);
    let args =
        args.filter_map(|it| Some(it.elements().as_int()? as f64 * it.dtype.bytes() as f64)).sum::<f64>();
    let (mut sum, mut end) = (0.0, 0.0_f64);
    each(module, &mut |op| {
        if let Op::Alloc(it) = op
            && (it.scope == scope || scope == Scope::Shared && it.scope.is_of_blocks())
        {
            let bytes = it.elements() as f64 * it.dtype.bytes() as f64;
            // Buffers that share bytes say where they start.
            match it.offset {
                Some(at) => end = end.max(at as f64 + bytes),
                None => sum += bytes,
            }
        }
    });
    args + sum + end
}

/// The most threads of a block, or blocks of a grid, of any kernel.
pub(super) fn launched(module: &Module, threads: bool) -> Option<f64> {
    let of = |it: &ir::Kernel| -> Option<f64> {
        if threads && !it.roles.is_empty() {
            return Some(it.threads() as f64);
        }
        let axes = it.launch.iter().filter(|(axis, _)| axis.is_thread() == threads);
        axes.map(|(_, extent)| extent.as_int().map(|it| it as f64)).product()
    };
    let all: Option<Vec<f64>> = module.kernels.iter().map(of).collect();
    all?.into_iter().reduce(f64::max)
}
