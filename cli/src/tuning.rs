//! `tune`: what a run needs before its first trial, whether it is new or goes on, and the run itself.

use std::{
    collections::hash_map::RandomState,
    env,
    hash::{BuildHasher, Hasher},
    iter,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    thread,
    time::Duration,
};

use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::script::ScriptTarget;
use tuner::{
    Case, Regime, Roofline, Space,
    build::{Problem, target_word},
    log::{self, Incumbent, Protocol, Run, RunLog, SpaceScript, Strategy, Workload, Writer},
    pool::{Deadlines, Pool, Role, WorkerSpec},
    sha256,
    tune::{Ended, TuneError, TuneEvent, Tuning},
};

use crate::{
    build::{lower, source},
    clock,
    cluster::{Cluster, Seats},
    diagnostic::Diagnostic,
    plan::Plan,
    usage_error::UsageError,
};

/// The processes that compile and measure.
#[derive(Clone, Debug)]
pub struct Workers {
    /// How many processes compile, by default one for each core of this machine, or of the cluster; at most 256.
    pub compilers: Option<usize>,
    /// How many processes of a cluster measure, or of each command.
    pub measurers: Option<usize>,
    /// The GPUs to measure on.
    pub device: Vec<u32>,
    /// Commands that are started instead of the processes that measure: any program that speaks the protocol of
    /// `tilewright worker`, such as `ssh host tilewright worker`.
    pub worker_cmd: Vec<String>,
    /// The command that is started instead of each process that compiles.
    pub compile_cmd: Option<String>,
    /// The cluster whose processes compile and measure.
    pub on: Option<Cluster>,
    /// The command, and what it is called with, that starts this program itself as a worker: the arguments of [`serve_if_worker`](crate::serve_if_worker) behind
    /// `worker` follow. Nothing for the program's file with `worker`, which is right where its `main` begins with that.
    pub own: Vec<String>,
}

impl Default for Workers {
    /// A process for each core to compile, and one that measures, on the first GPU or the CPU.
    fn default() -> Workers {
        Workers {
            compilers: None,
            measurers: None,
            device: vec![0],
            worker_cmd: vec![],
            compile_cmd: None,
            on: None,
            own: vec![],
        }
    }
}

impl Workers {
    /// Starts them, and waits until those that measure have said what they measure on.
    pub(crate) fn start(&self, target: &Target) -> Result<Pool, Diagnostic> {
        self.expect_consistent()?;
        let measure = match (&self.on, self.worker_cmd.as_slice(), target) {
            (Some(cluster), commands, _) => {
                let command = commands.first().map(String::as_str);
                vec![cluster.spec(Role::Measure, target, self.seats(command))]
            }
            (None, [], Target::Cpu) => vec![self.spec("m0", &["--device", "cpu"], Role::Measure)?],
            (None, [], Target::Cuda(_)) => {
                let spec = |(n, it): (usize, &u32)| {
                    self.spec(&format!("m{n}"), &["--device", &it.to_string()], Role::Measure)
                };
                self.device.iter().enumerate().map(spec).collect::<Result<_, _>>()?
            }
            (None, commands, _) => {
                let all = commands.iter().flat_map(|it| iter::repeat_n(it, self.measurers.unwrap_or(1)));
                let spec = |(n, it): (usize, &String)| WorkerSpec::shell(&format!("m{n}"), it, Role::Measure);
                all.enumerate().map(spec).collect()
            }
        };
        let compile = self.compile_specs(target)?;
        self.pool(measure.into_iter().chain(compile).collect())
    }

    /// Starts those alone that compile.
    pub(crate) fn compilers(&self, target: &Target) -> Result<Pool, Diagnostic> {
        self.expect_consistent()?;
        self.pool(self.compile_specs(target)?)
    }

    /// Refuses what does not go together, and a cluster that cannot be reached from here.
    fn expect_consistent(&self) -> Result<(), Diagnostic> {
        let refuse = |title: &str| Err(Diagnostic::usage(UsageError::Options, title));
        match &self.on {
            Some(_) if self.worker_cmd.len() > 1 => {
                refuse("the processes of a cluster that measure have one command, not several")
            }
            Some(cluster) => cluster.expect_usable(),
            None if self.measurers.is_some() && self.worker_cmd.is_empty() => refuse(
                "a number of processes that measure goes with a cluster, or with a command that starts them",
            ),
            None => Ok(()),
        }
    }

    fn compile_specs(&self, target: &Target) -> Result<Vec<WorkerSpec>, Diagnostic> {
        // A cluster of this machine alone is started by its worker that measures, and has no other processors.
        if let Some(cluster) = self.on.as_ref().filter(|it| !it.is_local()) {
            return Ok(vec![cluster.spec(Role::Compile, target, self.seats(self.compile_cmd.as_deref()))]);
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = self.compilers.unwrap_or(cores).clamp(1, MAX_COMPILERS);
        let spec = |name: String| match &self.compile_cmd {
            Some(command) => Ok(WorkerSpec::shell(&name, command, Role::Compile)),
            None => self.spec(&name, &["--compile-only"], Role::Compile),
        };
        (0..count).map(|n| spec(format!("c{n}"))).collect()
    }

    fn seats<'a>(&self, command: Option<&'a str>) -> Seats<'a> {
        Seats { compilers: self.compilers, measurers: self.measurers, command }
    }

    fn pool(&self, specs: Vec<WorkerSpec>) -> Result<Pool, Diagnostic> {
        let (help, deadlines) = if self.on.is_some() {
            let deadlines = Deadlines { hello: CLUSTER_HELLO, ..Deadlines::default() };
            ("`ray status` tells what the cluster has, and what of it is free", deadlines)
        } else {
            ("`tilewright doctor` tells what this machine has", Deadlines::default())
        };
        Pool::start(specs, deadlines)
            .map_err(|err| Diagnostic::usage(&err, err.to_string()).help(help.to_owned()))
    }

    /// This program itself as a worker.
    fn spec(&self, name: &str, options: &[&str], role: Role) -> Result<WorkerSpec, Diagnostic> {
        let own = if self.own.is_empty() { own_command()? } else { self.own.clone() };
        let argv = own.into_iter().chain(options.iter().map(|it| (*it).to_owned())).collect();
        Ok(WorkerSpec { name: name.to_owned(), argv, role })
    }
}

/// How many processes compile at most: beyond the cores of a machine they only wait for each other.
pub(crate) const MAX_COMPILERS: usize = 256;

/// How long a cluster may take to give the first process a place. Whoever asks it gives up before, and says why.
const CLUSTER_HELLO: Duration = Duration::from_mins(10);

/// How this program is started as a worker.
fn own_command() -> Result<Vec<String>, Diagnostic> {
    let exe = env::current_exe().map_err(|err| Diagnostic::io(Path::new("tilewright"), &err))?;
    let exe = exe.to_str().ok_or_else(|| {
        Diagnostic::usage(UsageError::Process, "the path of tilewright itself is not UTF-8")
    })?;
    Ok(vec![exe.to_owned(), "worker".to_owned()])
}

/// What a run is asked to do, besides its script.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// The target, instead of the script's.
    pub target: Option<ScriptTarget>,
    /// Where candidates and inputs are drawn from.
    pub seed: u64,
    /// `random` or `evolution`.
    pub strategy: String,
    /// The folder of the log. It must not hold a run under way.
    pub log: PathBuf,
    /// How far to go, and the finals. Its list of incumbents is made from the one here.
    pub plan: log::RunPlan,
    /// Schedules of the same workload that the best have to beat in the finals.
    pub incumbents: Vec<Plan>,
    /// The processes that compile and measure.
    pub workers: Workers,
}

impl TuneOptions {
    /// A random search of that many trials from seed 1, with finals of the best eight beside the vendor's library.
    pub fn new(log: impl Into<PathBuf>, trials: u64) -> TuneOptions {
        let plan = log::RunPlan {
            trials,
            seconds: None,
            finalists: 8,
            regime: Regime::Cool,
            rounds: 31,
            baseline: true,
            incumbents: vec![],
            per_step: false,
            threads: 0,
            exclusive: false,
        };
        TuneOptions {
            target: None,
            seed: 1,
            strategy: "random".to_owned(),
            log: log.into(),
            plan,
            incumbents: vec![],
            workers: Workers::default(),
        }
    }
}

/// A run with all that it needs.
pub struct Tuner {
    pub(crate) problem: Problem,
    pub(crate) space: Space,
    pub(crate) head: Run,
    pub(crate) writer: Writer,
    pub(crate) log: RunLog,
    pub(crate) pool: Pool,
}

impl Tuner {
    /// Starts workers and a log. The parent loads neither CUDA nor candidates: what a kernel can break is a worker.
    pub fn start(plan: &Plan, options: &TuneOptions) -> Result<Tuner, Diagnostic> {
        plan.expect_dims()?;
        let space = plan.space()?;
        let pool = options.workers.start(&plan.target(options.target.as_ref(), None))?;
        let target = plan.target(options.target.as_ref(), arch_of(&pool));
        let incumbents =
            options.incumbents.iter().map(|it| incumbent(it, plan, &target)).collect::<Result<_, _>>()?;
        let exclusive = target == Target::Cpu;
        let limits = log::RunPlan { exclusive, incumbents, ..options.plan.clone() };
        let strategy = Strategy { name: options.strategy.clone(), params: IndexMap::new() };
        let problem = problem(plan, options.seed, target)?;
        let head = head(plan, &problem, &space, &pool, strategy, limits);
        let writer = Writer::create(&options.log, &head).map_err(|err| Diagnostic::log(&err))?;
        let log = RunLog::empty(writer.path());
        Ok(Tuner { problem, space, head, writer, log, pool })
    }

    /// What the log says about the run as a whole.
    pub fn head(&self) -> &Run {
        &self.head
    }

    /// Runs to the end, or until `stop` is set; then what is under way ends, and the log can be resumed. `on_event`
    /// is called with each entry once it is on the disk.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        on_event: &mut dyn FnMut(TuneEvent<'_>),
    ) -> Result<Ended, Diagnostic> {
        let tuning = Tuning {
            problem: &self.problem,
            space: &self.space,
            head: &self.head,
            writer: &mut self.writer,
            log: self.log,
            pool: self.pool,
            plan: self.head.plan.clone(),
            now: &clock::now,
            stop,
            on_event,
        };
        tuning.run().map_err(|err| match err {
            TuneError::Log(err) => Diagnostic::log(&err),
            TuneError::Incumbent { .. } | TuneError::Diverged { .. } => {
                Diagnostic::failed(&err, err.to_string())
            }
        })
    }
}

/// The steps of a schedule that the best have to beat. It is refused now and not in the finals, hours later.
fn incumbent(other: &Plan, plan: &Plan, target: &Target) -> Result<Incumbent, Diagnostic> {
    let name = other.path.display().to_string();
    if other.func != plan.func {
        return Err(other_workload(&name));
    }
    let session = other.schedule(target, None)?;
    let (module, _) = lower(session.func(), target)?;
    source(session.func(), &module, target)?;
    Ok(Incumbent { name, steps: other.steps.clone() })
}

/// What is timed together has to compute the same.
pub(crate) fn other_workload(name: &str) -> Diagnostic {
    Diagnostic::failed(UsageError::Incumbent, format!("{name}: its workload is not that of the space"))
}

/// The architecture that the workers measure on.
fn arch_of(pool: &Pool) -> Option<Arch> {
    pool.machine().and_then(|it| Arch::parse(&it.arch))
}

/// A workload at its sizes for a target.
fn problem(plan: &Plan, seed: u64, target: Target) -> Result<Problem, Diagnostic> {
    let problem = Problem::new(plan.func.clone(), plan.dims.clone(), seed, target);
    let problem = problem.and_then(|it| it.case.expect_memory(it.target == Target::Cpu).map(|()| it));
    problem.map_err(|err| Diagnostic::failed(&err, format!("{}: {err}", plan.script.workload.value)))
}

/// The head of a new run.
fn head(
    plan: &Plan,
    problem: &Problem,
    space: &Space,
    pool: &Pool,
    strategy: Strategy,
    limits: log::RunPlan,
) -> Run {
    let machine = pool.machine().cloned().expect("a pool starts only with a machine");
    let time = clock::now();
    let program = ir::text::print(&problem.case.func).text;
    let Case { dims, work, seed, .. } = &problem.case;
    let workload = Workload {
        id: sha256(&program),
        name: plan.script.workload.value.clone(),
        program,
        dims: dims.clone(),
        flops: work.flops,
        bytes: work.bytes,
    };
    Run {
        v: log::LOG_VERSION,
        run: log::run_name(&time, nonce()),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        time,
        args: env::args().collect(),
        seed: *seed,
        strategy,
        script: script(plan, space),
        workload,
        target: target_word(&problem.target),
        host: format!("{} {}", env::consts::OS, env::consts::ARCH),
        measure: protocol(limits.regime, limits.threads),
        roofline: Roofline::of(&problem.case, &machine, Regime::Cool, limits.threads),
        plan: limits,
        machine,
        other: IndexMap::new(),
    }
}

/// A number that no other run has: two runs may begin in the same second.
fn nonce() -> u32 {
    // The standard library seeds its hash maps from the system.
    let random = RandomState::new().build_hasher().finish();
    u32::try_from(random & 0xffff_ffff).expect("32 bits are left")
}

fn script(plan: &Plan, space: &Space) -> SpaceScript {
    let knobs = space.axes().clone();
    let spanned = serde_json::to_string(&knobs).expect("choices are plain data");
    let value = |it| serde_json::to_value(it).expect("parameters are plain data");
    SpaceScript {
        name: plan.path.display().to_string(),
        text: plan.text.text().to_owned(),
        sha256: sha256(format!("{}\n{spanned}", plan.text.text())),
        params: plan.all_params.iter().map(|(name, it)| (name.clone(), value(it))).collect(),
        knobs,
        size: space.size().to_string(),
    }
}

fn protocol(regime: Regime, threads: usize) -> Protocol {
    Protocol {
        proto: "v1".to_owned(),
        regime,
        caches: regime.cache_policy().to_owned(),
        data: "normal".to_owned(),
        threads,
    }
}
