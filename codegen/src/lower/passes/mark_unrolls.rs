//! Marks the loops that CUDA's compiler has to write out.

use std::{collections::BTreeSet, sync::Arc};

use ir::{For, ForKind, Module, Name, Op, Target};

use crate::lower::analysis::locals::locals;

/// The most iterations of a serial loop that are written out to keep an array in registers.
const MAX_UNROLLED: i64 = 128;

/// ```text
/// for i in 0..4                 for i in 0..4 @unrolled
///   C_local[i] = 0.0f32   ->      C_local[i] = 0.0f32
/// ```
///
/// An array that is indexed by a loop variable at run time cannot live in registers. So a short loop whose variable indexes
/// local memory is written out, on a GPU by the compiler; on a CPU the pass `unroll` has done it.
pub(crate) fn mark_unrolls(mut module: Module, target: &Target) -> Module {
    if *target == Target::Cpu {
        return module;
    }
    for kernel in &mut module.kernels {
        let locals = locals(&kernel.body);
        kernel.body = marked(std::mem::take(&mut kernel.body), &locals);
    }
    module
}

fn marked(ops: Vec<Op>, locals: &BTreeSet<Name>) -> Vec<Op> {
    let op = |op: Op| match op.map_children(&mut |body| marked(body, locals)) {
        Op::For(it) if it.kind == ForKind::Serial && is_short(&it) && indexes(&it, locals) => {
            Op::For(Arc::new(For { kind: ForKind::Unrolled, ..Arc::unwrap_or_clone(it) }))
        }
        op => op,
    };
    ops.into_iter().map(op).collect()
}

fn is_short(it: &For) -> bool {
    it.extent.as_int().is_some_and(|it| it <= MAX_UNROLLED)
}

fn indexes(it: &For, locals: &BTreeSet<Name>) -> bool {
    let mut found = false;
    for op in &it.body {
        op.each_access(&mut |access, _| {
            let is_local = locals.contains(&access.buffer);
            found |= is_local && access.indices.iter().any(|index| index.any_var(&|var| *var == it.var));
        });
    }
    found
}
