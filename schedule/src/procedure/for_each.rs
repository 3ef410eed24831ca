use ron::value::RawValue;
use serde::Deserialize;

use crate::ron_text::{Pairs, RonError, parse_at, range_of};

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
    let message =
        format!("an element of the list has {} parts, and there are {params} parameters", words.len());
    Err(RonError { message, problem: crate::ron_text::RonProblem::WrongType, span: 0..0, help: None })
}
