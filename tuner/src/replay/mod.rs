//! Doing the trials of a log again. Nothing that a log holds is executed: candidates are made anew from the script and
//! the decisions, and only compared with what the log says of them.
//!
//! The levels, each with all before it: the source is the same; the machine code is the same, or the compiler is
//! another; the numbers are right; the speed is the same.

mod head;
mod speed;

use std::time::Duration;

use codegen::device::{cc, nvrtc};
use ir::Target;
use schedule::Step;

pub use head::HeadError;
pub use speed::{Speed, best, ranking, speeds};

use crate::{
    Space,
    build::{BuildError, Problem, generate},
    log::{ErrorKind, Run, Trial, TrialError},
    pool::{Pool, Role},
    protocol::{Binary, Final, Outcome, ProblemText, Screen, Task},
    sha256,
    tune::ask,
};

/// A trial as this build makes it.
#[derive(Clone, Debug)]
pub struct Again {
    /// Its number.
    pub n: u64,
    /// Its steps.
    pub steps: Vec<Step>,
    /// SHA-256 of its source.
    pub source: String,
}

/// How a trial is other than its log says.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Difference {
    /// The decisions are none of this space.
    #[error("its decisions are not of the space of the script")]
    Decisions,
    /// Script and decisions give other steps, or the workload or the target is another.
    #[error("script and decisions make another candidate than the log says")]
    Candidate,
    /// This build refuses the schedule.
    #[error("this build refuses it: {0}")]
    Refused(String),
    /// This build makes another source.
    #[error("the source is {}… and was {}…", &got[..12], &was[..12.min(was.len())])]
    Source {
        /// SHA-256 of the source that this build makes.
        got: String,
        /// SHA-256 in the log.
        was: String,
    },
    /// The same compiler makes other machine code, or has other words for it.
    #[error("the machine code is another, though the source and the compiler are the same")]
    Binary,
    /// It does not compile or run, or its numbers are wrong, where the log has a result.
    #[error("{kind}: {message}")]
    Failed {
        /// What kind of failure.
        kind: ErrorKind,
        /// In words.
        message: String,
    },
}

impl Difference {
    /// Whether nothing is known, because nobody was left to answer.
    pub fn is_unanswered(&self) -> bool {
        use ErrorKind as K;
        match self {
            Difference::Failed { kind, .. } => {
                matches!(kind, K::WorkerDied | K::Protocol | K::Cancelled | K::DeviceLost)
            }
            Difference::Decisions
            | Difference::Candidate
            | Difference::Refused(_)
            | Difference::Source { .. }
            | Difference::Binary => false,
        }
    }
}

/// Makes a trial's candidate again and compares its source.
pub fn check(
    problem: &Problem,
    workload_id: &str,
    space: &Space,
    trial: &Trial,
) -> Result<Again, Difference> {
    let index = space.index_of(&trial.decisions).ok_or(Difference::Decisions)?;
    let steps = space.steps(index).map_err(|err| Difference::Refused(err.to_string()))?;
    if problem.candidate_id(workload_id, &steps) != trial.id {
        return Err(Difference::Candidate);
    }
    let made = generate(problem, &steps).map_err(|err: BuildError| Difference::Refused(err.to_string()))?;
    let source = sha256(&made.source);
    if source != trial.src {
        return Err(Difference::Source { got: source, was: trial.src.clone() });
    }
    Ok(Again { n: trial.n, steps, source })
}

/// What compiler this machine has, if it is not the one of a run; machine code may then differ. In words.
pub fn toolchain_difference(head: &Run, target: &Target) -> Option<String> {
    let (name, here) = match target {
        Target::Cpu => ("cc", cc::find().ok()?.version),
        Target::Cuda(_) => {
            let (major, minor) = nvrtc::find().ok()?.version;
            ("NVRTC", format!("{major}.{minor}"))
        }
    };
    let then = head.machine.versions.iter().find(|it| it.0 == name).map_or("unknown", |it| it.1.as_str());
    (then != here).then(|| format!("the {name} was {then}, and this is {here}: machine code may differ"))
}

/// What compiling again gave.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The trial.
    pub n: u64,
    /// What to load.
    pub program: Binary,
    /// Whether the machine code is that of the log; nothing where the log has none.
    pub same: Option<bool>,
}

/// The levels beyond the source, which need workers.
pub struct Replay<'a> {
    /// What was tuned.
    pub problem: &'a Problem,
    /// The workers.
    pub pool: &'a mut Pool,
    /// What is called while waiting; false ends it.
    pub going: &'a mut dyn FnMut() -> bool,
}

impl Replay<'_> {
    /// Compiles candidates again. In the order of `all`; nothing if it is to end before.
    pub fn compile(&mut self, all: &[(Again, &Trial)]) -> Option<Vec<Result<Compiled, Difference>>> {
        let text = ProblemText::of(self.problem);
        let task = |it: &Again| Task::Compile {
            problem: text.clone(),
            steps: it.steps.clone(),
            source_sha256: it.source.clone(),
        };
        let tasks = all.iter().map(|(it, _)| (task(it), Duration::from_mins(1))).collect();
        let answers = self.ask(Role::Compile, tasks)?;
        let made = all.iter().zip(answers).map(|((again, trial), outcome)| match outcome {
            Ok(Outcome::Program { program, sha256, resources: _ }) => {
                Ok(Compiled { n: again.n, program, same: trial.bin.as_ref().map(|it| *it == sha256) })
            }
            Ok(Outcome::Measured(_) | Outcome::Finals(_)) => Err(stray()),
            Err(error) => Err(failed(error)),
        });
        Some(made.collect())
    }

    /// Runs programs and compares their numbers with the reference.
    pub fn verify(&mut self, all: &[Compiled], threads: usize) -> Option<Vec<Result<(), Difference>>> {
        let text = ProblemText::of(self.problem);
        let how = Screen { best: Some(0.0), deadline: 60.0, threads };
        let task = |it: &Compiled| Task::Screen {
            problem: text.clone(),
            program: it.program.clone(),
            how: how.clone(),
        };
        let tasks = all.iter().map(|it| (task(it), Duration::from_mins(5))).collect();
        let answers = self.ask(Role::Measure, tasks)?;
        let verdicts = answers.into_iter().map(|outcome| match outcome {
            Ok(Outcome::Measured(_)) => Ok(()),
            Ok(Outcome::Program { .. } | Outcome::Finals(_)) => Err(stray()),
            Err(error) => Err(failed(error)),
        });
        Some(verdicts.collect())
    }

    /// Times programs against each other and the vendor's library; the finalists are in the order of `all`.
    pub fn measure(
        &mut self,
        all: &[Compiled],
        head: &Run,
    ) -> Option<Result<crate::log::Finals, Difference>> {
        let plan = &head.plan;
        let how = Final {
            regime: plan.regime,
            rounds: plan.rounds,
            baseline: plan.baseline,
            threads: plan.threads,
        };
        let programs = all.iter().map(|it| it.program.clone()).collect();
        let task = Task::Finals { problem: ProblemText::of(self.problem), programs, how };
        let outcome = self.ask(Role::Measure, vec![(task, Duration::from_mins(30))])?.pop()?;
        Some(match outcome {
            Ok(Outcome::Finals(mut finals)) => {
                finals.finalists.iter_mut().zip(all).for_each(|(it, compiled)| it.n = Some(compiled.n));
                Ok(finals)
            }
            Ok(Outcome::Program { .. } | Outcome::Measured(_)) => Err(stray()),
            Err(error) => Err(failed(error)),
        })
    }

    fn ask(&mut self, role: Role, tasks: Vec<(Task, Duration)>) -> Option<Vec<Result<Outcome, TrialError>>> {
        let going = &mut *self.going;
        let answers = ask::<std::convert::Infallible>(self.pool, role, tasks, &mut |_| Ok(going()));
        let Ok(answers) = answers;
        Some(answers?.into_iter().map(|it| it.outcome).collect())
    }
}

fn failed(error: TrialError) -> Difference {
    Difference::Failed { kind: error.kind, message: error.message }
}

fn stray() -> Difference {
    let message = "the worker answered another question than it was asked".to_owned();
    Difference::Failed { kind: ErrorKind::Protocol, message }
}
