//! The vendor's library at its best. For a product with elementwise stages after it that is the library's product and one
//! kernel for each stage.
//!
//! The library is asked for its ways to compute the product, its own first choice, the *heuristic*, first; for products of
//! eight-bit floats twice, with fast accumulation and without ([`Gemm::ways`]), and the name says which
//! one won. Each is verified and timed ten times in shuffled rounds. Another one takes the place of the heuristic only if it is more
//! than 2 % faster, so that noise among eight of them does not pass for speed.

use std::time::Duration;

use codegen::device::{DeviceError, Gemm, Machine, MachineInfo, ProgramId};
use ir::Name;

use super::{Bench, Loaded, compare::Runner, error_of, fault::is_sticky, finals::error_of_runner};
use crate::{
    Failure, Regime, Settings,
    baseline::{Grouping, Unfused, gemm_of},
    bootstrap::median,
    log::{Stage, TrialError},
};

/// The most algorithms of the library that are tried.
const MAX_ALGORITHMS: usize = 8;
/// How often each is timed.
const RUNS: usize = 10;
/// How much faster another than the heuristic has to be.
const SWITCH: f64 = 1.02;

/// The library's way that takes part in finals.
pub(super) struct Vendor {
    /// Loaded and verified.
    pub(super) runner: Runner,
    /// What is known of it.
    pub(super) library: Library,
}

/// A library and how its way was chosen.
pub(super) struct Library {
    /// Which, with its version.
    pub(super) name: String,
    /// Seconds per call of its first choice, if that one is right.
    pub(super) heuristic: Option<f64>,
    /// How many ways were tried.
    pub(super) tried: usize,
}

/// What is to be said about the library.
pub(super) enum Choice {
    /// The workload is no matrix product, or nobody asked.
    None,
    /// It has no way that works.
    Fails(String),
    /// It takes part.
    Takes(Box<Vendor>),
}

/// Ways to compute a case with the library, each with its name, its own first choice first.
pub(super) type Ways = Vec<(String, Loaded)>;

impl Bench<'_> {
    /// Chooses the library's best way.
    ///
    /// # Errors
    /// Where the machine is lost.
    pub(super) fn vendor(&mut self, settings: &Settings) -> Result<Choice, TrialError> {
        let ways = match self.ways() {
            Ok(Some(ways)) => ways,
            Ok(None) => return Ok(Choice::None),
            Err(err) => {
                let words = err.to_string();
                self.unless_lost(Some(&err.into()))?;
                return Ok(Choice::Fails(words));
            }
        };
        let calibration = calibration(settings, self.machine.info().arch != "cpu");
        let mut runners = Vec::new();
        for (name, loaded) in ways {
            runners.push(self.prepared(&name, Ok(loaded), &calibration)?);
        }
        self.rounds(&mut runners, &calibration, false, &mut |_| {});
        runners.iter().try_for_each(|it| self.unless_lost(it.measured.failure.as_ref()))?;
        let time = |it: &Runner| median(&it.measured.seconds).filter(|_| it.measured.failure.is_none());
        let times: Vec<Option<f64>> = runners.iter().map(time).collect();
        let tried = runners.len();
        let mut found = Choice::Fails("the library has no way to compute it".to_owned());
        for (at, mut runner) in runners.into_iter().enumerate() {
            let Some(loaded) = runner.loaded.take() else { continue };
            if chosen(&times) == Some(at) {
                let name = runner.measured.label;
                let runner = self.prepared(&name, Ok(loaded), settings)?;
                let library = Library { name, heuristic: times[0], tried };
                found = Choice::Takes(Box::new(Vendor { runner, library }));
            } else {
                if at == 0 && chosen(&times).is_none() {
                    found = Choice::Fails(error_of_runner(&runner).map_or_else(String::new, |it| it.message));
                }
                self.release(loaded);
            }
        }
        Ok(found)
    }

    /// The library's ways to compute the case, or the product that it begins with, followed by elementwise kernels;
    /// `None` where it is neither.
    fn ways(&mut self) -> Result<Option<Ways>, DeviceError> {
        if let Some((gemm, names)) = gemm_of(self.case) {
            let load =
                |machine: &mut dyn Machine, gemm: &Gemm| machine.load_gemm_choices(gemm, MAX_ALGORITHMS);
            return self.ways_of(&gemm, &names, library_name, load).map(Some);
        }
        let Some(unfused) = Unfused::of(self.case, Grouping::Separate) else { return Ok(None) };
        let kernels = unfused.programs(self.machine.info())?;
        let mut products = self.machine.load_gemm_choices(&unfused.gemm, MAX_ALGORITHMS)?.into_iter();
        let mut loaded = vec![];
        while let Some(product) = products.next() {
            match self.load_unfused(&unfused, product, &kernels) {
                Ok(it) => loaded.push(it),
                Err(err) => {
                    if !self.kept.lost {
                        products.for_each(|it| self.machine.unload(it));
                    }
                    for it in loaded {
                        self.release(it);
                    }
                    return Err(err);
                }
            }
        }
        let name = unfused.name(&library_name(self.machine.info()));
        Ok(Some(loaded.into_iter().map(|it| (name.clone(), it)).collect()))
    }

    /// What is loaded of each product that a library has to be asked for ([`Gemm::ways`]), each with its name. One that it does not
    /// have is left out, unless it has none.
    pub(super) fn ways_of(
        &mut self,
        gemm: &Gemm,
        names: &[Name; 3],
        library: impl Fn(&MachineInfo) -> String,
        load: impl Fn(&mut dyn Machine, &Gemm) -> Result<Vec<ProgramId>, DeviceError>,
    ) -> Result<Ways, DeviceError> {
        let buffers: Vec<_> = names.iter().filter_map(|it| self.kept.buffers.get(it).copied()).collect();
        let (mut out, mut refused) = (Ways::new(), None);
        for (words, gemm) in gemm.ways() {
            match load(self.machine, &gemm) {
                Ok(programs) => {
                    // The machine knows its version once it is loaded.
                    let library = library(self.machine.info());
                    let loaded =
                        programs.into_iter().map(|it| Loaded::library(self.case, it, buffers.clone()));
                    out.extend(loaded.map(|it| (format!("{library}{words}"), it)));
                }
                Err(err @ DeviceError::Unsupported(_)) => refused = Some(err),
                Err(err) => {
                    for (_, it) in out {
                        self.release(it);
                    }
                    return Err(err);
                }
            }
        }
        match refused {
            Some(err) if out.is_empty() => Err(err),
            Some(_) | None => Ok(out),
        }
    }

    /// Passes on an error that the machine does not outlive.
    pub(super) fn unless_lost(&mut self, failure: Option<&Failure>) -> Result<(), TrialError> {
        match failure.filter(|it| is_sticky(it)) {
            Some(failure) => {
                self.kept.lost = true;
                Err(error_of(failure.clone(), Stage::Run))
            }
            None => Ok(()),
        }
    }
}

/// How the ways are timed: as in the rounds, but without long pauses and soaking.
fn calibration(settings: &Settings, gpu: bool) -> Settings {
    let regime = match settings.regime {
        Regime::Cool | Regime::Sustained => Regime::Cool,
        Regime::ColdL2 => Regime::ColdL2,
    };
    let idle = settings.idle.min(Duration::from_millis(5));
    let usual = Settings::new(regime, gpu);
    Settings {
        rounds: RUNS,
        least_rounds: RUNS,
        idle,
        threads: settings.threads,
        budget: f64::INFINITY,
        ..usual
    }
}

/// Which of the ways takes part: the fastest, but the first unless that is clearly slower.
fn chosen(times: &[Option<f64>]) -> Option<usize> {
    let known = times.iter().enumerate().filter_map(|(at, time)| Some((at, (*time)?)));
    let (best, least) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let first = times[0].is_some_and(|it| it <= SWITCH * least);
    Some(if first { 0 } else { best })
}

/// The library that computes products on a machine, with its version where that is known.
fn library_name(info: &MachineInfo) -> String {
    let found = ["cuBLASLt", "cuBLAS"].iter().find_map(|name| info.versions.iter().find(|it| it.0 == *name));
    match found {
        Some((name, version)) => format!("{name} {version}"),
        None if info.arch == "cpu" => "gemm".to_owned(),
        None => "cuBLAS".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heuristic_stays_unless_another_is_clearly_faster() {
        let cases: [(&[Option<f64>], Option<usize>); 6] = [
            (&[Some(1.0), Some(0.99)], Some(0)),
            (&[Some(1.0), Some(0.97), Some(0.96)], Some(2)),
            (&[None, Some(2.0), Some(1.99)], Some(2)),
            (&[Some(1.0), None], Some(0)),
            (&[None, None], None),
            (&[], None),
        ];
        for (times, expected) in cases {
            assert_eq!(chosen(times), expected, "{times:?}");
        }
    }
}
