//! `tilewright compare`: whether one schedule is faster than another, and how sure that is.
//!
//! What is compared are [`Entrant`]s: scripts, records of `run` and `tutorial`, trials of tuning logs. Their sources are made
//! here, those of records and trials have to be the ones that were measured then, and all are timed in shuffled rounds of
//! one process ([`paired`]). Where the sources are the same there is nothing to time. `--recorded` compares what logs say
//! instead ([`recorded`]), and `--target vgpu` what the virtual GPU counts ([`counted`]).
//!
//! A verdict is never forced: where the interval of a ratio is partly on one side of the margin and partly on the other, or
//! where the noise floor is wider than the margin, it is AMBIGUOUS, and `--fail-on` takes that for no answer.

mod ambiguity;
pub(crate) mod counted;
pub(crate) mod data;
mod entrant;
mod fail_on;
mod paired;
mod recorded;
mod report;
mod same;
#[cfg(test)]
mod tests;

use ir::Name;
use schedule::workload::Param;

use self::{data::Compared, entrant::Entrant, fail_on::FailOn, report::Report};
use crate::{
    diagnostic::Diagnostic,
    options::measure::Measure,
    plan::{Asked, parse_asked, parse_dim, parse_param},
    term::shell::Shell,
    usage_error::UsageError,
};

/// Time schedules against each other, and say which is faster
///
/// The first is what the others are compared with. Each is a script; or a record of `run --log` or `tutorial --log`,
/// written LOG.jsonl or LOG.jsonl:3 for the last or the third line; or a trial of a tuning log, written DIR.twlog or
/// DIR.twlog:37 for the best or the one of that number. All must be of one workload with the same parameters. They are
/// verified and timed in shuffled rounds of one process, and the verdict is SAME, FASTER, SLOWER or, where it cannot be told, AMBIGUOUS.
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    /// What to compare with
    a: String,
    /// What to compare
    #[arg(required = true, value_name = "B")]
    others: Vec<String>,
    /// The target, instead of the scripts': cpu, cuda, cuda:sm_90a; vgpu or vgpu:sm_90a compare counters of memory accesses
    /// and barriers instead of times
    #[arg(long, value_parser = parse_asked)]
    target: Option<Asked>,
    /// A parameter of the workload or a knob, instead of the scripts': m=512. Records and trials keep their own
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// The value of a symbolic dimension of the workload: n=512
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(Name, i64)>,
    /// What counts as a difference: 1% or 0.01. By default 1 %, with `--recorded` 5 %
    #[arg(long, value_name = "PART", value_parser = fail_on::parse_part)]
    margin: Option<f64>,
    /// Exit with code 1 if a verdict is this: slower, slower=2%, not-faster, different; and with 3 if it cannot be told
    /// whether it is
    #[arg(long, value_name = "VERDICT", value_parser = FailOn::parse)]
    fail_on: Option<FailOn>,
    /// How many rounds
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Time programs even if their sources are the same
    #[arg(long)]
    measure: bool,
    /// Compare the figures in the logs, and measure nothing
    #[arg(long, conflicts_with_all = ["measure", "target", "params", "dims", "log"])]
    recorded: bool,
    /// Show how the generated code differs
    #[arg(long)]
    code: bool,
    #[command(flatten)]
    how: Measure,
}

impl Compare {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        self.how.watch();
        let words = [&self.a].into_iter().chain(&self.others);
        let dims: Vec<(Name, i64)> = self.dims.clone();
        let entrants =
            words.map(|it| Entrant::find(it, &self.params, &dims)).collect::<Result<Vec<_>, _>>()?;
        same::workload(&entrants)?;
        let report = match &self.target {
            _ if self.recorded => recorded::compare(self, &entrants)?,
            Some(Asked::Virtual(arch)) => return counted::compare(self, &entrants, arch.as_ref(), shell),
            Some(Asked::Machine(_)) | None => paired::compare(self, &entrants, shell)?,
        };
        shell.done();
        self.tell(&report, shell)
    }

    /// Prints what came out, and fails if that is not what is wanted.
    fn tell(&self, report: &Report, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let unwanted = report.unwanted(self.fail_on);
        let failed = report.entrants.iter().find(|it| it.failure.is_some());
        let ok = unwanted.is_none() && failed.is_none();
        shell.report(&Compared::of(report, ok, self.fail_on))?;
        if let Some((it, why)) = failed.and_then(|it| Some((it, it.failure.as_ref()?))) {
            return Err(Diagnostic::failed(
                UsageError::NoResult,
                format!("{} has no result: {why}", it.name),
            ));
        }
        match unwanted {
            Some((words, false)) => Err(Diagnostic::failed(UsageError::FailOn, words)),
            Some((words, true)) => Err(Diagnostic::unsure(UsageError::CannotTell, words).help(
                "more `--rounds`, a quieter machine or a wider `--margin` may tell; it passes only if it is told"
                    .to_owned(),
            )),
            None => Ok(()),
        }
    }

    /// From where on a difference counts.
    fn margin(&self, usual: f64) -> f64 {
        self.margin.unwrap_or(usual)
    }
}
