//! `tilewright run`.

pub(crate) mod sweep;
mod virtual_sweep;

use std::path::{Path, PathBuf};

use codegen::device::MachineInfo;
use indexmap::IndexMap;
use ir::Name;
use schedule::workload::Param;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Comparison, Measured, Rate, Ratio, Record, library};

use crate::{
    diagnostic::Diagnostic,
    figures::{
        failure_words, measured_words, ratio_words, roofline_words, spread_warning, spread_words, time_words,
        verified_words,
    },
    measuring::RunOptions,
    options::dims::{Values, combinations, parse_values},
    options::measure::Measure,
    plan::{Asked, Plan, parse_asked, parse_param},
    progress::{show_progress, tell_compiler},
    records::log,
    term::report::Report,
    term::shell::Shell,
    usage_error::UsageError,
    virtual_gpu,
};

/// Build a schedule, verify its numbers, and time it beside the vendor's library
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The schedule script; on the virtual GPU also a kernel that `show --emit kernel` printed, named `.tw`
    script: PathBuf,
    /// The target, instead of the script's: cpu, cuda, cuda:sm_90a; vgpu or vgpu:sm_90a look for races and count bank
    /// conflicts, and measure nothing
    #[arg(long, value_parser = parse_asked)]
    target: Option<Asked>,
    /// A parameter of the workload or a knob, instead of the script's: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// The value of a symbolic dimension of the workload: n=512. Several values, n=1,17 or n=1..300 (both ends count), are
    /// verified with one and the same compiled program
    #[arg(long = "dim", value_name = "NAME=VALUES", value_parser = parse_values)]
    dims: Vec<Values>,
    /// With several values of a dimension: time the program at each of them, too
    #[arg(long)]
    time: bool,
    /// What a kernel in its text form computes: a schedule script, or a program named `.tw`. Its outputs are then verified
    #[arg(long, value_name = "SCRIPT")]
    reference: Option<PathBuf>,
    #[command(flatten)]
    measure: Measure,
    /// Run again whenever the script or its workload changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

impl Run {
    /// Whether a machine runs something, and not the virtual GPU.
    pub(crate) fn is_measured(&self) -> bool {
        !self.is_kernel() && !matches!(self.target, Some(Asked::Virtual(_)))
    }

    /// Whether it is a kernel in its text form.
    fn is_kernel(&self) -> bool {
        self.script.extension().is_some_and(|it| it == "tw")
    }

    /// The files to watch, if that is wanted.
    pub(crate) fn watched(&self) -> Option<Vec<&Path>> {
        self.watch.then(|| {
            [Some(&self.script), self.reference.as_ref()]
                .into_iter()
                .flatten()
                .map(PathBuf::as_path)
                .collect()
        })
    }

    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        self.measure.watch();
        let all = combinations(&self.dims)?;
        if self.is_kernel() {
            return self.kernel(&all, shell);
        }
        if self.reference.is_some() {
            let title =
                "`--reference` is for a kernel in its text form: a script is verified against its workload";
            return Err(Diagnostic::usage(UsageError::Options, title));
        }
        let mut plan = Plan::load(&self.script, &self.params)?;
        plan.dims.clone_from(&all[0]);
        plan.expect_dims()?;
        let name = self.script.display().to_string();
        if let Some(Asked::Virtual(arch)) = &self.target {
            return match all.as_slice() {
                [_] => {
                    virtual_gpu::refuse_log(&self.measure)?;
                    virtual_gpu::script(&plan, &name, arch.as_ref(), self.measure.seed, shell)
                }
                all => virtual_sweep::sweep(plan, all, &name, arch.as_ref(), &self.measure, shell),
            };
        }
        if all.len() > 1 {
            return sweep::Sweep { measure: &self.measure, time: self.time, name: &name }.run(
                plan,
                &all,
                self.target.as_ref().and_then(Asked::machine),
                shell,
            );
        }
        let options = RunOptions {
            target: self.target.as_ref().and_then(Asked::machine).cloned(),
            seed: self.measure.seed,
            regime: self.measure.regime,
            threads: self.measure.threads,
        };
        tell_compiler(&plan.target(options.target.as_ref(), None), shell);
        shell.phase("compiling, verifying and timing");
        shell.progress("compiling");
        let found = crate::run(&plan, &options, &mut |it| show_progress("run", &it, shell))?;
        shell.end();
        let (measured, notes) = (found.measured(), &found.built.notes);
        log(self.measure.log.as_deref(), std::slice::from_ref(&found.record))?;
        let ok = measured.failure.is_none();
        let (record, comparison) = (&found.record, &found.comparison);
        shell.report(&RunReport { ok, record, notes, plan: &plan, machine: &found.machine, comparison })?;
        match (&measured.failure, failure_words(measured)) {
            (Some(failure), Some(words)) => {
                Err(Diagnostic::failed(failure, format!("{name}: {words}")).help(failure.help()))
            }
            (_, None) | (None, _) => Ok(()),
        }
    }

    /// A kernel in its text form.
    fn kernel(&self, all: &[IndexMap<Name, i64>], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        match (&self.target, all) {
            (Some(Asked::Virtual(_)), [dims]) => {
                let reference = self.reference.as_deref();
                let seed = self.measure.seed;
                virtual_gpu::Kernel { path: &self.script, dims, params: &self.params, seed, reference }
                    .run(shell)
            }
            (Some(Asked::Virtual(_)), _) => Err(Diagnostic::usage(
                UsageError::Options,
                "a kernel from its text runs with one value for each dimension",
            )),
            (Some(Asked::Machine(_)) | None, _) => {
                let title = "only the virtual GPU runs a kernel from its text";
                Err(Diagnostic::usage(UsageError::Options, title).help("add `--target vgpu`".to_owned()))
            }
        }
    }
}

/// What was measured of one program.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "measured")]
pub(crate) struct RunReport<'a> {
    /// Whether the numbers are right, and there is a time.
    ok: bool,
    /// The line that `--log` appends.
    record: &'a Record,
    /// What the script asks for in vain.
    notes: &'a [String],
    #[serde(skip)]
    plan: &'a Plan,
    #[serde(skip)]
    machine: &'a MachineInfo,
    #[serde(skip)]
    comparison: &'a Comparison,
}

impl Report for RunReport<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        self.print_measured(shell)?;
        Ok(self.notes.iter().try_for_each(|it| writeln!(shell.out, "note       {it}"))?)
    }
}

impl RunReport<'_> {
    fn print_measured(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let RunReport { machine: info, comparison, .. } = *self;
        let measured = &comparison.candidates[0];
        let out = &mut *shell.out;
        writeln!(out, "workload   {}", self.plan.headline())?;
        writeln!(out, "machine    {} ({}, {} units)", info.name, info.arch, info.units)?;
        let rate = Rate::of(&comparison.work);
        let speed = measured_words(rate, comparison, measured);
        let (Some(stats), Some(speed), Some(after)) = (measured.stats, speed, &measured.after) else {
            return Ok(());
        };
        writeln!(out, "verified   before and after timing: {}", verified_words(after))?;
        writeln!(
            out,
            "time       {} (least {}, most {}, spread {}), {} samples of {} calls",
            time_words(stats.median),
            time_words(stats.min),
            time_words(stats.max),
            spread_words(&stats),
            measured.seconds.len(),
            measured.calls
        )?;
        if let Some(words) = spread_warning([("it", stats)].into_iter()) {
            writeln!(out, "warning    {words}")?;
        }
        let regime = self.record.environment.regime;
        writeln!(out, "regime     {}; caches {}", regime.as_str(), regime.cache_policy())?;
        let part = roofline_words(comparison, measured).map(|it| format!(", {it}")).unwrap_or_default();
        writeln!(out, "{:<10} {speed}{part}", rate.unit())?;
        print_baselines(info, comparison, measured, shell)
    }
}

fn print_baselines(
    info: &MachineInfo,
    comparison: &Comparison,
    measured: &Measured,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    if let Some(err) = &comparison.no_baseline {
        writeln!(shell.out, "baseline   none: {}: {err}", library(info))?;
    }
    for baseline in comparison.baseline.iter().chain(&comparison.other_baselines) {
        let name = &baseline.label;
        if let Some(words) = failure_words(baseline) {
            writeln!(shell.out, "baseline   none: {name}: {words}")?;
        }
        let ratio = Ratio::of(measured, baseline).filter(|_| baseline.failure.is_none());
        let rate = Rate::of(&comparison.work);
        if let (Some(speed), Some(ratio)) = (measured_words(rate, comparison, baseline), ratio) {
            let (unit, ratio) = (rate.unit(), ratio_words(&ratio, "as fast"));
            writeln!(shell.out, "baseline   {name} {speed} {unit}; this is {ratio}")?;
        }
    }
    Ok(())
}
