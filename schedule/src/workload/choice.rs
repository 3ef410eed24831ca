//! Parts of a workload that depend on its parameters.
//!
//! ```text
//! by(param: "layout", is: {"NN": [0, 1], "NT": [1, 0]})      one case for each value
//! same(types: ("out", "acc"), then: [..], else: [..])        whether two types are one
//! ```

use std::ops::Range;

use indexmap::IndexMap;
use ir::DType;
use ron::value::RawValue;
use serde::Deserialize;

use super::{
    error::{Problem, WorkloadError},
    form::{ParamKind, pairs, unknown},
    lex::Text,
};
use crate::ron_text::parse_raw;

/// Something that may depend on parameters.
#[derive(Clone, Debug)]
pub(super) enum Choice<T> {
    /// It does not.
    One(T),
    /// By the value of a parameter.
    By { param: Text, cases: IndexMap<String, (Range<usize>, Choice<T>)> },
    /// By whether two types are the same.
    Same { types: [Text; 2], then: Box<Choice<T>>, other: Box<Choice<T>> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "by")]
struct RawBy<'a> {
    #[serde(borrow)]
    param: &'a RawValue,
    #[serde(borrow)]
    is: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "same")]
struct RawSame<'a> {
    #[serde(borrow)]
    types: (&'a RawValue, &'a RawValue),
    #[serde(borrow)]
    then: &'a RawValue,
    #[serde(borrow, rename = "else")]
    other: &'a RawValue,
}

impl<T> Choice<T> {
    /// Reads a choice whose leaves `leaf` reads.
    pub(super) fn read(
        text: &str,
        raw: &RawValue,
        leaf: &dyn Fn(&RawValue) -> Result<T, WorkloadError>,
    ) -> Result<Choice<T>, WorkloadError> {
        let slice = raw.trim().get_ron();
        let word =
            slice.len() - slice.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || it == '_').len();
        match &slice[..word] {
            "by" => {
                let by: RawBy<'_> = parse_raw(text, raw)?;
                let case = |(name, (at, raw))| Ok((name, (at, Choice::read(text, raw, leaf)?)));
                let cases =
                    pairs(text, by.is)?.into_iter().map(case).collect::<Result<_, WorkloadError>>()?;
                Ok(Choice::By { param: Text::read(text, by.param)?, cases })
            }
            "same" => {
                let same: RawSame<'_> = parse_raw(text, raw)?;
                Ok(Choice::Same {
                    types: [Text::read(text, same.types.0)?, Text::read(text, same.types.1)?],
                    then: Box::new(Choice::read(text, same.then, leaf)?),
                    other: Box::new(Choice::read(text, same.other, leaf)?),
                })
            }
            _ => leaf(raw).map(Choice::One),
        }
    }

    /// Everything that may be chosen, in the order of the text.
    pub(super) fn leaves(&self) -> Vec<&T> {
        match self {
            Choice::One(it) => vec![it],
            Choice::By { cases, .. } => cases.values().flat_map(|(_, it)| it.leaves()).collect(),
            Choice::Same { then, other, .. } => then.leaves().into_iter().chain(other.leaves()).collect(),
        }
    }

    /// What is chosen, given the word that each parameter has and the type that each type's name stands for.
    ///
    /// The choice was checked, so that every answer is there.
    pub(super) fn pick(
        &self,
        word: &dyn Fn(&str) -> Option<String>,
        dtype: &dyn Fn(&Text) -> Result<DType, WorkloadError>,
    ) -> Result<&T, WorkloadError> {
        match self {
            Choice::One(it) => Ok(it),
            Choice::By { param, cases } => {
                let value = word(&param.value).unwrap_or_default();
                let case = cases.get(&value).ok_or_else(|| no_case(param, &value))?;
                case.1.pick(word, dtype)
            }
            Choice::Same { types: [a, b], then, other } => {
                if dtype(a)? == dtype(b)? {
                    then.pick(word, dtype)
                } else {
                    other.pick(word, dtype)
                }
            }
        }
    }

    /// Checks that it chooses by a parameter with a list of values and has a case for each value.
    ///
    /// `known` is told the name of each parameter chosen by and `dtype` each type's name.
    pub(super) fn check(
        &self,
        known: &mut dyn FnMut(&Text) -> Result<ParamKind, WorkloadError>,
        dtype: &mut dyn FnMut(&Text) -> Result<(), WorkloadError>,
    ) -> Result<(), WorkloadError> {
        match self {
            Choice::One(_) => Ok(()),
            Choice::By { param, cases } => {
                let of = match known(param)? {
                    ParamKind::Type { of, .. } | ParamKind::Word { of, .. } => of,
                    ParamKind::Size { .. } | ParamKind::Int { .. } | ParamKind::Number { .. } => {
                        let problem = Problem::NotChosen(param.value.clone());
                        return Err(WorkloadError::new(problem, param.span.clone()));
                    }
                };
                let values: Vec<_> = of.iter().map(|it| it.value.as_str()).collect();
                for (case, (at, _)) in cases {
                    if !values.contains(&case.as_str()) {
                        return Err(unknown("value", case, at.clone(), values));
                    }
                }
                if let Some(value) = values.into_iter().find(|it| !cases.contains_key(*it)) {
                    return Err(no_case(param, value));
                }
                cases.values().try_for_each(|(_, it)| it.check(known, dtype))
            }
            Choice::Same { types, then, other } => {
                types.iter().try_for_each(&mut *dtype)?;
                then.check(known, dtype)?;
                other.check(known, dtype)
            }
        }
    }
}

fn no_case(param: &Text, value: &str) -> WorkloadError {
    let problem = Problem::NoCase { param: param.value.clone(), value: value.to_owned() };
    WorkloadError::new(problem, param.span.clone())
}
