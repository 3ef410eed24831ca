//! What names in expressions mean.

use indexmap::IndexMap;
use ir::Name;

use super::{
    Choice, Decisions,
    expr::{EvalError, Expr, Ref},
    knob::{Knob, Problem},
};
use crate::{
    Number, Placed, nearest,
    script_error::{ScriptError, ScriptProblem},
    workload::Param,
};

/// What names mean.
pub(super) struct Scope<'a> {
    pub(super) params: &'a IndexMap<String, Param>,
    /// None where only parameters have a value.
    pub(super) knobs: Option<&'a IndexMap<Name, Placed<Knob>>>,
    /// None where no value may stand anyway.
    pub(super) values: Option<&'a IndexMap<Name, Expr>>,
}

/// Why a name has no value.
enum Fault {
    Eval(EvalError),
    Name(ScriptError),
}

impl From<EvalError> for Fault {
    fn from(err: EvalError) -> Fault {
        Fault::Eval(err)
    }
}

impl Scope<'_> {
    /// Refuses names that mean nothing, tiles without part and parts that are not there.
    pub(super) fn check(&self, expr: &Expr) -> Result<(), ScriptError> {
        let mut result = Ok(());
        expr.tree().each_var(&mut |it| {
            if result.is_ok() {
                result = self.check_name(expr, it);
            }
        });
        result
    }

    fn check_name(&self, expr: &Expr, it: &Ref) -> Result<(), ScriptError> {
        match self.knobs.and_then(|knobs| knobs.get(&it.name)).filter(|_| !it.bytes) {
            Some(knob) => check_part(expr, it, knob.value.parts()),
            None => self.param(expr, it).map(drop),
        }
    }

    /// The value of a parameter.
    fn param(&self, expr: &Expr, it: &Ref) -> Result<i64, ScriptError> {
        let name = it.name.as_str();
        match self.params.get(name) {
            Some(given) if it.bytes => given.element_bytes().ok_or_else(|| {
                let message = format!("the parameter `{name}` is {given}, which is no type");
                ScriptError::new(ScriptProblem::NotANumber, message, expr.place_of(&it.at))
            }),
            Some(Param::Int(value)) => check_part(expr, it, None).map(|()| *value),
            Some(other @ (Param::Float(_) | Param::Text(_))) => {
                let message = format!("the parameter `{name}` is {other}, which is no whole number");
                Err(ScriptError::new(ScriptProblem::NotANumber, message, expr.place_of(&it.at)))
            }
            None => Err(self.unknown(expr, it)),
        }
    }

    fn unknown(&self, expr: &Expr, it: &Ref) -> ScriptError {
        let name = &it.name;
        let knobs = self.knobs.into_iter().flat_map(IndexMap::keys).map(Name::as_str);
        let near = nearest(name.as_str(), knobs.chain(self.params.keys().map(String::as_str)));
        let what = if self.knobs.is_some() { "knob or parameter" } else { "parameter" };
        let help = match near {
            _ if self.values.is_some_and(|it| it.contains_key(name)) => {
                format!("a value may name only the values before it, and `{name}` is not")
            }
            Some(near) => format!("did you mean `{near}`?"),
            None if self.knobs.is_some() => format!("add it to the script: knobs: {{\"{name}\": [8, 16]}}"),
            None => "the choices of a knob depend on parameters of the workload alone".to_owned(),
        };
        let span = expr.place_of(&it.at);
        ScriptError::new(ScriptProblem::UnknownName, format!("there is no {what} `{name}`"), span).help(help)
    }

    /// A number over parameters alone.
    pub(super) fn number(&self, number: &Number) -> Result<i64, ScriptError> {
        match number {
            Number::Int(it) => Ok(*it),
            Number::Expr(it) => self.value(it, None),
        }
    }

    /// The value of an expression.
    pub(super) fn value(&self, expr: &Expr, decided: Option<&Decisions>) -> Result<i64, ScriptError> {
        let value = expr.tree().eval(&|it: &Ref| {
            let choice = decided.and_then(|all| all.get(&it.name)).filter(|_| !it.bytes);
            let Some(choice) = choice else { return self.param(expr, it).map_err(Fault::Name) };
            let (found, parts) = match (choice, it.part) {
                (Choice::Int(value), _) => (Some(*value), None),
                (Choice::Tile(parts), part) => {
                    (part.and_then(|it| parts.get(it)).copied(), Some(parts.len()))
                }
            };
            check_part(expr, it, parts).map_err(Fault::Name)?;
            found.ok_or(Fault::Eval(EvalError::Overflow))
        });
        value.map_err(|fault| match fault {
            Fault::Name(err) => err,
            Fault::Eval(err) => self.failed(expr, decided, err),
        })
    }

    /// An expression without a value, with what its variables are.
    fn failed(&self, expr: &Expr, decided: Option<&Decisions>, err: EvalError) -> ScriptError {
        let mut values = vec![];
        expr.tree().each_var(&mut |it| {
            let choice = decided.and_then(|all| all.get(&it.name)).map(ToString::to_string);
            let value = choice.or_else(|| self.params.get(it.name.as_str()).map(ToString::to_string));
            let text = value.map(|value| format!("{} = {value}", it.name));
            values.extend(text.filter(|it| !values.contains(it)));
        });
        let with = if values.is_empty() { String::new() } else { format!(" with {}", values.join(", ")) };
        ScriptError::new(ScriptProblem::NoValue, format!("`{expr}` {err}{with}"), expr.place())
    }

    /// The choices of a knob over these parameters.
    pub(super) fn choices(&self, name: &Name, knob: &Placed<Knob>) -> Result<Vec<Choice>, ScriptError> {
        knob.value.choices(self).map_err(|problem| match problem {
            Problem::Expression(err) => err,
            Problem::Words(words) => {
                let message = format!("the knob `{name}` {words}");
                ScriptError::new(ScriptProblem::Choices, message, knob.span.clone())
            }
        })
    }

    /// The first choice of a knob.
    pub(super) fn default(&self, name: &Name, knob: &Placed<Knob>) -> Result<Choice, ScriptError> {
        let choices = Scope { params: self.params, knobs: None, values: None }.choices(name, knob)?;
        let message = || format!("the knob `{name}` has no choices");
        let none = || ScriptError::new(ScriptProblem::Choices, message(), knob.span.clone());
        choices.into_iter().next().ok_or_else(none)
    }
}

/// Refuses a tile without a part, a part of what is no tile, and a part that a tile does not have.
fn check_part(expr: &Expr, it: &Ref, parts: Option<usize>) -> Result<(), ScriptError> {
    let name = &it.name;
    let (message, help) = match (parts, it.part) {
        (None, None) => return Ok(()),
        (Some(parts), Some(part)) if part < parts => return Ok(()),
        (Some(parts), Some(part)) => {
            (format!("the tile `{name}` has {parts} parts, and no `{name}[{part}]`: they count from 0"), None)
        }
        (Some(parts), None) => {
            (format!("`{name}` is a tile of {parts} parts"), Some(format!("name one: `{name}[0]`")))
        }
        (None, Some(_)) => (format!("`{name}` is a number and has no parts"), None),
    };
    let err = ScriptError::new(ScriptProblem::Part, message, expr.place_of(&it.at));
    Err(ScriptError { help, ..err })
}
