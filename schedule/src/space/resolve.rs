//! From a script and what is decided for its knobs to plain steps.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::Name;

use super::{
    Choice, Decisions,
    expr::Expr,
    item::{self, Item},
    knob::{Knob, MAX_KNOBS},
    scope::Scope,
};
use crate::{
    Number, Placed, Script, Step,
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
        item::each_expr(&self.items, &mut check);
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
            Item::When(it) => {
                let cond = match &it.cond {
                    Number::Int(cond) => *cond,
                    Number::Expr(expr) => scope.value(expr, Some(decided))?,
                };
                resolve(if cond == 0 { &it.otherwise } else { &it.then }, scope, decided, out)?;
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
