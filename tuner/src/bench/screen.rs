//! Screens: one candidate of a search, measured for as short as its figure allows.
//!
//! Three samples are taken first; a candidate whose median is more than twice the best so far is left there. The others
//! get at least ten samples, and more until their median is known to 1 %, or they have had 0.1 s of the machine, or
//! 2 s have gone by. A program so slow that one call fills these times gets as few samples as fill them. The clock is
//! read before the first and after the last sample. Nothing sleeps: in a search the machine is busy anyway.

use std::time::{Duration, Instant};

use codegen::device::Program;

use super::{Bench, Loaded, error_of, fault::is_sticky, wrong_numbers};
use crate::{
    Failure, Regime, Roofline, Settings, Stats, Verification,
    bootstrap::{interval, median},
    log::{Measurement, Stage, TrialError},
    protocol::Screen,
};

/// A candidate slower than the best by this factor is left.
const SLOW: f64 = 2.0;
/// After so many samples.
const FIRST: usize = 3;
/// Or after so many seconds of samples.
const FIRST_SECONDS: f64 = 0.2;
/// How many samples a figure needs.
const MIN_SAMPLES: usize = 10;
/// How well the median must be known, in parts of it.
const MEDIAN_PRECISION: f64 = 0.01;
/// How many seconds of samples are enough for any figure.
const DEVICE_SECONDS: f64 = 0.1;
/// How much time may go by, and how many seconds of samples end any screen.
const WALL: Duration = Duration::from_secs(2);

/// Verifies and times one program.
///
/// # Errors
/// What stopped it. After one that is sticky the bench is of no use any more, and the process has to be replaced.
pub fn screen(bench: &mut Bench<'_>, program: &Program, how: &Screen) -> Result<Measurement, TrialError> {
    bench.machine.set_threads(how.threads);
    bench.machine.set_deadline(Some(how.deadline));
    let result = match bench.load(program) {
        Ok(loaded) => {
            let result = bench.screened(&loaded, how);
            bench.kept.lost |= result.as_ref().is_err_and(|it| it.sticky);
            bench.release(loaded);
            result
        }
        Err(failure) => {
            bench.kept.lost |= is_sticky(&failure);
            Err(error_of(failure, Stage::Run))
        }
    };
    bench.machine.set_deadline(None);
    result
}

impl Bench<'_> {
    fn screened(&mut self, loaded: &Loaded, how: &Screen) -> Result<Measurement, TrialError> {
        let stopped = |it: Failure| error_of(it, Stage::Run);
        let (first, before) = self.right_run(loaded, 1, &Failure::Wrong)?;
        let settings = self.pace();
        let calls = self.calibrate(loaded, first, &settings).map_err(stopped)?;
        let begin = self.machine.clock_mhz();
        let (seconds, screened) = self.samples(loaded, calls, how.best).map_err(stopped)?;
        let end = self.machine.clock_mhz();
        let (_, after) = self.right_run(loaded, calls.min(2), &Failure::WrongAfterTiming)?;
        let stats = Stats::of(&seconds).ok_or_else(|| stopped(Failure::NoTime))?;
        let roofline = Roofline::of(self.case, self.machine.info(), Regime::Cool, how.threads);
        Ok(Measurement {
            calls,
            stats,
            gflops: self.case.work.flops / stats.median / 1e9,
            screened,
            suspicious: roofline.is_beaten(stats.median),
            clock_mhz: begin.zip(end).map_or(vec![], |(begin, end)| vec![begin, end]),
            before,
            after,
            seconds,
        })
    }

    /// How screens calibrate. Shorter than comparisons: there are hundreds of candidates, and finals for the best.
    fn pace(&self) -> Settings {
        let gpu = self.machine.info().arch != "cpu";
        let sample = if gpu { 0.001 } else { 0.002 };
        let budget = WALL.as_secs_f64();
        Settings { sample, warm_up: 2.0 * sample, budget, ..Settings::new(Regime::Cool, gpu) }
    }

    /// A run over poisoned outputs whose numbers are right.
    pub(super) fn right_run(
        &mut self,
        loaded: &Loaded,
        calls: u32,
        otherwise: &Failure,
    ) -> Result<(f64, Verification), TrialError> {
        let (seconds, verdict) = self.verified_run(loaded, calls).map_err(|it| error_of(it, Stage::Run))?;
        match verdict.failure(otherwise.clone()) {
            None => Ok((seconds, verdict)),
            Some(failure) => Err(wrong_numbers(&verdict, &failure)),
        }
    }

    /// Seconds per call of each sample, and whether it was left because it is slow.
    fn samples(
        &mut self,
        loaded: &Loaded,
        calls: u32,
        best: Option<f64>,
    ) -> Result<(Vec<f64>, bool), Failure> {
        let begin = Instant::now();
        let (mut seconds, mut spent) = (Vec::new(), 0.0);
        loop {
            let time = self.machine.run(loaded.program, &loaded.buffers, calls)?;
            if time <= 0.0 {
                return Err(Failure::NoTime);
            }
            spent += time;
            seconds.push(time / f64::from(calls));
            let first = seconds.len() == FIRST || (seconds.len() < FIRST && spent > FIRST_SECONDS);
            if first && is_slow(&seconds, best) {
                return Ok((seconds, true));
            }
            if is_enough(&seconds, spent, begin, self.case.seed) {
                return Ok((seconds, false));
            }
        }
    }
}

fn is_slow(seconds: &[f64], best: Option<f64>) -> bool {
    median(seconds).zip(best).is_some_and(|(ours, best)| ours > SLOW * best)
}

fn is_enough(seconds: &[f64], spent: f64, begin: Instant, seed: u64) -> bool {
    if spent >= WALL.as_secs_f64() {
        return true;
    }
    // The machine waits while an interval is computed.
    let due = seconds.len().is_multiple_of(5);
    let known = || interval(seconds, seed).is_some_and(|it| it.high - it.low <= MEDIAN_PRECISION * it.median);
    seconds.len() >= MIN_SAMPLES && (spent >= DEVICE_SECONDS || begin.elapsed() >= WALL || (due && known()))
}
