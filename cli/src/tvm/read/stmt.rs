//! Statements: what stands around blocks and in them.

use ir::{Stmt, Value};
use ruff_python_ast::{self as ast, Expr, ExprCall, Stmt as Python, StmtIf, StmtWith};

use super::{
    args::Args,
    error::{Refusal, malformed, unsayable},
    function::Reader,
    scope::Meaning,
    span,
    term::cast,
};

/// How deep statements may be nested.
const MOST_DEPTH: usize = 100;

/// What a statement of one call says.
const SAID: [&str; 6] = ["func_attr", "reads", "writes", "where", "sblock_attr", "block_attr"];

impl Reader<'_> {
    /// Statements in order.
    pub(super) fn statements(&mut self, body: &[Python]) -> Result<Vec<Stmt>, Refusal> {
        self.statement_depth += 1;
        let mut out = vec![];
        for stmt in body {
            if self.statement_depth > MOST_DEPTH {
                return Err(malformed(span(stmt), "this statement is nested too deeply"));
            }
            out.extend(self.statement(stmt)?);
        }
        self.statement_depth -= 1;
        Ok(out)
    }

    fn statement(&mut self, stmt: &Python) -> Result<Vec<Stmt>, Refusal> {
        match stmt {
            Python::For(it) => self.for_loop(it),
            Python::With(it) => self.with(it),
            Python::If(it) => self.condition(it),
            Python::Assign(it) => match &*it.targets {
                [target] => self.assign(target, &it.value),
                _ => Err(malformed(span(it), "one name is assigned to at a time")),
            },
            Python::AnnAssign(it) => match &it.value {
                Some(value) => self.assign(&it.target, value),
                None => Err(unsayable(
                    span(it),
                    "a variable without a value is no buffer here",
                    "`x = T.alloc_buffer((1,), \"float32\")` makes memory of one element",
                )),
            },
            Python::Expr(it) => match &*it.value {
                // What documents the function.
                Expr::StringLiteral(_) => Ok(vec![]),
                Expr::Call(call) => self.said(call),
                other => Err(malformed(span(other), "this does nothing")),
            },
            Python::Pass(_) => Ok(vec![]),
            Python::Return(it) if it.value.is_none() => Ok(vec![]),
            _ => Err(unsayable(
                span(stmt),
                "there is no such statement here",
                "there are loops, blocks, conditions around blocks, and stores",
            )),
        }
    }

    /// `name = …` or `A[i, j] = …`.
    fn assign(&mut self, target: &Expr, value: &Expr) -> Result<Vec<Stmt>, Refusal> {
        match target {
            Expr::Subscript(place) => self.store(place, value),
            Expr::Name(name) => match value {
                Expr::Call(call) if self.declares(name, call)? => Ok(vec![]),
                value => self.bind_value(name, value),
            },
            Expr::Tuple(_) | Expr::List(_) => {
                Err(malformed(span(target), "iterators are declared at the beginning of a block"))
            }
            _ => Err(malformed(span(target), "a name or an element of a buffer is expected here")),
        }
    }

    /// Whether a call declares what a name means, and what.
    fn declares(&mut self, name: &ast::ExprName, call: &ExprCall) -> Result<bool, Refusal> {
        let (word, at) = (name.id.as_str(), span(name));
        let path = self.path(&call.func).unwrap_or_default();
        match path.as_str() {
            "match_buffer" => self.match_buffer(call, word, at)?,
            "alloc_buffer" | "sblock_alloc_buffer" => self.allocate(call, word, at)?,
            path if path.starts_with("axis.") => {
                return Err(malformed(at, "iterators are declared at the beginning of a block"));
            }
            "decl_buffer" | "allocate" | "alloc_local" | "alloc_shared" | "allocate_const" | "Buffer" => {
                return Err(unsayable(
                    span(call),
                    format!("`{path}` is of programs that are lowered already"),
                    "import the program before `tvm.compile`, where buffers are made by `T.alloc_buffer`",
                ));
            }
            _ => {
                // Dimensions are known since the function began.
                return Ok(self.dimension_type(call)?.is_some() && self.scope.find(word).is_some());
            }
        }
        Ok(true)
    }

    /// A value with a name: it stands where the name does.
    fn bind_value(&mut self, name: &ast::ExprName, value: &Expr) -> Result<Vec<Stmt>, Refusal> {
        let before = self.weight;
        let term = match value {
            // `x = T.meta_var(…)` and `x = T.bind(…)`.
            Expr::Call(call)
                if matches!(self.path(&call.func).as_deref(), Some("meta_var" | "bind" | "Bind")) =>
            {
                match &*call.arguments.args {
                    [it, ..] => self.term(it)?,
                    [] => return Err(malformed(span(call), "a value is expected here")),
                }
            }
            value => self.term(value)?,
        };
        let (depth, weight) = (self.loop_depth, self.weight - before);
        let meaning = Meaning::Let { term, depth, is_stale: false, weight };
        self.scope.bind(name.id.as_str(), meaning);
        Ok(vec![])
    }

    fn store(&mut self, place: &ast::ExprSubscript, value: &Expr) -> Result<Vec<Stmt>, Refusal> {
        if !self.in_body {
            return Err(unsayable(
                span(place),
                "a store outside any block",
                "put it into one: `with T.sblock(\"name\"):`, with an iterator for each loop",
            ));
        }
        let place = self.access(place)?;
        let dtype = self.buffers[&place.buffer].dtype;
        let value = cast(self.term(value)?.into_value(Some(dtype)), dtype);
        if let Value::Load(it) = &value
            && *it == place
        {
            return Ok(vec![]);
        }
        self.scope.wrote(&place.buffer);
        Ok(vec![Stmt::store(place, value)])
    }

    /// A statement that is a call.
    fn said(&mut self, call: &ExprCall) -> Result<Vec<Stmt>, Refusal> {
        let path = self.path(&call.func).unwrap_or_default();
        match path.as_str() {
            "func_attr" => self.function_attributes(call)?,
            // Regions are derived from what the body does.
            "reads" | "writes" => {}
            "evaluate" => {
                let value = Args::of(call, &["value"])?.need("value")?;
                if !matches!(value, Expr::NumberLiteral(_)) {
                    return Err(unsayable(
                        span(value),
                        "a call for its effect cannot be told from its name",
                        "write stores into buffers; `tensorize` puts in tensor instructions",
                    ));
                }
            }
            "where" | "sblock_attr" | "block_attr" => {
                return Err(malformed(span(call), "this is said at the beginning of a block"));
            }
            _ => {
                let known = schedule::nearest(&path, SAID);
                let refusal = unsayable(
                    span(call),
                    format!("`{path}` does nothing that a program here could do"),
                    "write stores into buffers",
                );
                return Err(known.map_or(refusal.clone(), |it| refusal.help(format!("did you mean `{it}`?"))));
            }
        }
        Ok(vec![])
    }

    fn with(&mut self, it: &StmtWith) -> Result<Vec<Stmt>, Refusal> {
        let [item] = &*it.items else {
            return Err(malformed(span(it), "one block is opened at a time"));
        };
        let Expr::Call(call) = &item.context_expr else {
            return Err(malformed(span(&item.context_expr), "a block is opened by `T.sblock(\"name\")`"));
        };
        match self.path(&call.func).as_deref() {
            Some("block" | "sblock") => self.block(it, call),
            Some("init") => Err(malformed(span(call), "`T.init` is the beginning of a block that reduces")),
            Some("LetStmt" | "Let") => {
                let args = Args::of(call, &["value", "type_annotation", "var"])?;
                let Some(Expr::Name(name)) = item.optional_vars.as_deref() else {
                    return Err(malformed(span(call), "the value gets a name: `with T.LetStmt(x) as y:`"));
                };
                let mark = self.scope.mark();
                self.bind_value(name, args.need("value")?)?;
                let body = self.statements(&it.body);
                self.scope.leave(mark);
                body
            }
            path => {
                let what = path.map_or_else(|| "this".to_owned(), |it| format!("`{it}`"));
                Err(unsayable(
                    span(call),
                    format!("{what} opens nothing that a program here could have"),
                    "there are blocks, `T.sblock`, and in them `T.init`",
                ))
            }
        }
    }

    /// `if` around blocks: its condition is a guard of each of them.
    fn condition(&mut self, it: &StmtIf) -> Result<Vec<Stmt>, Refusal> {
        let help = "there are guards of blocks, `T.where(i < n)`, and `T.if_then_else` in values";
        if self.in_body {
            return Err(unsayable(span(&*it.test), "a block stores whatever its data are", help));
        }
        let guards = self.cond(&it.test)?.into_guards();
        let Some(guards) = guards.filter(|_| it.elif_else_clauses.is_empty()) else {
            return Err(unsayable(
                span(&*it.test),
                "only comparisons of indices, joined by `and`, guard blocks",
                help,
            ));
        };
        let count = self.guards.len();
        self.guards.extend(guards);
        let body = self.statements(&it.body);
        self.guards.truncate(count);
        body
    }
}
