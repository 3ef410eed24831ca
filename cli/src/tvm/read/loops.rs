//! Loops.

use std::sync::Arc;

use ir::{Annotation, DType, Index, Loop, LoopAttrs, LoopKind, Stmt, ThreadAxis};
use ruff_python_ast::{Expr, ExprCall, StmtFor};

use super::{
    args::{Args, items, text_of},
    attrs::entries,
    block::difference,
    error::{Refusal, malformed, unsayable},
    function::Reader,
    scope::Meaning,
    span,
    term::INTEGER,
};

/// The note on a loop whose iterations are TVM's virtual threads: which of them.
pub(in crate::tvm) const VIRTUAL_THREAD: &str = "virtual_thread";

/// What a loop runs over.
struct Head {
    start: Index,
    extent: Index,
    step: Index,
    dtype: DType,
    kind: LoopKind,
    attrs: LoopAttrs,
}

impl Reader<'_> {
    /// A loop, or the nest of a grid.
    pub(super) fn for_loop(&mut self, it: &StmtFor) -> Result<Vec<Stmt>, Refusal> {
        if !it.orelse.is_empty() {
            return Err(malformed(span(it), "a loop has no `else`"));
        }
        let Expr::Call(call) = &*it.iter else {
            return Err(malformed(
                span(&*it.iter),
                "a loop is over `range`, `T.grid` or another of its kind",
            ));
        };
        let heads = self.heads(call)?;
        let targets = items(&it.target);
        if targets.len() != heads.len() {
            let title = format!("{} variables for {} loops", targets.len(), heads.len());
            return Err(malformed(span(&*it.target), title));
        }
        let mark = self.scope.mark();
        let mut loops = vec![];
        for (target, head) in targets.iter().zip(heads) {
            let Expr::Name(target) = target else {
                return Err(malformed(span(target), "the variable of a loop is a name"));
            };
            if self.in_body && (head.kind != LoopKind::Serial || !head.attrs.is_empty()) {
                return Err(unsayable(
                    span(call),
                    "a loop inside a block is plain",
                    "give the block an iterator for it, and put the loop around the block",
                ));
            }
            let var = self.names.other(target.id.as_str());
            self.places.insert(var.clone(), span(target));
            let value = head.start.clone() + Index::var(&var) * head.step.clone();
            let meaning = if self.in_body {
                Meaning::Index(value, head.dtype)
            } else {
                let (start, extent) = (head.start.clone(), head.extent.clone());
                Meaning::Loop { value, dtype: head.dtype, start, extent }
            };
            self.scope.bind(target.id.as_str(), meaning);
            loops.push((var, head));
        }
        self.loop_depth += 1;
        let body = self.statements(&it.body);
        self.loop_depth -= 1;
        self.scope.leave(mark);
        let body = Stmt::seq(body?);
        if body.is_empty() {
            return Ok(vec![]);
        }
        Ok(vec![loops.into_iter().rev().fold(body, |body, (var, head)| {
            let Head { extent, kind, attrs, .. } = head;
            Stmt::Loop(Arc::new(Loop { var, extent, kind, attrs, body }))
        })])
    }

    fn heads(&mut self, call: &ExprCall) -> Result<Vec<Head>, Refusal> {
        let word = match &*call.func {
            Expr::Name(name) if name.id.as_str() == "range" => "range".to_owned(),
            func => self.path(func).unwrap_or_default(),
        };
        let kind = match word.as_str() {
            "grid" => {
                return call.arguments.args.iter().map(|it| self.grid_head(it)).collect();
            }
            "range" | "serial" => LoopKind::Serial,
            "parallel" => LoopKind::Parallel,
            "vectorized" => LoopKind::Vectorized,
            "unroll" | "unrolled" => LoopKind::Unrolled,
            "thread_binding" => return Ok(vec![self.bound_head(call)?]),
            _ => {
                return Err(unsayable(
                    span(&*call.func),
                    "there is no such loop here",
                    "there are `range`, T.serial, T.grid, T.parallel, T.vectorized, T.unroll and T.thread_binding",
                ));
            }
        };
        let args = Args::of(call, &["start", "stop", "step", "annotations"])?;
        let (first, second) = (args.need("start")?, args.get("stop"));
        let step = args.get("step").map_or(Ok(Index::int(1)), |it| self.index(it))?;
        let attrs = self.loop_attrs(args.get("annotations"))?;
        let (start, dtype, extent) = self.interval(first, second)?;
        let extent = if step.as_int() == Some(1) { extent } else { extent.ceil_div(&step) };
        if step.as_int().is_none_or(|it| it < 1) {
            return Err(unsayable(
                args.span(),
                "a loop counts upwards by a number",
                "count from 0, and compute the rest",
            ));
        }
        Ok(vec![Head { start, extent, step, dtype, kind, attrs }])
    }

    /// The start, the type and the extent of a loop by its one or two ends.
    fn interval(&mut self, first: &Expr, second: Option<&Expr>) -> Result<(Index, DType, Index), Refusal> {
        let (from, dtype) = self.typed_index(first)?;
        let Some(second) = second else { return Ok((Index::int(0), dtype, from)) };
        let (to, other) = self.typed_index(second)?;
        let dtype = if dtype == DType::I64 { dtype } else { other };
        let extent = if from.as_int() == Some(0) { to } else { difference(&to, &from) };
        Ok((from, dtype, extent))
    }

    fn typed_index(&mut self, expr: &Expr) -> Result<(Index, DType), Refusal> {
        let index = self.index(expr)?;
        let dtype = self.term(expr)?.dtype();
        Ok((index, dtype.filter(|it| *it == DType::I64).unwrap_or(INTEGER)))
    }

    fn grid_head(&mut self, expr: &Expr) -> Result<Head, Refusal> {
        // A grid may begin elsewhere: `T.grid((2, 10))`.
        let ends = match expr {
            Expr::Tuple(it) => &*it.elts,
            one => std::slice::from_ref(one),
        };
        let (start, dtype, extent) = match ends {
            [first] => self.interval(first, None)?,
            [first, second] => self.interval(first, Some(second))?,
            _ => return Err(malformed(span(expr), "an extent, or a start and an end")),
        };
        let (kind, attrs, step) = (LoopKind::Serial, LoopAttrs::default(), Index::int(1));
        Ok(Head { start, extent, step, dtype, kind, attrs })
    }

    fn bound_head(&mut self, call: &ExprCall) -> Result<Head, Refusal> {
        let args = Args::of(call, &["start", "stop", "thread", "annotations"])?;
        let (first, second, axis) = match (args.need("start")?, args.get("stop"), args.get("thread")) {
            // As `T.thread_binding(128, "threadIdx.x")` is read, too.
            (first, Some(axis @ Expr::StringLiteral(_)), None) => (first, None, axis),
            (first, second, axis) => (
                first,
                second,
                axis.ok_or_else(|| malformed(span(call), "the argument `thread` is missing"))?,
            ),
        };
        let (start, dtype, extent) = self.interval(first, second)?;
        let mut attrs = self.loop_attrs(args.get("annotations"))?;
        let word = text_of(axis)?;
        let kind = match axis_of(&word) {
            Some(axis) => LoopKind::Bound(axis),
            None if word.starts_with("vthread") => {
                attrs.notes.insert(VIRTUAL_THREAD.to_owned(), Annotation::Text(word));
                LoopKind::Serial
            }
            None => {
                return Err(unsayable(
                    span(axis),
                    format!("there is no axis of threads `{word}`"),
                    "there are blockIdx.x, threadIdx.x and cluster.x, the same with y and z, and vthread",
                ));
            }
        };
        Ok(Head { start, extent, step: Index::int(1), dtype, kind, attrs })
    }

    fn loop_attrs(&mut self, annotations: Option<&Expr>) -> Result<LoopAttrs, Refusal> {
        let mut attrs = LoopAttrs::default();
        let Some(annotations) = annotations else { return Ok(attrs) };
        for it in entries(annotations)? {
            let value = self.annotation(it.value)?;
            attrs.set(&it.key, value).map_err(|wanted| {
                unsayable(
                    it.span,
                    format!("`{}` says something else here: it takes {wanted}", it.key),
                    "use another key for a note of your own",
                )
            })?;
        }
        Ok(attrs)
    }
}

/// An axis of threads by TVM's word.
pub(in crate::tvm) fn axis_of(word: &str) -> Option<ThreadAxis> {
    let own = word.strip_prefix("clusterCtaIdx.").map(|it| format!("cluster.{it}"));
    ThreadAxis::parse(own.as_deref().unwrap_or(word))
}

/// TVM's word for an axis of threads.
pub(in crate::tvm) fn axis_word(axis: ThreadAxis) -> String {
    match axis.as_str().strip_prefix("cluster.") {
        Some(letter) => format!("clusterCtaIdx.{letter}"),
        None => axis.as_str().to_owned(),
    }
}
