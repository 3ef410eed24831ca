//! What a search cost: its best so far against its best, and what strategies would have needed in the same space.

use schemars::JsonSchema;
use serde::Serialize;
use tuner::{
    Space,
    search::{
        regret::{self, MARGINS, MOST_TRIALS, Quartiles, Simulation},
        simulate::Table,
    },
};

use super::{view::View, words::count};
use crate::{
    diagnostic::Diagnostic,
    term::{
        markup,
        shell::Shell,
        table,
        wrap::{self, wrapped},
    },
};

/// The head of the column of margins, beside numbers of trials.
pub(super) const WITHIN: &str = "within";

/// What the search of a run cost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SearchCost {
    /// The run.
    run: String,
    /// The best GFLOPS that the search saw, which a part of 1 stands for.
    best_gflops: f64,
    /// The same in the unit of the run.
    #[serde(skip)]
    pub(super) best_speed: f64,
    #[serde(skip)]
    pub(super) unit: &'static str,
    /// How many points the space admits, where the log knows of nearly all: then the best of the search is the best there is.
    pub(super) whole_space: Option<u64>,
    /// How good the best so far was.
    pub(super) after: Vec<After>,
    /// How many trials it took to come near the best.
    pub(super) until: Vec<Until>,
    /// What strategies make of the results of this log, where it holds the whole space.
    pub(super) strategies: Vec<StrategyCost>,
}

/// The best so far after some trials.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct After {
    /// How many trials.
    pub(super) trials: usize,
    /// The best of them as a part of the best of all.
    pub(super) part: f64,
}

/// How many trials it takes to be no further behind than a margin.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Until {
    /// The margin, as a part of the best.
    pub(super) margin: f64,
    /// How many trials.
    pub(super) trials: Option<usize>,
}

/// A strategy, simulated from many seeds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct StrategyCost {
    /// Its name, as `--strategy` takes it.
    pub(super) strategy: &'static str,
    /// From how many seeds.
    seeds: usize,
    /// How good the best so far is, over the seeds.
    pub(super) after: Vec<ExpectedAfter>,
    /// How many trials it takes, over the seeds.
    pub(super) until: Vec<ExpectedUntil>,
}

/// The best so far after some trials, over many seeds: parts of the best of all.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct ExpectedAfter {
    /// How many trials.
    pub(super) trials: usize,
    /// A quarter of the seeds have this or less.
    pub(super) low: f64,
    /// Half of them have this or less.
    pub(super) median: f64,
    /// Three quarters have this or less.
    pub(super) high: f64,
}

/// How many trials it takes to be no further behind than a margin, over many seeds. Null is more than were simulated.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct ExpectedUntil {
    /// The margin, as a part of the best.
    margin: f64,
    /// A quarter of the seeds need this or less.
    low: Option<usize>,
    /// Half of them need this or less.
    median: Option<usize>,
    /// Three quarters need this or less.
    high: Option<usize>,
}

impl SearchCost {
    /// Of a run; none if no trial has a result.
    pub(super) fn of(view: &View<'_>) -> Option<SearchCost> {
        let best = view.ranked().first()?.speed;
        let scores = view.trials.iter().map(|trial| view.speed(trial).map_or(0.0, |it| it / best));
        let curve = regret::curve(scores);
        let milestones = regret::milestones(curve.len());
        let after =
            milestones.iter().map(|trials| After { trials: *trials, part: curve[trials - 1] }).collect();
        let until = MARGINS.map(|margin| Until { margin, trials: regret::trials_until(&curve, margin) });
        let space = whole_space(view);
        let simulations = space.as_ref().map_or(vec![], |(space, _)| {
            let result = |it: &&tuner::log::Trial| {
                Some((space.index_of(&it.decisions)?, view.speed(it).map(f64::recip)))
            };
            let table: Table = view.trials.iter().filter_map(result).collect();
            regret::simulations(space, &table)
        });
        Some(SearchCost {
            run: view.name.to_owned(),
            best_gflops: view.gflops(best),
            best_speed: best,
            unit: view.unit(),
            whole_space: space.map(|it| it.1),
            after,
            until: until.to_vec(),
            strategies: simulations.iter().map(|it| StrategyCost::of(it, &milestones)).collect(),
        })
    }

    /// The words under which the figures stand.
    pub(super) fn words(&self) -> String {
        let Some(points) = self.whole_space else {
            return "The best so far in percent of the best of this search, and how many trials until it was within some percent of \
                    that. What else the space has, the log does not know."
                .to_owned();
        };
        let seeds = self.strategies.first().map_or(0, |it| it.seeds);
        format!(
            "The best so far in percent of the best of the space, and how many trials until it is within some percent of that. The \
             log knows what comes of the {} points, so strategies were tried on its results from {seeds} seeds, evolution from the \
             defaults of the script: told are the median, and between what the middle half of the seeds lies, up to {MOST_TRIALS} \
             trials; a dash is beyond.",
            count(points)
        )
    }

    /// Prints it as a table, on narrow terminals with the medians alone.
    pub(super) fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        writeln!(shell.out)?;
        writeln!(shell.out, "run {}", markup::plain(&self.run))?;
        wrapped(&self.words(), "", "", &mut shell.out)?;
        let is_wide = wrap::width() >= 64;
        let tables = [("trials", self.rows_after(is_wide)), (WITHIN, self.rows_until(is_wide))];
        for (first, rows) in tables {
            writeln!(shell.out)?;
            let mut all = table::Table::new(self.heads(first));
            for row in rows {
                all.row(row);
            }
            all.print(&mut shell.out)?;
        }
        Ok(())
    }

    /// What the columns are, after the first.
    pub(super) fn heads(&self, first: &'static str) -> Vec<&'static str> {
        [first, "this run"].into_iter().chain(self.strategies.iter().map(|it| it.strategy)).collect()
    }

    /// A row for each number of trials.
    pub(super) fn rows_after(&self, with_quartiles: bool) -> Vec<Vec<String>> {
        let row = |(at, it): (usize, &After)| {
            let own = [count(it.trials as u64), hundredths(it.part)];
            let others = self.strategies.iter().map(|it| match it.after.get(at) {
                Some(it) => spread([it.low, it.median, it.high].map(hundredths), with_quartiles),
                None => "—".to_owned(),
            });
            own.into_iter().chain(others).collect()
        };
        self.after.iter().enumerate().map(row).collect()
    }

    /// A row for each margin.
    pub(super) fn rows_until(&self, with_quartiles: bool) -> Vec<Vec<String>> {
        let row = |(at, it): (usize, &Until)| {
            let own = [format!("{:.0} %", 100.0 * it.margin), number(it.trials)];
            let others = self.strategies.iter().map(|it| {
                let it = it.until[at];
                spread([it.low, it.median, it.high].map(number), with_quartiles)
            });
            own.into_iter().chain(others).collect()
        };
        self.until.iter().enumerate().map(row).collect()
    }
}

/// The space of a run and how many points it admits, where nearly all of them were tried or refused.
fn whole_space(view: &View<'_>) -> Option<(Space, u64)> {
    let space = view.head?.space().ok()?;
    let last = view.events.iter().rev().find(|it| !it.rejected.is_empty());
    let refused = last.map_or(0, |it| it.rejected.values().fold(0, |sum: u64, it| sum.saturating_add(*it)));
    let admitted = regret::whole(&space, view.trials.len(), refused)?;
    Some((space, u64::try_from(admitted).ok()?))
}

impl StrategyCost {
    fn of(it: &Simulation, milestones: &[usize]) -> StrategyCost {
        let after = |trials: &usize| {
            let Quartiles { low, median, high } = it.after(*trials)?;
            Some(ExpectedAfter { trials: *trials, low, median, high })
        };
        let until = |margin: f64| {
            let Quartiles { low, median, high } = it.until(margin)?;
            Some(ExpectedUntil { margin, low, median, high })
        };
        StrategyCost {
            strategy: it.strategy,
            seeds: it.seeds(),
            after: milestones.iter().filter_map(after).collect(),
            until: MARGINS.into_iter().filter_map(until).collect(),
        }
    }
}

/// A part in percent without its sign, which the words above have.
fn hundredths(part: f64) -> String {
    format!("{:.1}", 100.0 * part)
}

fn number(it: Option<usize>) -> String {
    it.map_or("—".to_owned(), |it| count(it as u64))
}

/// `97.1 (94.0–98.8)`: the median and the quartiles.
fn spread([low, median, high]: [String; 3], with_quartiles: bool) -> String {
    if with_quartiles { format!("{median} ({low}–{high})") } else { median }
}
