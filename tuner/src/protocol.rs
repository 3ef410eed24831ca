//! What the tuner and its workers say to each other: one JSON object a line on the worker's standard streams.
//!
//! A worker says [`Hello`] once, and then answers each [`Job`] with one [`Answer`] of the same number. A job has all
//! that is needed to do it, so any worker can do any job, and doing it twice does no harm. When its input ends, a
//! worker exits at once, whatever it is doing.
//!
//! A worker may be a *supervisor*, which hands jobs to processes of its own, such as those of a cluster. It keeps their
//! deadlines itself, answers in their place where they crash or hang, replaces them, and tells by [`News`] how many jobs
//! it takes meanwhile.

use base64::{Engine, engine::general_purpose::STANDARD};
use codegen::device::{Launch, MachineInfo, Program, Resources};
use indexmap::IndexMap;
use ir::Name;
use schedule::Step;
use serde::{Deserialize, Serialize};

use crate::{
    Regime,
    build::Problem,
    log::{Finals, Happening, Measurement, MeasuringDevice, TrialError},
};

/// The version of the protocol. A worker of another version is refused.
pub const PROTOCOL: u32 = 1;

/// The longest line in bytes. A longer one is a fault of the worker that sends it.
pub const MAX_LINE: usize = 16 << 20;

/// What a worker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum FromWorker {
    /// The first line.
    Hello(Hello),
    /// The answer to a job.
    Answer(Answer),
    /// Of a supervisor: what happened to its processes.
    News(News),
}

/// The first line of a worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub proto: u32,
    /// The version of tilewright, or the name of another program.
    pub tool: String,
    /// How many jobs it takes at a time.
    pub capacity: usize,
    /// The machine it measures on; none for a worker that only compiles.
    #[serde(default)]
    pub machine: Option<MachineInfo>,
    /// Why there is no machine, if one was wanted.
    #[serde(default)]
    pub problem: Option<String>,
    /// What the user should know, such as another tuner on the same device.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether it is a supervisor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supervisor: bool,
}

/// What happened to the processes of a supervisor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct News {
    /// What.
    pub what: Happening,
    /// In words.
    pub detail: String,
    /// How many jobs it takes at a time from now on, where that changes. It may be none for a while.
    #[serde(default)]
    pub capacity: Option<usize>,
    /// What the process measures on that has come up.
    #[serde(default)]
    pub device: Option<MeasuringDevice>,
}

/// Something to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its number, which the answer repeats.
    pub id: u64,
    /// What to do.
    pub task: Task,
    /// How long it may take, in seconds, once a process has it. A worker that is no supervisor need not look: it is killed
    /// when it is late.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// What to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Task {
    /// Schedule, lower, print and compile.
    Compile {
        /// The workload and the target.
        problem: ProblemText,
        /// The steps, no knobs left.
        steps: Vec<Step>,
        /// SHA-256 that the source must have.
        source_sha256: String,
    },
    /// Verify and time one program.
    Screen {
        /// The workload.
        problem: ProblemText,
        /// The program.
        program: Binary,
        /// How.
        how: Screen,
    },
    /// Time programs against each other and against the vendor's library.
    Finals {
        /// The workload.
        problem: ProblemText,
        /// The programs.
        programs: Vec<Binary>,
        /// How.
        how: Final,
    },
}

/// How to measure one candidate of a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Screen {
    /// The least median of the run so far, in seconds: a candidate that takes twice as long is left after three
    /// samples.
    pub best: Option<f64>,
    /// How long one call may take, in seconds.
    pub deadline: f64,
    /// CPU threads, 0 for all.
    pub threads: usize,
}

/// How to run finals.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Final {
    /// The state of the machine.
    pub regime: Regime,
    /// How many rounds.
    pub rounds: usize,
    /// Whether the vendor's library takes part.
    pub baseline: bool,
    /// CPU threads, 0 for all.
    pub threads: usize,
}

/// A workload at its sizes and a target, as text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProblemText {
    /// The unscheduled program.
    pub program: String,
    /// The values of its symbolic dimensions.
    pub dims: IndexMap<Name, i64>,
    /// Where its inputs come from.
    pub seed: u64,
    /// The target, as on the command line.
    pub target: String,
}

/// A program with its machine code in base 64.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Binary {
    /// The machine code.
    pub base64: String,
    /// The launches, in order.
    pub launches: Vec<Launch>,
    /// The bytes of each global buffer.
    pub buffers: Vec<usize>,
    /// Which buffers hold zeros before the first run, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zeroed: Vec<usize>,
}

/// The answer to a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the job.
    pub id: u64,
    /// How long it took, in milliseconds.
    pub ms: f64,
    /// What came out, or what stopped it.
    pub outcome: Result<Outcome, TrialError>,
    /// Of a supervisor: the name of the device that it was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// What came out of a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "made", rename_all = "snake_case")]
pub enum Outcome {
    /// Of a compilation.
    Program {
        /// What to load.
        program: Binary,
        /// SHA-256 of the machine code.
        sha256: String,
        /// What each kernel needs.
        resources: Vec<Resources>,
    },
    /// Of a screen.
    Measured(Measurement),
    /// Of finals: finalists in the order of the job's programs, without the numbers of their trials.
    Finals(Finals),
}

/// Why a message cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum MessageError {
    #[error("the program of the job cannot be read: {0}")]
    Program(String),
    #[error("there is no target `{0}`")]
    Target(String),
    #[error("the machine code is no base 64: {0}")]
    Binary(String),
    #[error("the workload cannot be measured: {0}")]
    Case(#[from] crate::CaseError),
}

impl ProblemText {
    /// The text of a problem.
    pub fn of(problem: &Problem) -> ProblemText {
        ProblemText {
            program: ir::text::print(&problem.case.func).text,
            dims: problem.case.dims.clone(),
            seed: problem.case.seed,
            target: crate::build::target_word(&problem.target),
        }
    }

    /// Reads and verifies it.
    pub fn problem(&self) -> Result<Problem, MessageError> {
        let func = ir::text::parse(&self.program).map_err(|err| MessageError::Program(err.to_string()))?;
        ir::verify(&func).map_err(|errors| {
            let words: Vec<_> = errors.iter().map(ToString::to_string).collect();
            MessageError::Program(words.join("; "))
        })?;
        let target = crate::build::parse_target_word(&self.target)
            .ok_or_else(|| MessageError::Target(self.target.clone()))?;
        Ok(Problem::new(func, self.dims.clone(), self.seed, target)?)
    }
}

impl Binary {
    /// The text of a program.
    pub fn of(program: &Program) -> Binary {
        let base64 = STANDARD.encode(&program.binary);
        let Program { launches, buffers, zeroed, .. } = program.clone();
        Binary { base64, launches, buffers, zeroed }
    }

    /// Reads it.
    pub fn program(&self) -> Result<Program, MessageError> {
        let binary = STANDARD.decode(&self.base64).map_err(|err| MessageError::Binary(err.to_string()))?;
        let Binary { launches, buffers, zeroed, .. } = self.clone();
        Ok(Program { binary, launches, buffers, zeroed })
    }
}
