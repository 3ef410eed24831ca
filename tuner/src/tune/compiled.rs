//! Candidates that went through the compiler, and reading the answers of workers: for the search, the finals and the steps.

use codegen::device::Resources;

use super::candidate_source::Candidate;
use crate::{
    log::{ErrorKind, Measurement, Stage, TrialError},
    protocol::{Binary, Outcome},
};

/// A candidate that went through the compiler.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) candidate: Candidate,
    /// What to load; empty if the compiler refused.
    pub(super) program: Binary,
    /// What each kernel needs, where the compiler told.
    pub(super) resources: Vec<Resources>,
    /// SHA-256 of the machine code.
    pub(super) binary: Option<String>,
    /// How long it took, in milliseconds.
    pub(super) compile: f64,
}

impl Compiled {
    /// From the answer of a compile worker; with an error comes the candidate all the same.
    pub(super) fn of(
        candidate: Candidate,
        outcome: Result<Outcome, TrialError>,
        compile: f64,
    ) -> Result<Compiled, (Box<Compiled>, TrialError)> {
        let nothing = Binary { base64: String::new(), launches: vec![], buffers: vec![], zeroed: vec![] };
        let mut compiled = Compiled { candidate, program: nothing, resources: vec![], binary: None, compile };
        let refused = match outcome {
            Ok(Outcome::Program { program, sha256, resources }) => {
                (compiled.program, compiled.binary, compiled.resources) = (program, Some(sha256), resources);
                None
            }
            Ok(Outcome::Measured(_) | Outcome::Finals(_)) => Some(stray(Stage::Compile)),
            Err(error) => Some(error),
        };
        match refused {
            None => Ok(compiled),
            Some(error) => Err((Box::new(compiled), error)),
        }
    }
}

/// The measurement in the answer to a screen.
pub(super) fn measurement(outcome: Outcome) -> Result<Measurement, TrialError> {
    match outcome {
        Outcome::Measured(it) => Ok(it),
        Outcome::Program { .. } | Outcome::Finals(_) => Err(stray(Stage::Run)),
    }
}

/// The error of an answer to another question.
pub(super) fn stray(stage: Stage) -> TrialError {
    let message = "the worker answered another question than it was asked".to_owned();
    TrialError { stage, kind: ErrorKind::Protocol, message, sticky: false }
}
