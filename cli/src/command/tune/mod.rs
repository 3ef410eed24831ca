//! `tilewright tune`.

mod line;
mod progress;
mod resume;
pub(crate) mod show;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use ir::{Code, Name};
use schedule::{script::ScriptTarget, workload::Param};
use tuner::{Regime, log};

use crate::{
    automatic::{is_workload, space, target_here},
    diagnostic::Diagnostic,
    options::measure::{parse_regime, parse_threads, parse_time},
    options::workers::WorkerArgs,
    plan::{Plan, parse_dim, parse_param, parse_target},
    progress::tell_compiler,
    term::shell::Shell,
    tuning::{TuneOptions, Tuner, other_workload},
    usage_error::UsageError,
};

use progress::Progress;
pub(crate) use resume::Resume;

/// Search a space of schedules for the fastest
///
/// The script's knobs, constraints and `choose` steps span the space; `show --emit space` prints it. Of a workload the space is
/// that of `auto --space`, and the first trial is the schedule of `auto`. Every trial is in
/// the log before the next is shown. Ctrl-C ends the run after the trial under way, and `resume` goes on with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Tune {
    /// The schedule script, or a workload: the name of one that ships, or its file
    script: PathBuf,
    /// The target, instead of the script's: cpu, cuda, cuda:sm_90a
    #[arg(long, value_parser = parse_target)]
    target: Option<ScriptTarget>,
    /// A parameter of the workload, instead of the script's: m=512; a knob is fixed in the same way
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// The value of a symbolic dimension of the workload: n=512
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(Name, i64)>,
    /// How many candidates to try
    #[arg(long, default_value_t = 200)]
    trials: u64,
    /// For how long to search, as 90s, 10m or 2h, if that is over before the trials are
    #[arg(long, value_parser = parse_time)]
    time: Option<f64>,
    /// Where the stream of candidates, inputs, samples and orders come from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How candidates are chosen: random, or evolution (generations of mutated and crossed candidates, which start from
    /// the defaults and what a roofline rule expects most of) [default: random for a script, evolution for a workload]
    #[arg(long, value_parser = ["random", "evolution"])]
    strategy: Option<String>,
    /// The folder of the log; by default the script's name with `.twlog`, in the current folder
    #[arg(long, value_name = "FOLDER")]
    log: Option<PathBuf>,
    /// The state of the machine in the finals: cool, sustained, cold_l2
    #[arg(long, default_value = "cool", value_parser = parse_regime)]
    regime: Regime,
    /// CPU threads that candidates use, 0 for all
    #[arg(long, default_value_t = 0, value_parser = parse_threads)]
    threads: usize,
    /// How many of the best meet in the finals
    #[arg(long, default_value_t = 8)]
    finalists: usize,
    /// How many rounds the finals take
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Leave the vendor's library out of the finals
    #[arg(long)]
    no_baseline: bool,
    /// A schedule of the same workload that the best have to beat in the finals; may be given several times
    #[arg(long, value_name = "SCRIPT")]
    incumbent: Vec<PathBuf>,
    /// Measure and record each prefix of the winner's schedule that can run
    #[arg(long)]
    per_step: bool,
    #[command(flatten)]
    workers: WorkerArgs,
}

impl Tune {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let is_workload = is_workload(&self.script);
        let mut plan = if is_workload { self.space()? } else { Plan::load(&self.script, &self.params)? };
        plan.dims = self.dims.iter().cloned().collect();
        let options = self.options(&plan, if is_workload { "evolution" } else { "random" })?;
        tell_compiler(&plan.target(self.target.as_ref(), None), shell);
        shell.detail(|| format!("the log is {}", options.log.display()));
        shell.progress("starting workers");
        ended(Tuner::start(&plan, &options)?, &options.log, shell)
    }

    /// The space of a workload.
    fn space(&self) -> Result<Plan, Diagnostic> {
        let workload = self.script.to_str().ok_or_else(|| {
            let title = format!("{}: a path of a workload is UTF-8", self.script.display());
            Diagnostic::usage(UsageError::Workload, title)
        })?;
        space(workload, &self.params, &target_here(self.target.as_ref()))
    }

    fn options(&self, plan: &Plan, strategy: &str) -> Result<TuneOptions, Diagnostic> {
        let incumbents = self.incumbent.iter().map(|it| incumbent(it, plan)).collect::<Result<_, _>>()?;
        Ok(TuneOptions {
            target: self.target.clone(),
            seed: self.seed,
            strategy: self.strategy.clone().unwrap_or_else(|| strategy.to_owned()),
            log: self.log.clone().unwrap_or_else(|| default_log(&self.script)),
            plan: log::RunPlan {
                trials: self.trials,
                seconds: self.time,
                finalists: self.finalists,
                regime: self.regime,
                rounds: self.rounds as usize,
                baseline: !self.no_baseline,
                incumbents: vec![],
                per_step: self.per_step,
                threads: self.threads,
                exclusive: false,
            },
            incumbents,
            workers: self.workers.workers(),
        })
    }
}

/// Runs to the end with a progress line, and prints what came out.
fn ended(tuner: Tuner, folder: &Path, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let stop = Arc::new(AtomicBool::new(false));
    on_interrupt(&stop)
        .map_err(|err| Diagnostic::usage(UsageError::Process, format!("signals cannot be caught: {err}")))?;
    let head = tuner.head().clone();
    let mut progress = Progress::new(&head, shell);
    let ended = tuner.run(&stop, &mut |it| progress.on_event(it));
    let printed = progress.end();
    let ended = ended?;
    printed?;
    show::ended(&head, folder, &ended, shell)
}

/// The first Ctrl-C asks for the end, the second ends.
fn on_interrupt(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(stop))?;
        signal_hook::flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

/// A schedule that the best have to beat, at the parameters of the space.
fn incumbent(path: &Path, plan: &Plan) -> Result<Plan, Diagnostic> {
    let params: Vec<_> = plan.params.iter().map(|(name, it)| (name.clone(), it.clone())).collect();
    Plan::load(path, &params).map_err(|err| {
        // What is right for the workload of the space, and for itself it is right as well.
        let is_param = err.code() == Code::new(221);
        if is_param && Plan::load(path, &[]).is_ok() {
            other_workload(&path.display().to_string())
        } else {
            err
        }
    })
}

/// `spaces/matmul.ron` has its log in `matmul.twlog`.
fn default_log(script: &Path) -> PathBuf {
    let stem = script.file_stem().unwrap_or(script.as_os_str());
    PathBuf::from(stem).with_extension("twlog")
}
