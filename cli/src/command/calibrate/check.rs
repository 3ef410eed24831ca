//! `tilewright calibrate --check`: the cycles that kernels take beside those that are expected.

use std::path::Path;

use codegen::{
    device::{Machine, MachineInfo},
    emit::symbol,
    expected::expected,
};
use ir::{Arch, Kernel, Target};
use schedule::workload::Param;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::calibrate::cycles;

use crate::{
    build::{Built, build},
    constant::True,
    diagnostic::Diagnostic,
    ladder::{Ladder, Size},
    measuring::case,
    plan::Plan,
    term::{report::Report, shell::Shell, table::Table},
};

/// What kernels take.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CycleCheck {
    ok: True,
    /// The GPU.
    machine: MachineInfo,
    /// One for each script.
    scripts: Vec<CheckedScript>,
}

/// One script.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckedScript {
    /// Its path, or ladder and rung.
    name: String,
    /// The cycles from one start to the next that are expected; nothing where that cannot be told.
    expected: Option<f64>,
    /// Those that were measured: the median of some rounds.
    measured: f64,
    /// The distance of the quartiles in parts of the median.
    spread: f64,
}

/// Measures a script, or the rungs of a ladder, at a size or their own one.
pub(super) fn check(
    what: &str,
    size: Option<&Size>,
    machine: &mut dyn Machine,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let info = machine.info().clone();
    let mut scripts = vec![];
    for plan in plans(what, size)? {
        let (name, plan) = plan;
        shell.progress(&format!("compiling and measuring {name}"));
        let target = plan.target(None, Arch::parse(&info.arch));
        let built = build(plan.schedule(&target, None)?.func(), &target, &plan.dims)?;
        let stats = measured(&plan, &built, machine)?;
        let expected = of_kernels(&built, &target, &plan, &info);
        scripts.push(CheckedScript { name, expected, measured: stats.median, spread: stats.spread() });
    }
    shell.done();
    shell.report(&CycleCheck { ok: True, machine: info, scripts })
}

fn plans(what: &str, size: Option<&Size>) -> Result<Vec<(String, Plan)>, Diagnostic> {
    let path = Path::new(what);
    if path.extension().is_some_and(|it| it == "ron") && path.is_file() {
        return Ok(vec![(what.to_owned(), Plan::load(path, &[])?)]);
    }
    let ladder = Ladder::find(what)?;
    let mut out = vec![];
    for rung in &ladder.rungs {
        let params: Vec<(String, Param)> = match size {
            Some(size) => size.params(&rung.script()?, rung)?,
            None => vec![],
        };
        out.push((rung.title(), rung.plan(&params)?));
    }
    Ok(out)
}

/// The cycles of a program on the inputs that `run` has.
fn measured(plan: &Plan, built: &Built, machine: &mut dyn Machine) -> Result<tuner::Stats, Diagnostic> {
    let case = case(plan, 1, false)?;
    let inputs = case.inputs();
    let sizes = &built.program.buffers;
    let names: Vec<_> = built.module.args.keys().collect();
    let mut buffers = vec![];
    for (at, bytes) in sizes.iter().enumerate() {
        let buffer = machine.alloc(*bytes)?;
        buffers.push(buffer);
        match names.get(at).and_then(|name| inputs.get(*name)) {
            Some(it) => machine.upload(buffer, &it.bytes)?,
            None => machine.upload(buffer, &vec![0; *bytes])?,
        }
    }
    let program = machine.load(&built.program)?;
    let stats = cycles(machine, program, (sizes, &buffers))?;
    machine.unload(program);
    for it in buffers {
        machine.free(it);
    }
    Ok(stats)
}

/// Those that are expected of all its kernels.
fn of_kernels(built: &Built, target: &Target, plan: &Plan, info: &MachineInfo) -> Option<f64> {
    let Target::Cuda(arch) = target else { return None };
    let units = i64::from(info.units);
    let kernel = |it: &Kernel| {
        let needs = built.resources.iter().find(|of| of.kernel == symbol(&it.name));
        Some(expected((&built.module, it), &[], &plan.dims, (arch, units), needs)?.cycles)
    };
    built.module.kernels.iter().map(kernel).sum()
}

impl Report for CycleCheck {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let it = &self.machine;
        shell.say(&format!("{} ({}), {} multiprocessors", it.name, it.arch, it.units))?;
        let mut table = Table::new(["script", "expected", "measured", "expected/measured", "spread"]);
        for it in &self.scripts {
            let (expected, ratio) = match it.expected {
                Some(cycles) => (format!("{cycles:.0}"), format!("{:.3}", cycles / it.measured)),
                None => ("—".to_owned(), "—".to_owned()),
            };
            let spread = format!("{:.1} %", it.spread * 100.0);
            table.row([it.name.clone(), expected, format!("{:.0}", it.measured), ratio, spread]);
        }
        table.print(shell.out)?;
        shell.say("cycles from one start of a program to the next, of the multiprocessors' own clocks")
    }
}
