//! Calls of the language: what is called, and with which arguments.

use std::ops::Range;

use ruff_python_ast::{Expr, ExprCall};

use super::{
    error::{Refusal, malformed},
    span,
};

/// The arguments of a call by the names of its parameters.
pub(super) struct Args<'a> {
    call: &'a ExprCall,
    names: &'static [&'static str],
    values: Vec<Option<&'a Expr>>,
}

impl<'a> Args<'a> {
    /// Matches arguments with parameters, as Python does.
    pub(super) fn of(call: &'a ExprCall, names: &'static [&'static str]) -> Result<Args<'a>, Refusal> {
        let mut values = vec![None; names.len()];
        for (at, arg) in call.arguments.args.iter().enumerate() {
            let slot = values.get_mut(at).ok_or_else(|| {
                malformed(span(arg), format!("one argument too many: it takes {}", listed(names)))
            })?;
            *slot = Some(arg);
        }
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_ref().map_or("**", |it| it.as_str());
            let slot = names.iter().position(|it| *it == name).ok_or_else(|| {
                malformed(span(keyword), format!("there is no argument `{name}`: it takes {}", listed(names)))
            })?;
            values[slot] = Some(&keyword.value);
        }
        Ok(Args { call, names, values })
    }

    /// An argument, if it is given and not `None`.
    pub(super) fn get(&self, name: &str) -> Option<&'a Expr> {
        let at = self.names.iter().position(|it| *it == name).expect("a parameter of the call");
        self.values[at].filter(|it| !matches!(it, Expr::NoneLiteral(_)))
    }

    /// An argument that has to be given.
    pub(super) fn need(&self, name: &str) -> Result<&'a Expr, Refusal> {
        self.get(name).ok_or_else(|| malformed(self.span(), format!("the argument `{name}` is missing")))
    }

    /// The place of the call.
    pub(super) fn span(&self) -> Range<usize> {
        span(self.call)
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
}

/// The path of a name below the alias of the language: `axis.spatial` for `T.axis.spatial`.
pub(super) fn path_below(expr: &Expr, alias: &str) -> Option<String> {
    match expr {
        Expr::Attribute(it) => match &*it.value {
            Expr::Name(name) if name.id.as_str() == alias => Some(it.attr.to_string()),
            inner => Some(format!("{}.{}", path_below(inner, alias)?, it.attr)),
        },
        _ => None,
    }
}

/// The word of a string literal.
pub(super) fn text_of(expr: &Expr) -> Result<String, Refusal> {
    match expr {
        Expr::StringLiteral(it) => Ok(it.value.to_str().to_owned()),
        _ => Err(malformed(span(expr), "a string is expected here")),
    }
}

/// The items of a list or tuple; one expression is a list of itself.
pub(super) fn items(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::List(it) => &it.elts,
        Expr::Tuple(it) => &it.elts,
        one => std::slice::from_ref(one),
    }
}
