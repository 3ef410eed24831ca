//! From a script and what is decided for its knobs to plain steps.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::Name;

use super::{
    Choice, Decisions,
    expr::{EvalError, Expr, Ref},
    item::{self, Item},
    knob::{Knob, MAX_KNOBS, Problem},
};
use crate::{
    Number, Step, nearest,
    script::{Placed, Script},
    script_error::{Errors, ScriptError, ScriptProblem},
    workload::Param,
};

impl Script {
    /// The choices of each knob for these values of the workload's parameters, the default first.
    ///
    /// Knobs come in the order of the script, those that only `choose` names last. Checks every name in every
    /// expression of the script, too.
    pub fn axes(&self, params: &IndexMap<String, Param>) -> Result<IndexMap<Name, Vec<Choice>>, ScriptError> {
        if let Some((name, knob)) = self.knobs.get_index(MAX_KNOBS) {
            let message = format!("`{name}` is one knob too many: there may be {MAX_KNOBS}");
            return Err(ScriptError::new(ScriptProblem::TooManyKnobs, message, knob.span.clone()));
        }
        let (mut axes, mut errors) = (IndexMap::new(), Errors::default());
        for (name, knob) in &self.knobs {
            if let Some(choices) = errors.keep(self.axis(name, knob, params)) {
                axes.insert(name.clone(), choices);
            }
        }
        for choose in self.chooses() {
            let choices = axes.get(&choose.knob).into_iter().flatten();
            // Every choice has to name an alternative; one that does not says enough.
            errors.keep(choices.map(|it| alternative(choose, it)).collect::<Result<Vec<_>, _>>());
        }
        let scope = Scope { params, knobs: Some(&self.knobs), values: Some(&self.values) };
        let mut told = BTreeSet::new();
        let mut check = |expr: &Expr| {
            // What is wrong with a name is told at its first use.
            let checked = scope.check(expr);
            if checked.as_ref().err().is_none_or(|it| told.insert(it.message.clone())) {
                errors.keep(checked);
            }
        };
        self.values.values().for_each(&mut check);
        self.steps().iter().for_each(|it| item::each_expr(&it.value, &mut check));
        self.constraints.iter().for_each(check);
        errors.or(axes)
    }

    /// The choices of a knob.
    fn axis(
        &self,
        name: &Name,
        knob: &Placed<Knob>,
        params: &IndexMap<String, Param>,
    ) -> Result<Vec<Choice>, ScriptError> {
        let taken = match (params.contains_key(name.as_str()), self.values.contains_key(name)) {
            (true, _) => "a parameter of the workload",
            (false, true) => "a value",
            (false, false) => return Scope { params, knobs: None, values: None }.choices(name, knob),
        };
        let message = format!("the knob `{name}` has the name of {taken}");
        Err(ScriptError::new(ScriptProblem::BadName, message, knob.span.clone()))
    }

    /// The steps for what is decided, no knob and no expression left; each with the place of the step in the script
    /// that it comes from. A knob that is not decided has its first choice.
    pub fn resolve(
        &self,
        params: &IndexMap<String, Param>,
        decisions: &Decisions,
    ) -> Result<Vec<Placed<Step>>, ScriptError> {
        let scope = Scope { params, knobs: Some(&self.knobs), values: Some(&self.values) };
        if let Some(name) = decisions.keys().find(|it| !self.knobs.contains_key(*it)) {
            let message = format!("there is no knob `{name}`");
            return Err(ScriptError::new(ScriptProblem::UnknownName, message, 0..0));
        }
        let mut all = IndexMap::with_capacity(self.knobs.len());
        for (name, knob) in &self.knobs {
            let choice = match decisions.get(name) {
                Some(choice) => choice.clone(),
                None => scope.default(name, knob)?,
            };
            expect_form(name, knob, &choice)?;
            all.insert(name.clone(), choice);
        }
        let mut out = Vec::with_capacity(self.items.len());
        resolve(&self.items, &scope, &all, &mut out)?;
        Ok(out)
    }
}

fn resolve(
    items: &[Item],
    scope: &Scope<'_>,
    decided: &Decisions,
    out: &mut Vec<Placed<Step>>,
) -> Result<(), ScriptError> {
    for item in items {
        match item {
            Item::Step(it) => {
                let mut it = it.clone();
                for number in it.value.get_mut().numbers() {
                    if let Number::Expr(expr) = number {
                        *number = Number::Int(scope.value(expr, Some(decided))?);
                    }
                }
                out.push(it);
            }
            Item::Choose(it) => {
                let Some(choice) = decided.get(&it.knob) else { continue };
                let at = alternative(it, choice)?;
                resolve(&it.one_of[at], scope, decided, out)?;
            }
        }
    }
    Ok(())
}

/// Which alternative is taken.
fn alternative(it: &item::Choose, choice: &Choice) -> Result<usize, ScriptError> {
    let at = match choice {
        Choice::Int(at) => usize::try_from(*at).ok().filter(|at| *at < it.one_of.len()),
        Choice::Tile(_) => None,
    };
    at.ok_or_else(|| {
        let (knob, count) = (&it.knob, it.one_of.len());
        let message =
            format!("the knob `{knob}` may be {choice}, and the alternatives are 0 to {}", count - 1);
        ScriptError::new(ScriptProblem::Alternatives, message, it.span.clone())
    })
}

/// A tile for a tile, and a number for what is none.
fn expect_form(name: &Name, knob: &Placed<Knob>, choice: &Choice) -> Result<(), ScriptError> {
    let given = match choice {
        Choice::Int(_) => None,
        Choice::Tile(parts) => Some(parts.len()),
    };
    let wanted = match knob.value.parts() {
        wanted if wanted == given => return Ok(()),
        Some(parts) => format!("a tile of {parts} parts, such as {}", vec!["2"; parts].join("x")),
        None => "a number".to_owned(),
    };
    let message = format!("the knob `{name}` is {wanted}, not {choice}");
    Err(ScriptError::new(ScriptProblem::Decision, message, knob.span.clone()))
}

/// What names mean.
pub(super) struct Scope<'a> {
    params: &'a IndexMap<String, Param>,
    /// None where only parameters have a value.
    knobs: Option<&'a IndexMap<Name, Placed<Knob>>>,
    /// None where no value may stand anyway.
    values: Option<&'a IndexMap<Name, Expr>>,
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
    fn check(&self, expr: &Expr) -> Result<(), ScriptError> {
        let mut result = Ok(());
        expr.tree().each_var(&mut |it| {
            if result.is_ok() {
                result = self.check_name(expr, it);
            }
        });
        result
    }

    fn check_name(&self, expr: &Expr, it: &Ref) -> Result<(), ScriptError> {
        match self.knobs.and_then(|knobs| knobs.get(&it.name)) {
            Some(knob) => check_part(expr, it, knob.value.parts()),
            None => self.param(expr, it).map(drop),
        }
    }

    /// The value of a parameter.
    fn param(&self, expr: &Expr, it: &Ref) -> Result<i64, ScriptError> {
        let name = it.name.as_str();
        match self.params.get(name) {
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
    fn value(&self, expr: &Expr, decided: Option<&Decisions>) -> Result<i64, ScriptError> {
        let value = expr.tree().eval(&|it: &Ref| {
            let choice = decided.and_then(|all| all.get(&it.name));
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
    fn choices(&self, name: &Name, knob: &Placed<Knob>) -> Result<Vec<Choice>, ScriptError> {
        knob.value.choices(self).map_err(|problem| match problem {
            Problem::Expression(err) => err,
            Problem::Words(words) => {
                let message = format!("the knob `{name}` {words}");
                ScriptError::new(ScriptProblem::Choices, message, knob.span.clone())
            }
        })
    }

    /// The first choice of a knob.
    fn default(&self, name: &Name, knob: &Placed<Knob>) -> Result<Choice, ScriptError> {
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
