//! What is asked of loops and blocks: the values of annotations.

use std::ops::Range;

use indexmap::IndexMap;
use ir::{Annotation, Name};
use ruff_python_ast::{Expr, Number, UnaryOp};

use super::{
    args::{Args, text_of},
    error::{Refusal, malformed, unsayable},
    function::Reader,
    span,
};

/// An annotation of the file.
pub(super) struct Entry<'a> {
    pub(super) key: String,
    pub(super) value: &'a Expr,
    pub(super) span: Range<usize>,
}

/// The entries of a dictionary with words as keys.
pub(super) fn entries(expr: &Expr) -> Result<Vec<Entry<'_>>, Refusal> {
    let Expr::Dict(dict) = expr else {
        return Err(malformed(span(expr), "a dictionary is expected here"));
    };
    let entry = |it: &'_ ruff_python_ast::DictItem| {
        let key = it.key.as_ref().ok_or_else(|| malformed(span(&it.value), "`**` is not read"))?;
        text_of(key)
    };
    dict.items
        .iter()
        .map(|it| Ok(Entry { key: entry(it)?, value: &it.value, span: span(&it.value) }))
        .collect()
}

impl Reader<'_> {
    /// The value of an annotation.
    pub(super) fn annotation(&self, expr: &Expr) -> Result<Annotation, Refusal> {
        if let Some(value) = self.annotated_number(expr)? {
            return Ok(Annotation::Int(value));
        }
        match expr {
            Expr::StringLiteral(_) => Ok(Annotation::Text(text_of(expr)?)),
            Expr::List(_) | Expr::Tuple(_) => {
                let numbers = super::args::items(expr).iter().map(|it| self.annotated_number(it));
                let numbers = numbers.collect::<Result<Option<Vec<_>>, _>>()?;
                numbers.map(Annotation::List).ok_or_else(|| unsaid(expr))
            }
            Expr::Dict(_) => self.annotated_map(expr),
            _ => Err(unsaid(expr)),
        }
    }

    fn annotated_map(&self, expr: &Expr) -> Result<Annotation, Refusal> {
        let (mut numbers, mut words) = (IndexMap::new(), IndexMap::new());
        let all = entries(expr)?;
        let count = all.len();
        for it in all {
            match self.annotation(it.value)? {
                Annotation::Int(value) => drop(numbers.insert(Name::new(&it.key), value)),
                Annotation::Text(value) => drop(words.insert(Name::new(&it.key), value)),
                Annotation::List(_) | Annotation::Map(_) | Annotation::Words(_) => {
                    return Err(unsaid(it.value));
                }
            }
        }
        match (numbers.len(), words.len()) {
            (n, 0) if n == count => Ok(Annotation::Map(numbers)),
            (0, n) if n == count => Ok(Annotation::Words(words)),
            _ => Err(unsaid(expr)),
        }
    }

    /// A whole number, or what counts as one: `True`, `T.int64(4)`.
    fn annotated_number(&self, expr: &Expr) -> Result<Option<i64>, Refusal> {
        match expr {
            Expr::NumberLiteral(it) => Ok(match &it.value {
                Number::Int(value) => value.as_i64(),
                Number::Float(_) | Number::Complex { .. } => None,
            }),
            Expr::BooleanLiteral(it) => Ok(Some(i64::from(it.value))),
            Expr::UnaryOp(it) if it.op == UnaryOp::USub => {
                Ok(self.annotated_number(&it.operand)?.and_then(i64::checked_neg))
            }
            Expr::Name(it) => Ok(self.constants.get(it.id.as_str()).copied()),
            Expr::Call(call) if self.path(&call.func).is_some() => {
                Args::of(call, &["expr"])?.get("expr").map_or(Ok(None), |it| self.annotated_number(it))
            }
            _ => Ok(None),
        }
    }
}

fn unsaid(expr: &Expr) -> Refusal {
    unsayable(
        span(expr),
        "an annotation of this kind is not kept here",
        "there are whole numbers, words, lists of numbers, and maps from names to either",
    )
}
