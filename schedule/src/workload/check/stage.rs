//! Stages and the expressions in them.

use std::{collections::BTreeSet, ops::Range};

use ir::{BinaryOp, DType, Role, UnaryOp};

use super::{Checker, MAX_STAGES};
use crate::workload::{
    error::{Problem, WorkloadError},
    expr::{Expr, Node, Op, Stage, binary_of, unary_of},
    form::{ParamKind, unknown},
    index::{compares_indices, is_condition, is_index},
};

impl<'a> Checker<'a> {
    pub(super) fn stages(&mut self, stages: &'a [Stage]) -> Result<(), WorkloadError> {
        let mut written = BTreeSet::new();
        if let Some(stage) = stages.get(MAX_STAGES) {
            return Err(WorkloadError::new(Problem::TooManyStages { most: MAX_STAGES }, stage.span.clone()));
        }
        for stage in stages {
            self.target(stage, &written)?;
            self.value(&stage.value, &written)?;
            self.reduction(stage)?;
            written.insert(stage.tensor.as_str());
        }
        for (name, decl) in &self.form.tensors {
            if decl.it.role == Role::Output && !written.contains(name.as_str()) {
                return Err(WorkloadError::new(Problem::NeverWritten(name.clone()), decl.at.clone()));
            }
        }
        Ok(())
    }

    fn target(&mut self, stage: &'a Stage, written: &BTreeSet<&str>) -> Result<(), WorkloadError> {
        let refuse = |problem| Err(WorkloadError::new(problem, stage.target.clone()));
        self.access(&stage.tensor, &stage.subscripts, &stage.target)?;
        if self.form.tensors[&stage.tensor].it.role == Role::Input {
            return refuse(Problem::WritesInput(stage.tensor.clone()));
        }
        if written.contains(stage.tensor.as_str()) {
            return refuse(Problem::WrittenTwice(stage.tensor.clone()));
        }
        let mut seen = BTreeSet::new();
        for it in &stage.subscripts {
            match &it.node {
                Node::Name(name) if self.form.axes.contains_key(name) && seen.insert(name) => {}
                Node::Name(name) if !self.form.axes.contains_key(name) => {
                    return Err(self.unknown_axis(it, name));
                }
                _ => return Err(WorkloadError::new(Problem::BadTarget, it.span.clone())),
            }
        }
        Ok(())
    }

    fn unknown_axis(&self, at: &Expr, name: &str) -> WorkloadError {
        unknown("axis", name, at.span.clone(), self.form.axes.keys().map(String::as_str))
    }

    /// A tensor with so many subscripts, each an index.
    fn access(
        &mut self,
        tensor: &'a str,
        subscripts: &'a [Expr],
        at: &Range<usize>,
    ) -> Result<(), WorkloadError> {
        let Some(decl) = self.form.tensors.get(tensor) else {
            let known = self.form.tensors.keys().map(String::as_str);
            return Err(unknown("tensor", tensor, at.start..at.start + tensor.len().min(at.len()), known));
        };
        self.used.insert(("tensor", tensor));
        let (rank, given) = (decl.it.shape.len(), subscripts.len());
        if rank != given {
            let problem = Problem::Rank { tensor: tensor.to_owned(), rank, given };
            return Err(WorkloadError::new(problem, at.clone()));
        }
        subscripts.iter().try_for_each(|it| self.index(it, true))
    }

    /// An index over sizes and, where asked for, axes.
    pub(super) fn index(&mut self, expr: &'a Expr, axes: bool) -> Result<(), WorkloadError> {
        let refuse = |what| Err(WorkloadError::new(Problem::NotAnIndex(what), expr.span.clone()));
        match &expr.node {
            Node::Int(_) => Ok(()),
            Node::Float(_) => refuse("a fraction"),
            Node::Name(name) => self.index_name(expr, name, axes),
            Node::Access(tensor, subscripts) if axes => {
                self.access(tensor, subscripts, &expr.span)?;
                match self.form.tensors[tensor].it.below {
                    Some(_) => Ok(()),
                    None => Err(WorkloadError::new(Problem::NotATable(tensor.clone()), expr.span.clone())),
                }
            }
            Node::Access(..) => refuse("an element of a tensor"),
            Node::Call(name, args) if binary_of(name).is_some_and(BinaryOp::is_extremum) => {
                arity(expr, name, args, 2)?;
                args.iter().try_for_each(|it| self.index(it, axes))
            }
            Node::Call(..) => refuse("a function of values"),
            Node::Neg(a) => self.index(a, axes),
            Node::Op(Op::Add | Op::Sub | Op::Mul | Op::FloorDiv | Op::Mod, ab) => {
                ab.iter().try_for_each(|it| self.index(it, axes))
            }
            Node::Op(Op::Div, _) => refuse("`/` (write `floordiv`)"),
            Node::Op(op, _) if op.is_condition() => refuse("a condition"),
            Node::Op(..) => refuse("an operator on bits"),
        }
    }

    fn index_name(&mut self, expr: &Expr, name: &'a str, axes: bool) -> Result<(), WorkloadError> {
        if axes && self.form.axes.contains_key(name) {
            self.used.insert(("axis", name));
            return Ok(());
        }
        match self.form.params.get(name).map(|it| &it.it) {
            Some(ParamKind::Size { .. } | ParamKind::Int { .. }) => {
                self.used.insert(("parameter", name));
                Ok(())
            }
            Some(ParamKind::Number { .. } | ParamKind::Type { .. } | ParamKind::Word { .. }) => {
                Err(WorkloadError::new(Problem::NotAnIndex("this parameter"), expr.span.clone()))
            }
            None => {
                let sizes = self.form.params.keys().map(String::as_str);
                let also = self.form.axes.keys().map(String::as_str).filter(|_| axes);
                let what = if axes { "axis or size" } else { "size" };
                Err(unknown(what, name, expr.span.clone(), also.chain(sizes)))
            }
        }
    }

    fn condition(&mut self, expr: &'a Expr) -> Result<(), WorkloadError> {
        match &expr.node {
            Node::Op(Op::And, ab) => ab.iter().try_for_each(|it| self.condition(it)),
            Node::Op(Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual | Op::Equal, ab) => {
                let compared = ab.iter().try_for_each(|it| self.index(it, true));
                compared.map_err(|err| match *err.problem {
                    Problem::NotAnIndex(what) => {
                        WorkloadError { problem: Box::new(Problem::NotCompared(what)), ..err }
                    }
                    Problem::NotATable(_) => {
                        let what = "an element of a tensor";
                        WorkloadError { problem: Box::new(Problem::NotCompared(what)), ..err }
                    }
                    _ => err,
                })
            }
            _ => Err(WorkloadError::new(Problem::NotACondition, expr.span.clone())),
        }
    }

    fn value(&mut self, expr: &'a Expr, written: &BTreeSet<&str>) -> Result<(), WorkloadError> {
        let refuse = |what| Err(WorkloadError::new(Problem::NotAValue(what), expr.span.clone()));
        match &expr.node {
            Node::Int(_) | Node::Float(_) => Ok(()),
            Node::Name(name) => self.value_name(expr, name),
            Node::Access(tensor, subscripts) => {
                self.access(tensor, subscripts, &expr.span)?;
                if self.form.tensors[tensor].it.role != Role::Input && !written.contains(tensor.as_str()) {
                    return Err(WorkloadError::new(Problem::ReadTooEarly(tensor.clone()), expr.span.clone()));
                }
                Ok(())
            }
            Node::Call(name, args) => self.call(expr, name, args, written),
            Node::Neg(a) => self.value(a, written),
            Node::Op(Op::FloorDiv | Op::Mod, _) => refuse("an index"),
            Node::Op(op, ab) if op.compares() && compares_indices(self.form, ab) => {
                ab.iter().try_for_each(|it| self.index(it, true))
            }
            Node::Op(_, ab) => ab.iter().try_for_each(|it| self.value(it, written)),
        }
    }

    fn value_name(&mut self, expr: &Expr, name: &'a str) -> Result<(), WorkloadError> {
        let kind = self.form.params.get(name).map(|it| &it.it);
        match kind {
            Some(ParamKind::Number { .. }) => {
                self.used.insert(("parameter", name));
                Ok(())
            }
            _ if name == "inf" => Ok(()),
            Some(ParamKind::Size { .. } | ParamKind::Int { .. }) => {
                Err(WorkloadError::new(Problem::NotConverted(name.to_owned()), expr.span.clone()))
            }
            _ if self.form.axes.contains_key(name) => {
                Err(WorkloadError::new(Problem::NotConverted(name.to_owned()), expr.span.clone()))
            }
            Some(ParamKind::Type { .. } | ParamKind::Word { .. }) => {
                Err(WorkloadError::new(Problem::NotAValue("a word"), expr.span.clone()))
            }
            None if self.form.tensors.contains_key(name) => {
                Err(WorkloadError::new(Problem::NotAValue("a tensor without subscripts"), expr.span.clone()))
            }
            None => {
                let params = self.form.params.keys().map(String::as_str);
                let known = params.chain(self.form.tensors.keys().map(String::as_str));
                Err(unknown("number", name, expr.span.clone(), known))
            }
        }
    }

    fn call(
        &mut self,
        expr: &'a Expr,
        name: &'a str,
        args: &'a [Expr],
        written: &BTreeSet<&str>,
    ) -> Result<(), WorkloadError> {
        if name == "select" {
            arity(expr, name, args, 3)?;
            self.condition(&args[0])?;
            return args[1..].iter().try_for_each(|it| self.value(it, written));
        }
        if name == "where" {
            arity(expr, name, args, 3)?;
            if is_condition(self.form, &args[0]) {
                self.condition(&args[0])?;
                return args[1..].iter().try_for_each(|it| self.value(it, written));
            }
        } else if binary_of(name).is_some() {
            arity(expr, name, args, 2)?;
        } else if unary_of(name).is_some() {
            arity(expr, name, args, 1)?;
        } else if name.parse::<DType>().is_ok() || self.dtype_named(name, usize::MAX) {
            arity(expr, name, args, 1)?;
            if self.is_index(&args[0]) {
                return self.index(&args[0], true);
            }
        } else {
            let types = self.form.types.keys().map(String::as_str).chain(DType::ALL.map(DType::as_str));
            let calls = BinaryOp::ALL.into_iter().filter(|it| it.is_call());
            let of_two: Vec<&str> = calls.map(BinaryOp::as_str).collect();
            let functions =
                UnaryOp::ALL.map(UnaryOp::as_str).into_iter().chain(of_two).chain(["select", "where"]);
            let span = expr.span.start..expr.span.start + name.len().min(expr.span.len());
            return Err(unknown("function or type", name, span, functions.chain(types)));
        }
        args.iter().try_for_each(|it| self.value(it, written))
    }

    fn is_index(&self, expr: &Expr) -> bool {
        is_index(self.form, expr)
    }

    fn reduction(&self, stage: &Stage) -> Result<(), WorkloadError> {
        let left: Vec<_> = stage.subscripts.iter().map(|it| &it.node).collect();
        let mut free = None;
        stage.value.walk(&mut |it| match &it.node {
            Node::Name(name) if self.form.axes.contains_key(name) && !left.contains(&&it.node) => {
                free.get_or_insert((name, it.span.clone()));
            }
            _ => {}
        });
        match (stage.reducer, free) {
            (None, Some((axis, at))) => {
                Err(WorkloadError::new(Problem::NotReduced { axis: axis.clone() }, at))
            }
            (Some(_), None) => Err(WorkloadError::new(Problem::NothingReduced, stage.span.clone())),
            (None, None) | (Some(_), Some(_)) => Ok(()),
        }
    }
}

fn arity(expr: &Expr, function: &str, args: &[Expr], expected: usize) -> Result<(), WorkloadError> {
    if args.len() == expected {
        return Ok(());
    }
    let problem = Problem::Arity { function: function.to_owned(), expected, given: args.len() };
    Err(WorkloadError::new(problem, expr.span.clone()))
}
