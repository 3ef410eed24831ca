//! What variables of traces stand for, and the parts of an instruction.

use ir::Name;
use serde_json::Value;

use super::{TraceError, no_record};

/// What a variable stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Thing {
    /// The block around the whole program, which programs here have not.
    Root,
    /// A block.
    Block(Name),
    /// A loop.
    Loop(Name),
    /// A number that was chosen.
    Number(i64),
}

/// An instruction.
pub(super) struct Instruction<'a> {
    pub(super) kind: &'a str,
    pub(super) inputs: &'a [Value],
    pub(super) attrs: &'a [Value],
    pub(super) outputs: Vec<&'a str>,
    pub(super) decision: Option<&'a Value>,
    /// Its place, from 1.
    pub(super) number: usize,
}

impl<'a> Instruction<'a> {
    /// `[kind, inputs, attributes, outputs]`.
    pub(super) fn of(
        value: &'a Value,
        at: usize,
        decision: Option<&'a Value>,
    ) -> Result<Instruction<'a>, TraceError> {
        let parts = || {
            let [kind, inputs, attrs, outputs] = &value.as_array()?[..] else { return None };
            Some(Instruction {
                kind: kind.as_str()?,
                inputs: inputs.as_array()?,
                attrs: attrs.as_array()?,
                outputs: outputs.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
                decision,
                number: at + 1,
            })
        };
        parts().ok_or_else(|| {
            no_record(format!("instruction {} is not [kind, inputs, attributes, outputs]", at + 1))
        })
    }

    /// What it is called in messages.
    pub(super) fn label(&self) -> String {
        format!("instruction {}, `{}`", self.number, self.kind)
    }

    /// It lacks something, or has something else in its place.
    pub(super) fn odd(&self, wanted: &str) -> TraceError {
        no_record(format!("{}: {wanted} is missing", self.label()))
    }

    /// It stands for no step.
    pub(super) fn unknown(&self, why: &str, help: &'static str) -> TraceError {
        TraceError::Unknown { message: format!("{}: {why}", self.label()), help }
    }

    /// An attribute that is a whole number, or a truth.
    pub(super) fn number(&self, at: usize) -> Result<i64, TraceError> {
        self.attrs.get(at).and_then(whole).ok_or_else(|| self.odd("a number"))
    }

    /// An attribute that is a word.
    pub(super) fn word(&self, at: usize) -> Result<&'a str, TraceError> {
        self.attrs.get(at).and_then(Value::as_str).ok_or_else(|| self.odd("a word"))
    }
}

/// A whole number; a truth is 0 or 1.
pub(super) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_bool().map(i64::from))
}
