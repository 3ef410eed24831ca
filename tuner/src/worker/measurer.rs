//! The measuring part of a worker: a machine, and what was prepared on it for the problem of the last job.

use codegen::device::{CpuMachine, CudaMachine, DeviceError, Machine, MachineInfo, Program};
use indexmap::IndexMap;
use ir::{Name, Target};

use super::Device;
use crate::{
    Bench, BenchError, Tensor,
    bench::{self, Kept, error_of},
    build::Problem,
    log::{ErrorKind, Stage, TrialError},
    protocol::{Binary, MessageError, Outcome, ProblemText, Task},
};

/// A machine and what is on it.
pub(super) struct Measurer {
    machine: Box<dyn Machine>,
    prepared: Option<PreparedProblem>,
}

/// The problem of the last job, with its inputs and what a bench has on the machine.
struct PreparedProblem {
    text: ProblemText,
    problem: Problem,
    inputs: IndexMap<Name, Tensor>,
    /// Absent before the first job, and after one that panicked.
    kept: Option<Kept>,
}

impl Measurer {
    /// Opens a device.
    pub(super) fn open(device: Device) -> Result<Measurer, DeviceError> {
        let machine: Box<dyn Machine> = match device {
            Device::None => return Err(DeviceError::Unsupported("this worker has no device".into())),
            Device::Cpu => Box::new(CpuMachine::open()?),
            Device::Cuda(number) => Box::new(CudaMachine::open(number)?),
        };
        Ok(Measurer { machine, prepared: None })
    }

    pub(super) fn info(&self) -> &MachineInfo {
        self.machine.info()
    }

    /// Does a job of measurement.
    pub(super) fn perform(&mut self, task: &Task) -> Result<Outcome, TrialError> {
        match task {
            Task::Compile { .. } => Err(internal("a compilation is not a measurement")),
            Task::Screen { problem, program, how } => {
                let program = program_of(program)?;
                self.on_bench(problem, |bench| bench::screen(bench, &program, how)).map(Outcome::Measured)
            }
            Task::Finals { problem, programs, how } => {
                let programs = programs.iter().map(program_of).collect::<Result<Vec<_>, _>>()?;
                self.on_bench(problem, |bench| bench::finals(bench, &programs, how)).map(Outcome::Finals)
            }
        }
    }

    /// Does something on the bench of a problem, which is kept for the next job.
    fn on_bench<T>(
        &mut self,
        text: &ProblemText,
        work: impl FnOnce(&mut Bench<'_>) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        if self.prepared.as_ref().is_none_or(|it| it.text != *text) {
            self.release();
            self.prepared = Some(PreparedProblem::new(text, self.machine.info())?);
        }
        let prepared = self.prepared.as_mut().ok_or_else(|| internal("there is no problem"))?;
        let (case, inputs) = (&prepared.problem.case, &prepared.inputs);
        let mut reference =
            case.reference_on(self.machine.info(), inputs).map_err(|err| internal(&err.to_string()))?;
        let mut bench = match prepared.kept.take() {
            Some(kept) => Bench::again(&mut *self.machine, case, inputs, &mut reference, kept),
            None => Bench::new(&mut *self.machine, case, inputs, &mut reference).map_err(no_bench)?,
        };
        let result = work(&mut bench);
        prepared.kept = Some(bench.keep());
        result
    }

    /// Gives back what the last problem has on the machine.
    fn release(&mut self) {
        let Some(PreparedProblem { problem, inputs, kept: Some(kept), .. }) = self.prepared.take() else {
            return;
        };
        if let Ok(mut reference) = problem.case.reference_on(self.machine.info(), &inputs) {
            drop(Bench::again(&mut *self.machine, &problem.case, &inputs, &mut reference, kept));
        }
    }
}

impl PreparedProblem {
    fn new(text: &ProblemText, machine: &MachineInfo) -> Result<PreparedProblem, TrialError> {
        let problem = text.problem().map_err(|err| misunderstood(&err))?;
        let runs = match problem.target {
            Target::Cpu => machine.arch == "cpu",
            Target::Cuda(_) => machine.arch != "cpu",
        };
        if !runs {
            let words =
                format!("the job is for `{}`, and this worker measures on `{}`", text.target, machine.arch);
            return Err(TrialError::new(Stage::Run, ErrorKind::Protocol, &words));
        }
        let fits = problem.case.expect_memory(problem.target == Target::Cpu);
        fits.map_err(|err| misunderstood(&err.into()))?;
        let inputs = problem.case.inputs();
        Ok(PreparedProblem { text: text.clone(), problem, inputs, kept: None })
    }
}

fn program_of(binary: &Binary) -> Result<Program, TrialError> {
    binary.program().map_err(|err| misunderstood(&err))
}

/// The error of a job that cannot be read.
pub(super) fn misunderstood(err: &MessageError) -> TrialError {
    TrialError::new(Stage::Generate, ErrorKind::Protocol, &err.to_string())
}

fn no_bench(err: BenchError) -> TrialError {
    match err {
        BenchError::Device(err) => error_of(err, Stage::Run),
        BenchError::Reference(err) => internal(&err.to_string()),
    }
}

fn internal(words: &str) -> TrialError {
    TrialError::new(Stage::Run, ErrorKind::Internal, words)
}
