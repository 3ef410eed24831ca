//! `tilewright report`: a tuning log as one HTML page, or records of programs as one picture (`records`).
//!
//! The page has its charts inside as SVG and its style as CSS, runs no script and loads nothing, so that it can be sent and
//! kept. It is a function of the log: no clock, no random numbers, no hash order. Everything from the log is escaped by
//! [`crate::term::markup`], and a policy in its head forbids whatever would get past that.
//!
//! `page` puts it together from one file for each part. `plot` has scales, axes and marks, `view` what follows from a run at
//! once, `words` numbers as text.

mod cost;
mod coverage;
mod failures;
mod figure;
mod finals;
mod head;
mod knobs;
mod page;
mod plot;
mod progress;
mod records;
mod regret;
mod roofline;
mod steps;
mod strips;
mod times;
mod top;
mod view;
mod words;

#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;
use tuner::{
    Bound,
    log::{Log, RunLog, read},
};

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    log_notes::Noted,
    new_file,
    term::{
        bars::{self, Bar},
        markup,
        shell::Shell,
        wrap::{width, wrapped},
    },
};
use cost::SearchCost;
use view::View;

/// Draw a tuning log: one HTML page that needs no network and runs no script
///
/// What the search cost is told here too: how good the best so far was after how many trials. Where the log holds a whole
/// space, both strategies are tried on its results.
///
/// Records of `run` and `tutorial` become a picture: a row of bars for each program, a bar for each size, in percent of
/// the library if all were timed beside it. Both are plotted in the terminal, too: the last of the sizes, and the best so far.
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// The log: its folder, or one segment of it; or the file that `--log` of `run` or `tutorial` wrote
    log: PathBuf,
    /// Only this run of it
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Where to write it; by default `report.html` in the log's folder, or an SVG beside the file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file even if it is no report, and a picture if there is one
    #[arg(long)]
    force: bool,
}

/// Where the page is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Written {
    ok: True,
    /// The file.
    out: PathBuf,
    /// The runs that are drawn.
    runs: Vec<String>,
    /// How many trials they have.
    trials: usize,
    /// How many records are drawn, where they are no tuning log.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<usize>,
    /// What the search of each run cost that has a result.
    costs: Vec<SearchCost>,
    /// For the terminal, with a title each.
    #[serde(skip)]
    plots: Vec<(String, Vec<Bar>)>,
}

impl Written {
    fn print_plots(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        for (title, rows) in self.plots.iter().filter(|it| !it.1.is_empty()) {
            writeln!(shell.out)?;
            wrapped(&markup::plain(title), "", "  ", &mut shell.out)?;
            bars::print(rows, width(), shell.out)?;
        }
        Ok(())
    }
}

impl crate::term::report::Report for Written {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if let Some(records) = self.records {
            let records = words::plural(records, "record");
            writeln!(shell.out, "wrote {}: {records}", markup::plain(&self.out.display().to_string()))?;
            return self.print_plots(shell);
        }
        let (runs, trials) = (words::plural(self.runs.len(), "run"), words::plural(self.trials, "trial"));
        let out = markup::plain(&self.out.display().to_string());
        writeln!(shell.out, "wrote {out}: {runs}, {trials}")?;
        self.costs.iter().try_for_each(|it| it.print(shell))?;
        self.print_plots(shell)
    }
}

impl Report {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if let Some(records) = records::records(&self.log)? {
            let out = self.out.clone().unwrap_or_else(|| self.log.with_extension("svg"));
            new_file::write(&out, records::picture(&records).as_bytes(), self.force)?;
            return shell.report(&Written {
                ok: True,
                out,
                runs: vec![],
                trials: 0,
                records: Some(records.len()),
                costs: vec![],
                plots: vec![records::plot(&records)],
            });
        }
        let log = read(&self.log)?;
        let runs = self.choose(&log)?;
        Noted::of(&log).tell(&self.log, shell);
        let views: Vec<View<'_>> = runs.into_iter().map(View::of).collect();
        let out = self.out.clone().unwrap_or_else(|| default_out(&self.log));
        page::REPORT.write(&out, &page::page(&views, &damage_words(&log)), self.force)?;
        let trials: usize = views.iter().map(|it| it.trials.len()).sum();
        let runs = views.iter().map(|it| it.name.to_owned()).collect();
        let costs = views.iter().filter_map(|it| it.cost().cloned()).collect();
        let plots = views.iter().map(progress::plot).collect();
        shell.report(&Written { ok: True, out, runs, trials, records: None, costs, plots })
    }

    /// The runs to draw.
    fn choose<'a>(&self, log: &'a Log) -> Result<Vec<(&'a str, &'a RunLog)>, Diagnostic> {
        let all: Vec<_> = log.runs.iter().map(|(name, it)| (&**name, it)).collect();
        let wanted = self.run.as_deref();
        let found: Vec<_> = all.into_iter().filter(|it| wanted.is_none_or(|wanted| it.0 == wanted)).collect();
        if found.is_empty() {
            return Err(Diagnostic::no_run(log, &self.log, wanted));
        }
        Ok(found)
    }
}

/// Beside the segments.
fn default_out(log: &Path) -> PathBuf {
    let is_folder = fs::metadata(log).is_ok_and(|it| it.is_dir());
    if is_folder { log.join("report.html") } else { log.with_file_name("report.html") }
}

/// What of a log could not be read, without the folders, which are of no use to another reader of the page.
fn damage_words(log: &Log) -> Vec<String> {
    let file = |path: &Path| path.file_name().map_or(String::new(), |it| it.to_string_lossy().into_owned());
    let place = |line: u64| if line == 0 { String::new() } else { format!(", line {line}") };
    let damage =
        log.damage.iter().map(|it| format!("{}{}: {}", file(&it.segment), place(it.line), it.reason));
    let torn = log.torn.iter().map(|it| {
        format!(
            "{}: the last line is torn, as of a run that was killed; {} bytes of it are not read",
            file(&it.segment),
            it.bytes
        )
    });
    let unknown = (log.unknown > 0).then(|| {
        format!(
            "{} of kinds that only a newer version knows",
            words::plural(usize::try_from(log.unknown).expect("a count of 64 bits"), "record")
        )
    });
    damage.chain(torn).chain(unknown).collect()
}

fn bound(it: Bound) -> &'static str {
    match it {
        Bound::Compute => "compute",
        Bound::Memory => "memory",
    }
}
