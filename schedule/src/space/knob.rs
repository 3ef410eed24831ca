//! The knobs of a script: the forms in which their choices are given, and the choices themselves.

use std::{collections::BTreeMap, ops::Range};

use indexmap::IndexMap;
use ir::Name;
use ron::value::RawValue;
use serde::Deserialize;

use super::{Choice, parse::is_function, scope::Scope};
use crate::{
    Number, Placed,
    placed::place_numbers,
    ron_text::{Unique, parse_raw, range_of},
    script_error::{Errors, ScriptError, ScriptProblem},
};

/// The most knobs of a script.
pub const MAX_KNOBS: usize = 64;

/// The most choices of a knob.
pub const MAX_CHOICES: usize = 1 << 16;

/// The most factors of a perfect tile.
const MAX_PARTS: usize = 16;

/// The greatest extent of a perfect tile, whose divisors are found by trying.
const MAX_EXTENT: i64 = 1 << 40;

/// What may be chosen for a knob. Numbers in it may be expressions over parameters.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename = "knob", rename_all = "snake_case", deny_unknown_fields)]
pub enum Knob {
    /// These numbers.
    #[serde(skip)]
    List(Vec<Number>),
    /// The powers of two from one number to another, both included.
    PowersOfTwo {
        /// The least.
        from: Number,
        /// The greatest.
        to: Number,
    },
    /// Every way to write an extent as a product, beginning with the one that has all of it in the first factor.
    PerfectTile {
        /// The extent.
        of: Number,
        /// How many factors.
        parts: usize,
        /// The greatest last factor, if there is one.
        #[serde(default)]
        innermost: Option<Number>,
    },
    /// 0 or 1.
    Boolean,
    /// The alternatives of a `choose` step, so many, from 0.
    #[serde(skip)]
    Alternatives(usize),
}

impl Knob {
    /// How many factors a choice has, if it is a tile.
    pub fn parts(&self) -> Option<usize> {
        match self {
            Knob::PerfectTile { parts, .. } => Some(*parts),
            Knob::List(_) | Knob::PowersOfTwo { .. } | Knob::Boolean | Knob::Alternatives(_) => None,
        }
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        match self {
            Knob::List(list) => list.iter_mut().collect(),
            Knob::PowersOfTwo { from, to } => vec![from, to],
            Knob::PerfectTile { of, innermost, .. } => [of].into_iter().chain(innermost).collect(),
            Knob::Boolean | Knob::Alternatives(_) => vec![],
        }
    }

    /// The choices, the default first.
    pub(super) fn choices(&self, scope: &Scope<'_>) -> Result<Vec<Choice>, Problem> {
        let value = |it: &Number| scope.number(it).map_err(Problem::Expression);
        let choices: Vec<_> = match self {
            Knob::List(list) => list.iter().map(|it| value(it).map(Choice::Int)).collect::<Result<_, _>>()?,
            Knob::PowersOfTwo { from, to } => powers(value(from)?, value(to)?)?,
            Knob::PerfectTile { of, parts, innermost } => {
                let innermost = innermost.as_ref().map_or(Ok(i64::MAX), value)?;
                tiles(value(of)?, *parts, innermost)?
            }
            Knob::Boolean => vec![Choice::Int(0), Choice::Int(1)],
            Knob::Alternatives(count) => {
                (0..*count).filter_map(|it| Some(Choice::Int(it.try_into().ok()?))).collect()
            }
        };
        let mut sorted: Vec<_> = choices.iter().collect();
        sorted.sort_unstable();
        match choices.len() {
            0 => Err(Problem::Words("has no choices".to_owned())),
            MAX_CHOICES.. if choices.len() > MAX_CHOICES => Err(too_many()),
            _ if sorted.windows(2).any(|it| it[0] == it[1]) => {
                Err(Problem::Words("has a choice twice".to_owned()))
            }
            _ => Ok(choices),
        }
    }
}

/// Why a knob has no choices.
pub(super) enum Problem {
    /// An expression in its form is wrong.
    Expression(ScriptError),
    /// In words after the name of the knob.
    Words(String),
}

fn too_many() -> Problem {
    Problem::Words(format!("has more than {MAX_CHOICES} choices"))
}

/// The powers of two in a range.
fn powers(from: i64, to: i64) -> Result<Vec<Choice>, Problem> {
    if from < 1 {
        return Err(Problem::Words(format!("has powers of two from {from}, and the least is 1")));
    }
    let all = (0..63)
        .map(|it| 1i64 << it)
        .filter(|it| (from..=to).contains(it))
        .map(Choice::Int)
        .collect::<Vec<_>>();
    if all.is_empty() {
        let text = format!("has no choices: no power of two lies between {from} and {to}");
        return Err(Problem::Words(text));
    }
    Ok(all)
}

/// Every way to write `extent` as a product of so many factors, the first one greatest first.
fn tiles(extent: i64, parts: usize, innermost: i64) -> Result<Vec<Choice>, Problem> {
    let refuse = |text: String| Err(Problem::Words(text));
    if !(2..=MAX_PARTS).contains(&parts) {
        return refuse(format!("is a tile in {parts} parts, and a tile has 2 to {MAX_PARTS}"));
    }
    if !(1..=MAX_EXTENT).contains(&extent) {
        return refuse(format!("is a tile of {extent}, and extents go from 1 to {MAX_EXTENT}"));
    }
    // From 1 on, every way to choose the other factors has a last one that fits, so that the search ends at the limit.
    if innermost < 1 {
        return refuse(format!("has no choices: no divisor of {extent} is at most {innermost}"));
    }
    let mut tiles = Tiles { innermost, divisors: BTreeMap::new(), done: vec![], out: vec![] };
    tiles.fill(extent, parts)?;
    Ok(tiles.out)
}

struct Tiles {
    innermost: i64,
    divisors: BTreeMap<i64, Vec<i64>>,
    done: Vec<i64>,
    out: Vec<Choice>,
}

impl Tiles {
    fn fill(&mut self, rest: i64, parts: usize) -> Result<(), Problem> {
        if parts == 1 {
            if rest > self.innermost {
                return Ok(());
            }
            if self.out.len() == MAX_CHOICES {
                return Err(too_many());
            }
            let tile = self.done.iter().copied().chain([rest]).collect();
            self.out.push(Choice::Tile(tile));
            return Ok(());
        }
        let divisors = self.divisors.entry(rest).or_insert_with(|| divisors(rest)).clone();
        for first in divisors {
            self.done.push(first);
            self.fill(rest / first, parts - 1)?;
            self.done.pop();
        }
        Ok(())
    }
}

/// The divisors of a number from 1 on, the greatest first.
fn divisors(of: i64) -> Vec<i64> {
    let small: Vec<i64> = (1..=of.isqrt()).filter(|it| of % it == 0).collect();
    let large = small.iter().map(|it| of / it);
    let twice = small.last().filter(|it| *it * *it == of).copied();
    large.chain(small.iter().rev().copied().filter(|it| Some(*it) != twice)).collect()
}

/// The knobs of a script, each with the place of its name; those that cannot be read are missing.
pub(crate) fn read(text: &str, raw: &RawValue, errors: &mut Errors) -> IndexMap<Name, Placed<Knob>> {
    let all: Unique<Name, &RawValue> = errors.keep(parse_raw(text, raw)).unwrap_or_default();
    let whole = range_of(text, raw);
    let mut out = IndexMap::new();
    for (name, raw) in all.0 {
        let span = range_of(text, raw);
        // The name stands before the choices, and the same word may stand in choices of another knob.
        let key = text[..span.start].rfind(&format!("\"{name}\"")).filter(|at| *at >= whole.start);
        let key = key.map_or(span, |at| at..at + name.as_str().len() + 2);
        let knob = read_one(text, raw).and_then(|it| check_name("knob", &name, &key).map(|()| it));
        if let Some(value) = errors.keep(knob) {
            out.insert(name, Placed { value, span: key });
        }
    }
    out
}

fn read_one(text: &str, raw: &RawValue) -> Result<Knob, ScriptError> {
    let span = range_of(text, raw);
    let mut knob = if text[span.clone()].starts_with('[') {
        Knob::List(parse_raw(text, raw)?)
    } else {
        parse_raw(text, raw)?
    };
    place_numbers(text, &span, knob.numbers());
    Ok(knob)
}

/// Refuses what no expression could name.
pub(super) fn check_name(what: &str, name: &Name, span: &Range<usize>) -> Result<(), ScriptError> {
    let problem = match name.is_valid() {
        false => "is not a name",
        true if is_function(name.as_str()) => "has the name of a function",
        true => return Ok(()),
    };
    let message = format!("the {what} `{name}` {problem}");
    Err(ScriptError::new(ScriptProblem::BadName, message, span.clone()))
}
