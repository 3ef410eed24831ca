//! The thread that measures.
//!
//! A [`Bench`](crate::Bench) borrows its machine, its case and its inputs, and preparing one takes longer than a
//! screen. So they live on the stack of a thread, from the first job of a problem to the first of another.

use std::{
    any::Any,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::{self, JoinHandle},
};

use codegen::device::{CpuMachine, CudaMachine, DeviceError, Machine, MachineInfo};

use super::{
    Device,
    maker::{misunderstood, runs},
};
use crate::{
    Bench, BenchError,
    build::Problem,
    log::{ErrorKind, Stage, TrialError},
    protocol::{Outcome, ProblemText, Task},
};

type Answer = Result<Outcome, TrialError>;

/// The thread that has the machine.
pub(super) struct Measurer {
    tasks: SyncSender<Task>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

/// What opening a device comes to.
pub(super) enum Opened {
    Ready(Measurer, MachineInfo),
    /// And why.
    Failed(String),
}

impl Measurer {
    /// Starts the thread and opens the device on it.
    pub(super) fn open(device: Device) -> Opened {
        let (tasks, orders) = mpsc::sync_channel(0);
        let (results, answers) = mpsc::sync_channel(0);
        let (opened, info) = mpsc::sync_channel(0);
        let thread = thread::spawn(move || match machine(device) {
            Ok(mut machine) => {
                let _ = opened.send(Ok(machine.info().clone()));
                drop(opened);
                work(&mut *machine, &orders, &results);
            }
            Err(err) => {
                let help = err.help().map(|it| format!("; {it}")).unwrap_or_default();
                let _ = opened.send(Err(format!("{err}{help}")));
            }
        });
        match info.recv() {
            Ok(Ok(info)) => Opened::Ready(Measurer { tasks, answers, thread }, info),
            Ok(Err(why)) => Opened::Failed(why),
            Err(_) => Opened::Failed("opening the device panicked".into()),
        }
    }

    /// Has a job done; none if the thread has panicked.
    pub(super) fn perform(&mut self, task: &Task) -> Option<Answer> {
        self.tasks.send(task.clone()).ok()?;
        self.answers.recv().ok()
    }

    /// Why the thread is gone.
    pub(super) fn last_words(self) -> Option<Box<dyn Any + Send>> {
        self.thread.join().err()
    }
}

fn machine(device: Device) -> Result<Box<dyn Machine>, DeviceError> {
    match device {
        Device::None => Err(DeviceError::Unsupported("this worker has no device".into())),
        Device::Cpu => Ok(Box::new(CpuMachine::open()?)),
        Device::Cuda(number) => Ok(Box::new(CudaMachine::open(number)?)),
    }
}

/// Does jobs, problem by problem.
fn work(machine: &mut dyn Machine, tasks: &Receiver<Task>, answers: &SyncSender<Answer>) {
    let mut next = tasks.recv().ok();
    while let Some(task) = next {
        next = match stay(machine, task, tasks, answers) {
            Ok(next) => next,
            Err(error) => {
                if answers.send(Err(error)).is_err() {
                    return;
                }
                tasks.recv().ok()
            }
        };
    }
}

/// Does jobs of one problem, and gives the first of another.
fn stay(
    machine: &mut dyn Machine,
    first: Task,
    tasks: &Receiver<Task>,
    answers: &SyncSender<Answer>,
) -> Result<Option<Task>, TrialError> {
    let failed = |kind, words: &str| TrialError::new(Stage::Run, kind, words);
    let text = problem_of(&first).clone();
    let Problem { case, target } = text.problem().map_err(|err| misunderstood(&err))?;
    let arch = &machine.info().arch;
    if !runs(arch, &target) {
        let words = format!("the job is for `{}`, and this worker measures on `{arch}`", text.target);
        return Err(failed(ErrorKind::Protocol, &words));
    }
    let inputs = case.inputs();
    let mut reference =
        case.reference(&inputs).map_err(|err| failed(ErrorKind::Internal, &err.to_string()))?;
    let mut bench = Bench::new(machine, &case, &inputs, &mut reference).map_err(|err| no_bench(&err))?;
    let mut task = first;
    loop {
        let answer = measure(&mut bench, &task);
        if answers.send(answer).is_err() {
            return Ok(None);
        }
        match tasks.recv() {
            Ok(next) if *problem_of(&next) == text => task = next,
            Ok(next) => return Ok(Some(next)),
            Err(_) => return Ok(None),
        }
    }
}

fn problem_of(task: &Task) -> &ProblemText {
    match task {
        Task::Compile { problem, .. } | Task::Screen { problem, .. } | Task::Finals { problem, .. } => {
            problem
        }
    }
}

/// Does a job of measurement.
fn measure(_bench: &mut Bench<'_>, _task: &Task) -> Answer {
    Err(TrialError::new(Stage::Run, ErrorKind::Internal, "this version of the worker only compiles"))
}

fn no_bench(err: &BenchError) -> TrialError {
    let (kind, sticky) = match err {
        BenchError::Device(DeviceError::Lost { .. } | DeviceError::Hang { .. }) => {
            (ErrorKind::DeviceLost, true)
        }
        BenchError::Device(_) => (ErrorKind::OutOfMemory, false),
        BenchError::Reference(_) => (ErrorKind::Internal, false),
    };
    TrialError { sticky, ..TrialError::new(Stage::Run, kind, &err.to_string()) }
}
