//! Entrants timed in shuffled rounds of one process, or told to be one program.

use codegen::device::{Launch, Machine, MachineInfo, Resources};
use indexmap::IndexMap;
use ir::{Func, Target};
use schedule::script::ScriptTarget;
use tuner::{
    Bench, Case, Comparison, Environment, Measured, Record, Roofline, Settings,
    bench::{MARGIN, Verdict, against, finals, verdict},
    build::{Problem, generate},
    log::{Finals, Measurement},
    protocol::Final,
    sha256,
};

use super::{
    Compare,
    entrant::Entrant,
    report::{EntrantReport, Figures, Method, Pair, Report, steps_apart},
    same,
};
use crate::{
    build::{Built, build, found_arch, open},
    clock,
    diagnostic::Diagnostic,
    measuring::bench_error,
    plan::Asked,
    records::log,
    term::shell::Shell,
    term::table::counted,
    usage_error::UsageError,
};

/// An entrant with its source.
pub(super) struct Sourced<'a> {
    pub(super) entrant: &'a Entrant,
    func: Func,
    pub(super) source: String,
    launches: Vec<Launch>,
}

pub(super) fn compare(
    it: &Compare,
    entrants: &[Entrant],
    shell: &mut Shell<'_>,
) -> Result<Report, Diagnostic> {
    let wanted = same::target(entrants, it.target.as_ref().and_then(Asked::machine))?;
    let target = same::concrete(&wanted, found_arch);
    let first = &entrants[0];
    let problem = Problem::new(first.func.clone(), first.dims.clone(), it.how.seed, target.clone())
        .map_err(|err| Diagnostic::failed(&err, format!("{}: {err}", first.script.workload)))?;
    let sourced = entrants.iter().map(|it| sourced(it, &problem)).collect::<Result<Vec<Sourced<'_>>, _>>()?;
    let identical = sourced.iter().all(|it| it.source == sourced[0].source);
    let mut report = Report::new(entrants, &target, it.margin(MARGIN));
    report.entrants = sourced.iter().map(entrant_report).collect();
    report.pairs = sourced[1..].iter().map(|b| pair(&sourced[0], b, it.code)).collect();
    if identical && !it.measure {
        report.method = Method::Source;
        return Ok(report);
    }
    measure(it, &sourced, &problem, &wanted, &mut report, shell)?;
    Ok(report)
}

/// Makes the source, which of records and trials has to be the one that was measured.
fn sourced<'a>(entrant: &'a Entrant, problem: &Problem) -> Result<Sourced<'a>, Diagnostic> {
    // A script that is refused is told of with its places.
    if let Some(plan) = &entrant.plan {
        let session = plan.schedule(&problem.target, None)?;
        crate::build::lower(session.func(), &problem.target)?;
    }
    let made = generate(problem, &entrant.steps).map_err(|err| {
        Diagnostic::failed(UsageError::Differs, format!("{}: this build refuses it: {err}", entrant.name))
    })?;
    let hash = sha256(&made.source);
    match &entrant.recorded {
        Some(then) if then.source != hash => {
            let title = format!("{}: its source is another than the one that was measured", entrant.name);
            let help = format!(
                "it was made by tilewright {} on {}; `--recorded` compares the figures of then",
                then.tool, then.machine.name
            );
            Err(Diagnostic::failed(UsageError::Differs, title).help(help))
        }
        Some(_) | None => {
            Ok(Sourced { entrant, func: made.func, source: made.source, launches: made.program.launches })
        }
    }
}

fn entrant_report(it: &Sourced<'_>) -> EntrantReport {
    EntrantReport {
        name: it.entrant.name.clone(),
        origin: it.entrant.origin,
        source_sha256: sha256(&it.source),
        steps: it.entrant.steps.iter().map(schedule::Step::to_ron).collect(),
        launches: it.launches.clone(),
        resources: vec![],
        figures: None,
        failure: None,
    }
}

fn pair(a: &Sourced<'_>, b: &Sourced<'_>, code: bool) -> Pair {
    let (removed, added) = steps_apart(&a.entrant.steps, &b.entrant.steps);
    let same_source = a.source == b.source;
    let lines = schedule::diff(&a.func, &b.func, 0);
    let count = |sign: char| lines.lines().filter(|it| it.starts_with(sign)).count();
    Pair {
        name: b.entrant.name.clone(),
        against: a.entrant.name.clone(),
        ratio: None,
        verdict: if same_source { Verdict::Same } else { Verdict::Ambiguous },
        same_source,
        removed,
        added,
        program: (count('+'), count('-')),
        code: (code && !same_source).then(|| schedule::diff_text(&a.source, &b.source, 2)),
    }
}

/// Compiles all, and times them.
fn measure(
    it: &Compare,
    sourced: &[Sourced<'_>],
    problem: &Problem,
    wanted: &ScriptTarget,
    report: &mut Report,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let mut machine = open(&problem.target)?;
    shell.progress("compiling");
    let built = |it: &Sourced<'_>| build(&it.func, &problem.target, &problem.case.dims);
    let built = sourced.iter().map(built).collect::<Result<Vec<Built>, _>>()?;
    let info = machine.info().clone();
    if let (ScriptTarget::Cuda(Some(arch)), Target::Cuda(_)) = (wanted, &problem.target)
        && ir::Arch::parse(&info.arch).is_some_and(|it| it.sm != arch.sm)
    {
        let title = format!("they are for {arch}, and {} is a {}", info.name, info.arch);
        return Err(Diagnostic::usage(UsageError::Machine, title)
            .help("`--target cuda` builds scripts for the GPU at hand".to_owned()));
    }
    let found = time(it, &built, &problem.case, machine.as_mut(), shell)?;
    let settings = it.how.settings(&info);
    report.regime = Some(it.how.regime);
    report.rounds = found.rounds;
    report.dropped = found.dropped;
    report.noise_floor = found.noise_floor;
    for ((entrant, built), found) in report.entrants.iter_mut().zip(&built).zip(&found.finalists) {
        entrant.resources.clone_from(&built.resources);
        entrant.figures = found.result.as_ref().map(Figures::of);
        entrant.failure = found.error.as_ref().map(|it| format!("{}: {}", it.kind, it.message));
        let suspicious = found.result.as_ref().is_some_and(|it| it.suspicious);
        if suspicious {
            entrant.failure = Some("it is faster than the machine can be".to_owned());
        }
    }
    for (pair, ratio) in report.pairs.iter_mut().zip(against(&found, 0).into_iter().skip(1)) {
        pair.ratio = ratio;
        // What is one program is the same whatever its times are, unless those are what was asked for.
        if it.measure || !pair.same_source {
            pair.verdict = verdict(report.margin, ratio, found.noise_floor);
        }
    }
    let records = records(sourced, &built, &found, &problem.case, &info, &settings);
    report.machine = Some(info);
    log(it.how.log.as_deref(), &records)
}

/// The rounds. The vendor's library has no part in them.
fn time(
    it: &Compare,
    built: &[Built],
    case: &Case,
    machine: &mut dyn Machine,
    shell: &mut Shell<'_>,
) -> Result<Finals, Diagnostic> {
    let fits = case.expect_memory(machine.info().arch == "cpu");
    fits.map_err(|err| Diagnostic::failed(&err, err.to_string()))?;
    let inputs = case.inputs();
    let mut reference = case.reference_on(machine.info(), &inputs).map_err(|err| bench_error(err.into()))?;
    let mut bench = Bench::new(machine, case, &inputs, &mut reference).map_err(bench_error)?;
    let how =
        Final { regime: it.how.regime, rounds: it.rounds as usize, baseline: false, threads: it.how.threads };
    shell.progress(&format!("verifying, and timing {}", counted(it.rounds as usize, "round")));
    let programs: Vec<_> = built.iter().map(|it| it.program.clone()).collect();
    let found = finals(&mut bench, &programs, &how);
    shell.done();
    found.map_err(|err| {
        Diagnostic::failed(UsageError::NoResult, format!("nothing was timed: {}", err.message))
    })
}

/// The lines of `--log`, as those of `run`.
fn records(
    sourced: &[Sourced<'_>],
    built: &[Built],
    found: &Finals,
    case: &Case,
    info: &MachineInfo,
    settings: &Settings,
) -> Vec<Record> {
    let comparison = Comparison {
        candidates: vec![],
        baseline: None,
        other_baselines: vec![],
        no_baseline: None,
        regime: settings.regime,
        work: case.work,
        roofline: Roofline::of(case, info, settings.regime, settings.threads),
    };
    let time = clock::now();
    let record = |((it, built), result): ((&Sourced<'_>, &Built), &Measurement)| {
        let measured = measured(&it.entrant.name, result);
        let environment = Environment::new(info, case, settings);
        let script = it.entrant.script.clone();
        let mut record = Record::new(case, &comparison, &measured, script, environment, time.clone());
        record.ir_sha256 = sha256(&ir::text::print(&it.func).text);
        record.source_sha256 = sha256(&it.source);
        record.launches.clone_from(&built.program.launches);
        record.resources = (!built.resources.is_empty())
            .then(|| serde_json::to_value(&built.resources).expect("they are plain data"));
        record
    };
    let all = sourced.iter().zip(built).zip(&found.finalists);
    all.filter_map(|(it, found)| Some(record((it, found.result.as_ref()?)))).collect()
}

fn measured(label: &str, it: &Measurement) -> Measured {
    Measured {
        label: label.to_owned(),
        failure: None,
        before: Some(it.before.clone()),
        after: Some(it.after.clone()),
        calls: it.calls,
        seconds: it.seconds.clone(),
        rounds: (0..it.seconds.len()).collect(),
        stats: Some(it.stats),
        gflops: Some(it.gflops),
        versus_baseline: None,
        suspicious: it.suspicious,
    }
}

/// The registers and the shared memory of a program, in words by kernel.
pub(super) fn resource_words(resources: &[Resources], launches: &[Launch]) -> IndexMap<&'static str, String> {
    let registers = resources.iter().map(|it| it.registers).max();
    let spilled: u64 =
        resources.iter().map(|it| u64::from(it.spill_store_bytes) + u64::from(it.spill_load_bytes)).sum();
    let shared = launches.iter().map(|it| it.shared_bytes).max().unwrap_or(0);
    let threads = launches.iter().map(|it| it.block.iter().product::<u32>()).max().unwrap_or(1);
    let mut out = IndexMap::new();
    out.insert("kernels", launches.len().to_string());
    if let Some(registers) = registers {
        out.insert("registers", registers.to_string());
        out.insert("spilled", format!("{spilled} B"));
    }
    if threads > 1 {
        out.insert("threads", threads.to_string());
        out.insert("shared", format!("{:.1} KiB", f64::from(shared) / 1024.0));
    }
    out
}
