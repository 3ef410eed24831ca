//! What a pipeline needs: slots, barriers, copies, shared memory. Measured on the program, not asked of a report.

use ir::{Func, Module, Name, Op};

use crate::{corpus::Case, run::Lowered};

/// Checks what the comments of a script say of it.
pub(crate) fn check(case: &Case, after: &Func, lowered: &Lowered) -> Result<(), String> {
    let header = &case.header;
    for (buffer, want) in &header.slots {
        let got = slots(after, &lowered.expanded, buffer);
        expect(&format!("slots of `{buffer}`"), got, *want)?;
    }
    let steady = |count: &dyn Fn(&Op) -> bool| per_iteration(after, &lowered.module, count);
    if let Some(want) = header.barriers {
        expect("barriers in an iteration", steady(&is_barrier), want)?;
    }
    if let Some(want) = header.copies {
        expect("copies in an iteration", steady(&|it| matches!(it, Op::Copy(..))), want)?;
    }
    if let Some(want) = header.all_barriers {
        let all = lowered.module.kernels.iter().map(|it| count(&it.body, &is_barrier, false)).sum();
        expect("barriers", all, want)?;
    }
    if let Some(want) = header.shared {
        let bytes = lowered.module.kernels.iter().map(|it| codegen::shared_layout(it).1).max();
        expect("bytes of shared memory", bytes.unwrap_or(0), want)?;
    }
    Ok(())
}

fn expect(what: &str, got: i64, want: i64) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got}, not {want}")) }
}

/// How many iterations of a buffer there is room for after the expansion: its new leading dimensions.
pub(crate) fn slots(before: &Func, expanded: &Func, buffer: &Name) -> i64 {
    let (Some(was), Some(is)) = (before.buffers.get(buffer), expanded.buffers.get(buffer)) else { return 0 };
    let new = is.shape.len().saturating_sub(was.shape.len());
    is.shape[..new].iter().map(|it| it.as_int().unwrap()).product()
}

/// How many operations of a kind one iteration of the steady loop does, that of the innermost pipeline.
pub(crate) fn per_iteration(after: &Func, module: &Module, wanted: &dyn Fn(&Op) -> bool) -> i64 {
    let pipelined: Vec<_> = pipelines(after);
    let mut out = 0;
    for kernel in &module.kernels {
        for op in &kernel.body {
            op.walk(&mut |op| {
                if let Op::For(it) = op
                    && pipelined.contains(&it.var)
                {
                    out = count(&it.body, wanted, true).max(out);
                }
            });
        }
    }
    out
}

/// The loops with both annotations of a pipeline.
pub(crate) fn pipelines(func: &Func) -> Vec<Name> {
    let has = |it: &&ir::Loop| {
        ["software_pipeline_stage", "software_pipeline_order"]
            .iter()
            .all(|key| it.annotations.contains_key(*key))
    };
    func.loops().into_iter().filter(has).map(|it| it.var.clone()).collect()
}

pub(crate) fn is_barrier(op: &Op) -> bool {
    matches!(op, Op::Barrier)
}

/// The operations of a kind, those in loops as often as they run if asked for.
fn count(ops: &[Op], wanted: &dyn Fn(&Op) -> bool, repeated: bool) -> i64 {
    let each = |op: &Op| match op {
        Op::For(it) => {
            let times = if repeated { it.extent.as_int().unwrap_or(1) } else { 1 };
            times * count(&it.body, wanted, repeated)
        }
        Op::If(_, body) => count(body, wanted, repeated),
        other => i64::from(wanted(other)),
    };
    ops.iter().map(each).sum()
}
