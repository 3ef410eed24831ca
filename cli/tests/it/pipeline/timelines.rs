//! The timeline of every situation: whether all is found, and whether it agrees with itself.

use codegen::{
    lower::lower_explained,
    timeline::{Timeline, timelines},
};
use ir::{Func, Op, Participants};

use super::{
    corpus::{Case, cases, schedule},
    header::ScriptEnd,
    run,
};

/// What is wrong with the timelines of a scheduled program.
fn faults(func: &Func) -> Result<(), String> {
    let lowered = lower_explained(func, &run::target()).map_err(|err| err.to_string())?;
    let all = timelines(&lowered);
    let (module, reports) = (lowered.module, lowered.pipelines);
    for report in reports.iter().filter(|it| !all.iter().any(|found| found.var == it.var)) {
        let mut is_left = false;
        for op in module.kernels.iter().flat_map(|it| &it.body) {
            op.walk(&mut |op| {
                let block = if let Op::Instr(_, origin) = op { origin.block() } else { None };
                is_left |= report.components.iter().any(|it| Some(&it.name) == block);
            });
        }
        if is_left {
            return Err(format!("the pipeline of `{}` is not found\n{module}", report.var));
        }
    }
    all.iter().try_for_each(|it| {
        used(it).map_err(|err| format!("pipeline of `{}`: {err}\n{module}", it.var))?;
        // Lanes of a warp meet before one of them speaks for all: that is no dependence.
        let mut barriers = it.barriers.iter().filter(|it| it.among != Participants::Warp);
        let proved = barriers.all(|it| !it.proof.is_empty());
        if proved { Ok(()) } else { Err(format!("a barrier serves nothing\n{module}")) }
    })
}

/// Whether each statement finds its iteration in the slot that it reads, landed, and whether slots hold one iteration
/// at a time or two that follow each other.
fn used(it: &Timeline) -> Result<(), String> {
    for column in &it.columns {
        for (rank, statement) in it.statements.iter().enumerate() {
            let Some(iteration) = column.runs[rank] else { continue };
            for (at, ring) in it.rings.iter().enumerate() {
                let writes = it.statements.iter().any(|other| {
                    let is_filled = other.writes.iter().any(|it| it.buffer == ring.buffer);
                    is_filled && (other.stage, other.order) <= (statement.stage, statement.order)
                });
                if !writes || !statement.reads.iter().any(|it| it.buffer == ring.buffer) {
                    continue;
                }
                let slot = usize::try_from(iteration.offset.rem_euclid(ring.slots)).unwrap();
                let found = column.slots[at][slot].iter().find(|it| it.iteration == iteration);
                if found.is_none_or(|it| !it.landed) {
                    let (name, buffer, step) = (&statement.name, &ring.buffer, column.step);
                    return Err(format!(
                        "`{name}` does not find iteration {iteration} of `{buffer}` in step {step}"
                    ));
                }
            }
        }
    }
    // Iterations may have a part each of a buffer that has one slot.
    let rings = it.rings.iter().enumerate().filter(|it| it.1.slots > 1);
    let mut held = rings.flat_map(|(at, _)| it.columns.iter().flat_map(move |column| &column.slots[at]));
    let crowded = held.find(|it| it.len() > 2);
    crowded.map_or(Ok(()), |it| Err(format!("a slot holds {it:?}")))
}

/// All situations that are lowered, as they are and with constants, at the fewest and at the most iterations.
fn check(case: &Case) -> Result<usize, String> {
    let mut count = 0;
    for (choice, steps) in case.choices() {
        let all = case.header.all_dims();
        let dims = [all.first(), all.last()].into_iter().flatten().filter(|it| !it.is_empty());
        let constant = dims.map(|it| run::with_constants(&case.func, it)).filter(|it| ir::verify(it).is_ok());
        for func in [case.func.clone()].into_iter().chain(constant) {
            let about = |err| format!("{} {choice}: {err}", case.name);
            faults(&schedule(&func, &steps).map_err(about)?).map_err(about)?;
            count += 1;
        }
    }
    Ok(count)
}

#[test]
fn timelines_agree_with_kernels_and_themselves() {
    let cases = cases().into_iter().map(|it| it.unwrap());
    let lowered = cases.filter(|it| it.header.verdict == ScriptEnd::Accepted);
    let (counts, errors): (Vec<_>, Vec<_>) = lowered.map(|it| check(&it)).partition(Result::is_ok);
    let errors: Vec<_> = errors.into_iter().filter_map(Result::err).collect();
    assert!(errors.is_empty(), "{} of them:\n{}", errors.len(), errors.join("\n\n"));
    let count: usize = counts.into_iter().flatten().sum();
    assert!(count >= 200 || std::env::var_os("TILEWRIGHT_SCRIPT").is_some(), "{count}");
}
