//! Logs for other tools: caches of Kernel Tuner, results in the T4 format of the autotuning community, and CSV.

mod csv;
mod kernel_tuner;
mod t4;

use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;
use serde_json::Value;

use super::{ErrorKind, Log, LogError, Measurement, Run, Stage, Trial};

pub use csv::csv;
pub use kernel_tuner::kernel_tuner;
pub use t4::t4;

/// The trials of runs over one space on one kind of machine, each point of the space once.
#[derive(Clone, PartialEq, Debug)]
pub struct Table<'a> {
    /// The head of the first of these runs.
    pub head: &'a Run,
    /// The trials by what is decided for every knob, in the order of runs and numbers. Of two trials of one point the
    /// first counts that has a result, else the first.
    pub rows: IndexMap<Vec<Choice>, &'a Trial>,
}

/// Why a log cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its head is damaged, or there is none.
    #[error("there is no run in the log whose head is whole")]
    NoRun,
    /// There is no such run.
    #[error("there is no run `{}`", name.escape_debug())]
    Unknown {
        /// As given.
        name: String,
        /// Those there are.
        runs: Vec<String>,
    },
    /// The format has one space on one machine.
    #[error("the runs are not of one space, workload and machine")]
    Several {
        /// A run of each.
        runs: Vec<String>,
    },
}

ir::codes!(ExportError {
    NoRun = 4021,
    Unknown = 4022,
    Several = 4023,
} of { Log });

impl ExportError {
    /// What to do about it, if there is one thing to do.
    pub fn help(&self) -> Option<String> {
        match self {
            ExportError::Log(err) => err.help(),
            ExportError::NoRun => None,
            ExportError::Unknown { name, runs } => {
                schedule::suggestion(name, runs.iter().map(String::as_str))
            }
            ExportError::Several { runs } => {
                let each: Vec<_> = runs.iter().map(|it| format!("--run {it}")).collect();
                Some(format!("name one: {}", each.join(", ")))
            }
        }
    }
}

impl<'a> Table<'a> {
    /// Of the runs of a log, or of the one named.
    pub fn of(log: &'a Log, run: Option<&str>) -> Result<Table<'a>, ExportError> {
        known(log, run)?;
        let mut spaces: Vec<(&Run, Vec<&Trial>)> = vec![];
        for (_, it) in log.runs.iter().filter(|(name, _)| run.is_none_or(|run| run == *name)) {
            let Some(head) = &it.head else { continue };
            match spaces.iter_mut().find(|(other, _)| same_space(other, head)) {
                Some((_, trials)) => trials.extend(it.trials.values()),
                None => spaces.push((head, it.trials.values().collect())),
            }
        }
        if spaces.len() > 1 {
            let runs = spaces.iter().map(|(head, _)| head.run.clone()).collect();
            return Err(ExportError::Several { runs });
        }
        let (head, trials) =
            spaces.pop().ok_or_else(|| log.unread(run).map_or(ExportError::NoRun, ExportError::Log))?;
        let mut table = Table { head, rows: IndexMap::new() };
        for trial in trials.into_iter().filter(|it| said(it) != Said::Nothing) {
            let row = table.rows.entry(point(head, trial)).or_insert(trial);
            if row.result.is_none() && trial.result.is_some() {
                *row = trial;
            }
        }
        Ok(table)
    }
}

/// Refuses a name that is none of the log's.
fn known(log: &Log, run: Option<&str>) -> Result<(), ExportError> {
    let Some(name) = run.filter(|it| !log.runs.contains_key(*it)) else { return Ok(()) };
    if let Some(err) = log.unread(run) {
        return Err(ExportError::Log(err));
    }
    let runs = log.runs.keys().cloned().collect();
    Err(ExportError::Unknown { name: name.to_owned(), runs })
}

fn same_space(a: &Run, b: &Run) -> bool {
    a.workload.id == b.workload.id
        && a.workload.dims == b.workload.dims
        && a.script.knobs == b.script.knobs
        && a.script.text == b.script.text
        && a.script.params == b.script.params
        && a.target == b.target
        && a.machine.name == b.machine.name
}

/// What is decided for every knob. One that the schedule does not use has its first choice.
fn point(head: &Run, trial: &Trial) -> Vec<Choice> {
    let knobs = head.script.knobs.iter();
    let decided = knobs.filter_map(|(knob, choices)| trial.decisions.get(knob).or(choices.first()));
    decided.cloned().collect()
}

/// What a trial says of its point of the space, in the words of T4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Correct,
    Constraints,
    Compile,
    Timeout,
    Runtime,
    Correctness,
    /// It was stopped before it could say anything.
    Nothing,
}

fn said(trial: &Trial) -> Said {
    let Some(error) = &trial.error else {
        // Faster than the machine can be is not right, however its numbers look.
        return match &trial.result {
            Some(it) if !it.suspicious => Said::Correct,
            Some(_) => Said::Correctness,
            None => Said::Nothing,
        };
    };
    match error.kind {
        ErrorKind::Constraint | ErrorKind::Schedule | ErrorKind::Codegen | ErrorKind::Duplicate => {
            Said::Constraints
        }
        ErrorKind::Resource => match error.stage {
            Stage::Generate | Stage::Compile => Said::Constraints,
            Stage::Run | Stage::Verify => Said::Runtime,
        },
        ErrorKind::Compile | ErrorKind::Internal => Said::Compile,
        ErrorKind::CompileTimeout | ErrorKind::Hang => Said::Timeout,
        ErrorKind::Launch
        | ErrorKind::IllegalAddress
        | ErrorKind::Misaligned
        | ErrorKind::Trap
        | ErrorKind::OutOfMemory
        | ErrorKind::DeviceLost
        | ErrorKind::WorkerDied
        | ErrorKind::Protocol => Said::Runtime,
        ErrorKind::WrongResult | ErrorKind::Nan => Said::Correctness,
        ErrorKind::Cancelled => Said::Nothing,
    }
}

/// The result of a trial if it is one.
fn result(trial: &Trial) -> Option<&Measurement> {
    trial.result.as_ref().filter(|_| said(trial) == Said::Correct)
}

/// A choice as other tools have it: a number, or a text such as `8x4x2`.
fn value(choice: &Choice) -> Value {
    match choice {
        Choice::Int(it) => (*it).into(),
        Choice::Tile(_) => choice.to_string().into(),
    }
}

/// The parts of a trial's point by the names of the knobs.
fn configuration(head: &Run, point: &[Choice]) -> IndexMap<Name, Value> {
    head.script.knobs.keys().cloned().zip(point.iter().map(value)).collect()
}

fn milliseconds(seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|it| it * 1e3).collect()
}
