//! The job handler of production: it compiles candidates and measures them on a device.

use std::fs::File;

use super::{
    JobHandler,
    measurer::{Measurer, misunderstood},
    process::{allow_job, lock_device},
};
use crate::{
    build::{self, Problem},
    log::{ErrorKind, Stage, TrialError},
    protocol::{Binary, Hello, Outcome, PROTOCOL, ProblemText, Task},
    sha256,
};

/// What a worker measures on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// Nothing: it only compiles.
    None,
    /// The processor.
    Cpu,
    /// A GPU by its number.
    Cuda(u32),
}

/// The job handler of production: it makes programs from steps, and measures them if it has a device.
pub struct DeviceHandler {
    device: Device,
    measurer: Option<Measurer>,
    /// Held as long as the process lives.
    locks: Vec<File>,
    /// The problem of the last job, which is that of the next one nearly always.
    problem: Option<(ProblemText, Problem)>,
}

impl Device {
    /// Reads `cpu` or the number of a GPU.
    pub fn parse(word: &str) -> Option<Device> {
        if word == "cpu" { Some(Device::Cpu) } else { word.parse().ok().map(Device::Cuda) }
    }

    fn word(self) -> String {
        match self {
            Device::None => "none".into(),
            Device::Cpu => "cpu".into(),
            Device::Cuda(number) => number.to_string(),
        }
    }
}

impl DeviceHandler {
    /// For a device, which is opened by [`JobHandler::hello`].
    pub fn new(device: Device) -> DeviceHandler {
        DeviceHandler { device, measurer: None, locks: vec![], problem: None }
    }

    /// The problem of a text.
    ///
    /// # Errors
    /// Of the kind `protocol`, where it cannot be read.
    pub fn problem(&mut self, text: &ProblemText) -> Result<&Problem, TrialError> {
        if self.problem.as_ref().is_none_or(|(known, _)| known != text) {
            self.problem = Some((text.clone(), text.problem().map_err(|err| misunderstood(&err))?));
        }
        Ok(&self.problem.as_ref().expect("put there above").1)
    }

    fn compile(&mut self, task: &Task) -> Result<Outcome, TrialError> {
        let Task::Compile { problem, steps, source_sha256 } = task else { return Err(no_machine()) };
        let problem = self.problem(problem)?;
        let generated = build::generate(problem, steps).map_err(|err| err.trial_error())?;
        let sha = sha256(&generated.source);
        if sha != *source_sha256 {
            let words = format!(
                "the steps give another source here (SHA-256 {sha}) than where the job comes from ({source_sha256}): \
                 the worker is another version of tilewright, or its processor has other vectors"
            );
            return Err(TrialError::new(Stage::Generate, ErrorKind::Internal, &words));
        }
        let made = generated.compile(&problem.target).map_err(|err| err.trial_error())?;
        Ok(Outcome::Program {
            sha256: sha256(&made.program.binary),
            program: Binary::of(&made.program),
            resources: made.resources,
        })
    }

    fn measure(&mut self, task: &Task) -> Result<Outcome, TrialError> {
        self.measurer.as_mut().ok_or_else(no_machine)?.perform(task)
    }
}

impl JobHandler for DeviceHandler {
    fn hello(&mut self) -> Hello {
        let mut hello = Hello {
            proto: PROTOCOL,
            tool: format!("tilewright {}", env!("CARGO_PKG_VERSION")),
            capacity: 1,
            machine: None,
            problem: None,
            warnings: vec![],
            supervisor: false,
        };
        if self.device == Device::None {
            return hello;
        }
        // To open the processor is to measure it, which another tuner would disturb: its lock comes first.
        let word = (self.device == Device::Cpu).then(|| self.device.word());
        let early = word.map(|it| lock_device(&it));
        let opened = Measurer::open(self.device);
        let lock = early.unwrap_or_else(|| {
            // Within a job of a cluster every GPU may have the number 0. Its own word is known once it is open.
            let id = opened.as_ref().ok().and_then(|it| it.info().id.clone());
            lock_device(&id.unwrap_or_else(|| self.device.word()))
        });
        match lock {
            Ok(lock) => self.locks.extend(lock),
            Err(warning) => hello.warnings.push(warning),
        }
        match opened {
            Ok(measurer) => {
                hello.machine = Some(measurer.info().clone());
                self.measurer = Some(measurer);
            }
            Err(err) => {
                let help = err.help().map(|it| format!("; {it}")).unwrap_or_default();
                hello.problem = Some(format!("{err}{help}"));
            }
        }
        hello
    }

    fn perform(&mut self, task: &Task) -> Result<Outcome, TrialError> {
        if self.device == Device::None {
            allow_job();
        }
        match task {
            Task::Compile { .. } => self.compile(task),
            Task::Screen { .. } | Task::Finals { .. } => self.measure(task),
        }
    }
}

fn no_machine() -> TrialError {
    TrialError::new(Stage::Run, ErrorKind::Protocol, "this worker only compiles")
}
