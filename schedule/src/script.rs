//! Schedule scripts: a RON text with a workload, a target and the steps, every part of which knows its place.
//!
//! ```text
//! schedule(
//!     about: "Tiles the reduction.",
//!     workload: "matmul", target: "cpu",
//!     params: {"m": 64, "n": 64, "k": 64, "dtype": "f32"},
//!     knobs: {
//!         "bk": [8, 16, 32],                                      // these numbers
//!         "bm": powers_of_two(from: 16, to: 128),                 // 16, 32, 64, 128
//!         "ti": perfect_tile(of: "m", parts: 3, innermost: 16),   // every way to write m as a product of 3 factors
//!         "wide": boolean,                                        // 0, 1
//!     },
//!     values: {"tile": "bm * bk"},                                // a name for an expression
//!     constraints: ["tile <= 2048", "m % bm == 0"],
//!     steps: [
//!         split(loop: "k", into: {"ko": None, "ki": "bk"}),
//!         split(loop: "i", into: {"io": None, "im": "ti[1]", "ii": "select(wide, 8, 4)"}),
//!         choose(knob: "inner", one_of: [[unroll(loop: "ii")], [vectorize(loop: "ii")]]),
//!     ],
//! )
//! ```
//!
//! An expression in quotes stands where a number may: whole numbers, knobs, parts of tiles (`ti[1]`) and those
//! parameters of the workload that are whole numbers, `+ - * / %` where `/` and `%` round down, comparisons, `&& || !`,
//! `min(a, b)`, `max(a, b)`, `ceildiv(a, b)`, `select(c, a, b)`, and `bytes(dtype)`, the size of an element of the type that the
//! parameter `dtype` is. Constraints are expressions, too; one holds if it is
//! not 0, and does not if it divides by zero or leaves 64 bits. They are for the tuner, which tries only what they
//! admit; without a tuner each knob has the first of its choices, unless the user gives it another value.
//!
//! `choose` takes one of several lists of steps ([`Choose`]).

use std::fmt;

use indexmap::IndexMap;
use ir::{Arch, Name};
use ron::value::RawValue;
use serde::Deserialize;

use crate::{
    Expr, Placed, Step, nearest,
    placed::{better, placed, read_expr},
    ron_text::{Unique, parse, parse_at, range_of},
    script_error::{Errors, ScriptError, ScriptProblem},
    space::{Choose, Item, Knob, item, knob, values},
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
    /// What may be chosen, those knobs included that only `choose` names; each with the place of its name.
    pub knobs: IndexMap<Name, Placed<Knob>>,
    /// Names for expressions, already put in place of them in all others.
    pub values: IndexMap<Name, Expr>,
    /// What choices of several knobs have to fulfil together.
    pub constraints: Vec<Expr>,
    /// The steps, knobs, alternatives and all.
    pub items: Vec<Item>,
}

/// A target in a script: `cpu`, `cuda`, or `cuda:sm_90a`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptTarget {
    /// This machine's processor.
    Cpu,
    /// A GPU: of that architecture, or the one that is found.
    Cuda(Option<Arch>),
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
    #[serde(borrow, default, rename = "use")]
    uses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    define: Option<&'a RawValue>,
    #[serde(borrow)]
    workload: &'a RawValue,
    #[serde(borrow, default)]
    target: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    knobs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    values: Option<&'a RawValue>,
    #[serde(borrow, default)]
    constraints: Vec<&'a RawValue>,
    #[serde(borrow)]
    steps: Vec<&'a RawValue>,
}

impl Script {
    /// Reads a script. What its expressions name is checked by [`Script::axes`], which knows the parameters.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let (script, wrong) = Script::read(text)?;
        wrong.map_or(Ok(script), Err)
    }

    /// Reads what can be read of a script, and tells what cannot. No script is there at all if the text as a whole or the
    /// workload is wrong; parts that are wrong are missing.
    pub fn read(text: &str) -> Result<(Script, Option<ScriptError>), ScriptError> {
        check_size(text)?;
        let raw: Raw<'_> = parse(text)?;
        let mut errors = Errors::default();
        for it in raw.uses.iter().chain(&raw.define) {
            let message = "a script with procedures is expanded before it is read";
            errors.add(ScriptError::new(ScriptProblem::Procedure, message, range_of(text, it)));
        }
        let workload = errors.keep(placed(text, raw.workload));
        let target = raw.target.map(|it| placed::<Word>(text, it)?.try_map(target_of));
        let params = raw.params.map(|it| {
            // Where they stand is known even if they are wrong.
            let wrong = Placed { value: Unique::default(), span: range_of(text, it) };
            errors.keep(placed(text, it)).unwrap_or(wrong)
        });
        let knobs = raw.knobs.map(|it| knob::read(text, it, &mut errors)).unwrap_or_default();
        let are_knobs_known = errors.is_empty();
        let mut script = Script {
            about: raw.about,
            target: target.and_then(|it| errors.keep(it)),
            workload: Placed { value: String::new(), span: 0..0 },
            params: params.map_or(Placed { value: IndexMap::new(), span: 0..0 }, |it| it.map(|it| it.0)),
            knobs,
            values: raw.values.map(|it| values::read(text, it, &mut errors)).unwrap_or_default(),
            constraints: raw.constraints.iter().filter_map(|it| errors.keep(read_expr(text, it))).collect(),
            items: item::read(text, &raw.steps, &mut errors),
        };
        for it in &mut script.constraints {
            *it = errors.keep(values::expanded(it, &script.values)).unwrap_or_else(|| it.clone());
        }
        values::expand(&mut script.items, &script.values, &mut errors);
        // A knob that could not be read may have said how many alternatives there are.
        if are_knobs_known {
            item::declare(&script.items, &mut script.knobs, &mut errors);
        }
        match workload {
            Some(workload) => Ok((Script { workload, ..script }, errors.into_one())),
            None => Err(errors.into_one().expect("the workload was wrong")),
        }
    }

    /// Every step in the order of the text, those of all alternatives.
    pub fn steps(&self) -> Vec<&Placed<Step>> {
        let mut out = vec![];
        item::steps(&self.items, &mut out);
        out
    }

    /// Every `choose` in the order of the text.
    pub fn chooses(&self) -> Vec<&Choose> {
        let mut out = vec![];
        item::chooses(&self.items, &mut out);
        out
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
pub(crate) fn check_size(text: &str) -> Result<(), ScriptError> {
    let refuse = |span, message: String| Err(ScriptError::new(ScriptProblem::TooLarge, message, span));
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

/// The target of a word.
fn target_of(word: &Placed<Word>) -> Result<ScriptTarget, ScriptError> {
    let text = word.value.0.as_str();
    let arch = text.strip_prefix("cuda:").map(Arch::parse);
    match (text, arch) {
        ("cpu", _) => Ok(ScriptTarget::Cpu),
        ("cuda", _) => Ok(ScriptTarget::Cuda(None)),
        (_, Some(Some(arch))) => Ok(ScriptTarget::Cuda(Some(arch))),
        (_, None | Some(None)) => {
            let message = format!("there is no target `{text}`");
            let err = ScriptError::new(ScriptProblem::UnknownTarget, message, word.span.clone());
            let near = nearest(text, ["cpu", "cuda"]).map(|it| format!("did you mean `{it}`?"));
            Err(err.help(near.unwrap_or_else(|| {
                "there is `cpu`, `cuda`, and with an architecture `cuda:sm_90a`".to_owned()
            })))
        }
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Word(String);

impl fmt::Display for ScriptTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptTarget::Cpu => f.write_str("cpu"),
            ScriptTarget::Cuda(None) => f.write_str("cuda"),
            ScriptTarget::Cuda(Some(arch)) => write!(f, "cuda:{arch}"),
        }
    }
}
