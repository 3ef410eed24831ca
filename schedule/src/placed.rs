//! Parts of a script that know where they stand.

use std::ops::Range;

use ir::Name;
use ron::value::RawValue;
use serde::Deserialize;

use crate::{
    Expr, Number, Step, nearest, primitive,
    ron_text::{RonError, parse_raw, range_of},
    script_error::{ScriptError, ScriptProblem},
};

/// A value and the bytes of the script at which it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Range<usize>,
}

impl<T> Placed<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Placed<U> {
        Placed { value: f(self.value), span: self.span }
    }

    pub(crate) fn try_map<U, E>(self, f: impl FnOnce(&Self) -> Result<U, E>) -> Result<Placed<U>, E> {
        Ok(Placed { value: f(&self)?, span: self.span })
    }
}

impl Placed<Step> {
    /// Where a name stands in the step, quotes included, or the whole step where it does not name it.
    pub fn place_of(&self, text: &str, name: &Name) -> Range<usize> {
        quoted(text, &self.span, name).unwrap_or_else(|| self.span.clone())
    }
}

/// Reads a value where it stands.
pub(crate) fn placed<'a, T: Deserialize<'a>>(
    text: &str,
    raw: &'a RawValue,
) -> Result<Placed<T>, ScriptError> {
    Ok(Placed { value: parse_raw(text, raw)?, span: range_of(text, raw) })
}

/// Reads a step, and tells its expressions where they stand.
pub(crate) fn read_step(text: &str, raw: &RawValue) -> Result<Placed<Step>, ScriptError> {
    let span = range_of(text, raw);
    let mut value: Step = parse_raw(text, raw).map_err(|err| better(text, span.clone(), err))?;
    place_numbers(text, &span, value.get_mut().numbers());
    Ok(Placed { value, span })
}

/// Tells the expressions among numbers where in a range they stand: serde forgets it.
pub(crate) fn place_numbers(text: &str, within: &Range<usize>, numbers: Vec<&mut Number>) {
    for number in numbers {
        let Number::Expr(expr) = number else { continue };
        let place = literal(text, within, expr.text()).unwrap_or_else(|| within.clone());
        *expr = expr.clone().at(place);
    }
}

/// The first place in a range where a text stands in quotes and is no key of a map, without the quotes.
fn literal(text: &str, within: &Range<usize>, word: &str) -> Option<Range<usize>> {
    let quoted = format!("\"{word}\"");
    let places = text.get(within.clone())?.match_indices(&quoted).map(|(at, _)| within.start + at);
    let is_key = |at: &usize| text[at + quoted.len()..].trim_start().starts_with(':');
    places.filter(|at| !is_key(at)).map(|at| at + 1..at + 1 + word.len()).next()
}

/// An expression that stands alone.
pub(crate) fn read_expr(text: &str, raw: &RawValue) -> Result<Expr, ScriptError> {
    let it: Placed<String> = placed(text, raw)?;
    let place = literal(text, &it.span, &it.value).unwrap_or(it.span.clone());
    let expr = Expr::parse(&it.value).map_err(|err| {
        let exact = place.len() == it.value.len();
        let span = if exact { place.start + err.at.start..place.start + err.at.end } else { place.clone() };
        // The end of an expression is shown at the quote after it.
        let end = if exact && span.is_empty() { span.end + 1 } else { span.end };
        ScriptError::new(ScriptProblem::Expression, err.message, span.start..end)
    })?;
    Ok(expr.at(place))
}

/// The error of a step, in other words where the step names no primitive.
pub(crate) fn better(text: &str, span: Range<usize>, err: RonError) -> ScriptError {
    let word: String =
        text[span.clone()].chars().take_while(|it| it.is_ascii_alphanumeric() || *it == '_').collect();
    if word.is_empty() || primitive::names().any(|it| it == word) {
        return err.into();
    }
    unknown_step(&word, span.start, [])
}

/// The error of a step that begins, at `start`, with a word that means nothing, where these procedures can be called.
pub(crate) fn unknown_step<'a>(
    word: &'a str,
    start: usize,
    procedures: impl IntoIterator<Item = &'a str>,
) -> ScriptError {
    let mut procedures = procedures.into_iter().peekable();
    let what = if procedures.peek().is_some() { "primitive or procedure" } else { "primitive" };
    let message = format!("there is no {what} `{word}`");
    // A form is known, and yet none of the steps that a text can have that is no script.
    let known =
        primitive::names().chain(primitive::forms()).filter(|it| *it != word).map(|it| -> &'a str { it });
    let help = match nearest(word, known.chain(procedures)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`tilewright explain` lists them".to_owned(),
    };
    ScriptError::new(ScriptProblem::UnknownPrimitive, message, start..start + word.len()).help(help)
}

/// The first place in a range where a name stands in quotes.
pub(crate) fn quoted(text: &str, within: &Range<usize>, name: &Name) -> Option<Range<usize>> {
    quoted_text(text, within, name.as_str())
}

/// The first place in a range where a text stands in quotes.
pub(crate) fn quoted_text(text: &str, within: &Range<usize>, name: &str) -> Option<Range<usize>> {
    let word = format!("\"{name}\"");
    let at = within.start + text.get(within.clone())?.find(&word)?;
    Some(at..at + word.len())
}
