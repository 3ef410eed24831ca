//! The steps of a script and the alternatives among them.

use std::ops::Range;

use indexmap::IndexMap;
use ir::Name;
use ron::value::RawValue;
use serde::Deserialize;

use super::{
    When,
    knob::{Knob, check_name},
};
use crate::{
    Number, Placed, Step,
    placed::{place_numbers, quoted, read_step},
    primitive::{CHOOSE, WHEN},
    ron_letters::head,
    ron_text::{parse_at, parse_raw, range_of},
    script_error::{Errors, ScriptError, ScriptProblem},
};

/// Takes one of several lists of steps.
///
/// ```text
/// choose(knob: "copy", one_of: [[unroll(loop: "i")], [vectorize(loop: "i")]])
///
/// s
/// ->
/// unroll(loop: "i") where the knob `copy` is 0, vectorize(loop: "i") where it is 1
/// ```
///
/// The knob counts the lists from 0. Unless the script has a knob of that name, this makes one; several `choose` may
/// share one. A list may be empty, and may hold further `choose`. A knob that stands only in lists that are not taken
/// decides nothing: the tuner then tries its first choice alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Choose {
    /// The knob that decides.
    pub knob: Name,
    /// The lists of steps.
    pub one_of: Vec<Vec<Item>>,
    /// Where the name of the knob stands in the script.
    pub span: Range<usize>,
}

/// A step of a script, or lists of steps of which one is taken.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A step.
    Step(Placed<Step>),
    /// Alternatives.
    Choose(Choose),
    /// Steps under a condition.
    When(When),
}

impl Item {
    /// The lists of steps in it.
    pub fn lists(&self) -> Vec<&[Item]> {
        match self {
            Item::Step(_) => vec![],
            Item::Choose(it) => it.one_of.iter().map(Vec::as_slice).collect(),
            Item::When(it) => vec![&it.then, &it.otherwise],
        }
    }

    /// The same, to change them.
    pub(crate) fn lists_mut(&mut self) -> Vec<&mut Vec<Item>> {
        match self {
            Item::Step(_) => vec![],
            Item::Choose(it) => it.one_of.iter_mut().collect(),
            Item::When(it) => vec![&mut it.then, &mut it.otherwise],
        }
    }

    /// The numbers of a step, or of the condition.
    pub(crate) fn numbers(&mut self) -> Vec<&mut Number> {
        match self {
            Item::Step(it) => it.value.get_mut().numbers(),
            Item::Choose(_) => vec![],
            Item::When(it) => vec![&mut it.cond],
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "choose")]
struct RawChoose<'a> {
    knob: Name,
    #[serde(borrow)]
    one_of: Vec<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "when")]
struct RawWhen<'a> {
    #[serde(borrow)]
    cond: &'a RawValue,
    #[serde(borrow, default)]
    then: Vec<&'a RawValue>,
    #[serde(borrow, default, rename = "else")]
    otherwise: Vec<&'a RawValue>,
}

/// The places of the steps in the lists of `choose` and `when`, in the order of the text; none of what is another step or cannot be
/// read.
pub(crate) fn nested(text: &str, span: &Range<usize>) -> Vec<Range<usize>> {
    let slice = &text[span.clone()];
    let raws = match head(slice) {
        CHOOSE => parse_at::<RawChoose<'_>>(slice, span.start).map(|it| it.one_of.concat()),
        WHEN => parse_at::<RawWhen<'_>>(slice, span.start).map(|it| [it.then, it.otherwise].concat()),
        _ => return vec![],
    };
    let mut out: Vec<_> = raws.unwrap_or_default().into_iter().map(|it| range_of(text, it)).collect();
    out.sort_by_key(|it| it.start);
    out
}

/// Reads steps and alternatives; those that cannot be read are missing.
pub(crate) fn read(text: &str, raws: &[&RawValue], errors: &mut Errors) -> Vec<Item> {
    raws.iter().filter_map(|raw| read_one(text, raw, errors)).collect()
}

fn read_one(text: &str, raw: &RawValue, errors: &mut Errors) -> Option<Item> {
    match head(&text[range_of(text, raw)]) {
        CHOOSE => read_choose(text, raw, errors),
        WHEN => read_when(text, raw, errors),
        _ => errors.keep(read_step(text, raw)).map(Item::Step),
    }
}

fn read_choose(text: &str, raw: &RawValue, errors: &mut Errors) -> Option<Item> {
    let span = range_of(text, raw);
    let RawChoose { knob, one_of } = errors.keep(parse_raw(text, raw))?;
    let place = quoted(text, &span, &knob).unwrap_or(span);
    errors.keep(check_name("knob", &knob, &place));
    if one_of.is_empty() {
        let message = format!("`{CHOOSE}` by the knob `{knob}` has no alternatives");
        errors.add(ScriptError::new(ScriptProblem::Alternatives, message, place));
        return None;
    }
    let one_of = one_of.iter().map(|it| read(text, it, errors)).collect();
    Some(Item::Choose(Choose { knob, one_of, span: place }))
}

fn read_when(text: &str, raw: &RawValue, errors: &mut Errors) -> Option<Item> {
    let span = range_of(text, raw);
    let RawWhen { cond, then, otherwise } = errors.keep(parse_raw(text, raw))?;
    let mut cond: Number = errors.keep(parse_raw(text, cond))?;
    place_numbers(text, &span, vec![&mut cond]);
    let (then, otherwise) = (read(text, &then, errors), read(text, &otherwise, errors));
    Some(Item::When(When { cond, then, otherwise, span }))
}

/// Makes a knob for the alternatives that have none.
pub(crate) fn declare(items: &[Item], knobs: &mut IndexMap<Name, Placed<Knob>>, errors: &mut Errors) {
    for item in items {
        if let Item::Choose(it) = item {
            declare_one(it, knobs, errors);
        }
        item.lists().into_iter().for_each(|it| declare(it, knobs, errors));
    }
}

fn declare_one(it: &Choose, knobs: &mut IndexMap<Name, Placed<Knob>>, errors: &mut Errors) {
    let count = it.one_of.len();
    let made = Placed { value: Knob::Alternatives(count), span: it.span.clone() };
    let known = knobs.entry(it.knob.clone()).or_insert(made);
    if let Knob::Alternatives(other) = known.value
        && other != count
    {
        let knob = &it.knob;
        let message = format!("the knob `{knob}` chooses one of {count} here and one of {other} elsewhere");
        let help = format!("say which are meant: knobs: {{\"{knob}\": [0, 1]}}");
        errors.add(ScriptError::new(ScriptProblem::Alternatives, message, it.span.clone()).help(help));
    }
}

/// Every step, those of all alternatives included.
pub(crate) fn steps<'a>(items: &'a [Item], out: &mut Vec<&'a Placed<Step>>) {
    for item in items {
        if let Item::Step(it) = item {
            out.push(it);
        }
        item.lists().into_iter().for_each(|it| steps(it, out));
    }
}

/// Every use of alternatives, outer before inner.
pub(crate) fn chooses<'a>(items: &'a [Item], out: &mut Vec<&'a Choose>) {
    for item in items {
        if let Item::Choose(it) = item {
            out.push(it);
        }
        item.lists().into_iter().for_each(|it| chooses(it, out));
    }
}

/// Calls `seen` for each expression in numbers of steps and in conditions.
pub(crate) fn each_expr(items: &[Item], seen: &mut impl FnMut(&crate::Expr)) {
    for item in items {
        for number in item.clone().numbers() {
            if let Number::Expr(it) = number {
                seen(it);
            }
        }
        item.lists().into_iter().for_each(|it| each_expr(it, seen));
    }
}
