//! What stops a candidate, and the words for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What stopped a trial.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{kind}: {message}")]
pub struct TrialError {
    /// Where.
    pub stage: Stage,
    /// What kind of thing it is.
    pub kind: ErrorKind,
    /// In words, at most 2 KiB.
    pub message: String,
    /// Whether the worker had to be replaced.
    #[serde(default)]
    pub sticky: bool,
}

impl TrialError {
    /// The most bytes of a message.
    pub const MAX_MESSAGE_BYTES: usize = 2048;

    /// An error that does not cost the worker. The message is cut to [`TrialError::MAX_MESSAGE_BYTES`].
    pub fn new(stage: Stage, kind: ErrorKind, message: &str) -> TrialError {
        const CUT: &str = " […]";
        let mut message = message.to_owned();
        if message.len() > TrialError::MAX_MESSAGE_BYTES {
            let end = message.floor_char_boundary(TrialError::MAX_MESSAGE_BYTES - CUT.len());
            message.truncate(end);
            message.push_str(CUT);
        }
        TrialError { stage, kind, message, sticky: false }
    }
}

/// Where a trial stopped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Scheduling, lowering, printing; nothing of it is a trial.
    Generate,
    /// The compiler and what it told of registers and spills.
    Compile,
    /// Loading, running, timing.
    Run,
    /// Comparing the numbers.
    Verify,
}

/// What kind of thing stopped a candidate: a superset of the words of the T4 format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "`words` says what each means")]
pub enum ErrorKind {
    Constraint,
    Schedule,
    Codegen,
    Duplicate,
    Internal,
    Compile,
    CompileTimeout,
    Resource,
    Launch,
    IllegalAddress,
    Misaligned,
    Trap,
    Hang,
    WrongResult,
    Nan,
    OutOfMemory,
    DeviceLost,
    WorkerDied,
    Protocol,
    Cancelled,
}

impl ErrorKind {
    /// Every kind, in the order of the stages.
    pub const ALL: [ErrorKind; 20] = [
        ErrorKind::Constraint,
        ErrorKind::Schedule,
        ErrorKind::Codegen,
        ErrorKind::Duplicate,
        ErrorKind::Internal,
        ErrorKind::Compile,
        ErrorKind::CompileTimeout,
        ErrorKind::Resource,
        ErrorKind::Launch,
        ErrorKind::IllegalAddress,
        ErrorKind::Misaligned,
        ErrorKind::Trap,
        ErrorKind::Hang,
        ErrorKind::WrongResult,
        ErrorKind::Nan,
        ErrorKind::OutOfMemory,
        ErrorKind::DeviceLost,
        ErrorKind::WorkerDied,
        ErrorKind::Protocol,
        ErrorKind::Cancelled,
    ];

    /// The word in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Constraint => "constraint",
            ErrorKind::Schedule => "schedule",
            ErrorKind::Codegen => "codegen",
            ErrorKind::Duplicate => "duplicate",
            ErrorKind::Internal => "internal",
            ErrorKind::Compile => "compile",
            ErrorKind::CompileTimeout => "compile_timeout",
            ErrorKind::Resource => "resource",
            ErrorKind::Launch => "launch",
            ErrorKind::IllegalAddress => "illegal_address",
            ErrorKind::Misaligned => "misaligned",
            ErrorKind::Trap => "trap",
            ErrorKind::Hang => "hang",
            ErrorKind::WrongResult => "wrong_result",
            ErrorKind::Nan => "nan",
            ErrorKind::OutOfMemory => "out_of_memory",
            ErrorKind::DeviceLost => "device_lost",
            ErrorKind::WorkerDied => "worker_died",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Cancelled => "cancelled",
        }
    }

    /// What it means, for summaries.
    pub const fn words(self) -> &'static str {
        match self {
            ErrorKind::Constraint => "a constraint of the script does not hold",
            ErrorKind::Schedule => "a step of the schedule is refused",
            ErrorKind::Codegen => "the schedule cannot be lowered or printed",
            ErrorKind::Duplicate => "the source is that of an earlier candidate",
            ErrorKind::Internal => "a fault of tilewright itself",
            ErrorKind::Compile => "the compiler refused the source",
            ErrorKind::CompileTimeout => "the compiler took too long",
            ErrorKind::Resource => {
                "it needs more registers, threads or shared memory than there are, or spills"
            }
            ErrorKind::Launch => "the device refused to launch it",
            ErrorKind::IllegalAddress => "it read or wrote outside of its memory",
            ErrorKind::Misaligned => "it accessed memory at an address that is not aligned",
            ErrorKind::Trap => "it stopped itself",
            ErrorKind::Hang => "it did not end in time",
            ErrorKind::WrongResult => "its numbers are wrong",
            ErrorKind::Nan => "it wrote NaN where there is a number, or left outputs unwritten",
            ErrorKind::OutOfMemory => "there was no memory for it",
            ErrorKind::DeviceLost => "the device failed",
            ErrorKind::WorkerDied => "its worker died without an answer",
            ErrorKind::Protocol => "its worker's answer was none",
            ErrorKind::Cancelled => "the run was stopped",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
