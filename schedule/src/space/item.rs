//! The steps of a script and the alternatives among them.

use std::ops::Range;

use indexmap::IndexMap;
use ir::Name;
use ron::value::RawValue;
use serde::Deserialize;

use super::knob::{Knob, check_name};
use crate::{
    Number, Placed, Step,
    placed::{quoted, read_step},
    primitive::CHOOSE,
    ron_text::{parse_raw, range_of},
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

/// A step of a script, or alternatives of which one is taken.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A step.
    Step(Placed<Step>),
    /// Alternatives.
    Choose(Choose),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "choose")]
struct Raw<'a> {
    knob: Name,
    #[serde(borrow)]
    one_of: Vec<Vec<&'a RawValue>>,
}

/// Reads steps and alternatives; those that cannot be read are missing.
pub(crate) fn read(text: &str, raws: &[&RawValue], errors: &mut Errors) -> Vec<Item> {
    raws.iter().filter_map(|raw| read_one(text, raw, errors)).collect()
}

fn read_one(text: &str, raw: &RawValue, errors: &mut Errors) -> Option<Item> {
    let span = range_of(text, raw);
    let rest = text[span.clone()].strip_prefix(CHOOSE);
    if !rest.is_some_and(|it| it.trim_start().starts_with('(')) {
        return errors.keep(read_step(text, raw)).map(Item::Step);
    }
    let Raw { knob, one_of } = errors.keep(parse_raw(text, raw))?;
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

/// Makes a knob for the alternatives that have none.
pub(crate) fn declare(items: &[Item], knobs: &mut IndexMap<Name, Placed<Knob>>, errors: &mut Errors) {
    for item in items {
        let Item::Choose(it) = item else { continue };
        let count = it.one_of.len();
        let made = Placed { value: Knob::Alternatives(count), span: it.span.clone() };
        let known = knobs.entry(it.knob.clone()).or_insert(made);
        if let Knob::Alternatives(other) = known.value
            && other != count
        {
            let knob = &it.knob;
            let message =
                format!("the knob `{knob}` chooses one of {count} here and one of {other} elsewhere");
            let help = format!("say which are meant: knobs: {{\"{knob}\": [0, 1]}}");
            errors.add(ScriptError::new(ScriptProblem::Alternatives, message, it.span.clone()).help(help));
        }
        it.one_of.iter().for_each(|it| declare(it, knobs, errors));
    }
}

/// Every step, those of all alternatives included.
pub(crate) fn steps<'a>(items: &'a [Item], out: &mut Vec<&'a Placed<Step>>) {
    for item in items {
        match item {
            Item::Step(it) => out.push(it),
            Item::Choose(it) => it.one_of.iter().for_each(|it| steps(it, out)),
        }
    }
}

/// Every use of alternatives, outer before inner.
pub(crate) fn chooses<'a>(items: &'a [Item], out: &mut Vec<&'a Choose>) {
    for item in items {
        if let Item::Choose(it) = item {
            out.push(it);
            it.one_of.iter().for_each(|it| chooses(it, out));
        }
    }
}

/// Calls `seen` for each expression in the numbers of a step.
pub(crate) fn each_expr(step: &Step, seen: &mut impl FnMut(&crate::Expr)) {
    for number in step.clone().get_mut().numbers() {
        if let Number::Expr(it) = number {
            seen(it);
        }
    }
}
