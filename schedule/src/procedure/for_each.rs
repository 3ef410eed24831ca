use std::ops::Range;

use ron::value::RawValue;
use serde::Deserialize;

use super::definition::is_word;
use crate::{
    primitive::FOR_EACH,
    ron_text::{Pairs, RonError, parse_at, range_of},
    script_error::{ScriptError, ScriptProblem},
};

/// Repeats steps for the elements of a list, or for the keys and values of a map.
///
/// ```text
/// for_each(params: ["axis", "size"], in: {"x": 32, "y": 4}, steps: [bind(loop: "t{axis}", axis: "threadIdx.{axis}")])
///
/// s
/// ->
/// bind(loop: "tx", axis: "threadIdx.x"), bind(loop: "ty", axis: "threadIdx.y")
/// ```
///
/// The parameters stand in braces in the texts of the steps, as those of a procedure do. With one parameter it is each element of a
/// list; with several, each element is a list of as many, or an entry of a map. In a procedure the list may be a parameter:
/// `in: "{threads}"`. The repetition is written out before the script is read, so the list cannot depend on knobs; an empty one
/// gives no step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "for_each")]
pub(super) struct ForEach<'a> {
    /// The names of what the list has.
    pub params: Vec<String>,
    /// The list or the map.
    #[serde(borrow, rename = "in")]
    pub list: &'a RawValue,
    /// What to repeat.
    #[serde(borrow)]
    pub steps: Vec<&'a RawValue>,
}

impl ForEach<'_> {
    /// Refuses parameters that cannot stand in braces, or that stand twice.
    pub(super) fn expect_sound(&self, place: &Range<usize>) -> Result<(), ScriptError> {
        let wrong = |problem, message| Err(ScriptError::new(problem, message, place.clone()));
        for (n, it) in self.params.iter().enumerate() {
            if !is_word(it) {
                let message =
                    format!("the parameter `{it}` of `{FOR_EACH}` is no word of letters, digits and `_`");
                return wrong(ScriptProblem::BadName, message);
            }
            if self.params[..n].contains(it) {
                return wrong(
                    ScriptProblem::Twice,
                    format!("the parameter `{it}` of `{FOR_EACH}` stands twice"),
                );
            }
        }
        Ok(())
    }
}

/// The elements of a list or a map, each as the texts of so many parameters.
pub(super) fn elements(list: &str, params: usize) -> Result<Vec<Vec<String>>, RonError> {
    let words = |it: &[&RawValue]| it.iter().map(|it| it.trim().get_ron().to_owned()).collect::<Vec<_>>();
    if list.starts_with('{') {
        let pairs: Pairs<'_> = parse_at(list, 0)?;
        return pairs.0.iter().map(|(key, value)| expect(words(&[key, value]), params)).collect();
    }
    let all: Vec<&RawValue> = parse_at(list, 0)?;
    let one = |it: &&RawValue| -> Result<Vec<String>, RonError> {
        if params == 1 {
            return Ok(words(&[it]));
        }
        let parts: Vec<&RawValue> = parse_at(it.trim().get_ron(), range_of(list, it).start)?;
        expect(words(&parts), params)
    };
    all.iter().map(one).collect()
}

fn expect(words: Vec<String>, params: usize) -> Result<Vec<String>, RonError> {
    if words.len() == params {
        return Ok(words);
    }
    let part = if words.len() == 1 { "part" } else { "parts" };
    let message = format!("the list has an element of {} {part} for {params} parameters", words.len());
    Err(RonError { message, problem: crate::ron_text::RonProblem::WrongType, span: 0..0, help: None })
}
