//! What a pipeline needs: slots, barriers, copies, shared memory. Measured on the program, not asked of a report.

use std::{collections::BTreeSet, fmt};

use ir::{Func, Instr, Name, Op};

use super::{corpus::Case, run::Lowered};

/// Checks what the comments of a script say of it.
pub(crate) fn check(case: &Case, after: &Func, lowered: &Lowered) -> Result<(), String> {
    let header = &case.header;
    for (buffer, want) in &header.slots {
        let got = slots(after, &lowered.expanded, buffer);
        expect(&format!("slots of `{buffer}`"), got, *want)?;
    }
    let rate = |what: &str, wanted: &dyn Fn(&Op) -> bool, want: i64| {
        let got = steady(after, lowered, wanted);
        expect(what, got.count, want * got.steps)
    };
    if let Some(want) = header.barriers {
        rate("barriers in the steady loop", &is_barrier, want)?;
    }
    if let Some(want) = header.copies {
        rate("copies in the steady loop", &|it| matches!(it, Op::Instr(Instr::AsyncCopy(..), _)), want)?;
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

/// How many operations of a kind the steady loop does, that of the innermost pipeline.
pub(crate) fn steady(after: &Func, lowered: &Lowered, wanted: &dyn Fn(&Op) -> bool) -> Rate {
    let pipelined: Vec<_> = pipelines(after);
    let mut out = Rate { count: 0, steps: 1 };
    for op in lowered.module.kernels.iter().flat_map(|it| &it.body) {
        op.walk(&mut |op| {
            if let Op::For(it) = op
                && pipelined.contains(&it.var)
            {
                let rate =
                    Rate { count: count(&it.body, wanted, true), steps: steps(after, lowered, &it.var) };
                out = if rate.count * out.steps >= out.count * rate.steps { rate } else { out };
            }
        });
    }
    out
}

/// How many operations in how many iterations: loops with fragments in registers are unrolled.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) count: i64,
    pub(crate) steps: i64,
}

impl Rate {
    pub(crate) fn exceeds(self, each: i64) -> bool {
        self.count > each * self.steps
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count % self.steps {
            0 => write!(out, "{}", self.count / self.steps),
            _ => write!(out, "{}/{}", self.count, self.steps),
        }
    }
}

/// How many iterations one run of a loop takes after the expansion: how often its first block stands there.
fn steps(after: &Func, lowered: &Lowered, var: &Name) -> i64 {
    let old = after.find_loop(var).unwrap().body.blocks()[0].name.clone();
    let Some(new) = lowered.expanded.find_loop(var) else { return 1 };
    let known: BTreeSet<&Name> = after.body.blocks().into_iter().map(|it| &it.name).collect();
    let is_copy = |name: &Name| {
        let number = name.as_str().strip_prefix(old.as_str()).and_then(|it| it.strip_prefix('_'));
        !known.contains(name) && number.is_some_and(|it| it.parse::<u32>().is_ok())
    };
    1 + i64::try_from(new.body.blocks().iter().filter(|it| is_copy(&it.name)).count()).unwrap()
}

/// The loops with both annotations of a pipeline.
pub(crate) fn pipelines(func: &Func) -> Vec<Name> {
    func.loops().into_iter().filter(|it| ir::pipeline::is_pipeline(it)).map(|it| it.var.clone()).collect()
}

pub(crate) fn is_barrier(op: &Op) -> bool {
    matches!(op, Op::Instr(Instr::Barrier(_), _))
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
