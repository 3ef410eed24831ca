//! The choices of a run's knobs as columns: those of a strip plot, and those whose coverage is counted.
//!
//! A knob with few choices has a column for each. A tile with many is shown factor by factor, and numbers of which there are
//! many stand together in groups of neighbours.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;

use super::{
    view::{Point, View},
    words::count,
};

/// The most columns of a strip plot.
const MAX_COLUMNS: usize = 24;

/// What one strip plot is about: a knob, or a factor of a tile.
pub(super) struct Strip<'a> {
    pub(super) name: String,
    pub(super) columns: Vec<Column<'a>>,
    /// Whether columns stand for groups of choices.
    pub(super) is_grouped: bool,
    /// Trials whose schedule does not use the knob.
    pub(super) inactive: usize,
}

/// A choice, or a group of them.
pub(super) struct Column<'a> {
    pub(super) word: String,
    pub(super) is_default: bool,
    pub(super) points: Vec<Point<'a>>,
    pub(super) failed: usize,
}

/// A knob with the choices that the head gives it, or that were seen where there is no head.
pub(super) struct Knob {
    pub(super) name: Name,
    pub(super) choices: Vec<Choice>,
    pub(super) tried: BTreeSet<usize>,
}

/// All knobs in the order of the script, with which of their choices were tried.
pub(super) fn knobs(view: &View<'_>) -> Vec<Knob> {
    let mut all: IndexMap<Name, Knob> = IndexMap::new();
    for (name, choices) in view.head.iter().flat_map(|it| &it.script.knobs) {
        let knob = Knob { name: name.clone(), choices: choices.clone(), tried: BTreeSet::new() };
        all.insert(name.clone(), knob);
    }
    let mut places: IndexMap<(Name, Choice), usize> = IndexMap::new();
    for (name, knob) in &all {
        places.extend(knob.choices.iter().enumerate().map(|(at, it)| ((name.clone(), it.clone()), at)));
    }
    for (name, choice) in view.trials.iter().flat_map(|it| &it.decisions) {
        let fresh = || Knob { name: name.clone(), choices: vec![], tried: BTreeSet::new() };
        let knob = all.entry(name.clone()).or_insert_with(fresh);
        // A decision that the head does not know is shown all the same.
        let at = *places.entry((name.clone(), choice.clone())).or_insert_with(|| {
            knob.choices.push(choice.clone());
            knob.choices.len() - 1
        });
        knob.tried.insert(at);
    }
    all.into_values().collect()
}

/// The strip plots of a knob.
pub(super) fn strips<'a>(view: &View<'a>, knob: &Knob) -> Vec<Strip<'a>> {
    let parts = knob.choices.iter().map(factors).max().unwrap_or(0);
    if parts > 1 && knob.choices.len() > MAX_COLUMNS {
        let of = |at| move |it: &Choice| factor(it, at).map(Choice::Int);
        return (0..parts).map(|at| strip(view, knob, format!("{}[{at}]", knob.name), &of(at))).collect();
    }
    vec![strip(view, knob, knob.name.to_string(), &|it| Some(it.clone()))]
}

fn factors(it: &Choice) -> usize {
    match it {
        Choice::Int(_) => 1,
        Choice::Tile(parts) => parts.len(),
    }
}

fn factor(it: &Choice, at: usize) -> Option<i64> {
    match it {
        Choice::Int(it) => Some(*it),
        Choice::Tile(parts) => parts.get(at).copied(),
    }
}

fn strip<'a>(
    view: &View<'a>,
    knob: &Knob,
    name: String,
    of: &dyn Fn(&Choice) -> Option<Choice>,
) -> Strip<'a> {
    let mut choices: Vec<Choice> = knob.choices.iter().filter_map(of).collect();
    let default = choices.first().cloned();
    choices.sort_by(order);
    choices.dedup();
    let width = choices.len().div_ceil(MAX_COLUMNS).max(1);
    let mut columns: Vec<Column<'a>> = choices
        .chunks(width)
        .map(|them| Column {
            word: match them {
                [one] => one.to_string(),
                [first, .., last] => format!("{first}–{last}"),
                [] => String::new(),
            },
            is_default: default.as_ref().is_some_and(|it| them.contains(it)),
            points: vec![],
            failed: 0,
        })
        .collect();
    let place = |trial: &tuner::log::Trial| {
        let it = of(trial.decisions.get(&knob.name)?)?;
        choices.binary_search_by(|other| order(other, &it)).ok().map(|at| at / width)
    };
    for point in view.points() {
        if let Some(at) = place(point.trial) {
            columns[at].points.push(point);
        }
    }
    for (trial, _) in view.failed() {
        if let Some(at) = place(trial) {
            columns[at].failed += 1;
        }
    }
    let inactive = view.trials.iter().filter(|it| !it.decisions.contains_key(&knob.name)).count();
    Strip { name, columns, is_grouped: width > 1, inactive }
}

fn order(a: &Choice, b: &Choice) -> std::cmp::Ordering {
    match (a, b) {
        (Choice::Int(a), Choice::Int(b)) => a.cmp(b),
        (Choice::Tile(a), Choice::Tile(b)) => a.cmp(b),
        (Choice::Int(_), Choice::Tile(_)) => std::cmp::Ordering::Less,
        (Choice::Tile(_), Choice::Int(_)) => std::cmp::Ordering::Greater,
    }
}

impl Knob {
    /// Choices that were not tried, the first few of them by name: `16, 32 and 12 more`.
    pub(super) fn untried(&self) -> String {
        let all = self.choices.iter().enumerate().filter(|(at, _)| !self.tried.contains(at));
        let mut words: Vec<_> = all.map(|(_, it)| it.to_string()).collect();
        let rest = words.len().saturating_sub(8);
        if rest > 1 {
            words.truncate(8);
            return format!("{} and {} more", words.join(", "), count(rest as u64));
        }
        words.join(", ")
    }
}
