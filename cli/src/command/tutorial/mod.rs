//! `tilewright tutorial`: ladders as a course. All rungs, one of them, or what each step of one is worth.

pub(crate) mod ablate;
pub(crate) mod lines;
pub(crate) mod list;
mod on_virtual_gpu;
mod without;

use codegen::device::{Machine, MachineInfo};
use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::workload::Param;
use tuner::{Bench, Comparison, Environment, Record, Settings};

use crate::{
    build::{Built, build, open},
    diagnostic::Diagnostic,
    ladder::report::{LadderReport, Rungs, versus},
    ladder::rung_view::Detail,
    ladder::{Ladder, Rung, Size},
    measuring::{bench_error, case, record},
    options::measure::Measure,
    plan::{Asked, Plan, parse_asked},
    progress::compare,
    records::{keep, log, state_log},
    term::shell::Shell,
    usage_error::UsageError,
};

use ablate::Ablation;
use lines::RungLine;

/// Climb a ladder: what each rung changes, why, and what it gains, measured and verified
#[derive(Debug, clap::Args)]
pub(crate) struct Tutorial {
    /// A ladder that ships, or a folder of scripts named NN_name.ron; `list` lists those that ship
    #[arg(default_value = "matmul-cpu")]
    ladder: String,
    /// The target, instead of the scripts': cpu, cuda, cuda:sm_90a; vgpu or vgpu:sm_90a look for races and count bank
    /// conflicts, and measure nothing
    #[arg(long, value_parser = parse_asked)]
    target: Option<Asked>,
    /// Sizes to measure, instead of the scripts': 512 or 512x256x128; repeat, or separate by commas
    #[arg(long = "size", value_name = "SIZE", value_delimiter = ',', value_parser = Size::parse)]
    sizes: Vec<Size>,
    /// Stop after this rung: its number or its name
    #[arg(long, value_name = "RUNG")]
    until: Option<String>,
    /// Show this rung alone, whole, measured beside the one below: its number or its name
    #[arg(long, value_name = "RUNG", conflicts_with = "until")]
    step: Option<String>,
    /// Leave out one step at a time of the last rung, or of the one that `--step` names, and tell what each is worth
    #[arg(long)]
    ablate: bool,
    /// Show the whole of each difference
    #[arg(long)]
    full: bool,
    /// Show the differences of the generated code, too
    #[arg(long)]
    code: bool,
    #[command(flatten)]
    measure: Measure,
}

/// All rungs at one size, built.
struct BuiltRungs {
    plans: Vec<Plan>,
    built: Vec<Built>,
}

/// The rungs that are looked at.
struct RungRange {
    ladder: Ladder,
    /// The place on the whole ladder of the first of them, from 1.
    first: usize,
    /// Whether only the last of them is told.
    only_last: bool,
}

impl Tutorial {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        self.measure.watch();
        if self.ladder == "list" {
            return list::list(shell);
        }
        let part = self.part(Ladder::find(&self.ladder)?)?;
        let own = own_sizes(&part.ladder)?;
        let sizes = if self.sizes.is_empty() { &own } else { &self.sizes };
        let sizes: Vec<Option<&Size>> =
            if sizes.is_empty() { vec![None] } else { sizes.iter().map(Some).collect() };
        if let Some(Asked::Virtual(arch)) = &self.target {
            return self.on_virtual_gpu(&part, &sizes, arch.as_ref(), shell);
        }
        // What can be refused without a machine is refused before one is opened.
        let first = plans(&part.ladder, sizes[0])?;
        let asked = self.target.as_ref().and_then(Asked::machine);
        let demanding = most_demanding(&first);
        let wanted = demanding.target(asked, None);
        for plan in &first {
            plan.schedule(&plan.target(asked, None), None)?;
        }
        let mut machine = open(&wanted).map_err(|err| match wanted {
            Target::Cpu => err,
            Target::Cuda(_) => err.help(
                "without a GPU, `--target vgpu` climbs on a virtual one; measuring needs NVIDIA's driver"
                    .to_owned(),
            ),
        })?;
        let target = demanding.target(asked, Arch::parse(&machine.info().arch));
        if self.ablate {
            return self.ablate(&part, &sizes, &target, machine.as_mut(), shell);
        }
        self.measured(&part, &sizes, &target, machine.as_mut(), shell)
    }

    /// The rungs that the flags choose.
    fn part(&self, mut ladder: Ladder) -> Result<RungRange, Diagnostic> {
        let last = match self.step.as_ref().or(self.until.as_ref()) {
            Some(word) => ladder.position(word)?,
            None => ladder.rungs.len() - 1,
        };
        ladder.rungs.truncate(last + 1);
        let first = match (self.ablate, self.step.is_some()) {
            (true, _) => last,
            (false, true) => last.saturating_sub(1),
            (false, false) => 0,
        };
        ladder.rungs.drain(..first);
        Ok(RungRange { ladder, first: first + 1, only_last: self.step.is_some() })
    }

    fn detail(&self) -> Detail {
        Detail { full: self.full || self.step.is_some(), code: self.code }
    }

    /// Measures the rungs on a machine.
    fn measured(
        &self,
        part: &RungRange,
        sizes: &[Option<&Size>],
        target: &Target,
        machine: &mut dyn Machine,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let report = LadderReport::new(&part.ladder.name, machine.info(), self.measure.regime, self.detail());
        let mut report = if part.only_last { report.only_last(part.first) } else { report };
        let mut records = Vec::new();
        for size in sizes {
            records.extend(self.measure_size(part, *size, target, machine, &mut report, shell)?);
        }
        shell.done();
        shell.report(&report.summary())?;
        let default = state_log().filter(|_| self.measure.log.is_none());
        let kept = default.map(|path| keep(&path, &records));
        if let Some(words) = kept.filter(|_| !shell.json) {
            writeln!(shell.out)?;
            shell.say(&words)?;
        }
        match report.failures() {
            0 => Ok(()),
            1 => Err(Diagnostic::failed(UsageError::NoResult, "a rung has no result")),
            n => Err(Diagnostic::failed(UsageError::NoResult, format!("{n} rungs have no result"))),
        }
    }

    /// Measures all rungs at one size. Records go to the log that the user named at once, so that a later size loses
    /// nothing.
    fn measure_size(
        &self,
        part: &RungRange,
        size: Option<&Size>,
        target: &Target,
        machine: &mut dyn Machine,
        report: &mut LadderReport,
        shell: &mut Shell<'_>,
    ) -> Result<Vec<Record>, Diagnostic> {
        let info = machine.info().clone();
        let ladder = &part.ladder;
        let BuiltRungs { plans, built } = build_all(ladder, size, shell, &mut |plan| {
            build(plan.schedule(target, None)?.func(), target, &plan.dims)
        })?;
        let case = case(&plans[0], self.measure.seed, *target == Target::Cpu)?;
        let settings = self.measure.settings(&info);
        let inputs = case.inputs();
        let mut reference = case.reference_on(&info, &inputs).map_err(|err| bench_error(err.into()))?;
        let mut bench = Bench::new(machine, &case, &inputs, &mut reference).map_err(bench_error)?;
        let word = size.map_or_else(|| size_word(&plans[0].params), |it| it.word.clone());

        let titles: Vec<String> = ladder.rungs.iter().map(Rung::title).collect();
        let all: Vec<(&str, &Built)> = titles.iter().map(String::as_str).zip(&built).collect();
        let comparison = compare(&mut bench, &all, &settings, &word, shell);
        let environment = Environment::new(&info, &case, &settings);
        let measured = comparison.candidates.iter();
        let records: Vec<_> = plans
            .iter()
            .zip(&built)
            .zip(measured)
            .map(|((plan, built), it)| record(plan, built, &case, &comparison, it, environment.clone()))
            .collect();
        log(self.measure.log.as_deref(), &records)?;
        let rungs = Rungs { ladder, plans: &plans, built: &built, target, first: part.first };
        let views = rungs.views(self.detail());
        for (at, (view, record)) in views.iter().zip(&records).enumerate() {
            let pair = at.checked_sub(1).map(|it| (&comparison.candidates[at], &comparison.candidates[it]));
            let versus_below = pair.and_then(|(here, below)| versus(here, below));
            shell.line(&RungLine {
                ok: record.failure.is_none(),
                view,
                size: &word,
                versus_below,
                record,
            })?;
        }
        let single = single_thread(&mut bench, all.last(), &settings, &info, shell);
        report.add(&word, comparison, single, views);
        Ok(records)
    }

    /// What each step of the last rung is worth.
    fn ablate(
        &self,
        part: &RungRange,
        sizes: &[Option<&Size>],
        target: &Target,
        machine: &mut dyn Machine,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        if self.measure.log.is_some() {
            let title = "`--ablate` writes no records: what it measures is no script";
            return Err(Diagnostic::usage(UsageError::Options, title));
        }
        let settings = self.measure.settings(machine.info());
        for size in sizes {
            let plans = plans(&part.ladder, *size)?;
            let word = size.map_or_else(|| size_word(&plans[0].params), |it| it.word.clone());
            let ablation = Ablation {
                ladder: &part.ladder.name,
                rung: &part.ladder.rungs[0].title(),
                size: &word,
                plan: &plans[0],
                target,
            };
            ablation.run(machine, self.measure.seed, &settings, shell)?;
        }
        Ok(())
    }
}

/// The last rung and the library once more, one thread each: on a CPU of many cores only that compares kernels.
fn single_thread(
    bench: &mut Bench<'_>,
    last: Option<&(&str, &Built)>,
    settings: &Settings,
    info: &MachineInfo,
    shell: &mut Shell<'_>,
) -> Option<Comparison> {
    if info.arch != "cpu" || settings.threads == 1 {
        return None;
    }
    let one = Settings { threads: 1, ..settings.clone() };
    Some(compare(bench, &[*last?], &one, "one thread", shell))
}

/// The scripts of a ladder at a size.
fn plans(ladder: &Ladder, size: Option<&Size>) -> Result<Vec<Plan>, Diagnostic> {
    let plan = |rung: &Rung| {
        // A script that cannot be read is told by `plan`.
        let params = match (size, rung.script()) {
            (Some(size), Ok(script)) => size.params(&script, rung)?,
            (None, _) | (_, Err(_)) => vec![],
        };
        rung.plan(&params)
    };
    ladder.rungs.iter().map(plan).collect()
}

/// The script whose target needs the latest architecture: what one rung needs, all are compiled for, so that they compare.
fn most_demanding(plans: &[Plan]) -> &Plan {
    let need = |it: &&Plan| match it.virtual_target(None) {
        Target::Cuda(arch) => (arch.sm, arch.suffix),
        Target::Cpu => (0, None),
    };
    // Of equals the first.
    plans.iter().rev().max_by_key(need).expect("a ladder has rungs")
}

/// The sizes that the scripts of a ladder give, if there are several. All rungs are climbed at each of them: what one of them is
/// for may show only at a size of its own.
fn own_sizes(ladder: &Ladder) -> Result<Vec<Size>, Diagnostic> {
    let mut out: Vec<Size> = vec![];
    let plans = plans(ladder, None)?;
    for size in plans.iter().filter_map(|it| Size::parse(&size_word(&it.params)).ok()) {
        if !out.contains(&size) {
            out.push(size);
        }
    }
    Ok(if out.len() > 1 { out } else { vec![] })
}

/// Makes something of each rung at a size.
fn build_all(
    ladder: &Ladder,
    size: Option<&Size>,
    shell: &mut Shell<'_>,
    make: &mut dyn FnMut(&Plan) -> Result<Built, Diagnostic>,
) -> Result<BuiltRungs, Diagnostic> {
    let plans = plans(ladder, size)?;
    let mut built = vec![];
    for (plan, rung) in plans.iter().zip(&ladder.rungs) {
        shell.progress(&format!("compiling {}", rung.title()));
        built.push(make(plan)?);
    }
    Ok(BuiltRungs { plans, built })
}

/// The sizes that a script gives, in one word.
fn size_word(params: &IndexMap<String, Param>) -> String {
    let numbers = params.values().filter_map(|it| match it {
        Param::Int(it) => Some(it.to_string()),
        Param::Float(_) | Param::Text(_) => None,
    });
    let mut numbers: Vec<String> = numbers.collect();
    if numbers.windows(2).all(|it| it[0] == it[1]) {
        numbers.truncate(1);
    }
    if numbers.is_empty() { "default".to_owned() } else { numbers.join("x") }
}
