//! Timing on a machine.
//!
//! # Protocol
//!
//! Outputs are poisoned, the program runs once, its numbers are verified; only then is it timed. All candidates and
//! the baseline are timed in the same rounds, in an order drawn anew each round, so that a drift of the clock (a
//! card under its power limit drifts by 5 to 20 %) meets all of them. A sample is a number of back-to-back calls
//! long enough for the clock; the figure is the median over the rounds. Comparisons with the baseline are ratios
//! within a round. After the last round the outputs are poisoned and verified once more. A candidate that is slow
//! leaves the rounds when its time is spent, with at least [`Settings::least_rounds`] samples, or one if a single
//! call takes longer than that time.

use std::thread;

use codegen::device::{BufferId, DeviceError, Machine, Program, ProgramId};
use indexmap::IndexMap;
use ir::{InterpError, Name, Role};

use crate::{
    Case, Comparison, Expected, Failure, Measured, Oracle, Ratio, Regime, Roofline, Settings, Tensor,
    Verification,
    baseline::gemm_of,
    data::{shuffled, stream},
};

/// A program to measure.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// What to call it in the report.
    pub label: String,
    /// The program.
    pub program: &'a Program,
}

/// What is happening, for a progress line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress<'a> {
    /// A program runs for the first time and is verified.
    Verifying(&'a str),
    /// A round begins.
    Round {
        /// Which, from 1.
        number: usize,
        /// Of how many.
        of: usize,
    },
}

/// Why nothing can be measured at all.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum BenchError {
    /// The machine cannot hold the tensors.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The reference cannot tell what the outputs must be.
    #[error("the reference of the workload has no value: {0}")]
    Reference(#[from] InterpError),
}

/// A case on a machine: inputs uploaded, expectations computed. Gives the memory back when dropped.
pub struct Bench<'a> {
    machine: &'a mut dyn Machine,
    case: &'a Case,
    oracle: &'a mut dyn Oracle,
    expected: Vec<Expected>,
    buffers: IndexMap<Name, BufferId>,
}

/// A loaded program with its memory.
struct Loaded {
    program: ProgramId,
    /// One for each of the program's buffers.
    buffers: Vec<BufferId>,
    /// Those of them that are its own.
    workspace: Vec<BufferId>,
}

/// A program on its way through the rounds.
struct Runner {
    measured: Measured,
    loaded: Option<Loaded>,
    /// How long its first call took, in seconds.
    first: f64,
    /// How long all its samples took.
    spent: f64,
}

impl<'a> Bench<'a> {
    /// Draws and uploads the inputs and computes what the outputs must be.
    pub fn new(
        machine: &'a mut dyn Machine,
        case: &'a Case,
        inputs: &IndexMap<Name, Tensor>,
        oracle: &'a mut dyn Oracle,
    ) -> Result<Bench<'a>, BenchError> {
        let expected = Expected::of(case, oracle)?;
        let mut bench = Bench { machine, case, oracle, expected, buffers: IndexMap::new() };
        for (name, param) in case.params() {
            let buffer = bench.machine.alloc(param.bytes())?;
            bench.buffers.insert(name.clone(), buffer);
            if let Some(tensor) = inputs.get(name) {
                bench.machine.upload(buffer, &tensor.bytes)?;
            }
        }
        Ok(bench)
    }

    /// Verifies and times candidates against each other and against the vendor library.
    pub fn compare(
        &mut self,
        candidates: &[Candidate<'_>],
        settings: &Settings,
        seen: &mut dyn FnMut(Progress<'_>),
    ) -> Comparison {
        self.machine.set_threads(settings.threads);
        let mut runners: Vec<Runner> =
            candidates.iter().map(|it| Runner::new(&it.label, self.load(it.program))).collect();
        let mut no_baseline = None;
        let baseline = settings.baseline.then(|| self.load_baseline()).flatten();
        let has_baseline = match baseline {
            Some(Ok(loaded)) => {
                runners.push(Runner::new("baseline", Ok(loaded)));
                true
            }
            Some(Err(err)) => {
                no_baseline = Some(err);
                false
            }
            None => false,
        };
        for runner in &mut runners {
            seen(Progress::Verifying(&runner.measured.label));
            self.prepare(runner, settings);
        }
        self.rounds(&mut runners, settings, seen);
        let roofline = Roofline::of(self.case, self.machine.info(), settings.regime, settings.threads);
        for runner in &mut runners {
            self.finish(runner);
            runner.measured.conclude(self.case, &roofline);
        }
        self.machine.set_threads(0);
        let mut measured: Vec<Measured> = runners.into_iter().map(|it| it.measured).collect();
        let baseline = if has_baseline { measured.pop() } else { None };
        for it in measured.iter_mut().filter(|it| it.failure.is_none()) {
            let theirs = baseline.as_ref().filter(|it| it.failure.is_none());
            it.versus_baseline = theirs.and_then(|theirs| Ratio::of(it, theirs));
        }
        Comparison { candidates: measured, baseline, no_baseline, regime: settings.regime, roofline }
    }

    fn load(&mut self, program: &Program) -> Result<Loaded, Failure> {
        let sizes: Vec<usize> = self.case.params().values().map(crate::case::Param::bytes).collect();
        let Some(own) = program.buffers.strip_prefix(sizes.as_slice()) else {
            let first = program.buffers.iter().take(sizes.len()).copied().collect();
            return Err(Failure::Buffers { program: first, case: sizes });
        };
        let id = self.machine.load(program)?;
        let mut buffers: Vec<BufferId> = self.buffers.values().copied().collect();
        let mut workspace = Vec::new();
        for size in own {
            let buffer = self.machine.alloc(*size);
            workspace.extend(buffer.as_ref().ok());
            // All ones are a NaN in every float type: a program that reads what it has not written shows.
            let filled = buffer.and_then(|it| self.machine.upload(it, &vec![0xff; *size]));
            if let Err(err) = filled {
                for it in workspace {
                    self.machine.free(it);
                }
                return Err(err.into());
            }
        }
        buffers.extend(&workspace);
        Ok(Loaded { program: id, buffers, workspace })
    }

    fn load_baseline(&mut self) -> Option<Result<Loaded, DeviceError>> {
        let (gemm, names) = gemm_of(self.case)?;
        let buffers = names.iter().filter_map(|it| self.buffers.get(it).copied()).collect();
        let program = self.machine.load_gemm(&gemm);
        Some(program.map(|program| Loaded { program, buffers, workspace: vec![] }))
    }

    /// Verifies, warms up, and chooses how many calls make a sample.
    fn prepare(&mut self, runner: &mut Runner, settings: &Settings) {
        let Some(loaded) = &runner.loaded else { return };
        let res = self.verified_run(loaded, 1).and_then(|(first, verdict)| {
            runner.first = first;
            let right = verdict.is_ok();
            runner.measured.before = Some(verdict);
            if !right {
                return Err(Failure::Wrong);
            }
            self.calibrate(loaded, first, settings)
        });
        match res {
            Ok(calls) => runner.measured.calls = calls,
            Err(failure) => runner.measured.failure = Some(failure),
        }
    }

    /// Warms up, and times a call. The first run does not count, because a driver or a library loads code in it; only
    /// of a program that outlasts the budget in one run it has to do.
    fn calibrate(&mut self, loaded: &Loaded, first: f64, settings: &Settings) -> Result<u32, Failure> {
        let (mut spent, mut call, mut calls) = (0.0, first, 1u32);
        if first > settings.budget {
            return Ok(1);
        }
        let enough = settings.warm_up.max(settings.sample);
        while spent < enough {
            let time = self.machine.run(loaded.program, &loaded.buffers, calls)?;
            call = time / f64::from(calls);
            spent += time;
            if calls == 1 << 20 {
                break;
            }
            calls *= 2;
        }
        if call <= 0.0 {
            return Err(Failure::NoTime);
        }
        #[expect(clippy::cast_possible_truncation, reason = "clamped to a range that fits")]
        #[expect(clippy::cast_sign_loss, reason = "clamped to a range that fits")]
        let calls = (settings.sample / call).ceil().clamp(1.0, f64::from(1 << 20)) as u32;
        Ok(if settings.regime == Regime::ColdL2 { 1 } else { calls })
    }

    fn rounds(&mut self, runners: &mut [Runner], settings: &Settings, seen: &mut dyn FnMut(Progress<'_>)) {
        let mut rng = stream(self.case.seed, u64::MAX);
        if settings.regime == Regime::Sustained {
            self.soak(runners, settings);
        }
        for round in 0..settings.rounds {
            let timed = |it: &Runner| it.measured.failure.is_none();
            let least = |it: &Runner| if it.first > settings.budget { 1 } else { settings.least_rounds };
            let going = |it: &Runner| timed(it) && (it.spent < settings.budget || round < least(it));
            if !runners.iter().any(going) {
                break;
            }
            seen(Progress::Round { number: round + 1, of: settings.rounds });
            for at in shuffled(&mut rng, runners.len()) {
                let runner = &mut runners[at];
                if !going(runner) {
                    continue;
                }
                match self.sample(runner, settings) {
                    Ok(seconds) => {
                        runner.spent += seconds * f64::from(runner.measured.calls);
                        runner.measured.seconds.push(seconds);
                        runner.measured.rounds.push(round);
                    }
                    Err(failure) => runner.measured.failure = Some(failure),
                }
            }
        }
    }

    /// Keeps the machine busy until its clocks have settled, with all candidates in turn.
    fn soak(&mut self, runners: &mut [Runner], settings: &Settings) {
        let mut spent = 0.0;
        while spent < settings.warm_up {
            let mut any = false;
            for runner in runners.iter_mut().filter(|it| it.measured.failure.is_none()) {
                match self.sample(runner, settings) {
                    Ok(seconds) => {
                        any = true;
                        spent += seconds * f64::from(runner.measured.calls);
                    }
                    Err(failure) => runner.measured.failure = Some(failure),
                }
            }
            if !any {
                break;
            }
        }
    }

    /// One sample: seconds per call.
    fn sample(&mut self, runner: &Runner, settings: &Settings) -> Result<f64, Failure> {
        let Some(loaded) = &runner.loaded else { return Err(Failure::NoTime) };
        let calls = runner.measured.calls;
        match settings.regime {
            Regime::Cool => {
                thread::sleep(settings.idle);
                // Others ran in between: one call brings back the caches, where a call is not a sample of its own.
                if calls > 1 {
                    self.machine.run(loaded.program, &loaded.buffers, 1)?;
                }
            }
            Regime::Sustained => {}
            Regime::ColdL2 => self.machine.flush_cache()?,
        }
        let seconds = self.machine.run(loaded.program, &loaded.buffers, calls)? / f64::from(calls);
        if seconds > 0.0 { Ok(seconds) } else { Err(Failure::NoTime) }
    }

    /// Verifies again, and gives the workspace back.
    fn finish(&mut self, runner: &mut Runner) {
        let Some(loaded) = runner.loaded.take() else { return };
        if runner.measured.failure.is_none() {
            match self.verified_run(&loaded, runner.measured.calls.min(2)) {
                Ok((_, verdict)) => {
                    runner.measured.failure = (!verdict.is_ok()).then_some(Failure::WrongAfterTiming);
                    runner.measured.after = Some(verdict);
                }
                Err(failure) => runner.measured.failure = Some(failure),
            }
        }
        loaded.workspace.into_iter().for_each(|it| self.machine.free(it));
    }

    /// Poisons the outputs, runs, and looks at them.
    fn verified_run(&mut self, loaded: &Loaded, calls: u32) -> Result<(f64, Verification), Failure> {
        for (name, param) in self.case.params().iter().filter(|(_, it)| it.role == Role::Output) {
            let poison = Tensor::poisoned(param.dtype, &param.shape);
            self.machine.upload(self.buffers[name], &poison.bytes)?;
        }
        let seconds = self.machine.run(loaded.program, &loaded.buffers, calls)?;
        let mut outputs = Vec::new();
        for expected in &self.expected {
            let mut tensor = Tensor::zeroed(expected.dtype, &expected.shape);
            self.machine.download(self.buffers[&expected.buffer], &mut tensor.bytes)?;
            outputs.push(expected.check(&tensor, self.oracle));
        }
        Ok((seconds / f64::from(calls), Verification { outputs }))
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        self.buffers.values().for_each(|it| self.machine.free(*it));
    }
}

impl Runner {
    fn new(label: &str, loaded: Result<Loaded, Failure>) -> Runner {
        let mut measured = Measured::new(label);
        let loaded = match loaded {
            Ok(loaded) => Some(loaded),
            Err(failure) => {
                measured.failure = Some(failure);
                None
            }
        };
        Runner { measured, loaded, first: 0.0, spent: 0.0 }
    }
}
