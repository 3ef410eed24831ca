//! Comparisons: programs and the vendor library in the same rounds.
//!
//! All candidates and the baseline are timed in the same rounds, in an order drawn anew each round, so that a drift
//! of the clock (a card under its power limit drifts by 5 to 20 %) meets all of them. A sample is a number of
//! back-to-back calls long enough for the clock; the figure is the median over the rounds. Comparisons with the
//! baseline are ratios within a round. A candidate that is slow leaves the rounds when its time is spent, with at
//! least [`Settings::least_rounds`] samples, or one if a single call takes longer than that time.

use std::thread;

use codegen::device::{DeviceError, MachineInfo, Program};

use super::{Bench, Loaded, fault::is_sticky};
use crate::{
    Comparison, Failure, Measured, Ratio, Regime, Roofline, Settings,
    baseline::{Grouping, Unfused, gemm_of, library},
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

/// A program on its way through the rounds.
pub(super) struct Runner {
    pub(super) measured: Measured,
    pub(super) loaded: Option<Loaded>,
    /// How long its first call took, in seconds.
    first: f64,
    /// How long all its samples took.
    spent: f64,
    /// The clock after each sample, where somebody asked and it can be told.
    pub(super) clocks: Vec<f64>,
}

impl Bench<'_> {
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
        let baselines = if settings.baseline { self.load_baselines() } else { Ok(vec![]) };
        let (baselines, no_baseline) = match baselines {
            Ok(them) => (them, None),
            Err(err) => (vec![], Some(err)),
        };
        runners.extend(baselines.into_iter().map(|(label, loaded)| Runner::new(&label, Ok(loaded))));
        for runner in &mut runners {
            seen(Progress::Verifying(&runner.measured.label));
            self.prepare(runner, settings);
        }
        self.rounds(&mut runners, settings, false, seen);
        let roofline = Roofline::of(self.case, self.machine.info(), settings.regime, settings.threads);
        for runner in &mut runners {
            self.finish(runner);
            runner.measured.conclude(self.case, &roofline);
        }
        self.machine.set_threads(0);
        let mut measured: Vec<Measured> = runners.into_iter().map(|it| it.measured).collect();
        let mut baselines = measured.split_off(candidates.len()).into_iter();
        let (baseline, other_baselines) = (baselines.next(), baselines.collect());
        for it in measured.iter_mut().filter(|it| it.failure.is_none()) {
            let theirs = baseline.as_ref().filter(|it| it.failure.is_none());
            it.versus_baseline = theirs.and_then(|theirs| Ratio::of(it, theirs));
        }
        let (regime, work) = (settings.regime, self.case.work);
        Comparison { candidates: measured, baseline, other_baselines, no_baseline, regime, work, roofline }
    }

    /// The library's product, or what it is the first part of, each with its name; nothing where there is neither.
    fn load_baselines(&mut self) -> Result<Vec<(String, Loaded)>, DeviceError> {
        let library = library(self.machine.info());
        if let Some((gemm, names)) = gemm_of(self.case) {
            let name = |_: &MachineInfo| library.to_owned();
            return self.ways_of(&gemm, &names, name, |machine, gemm| Ok(vec![machine.load_gemm(gemm)?]));
        }
        let mut all: Vec<(String, Loaded)> = vec![];
        for grouping in [Grouping::Separate, Grouping::Together] {
            let Some(unfused) = Unfused::of(self.case, grouping) else { break };
            // With a single stage both are the same.
            let name = unfused.name(library);
            if all.iter().any(|it| it.0 == name) {
                break;
            }
            let loaded = self.load_product_and_kernels(&unfused);
            match loaded {
                Ok(loaded) => all.push((name, loaded)),
                Err(err) => {
                    for (_, loaded) in all {
                        self.release(loaded);
                    }
                    return Err(err);
                }
            }
        }
        Ok(all)
    }

    fn load_product_and_kernels(&mut self, unfused: &Unfused) -> Result<Loaded, DeviceError> {
        let programs = unfused.programs(self.machine.info())?;
        let product = self.machine.load_gemm(&unfused.gemm)?;
        self.load_unfused(unfused, product, &programs)
    }

    /// Verifies, warms up, and chooses how many calls make a sample.
    pub(super) fn prepare(&mut self, runner: &mut Runner, settings: &Settings) {
        let Some(loaded) = &runner.loaded else { return };
        let res = self.verified_run(loaded, 1).and_then(|(first, verdict)| {
            runner.first = first;
            let failure = verdict.failure(Failure::Wrong);
            runner.measured.before = Some(verdict);
            if let Some(failure) = failure {
                return Err(failure);
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
    pub(super) fn calibrate(
        &mut self,
        loaded: &Loaded,
        first: f64,
        settings: &Settings,
    ) -> Result<u32, Failure> {
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

    /// Times all that have not failed, round by round. A witness reads the clock after each sample.
    pub(super) fn rounds(
        &mut self,
        runners: &mut [Runner],
        settings: &Settings,
        witness: bool,
        seen: &mut dyn FnMut(Progress<'_>),
    ) {
        let mut rng = stream(self.case.seed, u64::MAX);
        if settings.regime == Regime::Sustained && !self.soak(runners, settings) {
            return;
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
                        if witness {
                            runner.clocks.extend(self.machine.clock_mhz());
                        }
                    }
                    Err(failure) => {
                        let lost = is_sticky(&failure);
                        runner.measured.failure = Some(failure);
                        if lost {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Keeps the machine busy until its clocks have settled, with all candidates in turn. Whether it is still there.
    fn soak(&mut self, runners: &mut [Runner], settings: &Settings) -> bool {
        let mut spent = 0.0;
        while spent < settings.warm_up {
            let mut any = false;
            for runner in runners.iter_mut().filter(|it| it.measured.failure.is_none()) {
                match self.sample(runner, settings) {
                    Ok(seconds) => {
                        any = true;
                        spent += seconds * f64::from(runner.measured.calls);
                    }
                    Err(failure) => {
                        let lost = is_sticky(&failure);
                        runner.measured.failure = Some(failure);
                        if lost {
                            return false;
                        }
                    }
                }
            }
            if !any {
                break;
            }
        }
        true
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
    pub(super) fn finish(&mut self, runner: &mut Runner) {
        let Some(loaded) = runner.loaded.take() else { return };
        if runner.measured.failure.is_none() {
            match self.verified_run(&loaded, runner.measured.calls.min(2)) {
                Ok((_, verdict)) => {
                    runner.measured.failure = verdict.failure(Failure::WrongAfterTiming);
                    runner.measured.after = Some(verdict);
                }
                Err(failure) => runner.measured.failure = Some(failure),
            }
        }
        self.release(loaded);
    }
}

impl Runner {
    pub(super) fn new(label: &str, loaded: Result<Loaded, Failure>) -> Runner {
        let mut measured = Measured::new(label);
        let loaded = match loaded {
            Ok(loaded) => Some(loaded),
            Err(failure) => {
                measured.failure = Some(failure);
                None
            }
        };
        Runner { measured, loaded, first: 0.0, spent: 0.0, clocks: vec![] }
    }
}
