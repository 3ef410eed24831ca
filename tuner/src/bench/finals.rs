//! Finals: the best candidates of a search against each other and against the vendor's library, in one process, on the
//! same buffers, in rounds whose order is drawn anew each time.
//!
//! The search's own figures are from different moments, and the best of hundreds is partly the luckiest. What is
//! claimed is therefore measured again, as ratios within rounds, and each ratio has an interval. The first program that
//! is right takes part twice: what it shows against itself is the noise floor, and no smaller difference means anything.
//!
//! A finalist that fails drops out and says why; the others go on. Only where the machine is lost are there no finals.

use codegen::device::Program;

use super::{
    Bench,
    compare::Runner,
    error_of,
    paired::{Pairs, fastest, relate},
    vendor::{Choice, Library, Vendor},
    wrong_numbers,
};
use crate::{
    Failure, Roofline, Settings,
    bootstrap::Interval,
    log::{Baseline, Finalist, Finals, Measurement, Stage, TrialError},
    protocol::Final,
};

/// How many rounds finals should have.
pub const FINAL_ROUNDS: usize = 31;

/// How long one call of the machine may take, in seconds: a sample in the regime `sustained` is 0.2 s.
const DEADLINE: f64 = 30.0;

/// Who takes part.
struct Field {
    finalists: Vec<Runner>,
    /// The first finalist that is right, and the same program once more.
    twin: Option<(usize, Runner)>,
    vendor: Option<Vendor>,
    no_baseline: Option<String>,
}

/// Times programs against each other and against the vendor's library. Finalists come back in the order of the
/// programs; names of run, trials and candidates, and the time of day, are for the caller to fill in.
///
/// # Errors
/// Where the machine is lost; the bench is then of no use any more, and the process has to be replaced.
pub fn finals(bench: &mut Bench<'_>, programs: &[Program], how: &Final) -> Result<Finals, TrialError> {
    bench.machine.set_threads(how.threads);
    bench.machine.set_deadline(Some(DEADLINE));
    let result = bench.finals(programs, how);
    bench.machine.set_deadline(None);
    result
}

impl Bench<'_> {
    fn finals(&mut self, programs: &[Program], how: &Final) -> Result<Finals, TrialError> {
        let rounds = how.rounds.max(1);
        let gpu = self.machine.info().arch != "cpu";
        let settings = Settings {
            threads: how.threads,
            rounds,
            least_rounds: rounds,
            budget: f64::INFINITY,
            ..Settings::new(how.regime, gpu)
        };
        let field = self.field(programs, how.baseline, &settings)?;
        let field = self.timed(field, &settings)?;
        let roofline = Roofline::of(self.case, self.machine.info(), how.regime, how.threads);
        Ok(self.conclusions(field, &settings, &roofline))
    }

    /// Loads, verifies and calibrates all who take part.
    fn field(
        &mut self,
        programs: &[Program],
        baseline: bool,
        settings: &Settings,
    ) -> Result<Field, TrialError> {
        let mut finalists = Vec::new();
        for program in programs {
            let loaded = self.load(program);
            finalists.push(self.prepared("finalist", loaded, settings)?);
        }
        let right = finalists.iter().position(|it| it.measured.failure.is_none());
        let twin = match right {
            Some(at) => {
                let loaded = self.load(&programs[at]);
                Some((at, self.prepared("twin", loaded, settings)?))
            }
            None => None,
        };
        let choice = if baseline { self.vendor(settings)? } else { Choice::None };
        let (vendor, no_baseline) = match choice {
            Choice::None => (None, None),
            Choice::Fails(why) => (None, Some(why)),
            Choice::Takes(it) => (Some(*it), None),
        };
        Ok(Field { finalists, twin, vendor, no_baseline })
    }

    pub(super) fn prepared(
        &mut self,
        label: &str,
        loaded: Result<super::Loaded, Failure>,
        settings: &Settings,
    ) -> Result<Runner, TrialError> {
        let mut runner = Runner::new(label, loaded);
        self.prepare(&mut runner, settings);
        self.unless_lost(runner.measured.failure.as_ref())?;
        Ok(runner)
    }

    /// The rounds, and the second verification.
    fn timed(&mut self, field: Field, settings: &Settings) -> Result<Field, TrialError> {
        let Field { finalists: mut all, twin, vendor, no_baseline } = field;
        let (count, of) = (all.len(), twin.as_ref().map(|it| it.0));
        all.extend(twin.map(|it| it.1));
        let library = vendor.map(|it| {
            all.push(it.runner);
            it.library
        });
        self.rounds(&mut all, settings, true, &mut |_| {});
        all.iter().try_for_each(|it| self.unless_lost(it.measured.failure.as_ref()))?;
        for runner in &mut all {
            self.finish(runner);
            self.unless_lost(runner.measured.failure.as_ref())?;
        }
        let vendor = library.and_then(|library| Some(Vendor { runner: all.pop()?, library }));
        let twin = of.and_then(|at| Some((at, all.pop()?)));
        debug_assert_eq!(all.len(), count, "the others were put behind the finalists");
        Ok(Field { finalists: all, twin, vendor, no_baseline })
    }

    fn conclusions(&self, field: Field, settings: &Settings, roofline: &Roofline) -> Finals {
        let Field { finalists, twin, vendor, mut no_baseline } = field;
        let result = |it: Runner| self.result(it, roofline);
        let mut results: Vec<_> = finalists.into_iter().map(result).collect();
        let twin = twin.map(|(at, runner)| (at, result(runner)));
        // A program that is right at one place and wrong at another is not right.
        if let Some((at, Err(error))) = &twin {
            results[*at] = Err(error.clone());
        }
        let (library, theirs) = vendor.map(|it| (it.library, result(it.runner))).unzip();
        if let Some(Err(error)) = &theirs {
            no_baseline = Some(error.message.clone());
        }
        let theirs = theirs.and_then(Result::ok);
        let twin = twin.and_then(|(at, twin)| Some((at, twin.ok()?)));
        let twins = twin.iter().map(|it| &it.1);
        let all = results.iter().filter_map(|it| it.as_ref().ok()).chain(&theirs).chain(twins);
        let pairs = Pairs::new(settings.regime, all);
        let mut finals = Finals {
            device: None,
            run: String::new(),
            rounds: settings.rounds,
            dropped: 0,
            regime: settings.regime,
            noise_floor: None,
            finalists: results.into_iter().map(|it| finalist(it, theirs.as_ref(), &pairs)).collect(),
            baseline: library.zip(theirs).map(|(library, it)| baseline(library, it)),
            no_baseline,
            time: String::new(),
        };
        if let Some((at, twin)) = twin {
            let itself = finals.finalists[at].result.as_ref().map(|it| pairs.versus(it, &twin));
            finals.noise_floor = itself.and_then(|it| it.interval);
            finals.dropped = itself.map_or(0, |it| it.dropped);
        }
        if let Some(winner) = fastest(&finals.finalists).cloned() {
            let dropped = relate(&mut finals.finalists, &winner, &pairs);
            finals.dropped = finals.dropped.max(dropped);
        }
        finals
    }

    fn result(&self, mut runner: Runner, roofline: &Roofline) -> Result<Measurement, TrialError> {
        runner.measured.conclude(self.case, roofline);
        if let Some(error) = error_of_runner(&runner) {
            return Err(error);
        }
        let Runner { measured, clocks, .. } = runner;
        let known = measured.stats.zip(measured.gflops).zip(measured.before.zip(measured.after));
        let Some(((stats, gflops), (before, after))) = known else {
            return Err(error_of(Failure::NoTime, Stage::Run));
        };
        Ok(Measurement {
            calls: measured.calls,
            stats,
            gflops,
            screened: false,
            suspicious: measured.suspicious,
            clock_mhz: if clocks.len() == measured.seconds.len() { clocks } else { vec![] },
            before,
            after,
            seconds: measured.seconds,
        })
    }
}

/// What stopped a participant.
pub(super) fn error_of_runner(runner: &Runner) -> Option<TrialError> {
    let measured = &runner.measured;
    let failure = measured.failure.as_ref()?;
    let verdict = match failure {
        Failure::Wrong | Failure::IllConditioned => measured.before.as_ref(),
        Failure::WrongAfterTiming => measured.after.as_ref(),
        Failure::Device(_) | Failure::Buffers { .. } | Failure::NoTime => None,
    };
    Some(match verdict {
        Some(verdict) => wrong_numbers(verdict, failure),
        None => error_of(failure.clone(), Stage::Run),
    })
}

fn finalist(
    result: Result<Measurement, TrialError>,
    theirs: Option<&Measurement>,
    pairs: &Pairs,
) -> Finalist {
    let (result, error) = match result {
        Ok(it) => (Some(it), None),
        Err(error) => (None, Some(error)),
    };
    let versus = |ours: &Measurement| -> Option<Interval> { pairs.versus(ours, theirs?).interval };
    let versus_baseline = result.as_ref().filter(|it| !it.suspicious).and_then(versus);
    Finalist { n: None, name: None, id: String::new(), result, error, versus_winner: None, versus_baseline }
}

fn baseline(library: Library, result: Measurement) -> Baseline {
    Baseline {
        name: library.name,
        heuristic_seconds: library.heuristic,
        tried: library.tried,
        seconds: result.seconds,
        gflops: result.gflops,
    }
}
