//! Programs on the virtual GPU: run in several orders, verified, and what was found and counted.

mod kernel;
mod words;

use codegen::vgpu::{self, CountedFinding, Counters, Finding, Progress, Settings};
use indexmap::IndexMap;
use ir::{Arch, Module, Name};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Case, Expected, Tensor, Verification};

pub(crate) use kernel::Kernel;
pub(crate) use words::arch as arch_word;

use crate::{
    build::lower,
    diagnostic::Diagnostic,
    figures::verified_words,
    ladder::rung_view::RungView,
    measuring::{bench_error, case},
    options::measure::Measure,
    plan::Plan,
    term::report::Report,
    term::shell::Shell,
    term::table::Table,
    usage_error::UsageError,
};

/// A program and what came of its runs.
pub(crate) struct Inspected {
    module: Module,
    /// The runs in words, up to the first in which something is wrong.
    runs: Vec<String>,
    findings: Vec<CountedFinding>,
    /// How many sorts of findings are not told.
    dropped: u64,
    /// The numbers of the last run, if something tells the right ones.
    pub(crate) verified: Option<Verification>,
    counters: Vec<Counters>,
}

/// What the virtual GPU counts, in words and as a name in data.
pub(crate) const COUNTS: [(&str, &str); 8] = [
    ("assignments", "steps"),
    ("barriers", "barriers"),
    ("waits", "waits"),
    ("shared: requests", "shared_requests"),
    ("shared: wavefronts", "shared_wavefronts"),
    ("global: requests", "global_requests"),
    ("global: sectors", "global_sectors"),
    ("findings", "findings"),
];

/// The seed where nobody gives one.
pub(crate) const SEED: u64 = 1;

/// Programs that make more assignments than this take long enough to say so first.
const LONG: u64 = 200_000_000;

/// `run SCRIPT --target vgpu`.
pub(crate) fn script(
    plan: &Plan,
    name: &str,
    arch: Option<&Arch>,
    seed: u64,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let it = scheduled(plan, name, arch, seed, shell)?;
    let machine = format!("virtual GPU as {}", arch_word(plan, arch));
    let heading = format!("workload   {}", plan.headline());
    shell.report(&VirtualRun { heading, ..it.report(name, &machine) })?;
    it.verdict(name).map_or(Ok(()), Err)
}

/// How many assignments of single threads the runs of a lowered script make, about.
pub(crate) fn assignments(plan: &Plan, module: &Module) -> u64 {
    let runs = Settings::hostile(SEED).len() as u64;
    vgpu::estimate(module, &plan.dims).saturating_mul(runs)
}

/// `tutorial --target vgpu`: some rungs of a ladder at one size, and what there is to tell of them.
pub(crate) fn ladder(
    name: &str,
    size: &str,
    (plans, views): (&[Plan], &[RungView]),
    arch: Option<&Arch>,
    measure: &Measure,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    refuse_log(measure)?;
    let machine = format!("virtual GPU as {}", arch_word(&plans[0], arch));
    let mut table = Table::new(words::HEADS);
    let mut reports = vec![];
    for (view, plan) in views.iter().zip(plans) {
        let title = &view.title;
        let it = scheduled(plan, &format!("{title} at {size}"), arch, measure.seed, shell)?;
        shell.line(&VirtualRun { size: Some(size), told: Some(view), ..it.report(title, &machine) })?;
        table.row(it.row(format!("{}. {title}", view.number)));
        reports.extend(it.verdict(&format!("{title} at {size}")));
    }
    shell.done();
    if !shell.json {
        writeln!(shell.out, "{name} at {size} on a {machine}; it has no clock, so no GFLOPS")?;
        table.print(shell.out)?;
    }
    Diagnostic::all(reports).map_or(Ok(()), Err)
}

pub(crate) fn refuse_log(measure: &Measure) -> Result<(), Diagnostic> {
    match measure.log {
        Some(_) => Err(Diagnostic::usage(
            UsageError::Options,
            "nothing is measured on the virtual GPU, so there is nothing to log",
        )),
        None => Ok(()),
    }
}

/// Schedules, lowers and runs a script.
pub(crate) fn scheduled(
    plan: &Plan,
    name: &str,
    arch: Option<&Arch>,
    seed: u64,
    shell: &mut Shell<'_>,
) -> Result<Inspected, Diagnostic> {
    let module = lowered(plan, arch, shell)?;
    checked(plan, name, module, seed, shell)
}

/// Schedules and lowers a script.
pub(crate) fn lowered(plan: &Plan, arch: Option<&Arch>, shell: &mut Shell<'_>) -> Result<Module, Diagnostic> {
    let target = plan.virtual_target(arch);
    let (module, notes) = lower(plan.schedule(&target, None)?.func(), &target)?;
    for it in &notes {
        shell.note(it);
    }
    Ok(module)
}

/// Runs a lowered script at the sizes of its plan.
pub(crate) fn checked(
    plan: &Plan,
    name: &str,
    module: Module,
    seed: u64,
    shell: &mut Shell<'_>,
) -> Result<Inspected, Diagnostic> {
    against(&case(plan, seed, true)?, name, module, None, shell)
}

/// Runs a lowered program, and compares its outputs with what a case must come to. `dims` are those of the program, where they
/// are not those of the case.
fn against(
    case: &Case,
    name: &str,
    module: Module,
    dims: Option<&IndexMap<Name, i64>>,
    shell: &mut Shell<'_>,
) -> Result<Inspected, Diagnostic> {
    let tensors: IndexMap<Name, Tensor> = case.inputs();
    let inputs = tensors.iter().map(|(name, it)| (name.clone(), it.to_f64())).collect();
    let mut reference = case.reference(&tensors).map_err(|err| bench_error(err.into()))?;
    let expected = Expected::of(case, &mut reference).map_err(|err| bench_error(err.into()))?;
    let mut check = |memory: &IndexMap<Name, Vec<f64>>| Verification {
        outputs: expected.iter().map(|it| it.check_numbers(&memory[&it.buffer], &mut reference)).collect(),
    };
    inspect(name, module, dims.unwrap_or(&case.dims), &inputs, case.seed, Some(&mut check), shell)
}

/// Runs a lowered script at the sizes of its plan: what was counted. What is wrong is an error, if it is to be verified; else
/// it runs once.
pub(crate) fn trial(
    plan: &Plan,
    name: &str,
    module: Module,
    verify: bool,
    shell: &mut Shell<'_>,
) -> Result<Vec<Counters>, Diagnostic> {
    let seed = SEED;
    if verify {
        let it = checked(plan, name, module, seed, shell)?;
        return it.verdict(name).map_or(Ok(it.counters), Err);
    }
    let mut memory =
        case(plan, seed, true)?.inputs().iter().map(|(name, it)| (name.clone(), it.to_f64())).collect();
    let settings = Settings { seed, ..Settings::default() };
    let report = vgpu::run(&module, &plan.dims, &mut memory, &settings);
    report.map(|it| it.counters).map_err(|err| Diagnostic::failed(&err, format!("{name}: {err}")))
}

/// What tells whether outputs are right.
type Check<'a> = &'a mut dyn FnMut(&IndexMap<Name, Vec<f64>>) -> Verification;

/// Runs a program in the orders that differ most, up to the first in which something is wrong.
fn inspect(
    name: &str,
    module: Module,
    dims: &IndexMap<Name, i64>,
    inputs: &IndexMap<Name, Vec<f64>>,
    seed: u64,
    mut check: Option<Check<'_>>,
    shell: &mut Shell<'_>,
) -> Result<Inspected, Diagnostic> {
    let all = Settings::hostile(seed);
    let steps = vgpu::estimate(&module, dims);
    if steps > LONG {
        shell.note(&words::long(name, steps, all.len()));
    }
    let (runs, findings, counters) = (vec![], vec![], vec![]);
    let mut out = Inspected { module, runs, findings, dropped: 0, verified: None, counters };
    for (n, settings) in all.iter().enumerate() {
        let mut memory = inputs.clone();
        let mut shown = i64::MIN;
        let mut tell = |it: Progress<'_>| {
            let percent = 100 * it.done / it.of.max(1);
            if percent != shown {
                shown = percent;
                let part = format!("{}: {percent} % of {} blocks", it.kernel, it.of);
                shell.progress(&format!("{name}: run {} of {}: {part}", n + 1, all.len()));
            }
        };
        let report = vgpu::run_seen(&out.module, dims, &mut memory, settings, &mut tell)
            .map_err(|err| Diagnostic::failed(&err, format!("{name}: {err}")))?;
        out.runs.push(settings.words());
        if n == 0 {
            out.counters = report.counters;
        }
        (out.findings, out.dropped) = (report.findings, report.dropped);
        out.verified = check.as_mut().filter(|_| !report.stopped).map(|it| it(&memory));
        if !out.is_fine() {
            break;
        }
    }
    shell.done();
    Ok(out)
}

/// A program on the virtual GPU.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "on the virtual GPU")]
pub(crate) struct VirtualRun<'a> {
    /// Whether nothing was found, and no number is wrong.
    ok: bool,
    /// What ran: a script, a kernel, or a rung.
    name: &'a str,
    /// What it ran on.
    machine: &'a str,
    /// The runs in words, up to the first in which something is wrong.
    runs: &'a [String],
    /// What is wrong in the last run, each sort once.
    findings: &'a [CountedFinding],
    /// How many sorts of findings are not told.
    findings_dropped: u64,
    /// The numbers of the last run, if something tells the right ones.
    verified: Option<&'a Verification>,
    /// What each kernel did in the first run.
    counters: &'a [Counters],
    /// Of a rung: the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<&'a str>,
    /// With several values of symbolic dimensions: these.
    #[serde(skip_serializing_if = "Option::is_none")]
    dims: Option<&'a IndexMap<Name, i64>>,
    /// Of a rung: as in `tutorial`.
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<&'a RungView>,
    /// What it is, in a line.
    #[serde(skip)]
    heading: String,
}

impl<'a> VirtualRun<'a> {
    /// The same at values of symbolic dimensions.
    pub(crate) fn at(self, dims: &'a IndexMap<Name, i64>) -> VirtualRun<'a> {
        VirtualRun { dims: Some(dims), ..self }
    }
}

impl Report for VirtualRun<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let out = &mut *shell.out;
        writeln!(out, "{}", self.heading)?;
        writeln!(out, "machine    {}; it has no clock, so no GFLOPS", self.machine)?;
        for (n, run) in self.runs.iter().enumerate() {
            writeln!(out, "{}{run}", if n == 0 { "runs       " } else { "           " })?;
        }
        match self.findings.len() {
            0 => writeln!(out, "findings   none")?,
            n => writeln!(out, "findings   {n} in the last run")?,
        }
        match self.verified {
            Some(it) if it.is_ok() => writeln!(out, "verified   {}", verified_words(it))?,
            Some(_) => writeln!(out, "verified   the numbers are wrong")?,
            None => writeln!(out, "verified   no: there is nothing to compare with")?,
        }
        for it in self.counters {
            words::counters(it, out)?;
        }
        Ok(())
    }
}

impl Inspected {
    fn is_fine(&self) -> bool {
        self.findings.is_empty() && self.verified.as_ref().is_none_or(Verification::is_ok)
    }

    pub(crate) fn report<'a>(&'a self, name: &'a str, machine: &'a str) -> VirtualRun<'a> {
        VirtualRun {
            ok: self.is_fine(),
            name,
            machine,
            runs: &self.runs,
            findings: &self.findings,
            findings_dropped: self.dropped,
            verified: self.verified.as_ref(),
            counters: &self.counters,
            size: None,
            dims: None,
            told: None,
            heading: String::new(),
        }
    }

    /// The cells of a table over several programs.
    fn row(&self, title: String) -> Vec<String> {
        let totals = |space: &str| {
            let all = self.counters.iter().map(|it| it.total(space));
            all.fold([0; 3], |[a, b, c], [x, y, z]| [a + x, b + y, c + z])
        };
        let sum = |f: &dyn Fn(&Counters) -> u64| self.counters.iter().map(f).sum::<u64>().to_string();
        let wrong = self.verified.as_ref().is_some_and(|it| !it.is_ok());
        let verified = if wrong { "wrong" } else { "right" };
        vec![
            title,
            self.findings.len().to_string(),
            verified.to_owned(),
            sum(&|it| it.steps),
            sum(&|it| it.barriers),
            words::ratio(totals("shared")),
            words::ratio(totals("global")),
        ]
    }

    /// What was counted in the first run over all kernels, in the order of [`COUNTS`].
    pub(crate) fn counts(&self) -> [u64; COUNTS.len()] {
        let sum = |f: &dyn Fn(&Counters) -> u64| self.counters.iter().map(f).sum();
        [
            sum(&|it| it.steps),
            sum(&|it| it.barriers),
            sum(&|it| it.waits),
            sum(&|it| it.total("shared")[0]),
            sum(&|it| it.total("shared")[1]),
            sum(&|it| it.total("global")[0]),
            sum(&|it| it.total("global")[1]),
            self.findings.len() as u64,
        ]
    }

    /// What is wrong, if something is.
    pub(crate) fn verdict(&self, name: &str) -> Option<Diagnostic> {
        // What was read too early was then never written: the cause is told before what follows from it.
        let mut findings: Vec<&CountedFinding> = self.findings.iter().collect();
        findings.sort_by_key(|it| matches!(it.finding, Finding::Uninitialised { .. }));
        let found = findings.into_iter().map(|it| words::finding(&self.module, it));
        let failure = self.verified.as_ref().and_then(|it| it.failure(tuner::Failure::Wrong));
        let wrong = self.verified.iter().flat_map(|it| &it.outputs).filter(|it| it.wrong > 0);
        let wrong = wrong.zip(failure.iter().cycle()).map(|(it, failure)| {
            let words = it.wrong_words();
            Diagnostic::failed(failure, format!("{name}: the numbers are wrong: {words}"))
                .help(failure.help())
        });
        Diagnostic::all(found.chain(wrong))
    }
}
