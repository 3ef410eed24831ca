//! Named expressions of a script, which stand for themselves in other expressions.

use std::sync::Arc;

use indexmap::IndexMap;
use ir::Name;
use ron::value::RawValue;

use super::{
    expr::{Expr, Ref, Tree},
    item::Item,
    knob::check_name,
};
use crate::{
    Number,
    placed::read_expr,
    ron_text::{Unique, parse_raw, range_of},
    script_error::{Errors, ScriptError, ScriptProblem},
};

/// Names of values whose names stand in each other double an expression each: this many nodes are enough.
const MAX_NODES: usize = 4096;

/// The named expressions of a script in order; those that cannot be read are missing. Each may name those before it.
pub(crate) fn read(text: &str, raw: &RawValue, errors: &mut Errors) -> IndexMap<Name, Expr> {
    let all: Unique<Name, &RawValue> = errors.keep(parse_raw(text, raw)).unwrap_or_default();
    let mut out = IndexMap::new();
    for (name, raw) in all.0 {
        let expr = check_name("value", &name, &range_of(text, raw))
            .and_then(|()| expanded(&read_expr(text, raw)?, &out));
        if let Some(expr) = errors.keep(expr) {
            out.insert(name, expr);
        }
    }
    out
}

/// The expression with that of a value in place of each name of one.
pub(crate) fn expanded(expr: &Expr, values: &IndexMap<Name, Expr>) -> Result<Expr, ScriptError> {
    let mut nodes = 0usize;
    let mut put = |it: &Ref| -> Result<Tree<Ref>, ScriptError> {
        let Some(value) = values.get(&it.name).filter(|_| !it.bytes) else {
            return Ok(Tree::Var(it.clone()));
        };
        let wrong = |problem, message| Err(ScriptError::new(problem, message, expr.place_of(&it.at)));
        if it.part.is_some() {
            return wrong(ScriptProblem::Part, format!("`{}` is a value and has no parts", it.name));
        }
        nodes = nodes.saturating_add(value.tree().nodes());
        if nodes > MAX_NODES {
            let message = format!("the values in the expression have more than {MAX_NODES} parts");
            return wrong(ScriptProblem::Expression, message);
        }
        let at = &it.at;
        value.tree().try_map(&mut |it: &Ref| Ok(Tree::Var(Ref { at: at.clone(), ..it.clone() })))
    };
    let tree = expr.tree().try_map(&mut put)?;
    if tree.depth() > super::MAX_EXPRESSION_DEPTH * 2 {
        let message = "the values in the expression nest too deep";
        return Err(ScriptError::new(ScriptProblem::Expression, message, expr.place()));
    }
    Ok(expr.with(Arc::new(tree)))
}

/// The same for every number of the steps.
pub(crate) fn expand(items: &mut [Item], values: &IndexMap<Name, Expr>, errors: &mut Errors) {
    for item in items {
        for number in item.numbers() {
            let Number::Expr(it) = number else { continue };
            if let Some(expr) = errors.keep(expanded(it, values)) {
                *it = expr;
            }
        }
        item.lists_mut().into_iter().for_each(|it| expand(it, values, errors));
    }
}
