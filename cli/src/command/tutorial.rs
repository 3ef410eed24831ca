//! `tilewright tutorial`.

use codegen::device::{Machine, MachineInfo};
use ir::{Arch, Target};
use schedule::{script::Script, workload::Param};
use serde_json::json;
use tuner::{Bench, Comparison, Environment, Record, Settings};

use crate::{
    build::{Built, build, open},
    command::climb::Climb,
    command::inspect,
    command::ladder::{Ladder, Rung, Size},
    command::measure::{Measure, bench_error, case, compare, keep, log, record, state_log},
    diagnostic::Diagnostic,
    plan::{Asked, Plan, parse_asked},
    term::shell::Shell,
    trouble::Trouble,
};

/// Climb a ladder: what each rung changes, why, and what it gains, measured and verified
#[derive(Debug, clap::Args)]
pub(crate) struct Tutorial {
    /// A ladder that ships, or a folder of scripts named NN_name.ron
    #[arg(default_value = "matmul-cpu")]
    ladder: String,
    /// The target, instead of the scripts': cpu, cuda, cuda:sm_90a; vgpu or vgpu:sm_90a look for races and count bank
    /// conflicts, and measure nothing
    #[arg(long, value_parser = parse_asked)]
    target: Option<Asked>,
    /// Sizes to measure, instead of the scripts': 512 or 512x256x128; repeat, or separate by commas
    #[arg(long = "size", value_name = "SIZE", value_delimiter = ',', value_parser = Size::parse)]
    sizes: Vec<Size>,
    /// Stop after this rung
    #[arg(long, value_name = "N")]
    until: Option<usize>,
    /// Show the whole of each difference
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    measure: Measure,
}

/// All rungs at one size, built.
struct Rungs {
    plans: Vec<Plan>,
    built: Vec<Built>,
}

impl Tutorial {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut ladder = Ladder::find(&self.ladder)?;
        ladder.rungs.truncate(self.until.unwrap_or(usize::MAX).max(1));
        let sizes: Vec<Option<&Size>> =
            if self.sizes.is_empty() { vec![None] } else { self.sizes.iter().map(Some).collect() };
        // What can be refused without a machine is refused before one is opened.
        let first = plans(&ladder, sizes[0])?;
        if let Some(Asked::Virtual(arch)) = &self.target {
            let of_size = |size: Option<&Size>| {
                let plans = plans(&ladder, size)?;
                Ok((size.map_or_else(|| size_word(&plans[0]), |it| it.word.clone()), plans))
            };
            let sizes = sizes.iter().copied().map(of_size).collect::<Result<Vec<_>, Diagnostic>>()?;
            return inspect::ladder(&ladder, &sizes, arch.as_ref(), &self.measure, shell);
        }
        let asked = self.target.as_ref().and_then(Asked::machine);
        let wanted = first[0].target(asked, None);
        for plan in &first {
            plan.schedule(&plan.target(asked, None), None)?;
        }
        let mut machine = open(&wanted)?;
        let info = machine.info().clone();
        let target = first[0].target(asked, Arch::parse(&info.arch));

        let mut climb = Climb::new(&ladder, &info, self.measure.regime, self.full);
        let mut records = Vec::new();
        for size in sizes {
            records.extend(self.climb(&ladder, size, &target, machine.as_mut(), &mut climb, shell)?);
        }
        shell.done();
        if shell.json {
            shell.json(&climb.summary())?;
        } else {
            climb.print(shell.out)?;
        }
        let default = state_log().filter(|_| self.measure.log.is_none());
        let kept = default.map(|path| keep(&path, &records));
        if let Some(words) = kept.filter(|_| !shell.json) {
            writeln!(shell.out, "\n{words}")?;
        }
        match climb.failures() {
            0 => Ok(()),
            1 => Err(Diagnostic::failed(Trouble::NoResult, "a rung has no result")),
            n => Err(Diagnostic::failed(Trouble::NoResult, format!("{n} rungs have no result"))),
        }
    }

    /// Measures all rungs at one size. Records go to the log that the user named at once, so that a later size loses
    /// nothing.
    fn climb(
        &self,
        ladder: &Ladder,
        size: Option<&Size>,
        target: &Target,
        machine: &mut dyn Machine,
        climb: &mut Climb,
        shell: &mut Shell<'_>,
    ) -> Result<Vec<Record>, Diagnostic> {
        let info = machine.info().clone();
        let Rungs { plans, built } = build_all(ladder, size, target, shell)?;
        let case = case(&plans[0], self.measure.seed, *target == Target::Cpu)?;
        let settings = self.measure.settings(&info);
        let inputs = case.inputs();
        let mut reference = case.reference(&inputs).map_err(|err| bench_error(err.into()))?;
        let mut bench = Bench::new(machine, &case, &inputs, &mut reference).map_err(bench_error)?;
        let word = size.map_or_else(|| size_word(&plans[0]), |it| it.word.clone());

        let titles: Vec<String> = ladder.rungs.iter().map(Rung::title).collect();
        let rungs: Vec<(&str, &Built)> = titles.iter().map(String::as_str).zip(&built).collect();
        let comparison = compare(&mut bench, &rungs, &settings, &word, shell);
        let environment = Environment::new(&info, &case, &settings);
        let measured = comparison.candidates.iter();
        let records: Vec<_> = plans
            .iter()
            .zip(&built)
            .zip(measured)
            .map(|((plan, built), it)| record(plan, built, &case, &comparison, it, environment.clone()))
            .collect();
        log(self.measure.log.as_deref(), &records)?;
        if shell.json {
            for (rung, record) in titles.iter().zip(&records) {
                let ok = record.failure.is_none();
                shell.json(&json!({"ok": ok, "rung": rung, "size": word, "record": record}))?;
            }
        }
        let single = single_thread(&mut bench, rungs.last(), &settings, &info, shell);
        climb.add(&word, comparison, single, &plans, &built);
        Ok(records)
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
        let params = match (size, Script::parse(&rung.text)) {
            (Some(size), Ok(script)) => size.params(&script, rung)?,
            (None, _) | (_, Err(_)) => vec![],
        };
        rung.plan(&params)
    };
    ladder.rungs.iter().map(plan).collect()
}

fn build_all(
    ladder: &Ladder,
    size: Option<&Size>,
    target: &Target,
    shell: &mut Shell<'_>,
) -> Result<Rungs, Diagnostic> {
    let plans = plans(ladder, size)?;
    let mut built = vec![];
    for (plan, rung) in plans.iter().zip(&ladder.rungs) {
        shell.progress(&format!("compiling {}", rung.title()));
        let session = plan.schedule(target, None)?;
        built.push(build(session.func(), target, &plan.dims)?);
    }
    Ok(Rungs { plans, built })
}

/// The sizes that a script gives, in one word.
fn size_word(plan: &Plan) -> String {
    let numbers = plan.params.values().filter_map(|it| match it {
        Param::Int(it) => Some(it.to_string()),
        Param::Float(_) | Param::Text(_) => None,
    });
    let mut numbers: Vec<String> = numbers.collect();
    if numbers.windows(2).all(|it| it[0] == it[1]) {
        numbers.truncate(1);
    }
    if numbers.is_empty() { "default".to_owned() } else { numbers.join("x") }
}
