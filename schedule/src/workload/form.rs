//! From RON to the parts of a workload, each with its place.

use std::{fmt, ops::Range};

use indexmap::{IndexMap, map::Entry};
use ir::{DType, Name, Role};
use ron::value::RawValue;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{
    choice::Choice,
    error::{Problem, WorkloadError},
    expr::{Expr, Stage, parse_expr, parse_stage},
    lex::Text,
};
use crate::ron_text::{parse, parse_raw, range_of};

/// A workload's parts as its text has them.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) name: Text,
    pub(super) about: String,
    /// How far outputs may be from exact ones.
    pub(super) tolerance: Option<Choice<f64>>,
    pub(super) params: IndexMap<String, Decl<ParamKind>>,
    pub(super) types: IndexMap<String, Decl<Choice<Text>>>,
    pub(super) axes: IndexMap<String, Decl<Expr>>,
    pub(super) tensors: IndexMap<String, Decl<Shaped>>,
    pub(super) stages: Choice<Vec<Stage>>,
}

/// Something declared, and the place of its name.
#[derive(Clone, Debug)]
pub(super) struct Decl<T> {
    pub(super) at: Range<usize>,
    pub(super) it: T,
}

/// What a parameter may be.
#[derive(Clone, Debug)]
pub(super) enum ParamKind {
    /// A size: at least 1, or the name of a dimension.
    Size { default: Option<i64> },
    /// An integer known when the workload is instantiated.
    Int { default: Option<i64>, least: i64 },
    /// A constant of the computation.
    Number { default: Option<f64> },
    /// A type of elements, one of the given ones.
    Type { default: Option<Choice<Text>>, of: Vec<Text> },
    /// One of the given words.
    Word { default: Option<Choice<Text>>, of: Vec<Text> },
}

/// A tensor.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    pub(super) role: Role,
    pub(super) dtype: Choice<Text>,
    pub(super) shape: Vec<Expr>,
    /// Which dimension stands at each place of memory, the slowest first.
    pub(super) stored: Option<Choice<Vec<usize>>>,
    /// What each element of an input of integers is less than: such elements may be subscripts.
    pub(super) below: Option<Expr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "workload")]
struct RawWorkload<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
    about: String,
    #[serde(borrow)]
    tolerance: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Pairs<'a>,
    #[serde(borrow, default)]
    types: Pairs<'a>,
    #[serde(borrow)]
    axes: Pairs<'a>,
    #[serde(borrow)]
    tensors: Pairs<'a>,
    #[serde(borrow)]
    stages: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "parameter", rename_all = "snake_case")]
enum RawKind<'a> {
    Size {
        default: Option<i64>,
    },
    Int {
        default: Option<i64>,
        #[serde(default)]
        least: i64,
    },
    Number {
        default: Option<f64>,
    },
    Dtype {
        #[serde(borrow)]
        default: Option<&'a RawValue>,
        #[serde(borrow)]
        of: Vec<&'a RawValue>,
    },
    Word {
        #[serde(borrow)]
        default: Option<&'a RawValue>,
        #[serde(borrow)]
        of: Vec<&'a RawValue>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "tensor", rename_all = "snake_case")]
enum RawTensor<'a> {
    #[serde(borrow)]
    Input(RawShape<'a>),
    #[serde(borrow)]
    Output(RawShape<'a>),
    #[serde(borrow)]
    Temp(RawShape<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawShape<'a> {
    #[serde(borrow)]
    dtype: &'a RawValue,
    #[serde(borrow)]
    shape: Vec<&'a RawValue>,
    #[serde(borrow)]
    stored: Option<&'a RawValue>,
    #[serde(borrow)]
    below: Option<&'a RawValue>,
}

/// A map whose keys and values keep their places.
#[derive(Default)]
struct Pairs<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    out.push(pair);
                }
                Ok(out)
            }
        }
        deserializer.deserialize_map(Read).map(Pairs)
    }
}

/// Reads a workload. What its names mean is not looked at.
pub(super) fn read(text: &str) -> Result<Form, WorkloadError> {
    let raw: RawWorkload<'_> = parse(text)?;
    let stage = |it: &RawValue| parse_stage(Text::read(text, it)?.lexer());
    let stages = |it: &RawValue| parse_raw::<Vec<&RawValue>>(text, it)?.into_iter().map(stage).collect();
    Ok(Form {
        name: Text::read(text, raw.name)?,
        about: raw.about,
        tolerance: raw.tolerance.map(|it| Choice::read(text, it, &|it| tolerance(text, it))).transpose()?,
        params: declared(text, &raw.params, |it| kind(text, it))?,
        types: declared(text, &raw.types, |it| type_choice(text, it))?,
        axes: declared(text, &raw.axes, |it| expr(text, it))?,
        tensors: declared(text, &raw.tensors, |it| tensor(text, it))?,
        stages: Choice::read(text, raw.stages, &stages)?,
    })
}

/// Reads each entry of a map under its name, which must be an identifier and stand once.
pub(super) fn declared_words<'a>(
    text: &str,
    pairs: &[(&'a RawValue, &'a RawValue)],
) -> Result<IndexMap<String, (Range<usize>, &'a RawValue)>, WorkloadError> {
    let mut out = IndexMap::new();
    for (key, value) in pairs {
        let name = Text::read(text, key)?;
        match out.entry(name.value.clone()) {
            Entry::Occupied(_) => return Err(WorkloadError::new(Problem::Twice(name.value), name.span)),
            Entry::Vacant(slot) => slot.insert((name.span, *value)),
        };
    }
    Ok(out)
}

fn declared<T>(
    text: &str,
    pairs: &Pairs<'_>,
    read: impl Fn(&RawValue) -> Result<T, WorkloadError>,
) -> Result<IndexMap<String, Decl<T>>, WorkloadError> {
    let mut out = IndexMap::new();
    for (name, (at, raw)) in declared_words(text, &pairs.0)? {
        if !Name::new(name.as_str()).is_valid() {
            return Err(WorkloadError::new(Problem::BadName(name), at));
        }
        out.insert(name, Decl { at, it: read(raw)? });
    }
    Ok(out)
}

/// The pairs of a map kept raw.
pub(super) fn pairs<'a>(
    text: &str,
    raw: &'a RawValue,
) -> Result<IndexMap<String, (Range<usize>, &'a RawValue)>, WorkloadError> {
    let pairs: Pairs<'a> = parse_raw(text, raw)?;
    declared_words(text, &pairs.0)
}

fn tolerance(text: &str, raw: &RawValue) -> Result<f64, WorkloadError> {
    let value: f64 = parse_raw(text, raw)?;
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(WorkloadError::new(Problem::BadTolerance(value.to_string()), range_of(text, raw)))
}

fn expr(text: &str, raw: &RawValue) -> Result<Expr, WorkloadError> {
    parse_expr(Text::read(text, raw)?.lexer())
}

fn type_choice(text: &str, raw: &RawValue) -> Result<Choice<Text>, WorkloadError> {
    Choice::read(text, raw, &|it| Text::read(text, it))
}

fn kind(text: &str, raw: &RawValue) -> Result<ParamKind, WorkloadError> {
    let choice = |it: Option<&RawValue>| it.map(|it| type_choice(text, it)).transpose();
    let words = |of: Vec<&RawValue>| -> Result<Vec<Text>, WorkloadError> {
        if of.is_empty() {
            return Err(WorkloadError::new(Problem::None("values to choose from"), range_of(text, raw)));
        }
        let mut words: Vec<Text> = Vec::new();
        for it in of {
            let word = Text::read(text, it)?;
            if words.iter().any(|it| it.value == word.value) {
                return Err(WorkloadError::new(Problem::Twice(word.value), word.span));
            }
            words.push(word);
        }
        Ok(words)
    };
    Ok(match parse_raw(text, raw)? {
        RawKind::Size { default } => ParamKind::Size { default },
        RawKind::Int { default, least } => ParamKind::Int { default, least },
        RawKind::Number { default } => ParamKind::Number { default },
        RawKind::Word { default, of } => ParamKind::Word { default: choice(default)?, of: words(of)? },
        RawKind::Dtype { default, of } => {
            let of = words(of)?;
            if let Some(odd) = of.iter().find(|it| it.value.parse::<DType>().is_err()) {
                return Err(unknown("type", &odd.value, odd.span.clone(), DType::ALL.map(DType::as_str)));
            }
            ParamKind::Type { default: choice(default)?, of }
        }
    })
}

fn tensor(text: &str, raw: &RawValue) -> Result<Shaped, WorkloadError> {
    let (role, it) = match parse_raw(text, raw)? {
        RawTensor::Input(it) => (Role::Input, it),
        RawTensor::Output(it) => (Role::Output, it),
        RawTensor::Temp(it) => (Role::Temp, it),
    };
    let shape: Vec<_> = it.shape.into_iter().map(|it| expr(text, it)).collect::<Result<_, _>>()?;
    let rank = shape.len();
    let order = |raw: &RawValue| {
        let order: Vec<usize> = parse_raw(text, raw)?;
        let complete = order.len() == rank && (0..rank).all(|it| order.contains(&it));
        if complete {
            Ok(order)
        } else {
            Err(WorkloadError::new(Problem::BadOrder { rank }, range_of(text, raw)))
        }
    };
    let stored = it.stored.map(|it| Choice::read(text, it, &order)).transpose()?;
    let below = it.below.map(|it| expr(text, it)).transpose()?;
    Ok(Shaped { role, dtype: type_choice(text, it.dtype)?, shape, stored, below })
}

/// A word that is not known, and the known one nearest to it.
pub(super) fn unknown<'a>(
    what: &'static str,
    name: &str,
    span: Range<usize>,
    known: impl IntoIterator<Item = &'a str>,
) -> WorkloadError {
    let near = crate::nearest(name, known).map(str::to_owned);
    WorkloadError::new(Problem::Unknown { what, name: name.to_owned(), near }, span)
}
