//! Traces of TVM's schedules: the instructions of MetaSchedule's records, as steps of a script, and steps as such instructions.

mod query;
mod read;
mod reason;
mod record;
mod value;
mod write;

use ir::{Code, Coded, Func};

use schedule::ScheduleError;

pub(crate) use read::{Replayed, steps};
pub(crate) use record::find;
pub(crate) use write::Writer;

/// Why a record, or a step, has no counterpart. The messages are written where they are raised.
#[derive(Debug)]
pub(crate) enum TraceError {
    /// The text is no record and no trace.
    Record { message: String },
    /// An instruction stands for no step, or a step for no instruction.
    Unknown { message: String, help: &'static str },
    /// The step of an instruction is refused.
    Refused { instruction: String, before: Box<Func>, err: Box<ScheduleError> },
}

impl TraceError {
    pub(crate) const CODES: &'static [Code] = &[Code::new(4505), Code::new(4506)];
}

impl Coded for TraceError {
    fn code(&self) -> Code {
        match self {
            TraceError::Record { .. } => TraceError::CODES[0],
            TraceError::Unknown { .. } => TraceError::CODES[1],
            TraceError::Refused { err, .. } => err.code(),
        }
    }
}

/// A text that is no record.
fn no_record(message: impl Into<String>) -> TraceError {
    TraceError::Record { message: message.into() }
}
