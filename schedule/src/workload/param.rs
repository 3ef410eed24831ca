//! Parameters: what may be given for them and what they stand for then.

use std::fmt;

use indexmap::IndexMap;
use ir::{DType, Index, Name};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

use super::{
    error::{Problem, WorkloadError},
    form::{Form, ParamKind, unknown},
    lex::Text,
};
use crate::nearest;

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(untagged))]
pub enum Param {
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A word: a type, a choice, or the name of a symbolic dimension where a size is asked for.
    Text(String),
}

impl Param {
    /// The bytes of an element, where the parameter is the name of a type.
    pub fn element_bytes(&self) -> Option<i64> {
        match self {
            Param::Text(it) => it.parse().ok().map(DType::bytes_i64),
            Param::Int(_) | Param::Float(_) => None,
        }
    }
}

/// The largest size and the largest integer parameter.
const MAX_SIZE: i64 = 1 << 40;

/// Names that expressions give a meaning of their own.
pub(super) const RESERVED: [&str; 7] = ["select", "where", "floordiv", "mod", "min", "max", "inf"];

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Int(it) => write!(f, "{it}"),
            Param::Float(it) => write!(f, "{it:?}"),
            Param::Text(it) => write!(f, "\"{it}\""),
        }
    }
}

impl Serialize for Param {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Param::Int(it) => serializer.serialize_i64(*it),
            Param::Float(it) => serializer.serialize_f64(*it),
            Param::Text(it) => serializer.serialize_str(it),
        }
    }
}

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Param;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a string")
            }

            fn visit_i64<E: Error>(self, it: i64) -> Result<Param, E> {
                Ok(Param::Int(it))
            }

            fn visit_u64<E: Error>(self, it: u64) -> Result<Param, E> {
                i64::try_from(it).map(Param::Int).map_err(|_| E::custom(format!("{it} does not fit 64 bits")))
            }

            fn visit_f64<E: Error>(self, it: f64) -> Result<Param, E> {
                Ok(Param::Float(it))
            }

            fn visit_str<E: Error>(self, it: &str) -> Result<Param, E> {
                Ok(Param::Text(it.to_owned()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// What a parameter stands for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Meaning {
    /// A size or an integer.
    Index(Index),
    Number(f64),
    Type(DType),
    Word(String),
}

/// A workload's parameters and types with their values.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) params: IndexMap<String, Meaning>,
    pub(super) types: IndexMap<String, DType>,
    /// The symbolic dimensions, and the parameter that named each.
    pub(super) dims: IndexMap<Name, String>,
}

impl Chosen {
    /// Gives each parameter its value, from what is given or from its default, and each type.
    pub(super) fn new(form: &Form, given: &IndexMap<String, Param>) -> Result<Chosen, WorkloadError> {
        let outside = WorkloadError::given;
        if let Some(name) = given.keys().find(|it| !form.params.contains_key(*it)) {
            let known: Vec<_> = form.params.keys().cloned().collect();
            let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
            return Err(outside(Problem::UnknownParam { name: name.clone(), near, known }));
        }
        let mut out = Chosen::default();
        for (name, decl) in &form.params {
            let value = match given.get(name) {
                Some(given) => given.clone(),
                None => {
                    out.default_of(&decl.it)?.ok_or(outside(Problem::MissingParam { name: name.clone() }))?
                }
            };
            let meaning = meaning(name, &decl.it, &value).map_err(outside)?;
            if let (Meaning::Index(index), Param::Text(_)) = (&meaning, &value)
                && let Some(dim) = index.as_var()
            {
                out.dims.entry(dim.clone()).or_insert_with(|| name.clone());
            }
            out.params.insert(name.clone(), meaning);
        }
        for (name, decl) in &form.types {
            let word = decl.it.pick(&|it| out.word(it), &|it| out.dtype(it))?;
            let dtype = out.dtype(word)?;
            out.types.insert(name.clone(), dtype);
        }
        Ok(out)
    }

    fn default_of(&self, kind: &ParamKind) -> Result<Option<Param>, WorkloadError> {
        Ok(match kind {
            ParamKind::Size { default } | ParamKind::Int { default, .. } => default.map(Param::Int),
            ParamKind::Number { default } => default.map(Param::Float),
            ParamKind::Type { default: Some(choice), .. } | ParamKind::Word { default: Some(choice), .. } => {
                let word = choice.pick(&|it| self.word(it), &|it| self.dtype(it))?;
                Some(Param::Text(word.value.clone()))
            }
            ParamKind::Type { default: None, .. } | ParamKind::Word { default: None, .. } => None,
        })
    }

    /// The word that a parameter has.
    pub(super) fn word(&self, param: &str) -> Option<String> {
        match self.params.get(param)? {
            Meaning::Type(it) => Some(it.to_string()),
            Meaning::Word(it) => Some(it.clone()),
            Meaning::Index(_) | Meaning::Number(_) => None,
        }
    }

    /// The type that a word stands for: a type of the workload, a parameter, or itself.
    pub(super) fn dtype(&self, word: &Text) -> Result<DType, WorkloadError> {
        let found = self.dtype_of(&word.value);
        found.ok_or_else(|| unknown("type", &word.value, word.span.clone(), DType::ALL.map(DType::as_str)))
    }

    /// The same for a word of an expression.
    pub(super) fn dtype_of(&self, word: &str) -> Option<DType> {
        let param = self.params.get(word).and_then(|it| match it {
            Meaning::Type(it) => Some(*it),
            Meaning::Index(_) | Meaning::Number(_) | Meaning::Word(_) => None,
        });
        self.types.get(word).copied().or(param).or_else(|| word.parse().ok())
    }
}

/// What a value means for a parameter of a kind.
pub(super) fn meaning(name: &str, kind: &ParamKind, given: &Param) -> Result<Meaning, Problem> {
    let wrong = |expected| Problem::ParamType { name: name.to_owned(), expected, given: given.to_string() };
    let ranged = |value: i64, least: i64| {
        let fits = least <= value && value <= MAX_SIZE;
        let problem = Problem::ParamRange { name: name.to_owned(), value, least, most: MAX_SIZE };
        fits.then(|| Meaning::Index(Index::int(value))).ok_or(problem)
    };
    let one_of = |word: &str, of: &[Text]| {
        let allowed: Vec<_> = of.iter().map(|it| it.value.clone()).collect();
        if allowed.iter().any(|it| it == word) {
            return Ok(());
        }
        let near = nearest(word, allowed.iter().map(String::as_str)).map(str::to_owned);
        Err(Problem::ParamWord { name: name.to_owned(), value: word.to_owned(), allowed, near })
    };
    match (kind, given) {
        (ParamKind::Size { .. }, Param::Int(it)) => ranged(*it, 1),
        (ParamKind::Size { .. }, Param::Text(dim)) => {
            let dim = Name::new(dim.as_str());
            let valid = dim.is_valid() && !RESERVED.contains(&dim.as_str());
            let bad = || Problem::BadDim { name: name.to_owned(), dim: dim.to_string() };
            if valid && ir::is_reserved(dim.as_str()) {
                return Err(Problem::ReservedDim { name: name.to_owned(), dim: dim.to_string() });
            }
            valid.then(|| Meaning::Index(Index::var(&dim))).ok_or_else(bad)
        }
        (ParamKind::Size { .. }, Param::Float(_)) => Err(wrong("a size or the name of a dimension")),
        (ParamKind::Int { least, .. }, Param::Int(it)) => ranged(*it, *least),
        (ParamKind::Int { .. }, Param::Float(_) | Param::Text(_)) => Err(wrong("an integer")),
        (ParamKind::Number { .. }, Param::Int(it)) => Ok(Meaning::Number(*it as f64)),
        (ParamKind::Number { .. }, Param::Float(it)) if it.is_finite() => Ok(Meaning::Number(*it)),
        (ParamKind::Number { .. }, Param::Float(_) | Param::Text(_)) => Err(wrong("a finite number")),
        (ParamKind::Type { of, .. }, Param::Text(word)) => {
            one_of(word, of)?;
            word.parse().map(Meaning::Type).map_err(|()| wrong("a type"))
        }
        (ParamKind::Word { of, .. }, Param::Text(word)) => {
            one_of(word, of)?;
            Ok(Meaning::Word(word.clone()))
        }
        (ParamKind::Type { .. } | ParamKind::Word { .. }, Param::Int(_) | Param::Float(_)) => {
            Err(wrong("a word"))
        }
    }
}
