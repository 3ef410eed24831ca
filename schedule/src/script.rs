//! Schedule scripts: a RON text with a workload, a target and the steps, every part of which knows its place.
//!
//! ```text
//! schedule(
//!     about: "Tiles the reduction.",
//!     workload: "matmul", target: "cpu",
//!     params: {"m": 64, "n": 64, "k": 64, "dtype": "f32"},
//!     knobs: {"bk": [8, 16, 32]},
//!     steps: [
//!         split(loop: "k", into: {"ko": None, "ki": "bk"}),
//!     ],
//! )
//! ```
//!
//! A knob stands where a number may. Without a tuner it has the first of its choices.

use std::{fmt, ops::Range};

use indexmap::IndexMap;
use ir::{Arch, Name};
use ron::value::RawValue;
use serde::Deserialize;

use crate::{
    Number, Step, nearest, primitive,
    ron_text::{RonError, Unique, parse, parse_at, parse_raw, range_of},
    workload::Param,
};

/// A script as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// What the script shows, for tutorials.
    pub about: Option<String>,
    /// What is computed: the name of a workload that ships with the tool, or the path of a file, which starts
    /// with `.` or `/`.
    pub workload: Placed<String>,
    /// What it is scheduled for, if the script says so.
    pub target: Option<Placed<ScriptTarget>>,
    /// The parameters of the workload.
    pub params: Placed<IndexMap<String, Param>>,
    /// What may be chosen: for each knob its choices, the default first.
    pub knobs: IndexMap<Name, Vec<i64>>,
    /// The steps, knobs and all.
    pub steps: Vec<Placed<Step>>,
}

/// A value and the bytes of the script at which it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Range<usize>,
}

/// A target in a script: `cpu`, `cuda`, or `cuda:sm_90a`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptTarget {
    /// This machine's processor.
    Cpu,
    /// A GPU: of that architecture, or the one that is found.
    Cuda(Option<Arch>),
}

/// A text that is not a script.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes.
    pub span: Range<usize>,
    /// What to try instead, if there is one thing to say.
    pub help: Option<String>,
}

/// The longest script, in bytes.
pub const MAX_LENGTH: usize = 1 << 20;

/// How deep brackets may nest in a script: readers of RON recurse, and a text must not use up their stack.
pub const MAX_DEPTH: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "schedule")]
struct Raw<'a> {
    #[serde(default)]
    about: Option<String>,
    #[serde(borrow)]
    workload: &'a RawValue,
    #[serde(borrow, default)]
    target: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    knobs: Option<&'a RawValue>,
    #[serde(borrow)]
    steps: Vec<&'a RawValue>,
}

impl Script {
    /// Reads a script. Knobs that its steps name have to be among its knobs.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        check_size(text)?;
        let raw: Raw<'_> = parse(text)?;
        let script = Script {
            about: raw.about,
            workload: placed(text, raw.workload)?,
            target: raw.target.map(|it| placed::<Word>(text, it)?.try_map(target_of)).transpose()?,
            params: match raw.params {
                Some(it) => placed::<Unique<String, Param>>(text, it)?.map(|it| it.0),
                None => Placed { value: IndexMap::new(), span: 0..0 },
            },
            knobs: raw.knobs.map(|it| knobs(text, it)).transpose()?.unwrap_or_default(),
            steps: raw.steps.into_iter().map(|it| step(text, it)).collect::<Result<_, _>>()?,
        };
        for step in &script.steps {
            script.check_knobs(text, step)?;
        }
        Ok(script)
    }

    /// The first choice of each knob.
    pub fn defaults(&self) -> IndexMap<Name, i64> {
        self.knobs.iter().filter_map(|(name, choices)| Some((name.clone(), *choices.first()?))).collect()
    }

    /// The steps with a number in place of each knob: that of `choice`, or the default.
    pub fn resolve(&self, choice: &IndexMap<Name, i64>) -> Vec<Step> {
        let defaults = self.defaults();
        let steps = self.steps.iter().map(|step| {
            let mut step = step.value.clone();
            for number in step.get_mut().numbers() {
                if let Number::Knob(name) = number
                    && let Some(value) = choice.get(name).or_else(|| defaults.get(name))
                {
                    *number = Number::Int(*value);
                }
            }
            step
        });
        steps.collect()
    }

    /// Where a name stands in a step, quotes included, or the whole step where the step does not name it.
    pub fn place_of(&self, text: &str, step: usize, name: &Name) -> Range<usize> {
        let Some(step) = self.steps.get(step) else { return 0..0 };
        quoted(text, &step.span, name).unwrap_or_else(|| step.span.clone())
    }

    fn check_knobs(&self, text: &str, step: &Placed<Step>) -> Result<(), ScriptError> {
        for number in step.value.clone().get_mut().numbers() {
            if let Number::Knob(name) = &*number
                && !self.knobs.contains_key(name)
            {
                let near = nearest(name.as_str(), self.knobs.keys().map(Name::as_str));
                return Err(ScriptError {
                    message: format!("there is no knob `{name}`"),
                    span: quoted(text, &step.span, name).unwrap_or_else(|| step.span.clone()),
                    help: Some(match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("add it to the script: knobs: {{\"{name}\": [8, 16]}}"),
                    }),
                });
            }
        }
        Ok(())
    }
}

impl Step {
    /// The step as a script has it, on one line.
    pub fn to_ron(&self) -> String {
        let config = ron::ser::PrettyConfig::new().depth_limit(0).separator(" ");
        crate::ron_text::options().to_string_pretty(self, config).expect("steps are plain data")
    }

    /// Reads a step written alone.
    pub fn from_ron(text: &str) -> Result<Step, ScriptError> {
        check_size(text)?;
        parse_at(text, 0).map_err(|err| better(text, 0..text.len(), err))
    }
}

/// Refuses texts that are too long, or nested so deep that reading them could use up the stack.
fn check_size(text: &str) -> Result<(), ScriptError> {
    let refuse = |span: Range<usize>, message: String| Err(ScriptError { message, span, help: None });
    if text.len() > MAX_LENGTH {
        let first = text.chars().next().map_or(0, char::len_utf8);
        return refuse(0..first, format!("the text is longer than {MAX_LENGTH} bytes"));
    }
    // Brackets in strings and comments count only upwards if unbalanced; few scripts have dozens of those.
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'(' | b'[' | b'{' if !in_string => depth += 1,
            b')' | b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return refuse(at..at + 1, format!("brackets nest deeper than {MAX_DEPTH}"));
        }
    }
    Ok(())
}

fn placed<'a, T: Deserialize<'a>>(text: &str, raw: &'a RawValue) -> Result<Placed<T>, ScriptError> {
    Ok(Placed { value: parse_raw(text, raw)?, span: range_of(text, raw) })
}

fn step(text: &str, raw: &RawValue) -> Result<Placed<Step>, ScriptError> {
    let span = range_of(text, raw);
    let value = parse_raw(text, raw).map_err(|err| better(text, span.clone(), err))?;
    Ok(Placed { value, span })
}

/// The error of a step, in other words where the step names no primitive.
fn better(text: &str, span: Range<usize>, err: RonError) -> ScriptError {
    let word: String =
        text[span.clone()].chars().take_while(|it| it.is_ascii_alphanumeric() || *it == '_').collect();
    if word.is_empty() || primitive::names().any(|it| it == word) {
        return err.into();
    }
    ScriptError {
        message: format!("there is no primitive `{word}`"),
        help: Some(match nearest(&word, primitive::names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tilewright explain` lists them".to_owned(),
        }),
        span: span.start..span.start + word.len(),
    }
}

fn knobs(text: &str, raw: &RawValue) -> Result<IndexMap<Name, Vec<i64>>, ScriptError> {
    let placed: Placed<Unique<Name, Vec<i64>>> = placed(text, raw)?;
    let knobs = placed.value.0;
    for (name, choices) in &knobs {
        let repeated = choices.iter().enumerate().any(|(at, it)| choices[..at].contains(it));
        let problem = match choices.as_slice() {
            [] => "has no choices",
            _ if repeated => "has a choice twice",
            _ if !name.is_valid() => "is not a name",
            _ => continue,
        };
        let span = quoted(text, &placed.span, name).unwrap_or(placed.span.clone());
        return Err(ScriptError { message: format!("the knob `{name}` {problem}"), span, help: None });
    }
    Ok(knobs)
}

/// The target of a word.
fn target_of(word: &Placed<Word>) -> Result<ScriptTarget, ScriptError> {
    let text = word.value.0.as_str();
    let arch = text.strip_prefix("cuda:").map(Arch::parse);
    match (text, arch) {
        ("cpu", _) => Ok(ScriptTarget::Cpu),
        ("cuda", _) => Ok(ScriptTarget::Cuda(None)),
        (_, Some(Some(arch))) => Ok(ScriptTarget::Cuda(Some(arch))),
        (_, None | Some(None)) => Err(ScriptError {
            message: format!("there is no target `{text}`"),
            span: word.span.clone(),
            help: Some("there is `cpu`, `cuda`, and with an architecture `cuda:sm_90a`".to_owned()),
        }),
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Word(String);

impl<T> Placed<T> {
    fn map<U>(self, f: impl FnOnce(T) -> U) -> Placed<U> {
        Placed { value: f(self.value), span: self.span }
    }

    fn try_map<U, E>(self, f: impl FnOnce(&Self) -> Result<U, E>) -> Result<Placed<U>, E> {
        Ok(Placed { value: f(&self)?, span: self.span })
    }
}

/// The first place in a range where a name stands in quotes.
fn quoted(text: &str, within: &Range<usize>, name: &Name) -> Option<Range<usize>> {
    let word = format!("\"{name}\"");
    let at = within.start + text.get(within.clone())?.find(&word)?;
    Some(at..at + word.len())
}

impl From<RonError> for ScriptError {
    fn from(err: RonError) -> ScriptError {
        ScriptError { message: err.message, span: err.span, help: None }
    }
}

impl fmt::Display for ScriptTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptTarget::Cpu => f.write_str("cpu"),
            ScriptTarget::Cuda(None) => f.write_str("cuda"),
            ScriptTarget::Cuda(Some(arch)) => write!(f, "cuda:{arch}"),
        }
    }
}
