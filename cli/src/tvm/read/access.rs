//! Places in buffers.

use ir::{Access, Index, Name, Value};
use ruff_python_ast::{self as ast, Expr};

use super::{
    args::items,
    error::{Refusal, malformed, unsayable},
    function::Reader,
    scope::Meaning,
    span,
    term::Term,
};

impl Reader<'_> {
    /// A place in a buffer.
    pub(super) fn access(&mut self, it: &ast::ExprSubscript) -> Result<Access, Refusal> {
        let (buffer, starts, rank) = self.indexed(&it.value)?;
        let subscripts = items(&it.slice);
        if subscripts.len() != rank {
            let title = format!("`{buffer}` has {rank} dimensions, and this names {}", subscripts.len());
            return Err(malformed(span(it), title));
        }
        let squeezed = starts.len() - rank;
        let mut indices = starts;
        for (at, expr) in subscripts.iter().enumerate() {
            let dim = squeezed + at;
            let index = self.subscript(&buffer, dim, expr)?;
            indices[dim] = indices[dim].clone() + index;
        }
        Ok(Access::new(&buffer, indices))
    }

    /// What is subscripted: the buffer, where its part begins, and how many subscripts it takes.
    fn indexed(&mut self, expr: &Expr) -> Result<(Name, Vec<Index>, usize), Refusal> {
        let Expr::Name(name) = expr else {
            return Err(malformed(span(expr), "only buffers have elements"));
        };
        match self.scope.find(name.id.as_str()).cloned() {
            Some(Meaning::Buffer(buffer)) => {
                let rank = self.buffers[&buffer].shape.len();
                Ok((buffer, vec![Index::int(0); rank], rank))
            }
            Some(Meaning::View { buffer, starts, rank }) => Ok((buffer, starts, rank)),
            Some(_) => Err(malformed(span(expr), format!("`{}` is no buffer", name.id))),
            None => Err(self.unknown(name)),
        }
    }

    /// A subscript: an index, or the element of an input, which then is below the extent of the dimension.
    fn subscript(&mut self, buffer: &Name, dim: usize, expr: &Expr) -> Result<Index, Refusal> {
        if let Expr::Slice(_) = expr {
            return Err(unsayable(
                span(expr),
                "a slice is no element",
                "write a loop over the elements; `vectorize` makes vectors of it",
            ));
        }
        let term = self.term(expr)?;
        match term {
            Term::Value(Value::Load(table), dtype) if !dtype.is_float() => {
                let below = self.buffers[buffer].shape[dim].clone();
                self.element(expr, &table, below)
            }
            term => term.to_index().ok_or_else(|| {
                unsayable(
                    span(expr),
                    "this subscript is no index",
                    "indices have + - * // %, T.min and T.max; data alone may be an element of an input",
                )
            }),
        }
    }

    /// An element of an input as an index.
    fn element(&mut self, expr: &Expr, table: &Access, below: Index) -> Result<Index, Refusal> {
        let buffer = &mut self.buffers[&table.buffer];
        let at = table
            .indices
            .iter()
            .zip(&buffer.shape)
            .fold(Index::int(0), |at, (index, extent)| at * extent.clone() + index.clone());
        match &buffer.below {
            Some(known) if *known != below => Err(unsayable(
                span(expr),
                format!(
                    "the elements of `{}` are subscripts of dimensions of different lengths",
                    table.buffer
                ),
                "use two inputs, one for each",
            )),
            _ => {
                buffer.below = Some(below.clone());
                Ok(Index::element(&table.buffer, at, below))
            }
        }
    }
}
