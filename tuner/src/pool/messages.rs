//! What workers say: hello, answers and news.

use std::time::Instant;

use codegen::device::MachineInfo;

use super::{
    Pool, PoolEvent, Role,
    fault::WorkerFault,
    ring::excerpt,
    worker_state::{AnswerKind, WorkerPhase},
};
use crate::{
    log::{ErrorKind, Happening, MeasuringDevice},
    protocol::{Answer, FromWorker, Hello, News, PROTOCOL},
};

/// The most jobs that a worker has at a time, whatever it says.
const MAX_CAPACITY: usize = 1024;

impl Pool {
    /// Takes in a line.
    pub(super) fn line(&mut self, at: usize, line: &[u8]) -> Result<(), WorkerFault> {
        let state = &mut self.workers[at];
        if matches!(state.life, WorkerPhase::Ending(_)) {
            return Ok(());
        }
        let message = serde_json::from_slice::<FromWorker>(line).map_err(|err| {
            let (line, why) = (excerpt(line), err.to_string());
            WorkerFault::Garbage { line, why }
        })?;
        let starting = matches!(state.life, WorkerPhase::Starting(..));
        match message {
            FromWorker::Hello(hello) if starting => self.hello(at, hello),
            FromWorker::Hello(_) => Err(WorkerFault::SecondHello),
            FromWorker::Answer(_) | FromWorker::News(_) if starting => Err(WorkerFault::NoHello),
            FromWorker::Answer(answer) => self.answer(at, answer),
            FromWorker::News(_) if !state.supervisor => {
                let (line, why) = (excerpt(line), "it has no processes to tell of".to_owned());
                Err(WorkerFault::Garbage { line, why })
            }
            FromWorker::News(news) => self.news(at, news),
        }
    }

    fn hello(&mut self, at: usize, hello: Hello) -> Result<(), WorkerFault> {
        let Hello { proto, tool, capacity, machine, problem, warnings, supervisor } = hello;
        if proto != PROTOCOL {
            return Err(WorkerFault::Version(proto));
        }
        if capacity == 0 {
            return Err(WorkerFault::NoCapacity);
        }
        let name = self.workers[at].spec.name.clone();
        let mut device = None;
        if self.workers[at].spec.role == Role::Measure {
            let why = || {
                WorkerFault::NoMachine(problem.unwrap_or_else(|| "it has no machine to measure on".into()))
            };
            let machine = machine.ok_or_else(why)?;
            self.expect_alike(&machine)?;
            // A supervisor tells of its devices one by one.
            device = (!supervisor).then(|| MeasuringDevice::of(machine));
        }
        let state = &mut self.workers[at];
        if let WorkerPhase::Starting(process, _) = std::mem::replace(&mut state.life, WorkerPhase::Down) {
            let id = process.id();
            state.life = WorkerPhase::Ready(process);
            state.capacity = capacity.min(MAX_CAPACITY);
            state.supervisor = supervisor;
            let before = std::mem::replace(&mut state.device, device.as_ref().map(|it| it.name.clone()));
            // Where a scheduler places processes the next one may be on another device.
            if state.generation == 1 || state.device != before {
                let (what, detail) = (Happening::WorkerStarted, format!("{name}: {tool}, process {id}"));
                self.events.push_back(PoolEvent::Happened { what, detail, device });
            }
        }
        for it in warnings {
            self.happened(Happening::Warning, format!("{name}: {it}"));
        }
        Ok(())
    }

    /// Refuses a machine whose times cannot be compared with those of the others.
    fn expect_alike(&mut self, machine: &MachineInfo) -> Result<(), WorkerFault> {
        match &self.machine {
            Some(ours) if !same_model(ours, machine) => {
                let (theirs, ours) = (model(machine), model(ours));
                return Err(WorkerFault::OtherMachine { theirs, ours });
            }
            Some(_) => {}
            None => self.machine = Some(machine.clone()),
        }
        Ok(())
    }

    /// What a supervisor tells of its processes.
    fn news(&mut self, at: usize, news: News) -> Result<(), WorkerFault> {
        let News { what, detail, capacity, device } = news;
        if let Some(device) = &device {
            self.expect_alike(&device.machine)?;
        }
        let state = &mut self.workers[at];
        if let Some(capacity) = capacity {
            state.capacity = capacity.min(MAX_CAPACITY);
        }
        let detail = format!("{}: {detail}", state.spec.name);
        self.events.push_back(PoolEvent::Happened { what, detail, device });
        Ok(())
    }

    fn answer(&mut self, at: usize, answer: Answer) -> Result<(), WorkerFault> {
        let Answer { id, ms, outcome, device } = answer;
        let state = &mut self.workers[at];
        let (worker, device) = (state.spec.name.clone(), device.or(state.device.clone()));
        let flight = match state.number(id) {
            AnswerKind::Due(flight) => flight,
            AnswerKind::Again => {
                self.happened(Happening::StrayAnswer, format!("{worker}: job {id} is answered again"));
                return Ok(());
            }
            AnswerKind::Flood => return Err(WorkerFault::Flood),
            AnswerKind::Strange => return Err(WorkerFault::WrongNumber(id)),
        };
        if outcome.as_ref().is_ok_and(|it| !flight.mode.fits(it)) {
            state.flights.insert(id, flight);
            return Err(WorkerFault::WrongOutcome);
        }
        match &outcome {
            // A supervisor has replaced the process already, and is none the worse for it. It may have answered itself, which does
            // not show that it gets anything done.
            Err(err) if state.supervisor && err.sticky => {}
            // An error that costs the process is no failure of the worker, unless its device is gone altogether.
            Err(err) if err.sticky && err.kind == ErrorKind::DeviceLost => {
                state.end(Some(WorkerFault::DeviceLost), true, Instant::now());
            }
            Err(err) if err.sticky => {
                state.end(None, true, Instant::now());
                let words = format!("{worker}: replaced after job {id} ({})", err.kind);
                self.happened(Happening::WorkerReplaced, words);
            }
            Ok(_) | Err(_) => state.failures = 0,
        }
        self.events.push_back(PoolEvent::Done { job: id, worker, device, outcome, ms });
        Ok(())
    }
}

/// Whether times on two machines can be compared. Measured peaks differ from process to process.
fn same_model(a: &MachineInfo, b: &MachineInfo) -> bool {
    (&a.name, &a.arch, a.units) == (&b.name, &b.arch, b.units)
}

fn model(it: &MachineInfo) -> String {
    format!("{} ({}, {} units)", it.name, it.arch, it.units)
}
