//! Blocks: their iterators, guards and what they begin with.

use std::{collections::HashSet, sync::Arc};

use ir::{Block, BlockAttrs, DType, Index, Iter, IterKind, Less, Name, Stmt};
use ruff_python_ast::{self as ast, Expr, ExprCall, Stmt as Python, StmtWith};

use super::{
    args::{Args, items, text_of},
    attrs::entries,
    error::{Refusal, malformed, unsayable},
    function::Reader,
    nested::{Shape, shape},
    scope::Meaning,
    span,
    term::{INTEGER, Term},
};

/// A block whose body is read.
#[derive(Default)]
pub(super) struct Leaf {
    iters: Vec<Iter>,
    taken: HashSet<Name>,
    guards: Vec<Less>,
    attrs: BlockAttrs,
    init: Option<Stmt>,
    /// Its `buffer_dim_align`, which is about what it writes.
    aligns: Vec<Expr>,
    /// Whether an iterator of a left-out block around became one of it that reduces.
    has_outer_sum: bool,
}

/// What an iterator runs over, and its value.
struct Axis {
    start: Index,
    extent: Index,
    value: Index,
    dtype: DType,
}

/// What a block is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A block of the program.
    Leaf,
    /// A part of the block that is read.
    Part,
    /// Nothing: its guards and iterators are for those in it.
    Left,
}

impl Reader<'_> {
    /// `with T.sblock("name"):`.
    pub(super) fn block(&mut self, it: &StmtWith, call: &ExprCall) -> Result<Vec<Stmt>, Refusal> {
        let kind = match shape(&it.body, self.alias) {
            _ if self.in_body => Kind::Part,
            Shape::Flat | Shape::Plain => Kind::Leaf,
            Shape::Nested => Kind::Left,
        };
        let mark = self.scope.mark();
        let (guards, depth) = (self.guards.len(), self.loop_depth);
        let out = match kind {
            Kind::Part => self.part(it),
            Kind::Left => self.left_out(it),
            Kind::Leaf => self.leaf(it, call),
        };
        self.scope.leave(mark);
        self.guards.truncate(guards);
        self.loop_depth = depth;
        out
    }

    fn leaf(&mut self, it: &StmtWith, call: &ExprCall) -> Result<Vec<Stmt>, Refusal> {
        let word = Args::of(call, &["name", "no_realize", "exec_scope"])?.get("name");
        let word = word.map_or(Ok("block".to_owned()), text_of)?;
        let name = self.names.block(if word.is_empty() { "block" } else { &word });
        self.places.insert(name.clone(), span(call));
        self.leaf = Some(Leaf::default());
        // Deeper than anything around: what was read there may be written by another run of the block.
        self.loop_depth += 1;
        let rest = self.begin(&it.body, Kind::Leaf)?;
        self.in_body = true;
        let body = self.statements(rest);
        self.in_body = false;
        let mut leaf = self.leaf.take().expect("it was there a few lines above");
        let mut body = body?;
        if leaf.init.is_some() && leaf.has_outer_sum {
            return Err(unsayable(
                span(call),
                "its sum begins anew in each iteration of a block around, whose iterator it reads",
                "put the two blocks into one, or begin the sum in a block of its own",
            ));
        }
        // Without anything that reduces, each run begins and updates.
        if !leaf.iters.iter().any(|it| it.kind == IterKind::Reduce) {
            body.splice(0..0, leaf.init.take());
        }
        let guards = self.guards.iter().cloned().chain(leaf.guards).collect();
        let (iters, attrs, init) = (leaf.iters, leaf.attrs, leaf.init);
        let block = Block { name, iters, guards, attrs, init, body: Stmt::seq(body) };
        let mut written: Vec<Name> = vec![];
        for access in block.writes() {
            if !written.contains(&access.buffer) {
                written.push(access.buffer.clone());
            }
        }
        for expr in &leaf.aligns {
            self.align(expr, &written)?;
        }
        Ok(vec![Stmt::Block(Arc::new(block))])
    }

    /// A block in a block, whose loops and stores are a part of it.
    fn part(&mut self, it: &StmtWith) -> Result<Vec<Stmt>, Refusal> {
        let rest = self.begin(&it.body, Kind::Part)?;
        self.statements(rest)
    }

    /// A block around blocks that cannot be parts of it.
    fn left_out(&mut self, it: &StmtWith) -> Result<Vec<Stmt>, Refusal> {
        let rest = self.begin(&it.body, Kind::Left)?;
        self.statements(rest)
    }

    /// What is said at the beginning of a block; the statements after that.
    fn begin<'b>(&mut self, body: &'b [Python], kind: Kind) -> Result<&'b [Python], Refusal> {
        for (at, stmt) in body.iter().enumerate() {
            let is_read = match stmt {
                Python::Assign(it) => match (&*it.targets, &*it.value) {
                    ([target], Expr::Call(call)) => self.begin_named(target, call, kind)?,
                    _ => false,
                },
                Python::Expr(it) => match &*it.value {
                    Expr::Call(call) => self.begin_said(call, kind)?,
                    Expr::StringLiteral(_) => true,
                    _ => false,
                },
                Python::With(it) => match &*it.items {
                    [item] => match &item.context_expr {
                        Expr::Call(call) if self.path(&call.func).as_deref() == Some("init") => {
                            self.init(it, kind)?;
                            true
                        }
                        _ => false,
                    },
                    _ => false,
                },
                _ => false,
            };
            if !is_read {
                return Ok(&body[at..]);
            }
        }
        Ok(&[])
    }

    /// An iterator or a buffer, if a call makes one.
    fn begin_named(&mut self, target: &Expr, call: &ExprCall, kind: Kind) -> Result<bool, Refusal> {
        let path = self.path(&call.func).unwrap_or_default();
        let Some(word) = path.strip_prefix("axis.") else {
            let (Expr::Name(name), true) =
                (target, matches!(path.as_str(), "match_buffer" | "alloc_buffer" | "sblock_alloc_buffer"))
            else {
                return Ok(false);
            };
            let (word, at) = (name.id.as_str(), span(name));
            match path.as_str() {
                "match_buffer" => {
                    // The region of a part is one of iterators, that of a block around another of loops.
                    let in_body = std::mem::replace(&mut self.in_body, kind != Kind::Left);
                    let made = self.match_buffer(call, word, at);
                    self.in_body = in_body;
                    made?;
                }
                _ => self.allocate(call, word, at)?,
            }
            return Ok(true);
        };
        if word == "remap" {
            self.remap(target, call, kind)?;
        } else {
            let Expr::Name(name) = target else {
                return Err(malformed(span(target), "an iterator has one name"));
            };
            self.one_axis(name, call, word, kind)?;
        }
        Ok(true)
    }

    fn begin_said(&mut self, call: &ExprCall, kind: Kind) -> Result<bool, Refusal> {
        match self.path(&call.func).as_deref() {
            Some("reads" | "writes") => {}
            Some("where") => {
                let args = Args::of(call, &["predicate"])?;
                let expr = args.need("predicate")?;
                let guards = self.outside(|it| it.cond(expr))?.into_guards();
                let guards = guards.ok_or_else(|| {
                    unsayable(
                        span(expr),
                        "a guard is made of comparisons of indices that must all hold",
                        "write two blocks, or choose by `T.if_then_else` what is stored",
                    )
                })?;
                match (kind, &mut self.leaf) {
                    (Kind::Leaf, Some(leaf)) => leaf.guards.extend(guards),
                    (Kind::Leaf | Kind::Left | Kind::Part, _) => self.guards.extend(guards),
                }
            }
            Some("sblock_attr" | "block_attr") => self.block_attrs(call, kind)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is asked of a block. Of one that is left out it is asked of nothing, so it may only be what TVM's passes say.
    fn block_attrs(&mut self, call: &ExprCall, kind: Kind) -> Result<(), Refusal> {
        let args = Args::of(call, &["attrs"])?;
        for it in entries(args.need("attrs")?)? {
            if kind != Kind::Leaf {
                return Err(unsayable(
                    it.span,
                    format!("`{}` is asked of a block that has none of its own here", it.key),
                    "blocks inside blocks become one: annotate the outer or the inner one alone",
                ));
            }
            if it.key == "buffer_dim_align" {
                self.leaf.as_mut().expect("a block is read").aligns.push(it.value.clone());
                continue;
            }
            let value = self.annotation(it.value)?;
            let leaf = self.leaf.as_mut().expect("a block is read");
            leaf.attrs.set(&it.key, value).map_err(|wanted| {
                unsayable(
                    it.span,
                    format!("`{}` says something else here: it takes {wanted}", it.key),
                    "use another key for a note of your own",
                )
            })?;
        }
        Ok(())
    }

    /// Reads something that may speak of loops around the block.
    fn outside<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let (in_body, leaf) = (self.in_body, self.leaf.take());
        // A part of a block is inside it, and sees its iterators alone.
        let is_part = in_body;
        if is_part {
            self.leaf = leaf;
            return f(self);
        }
        let out = f(self);
        self.leaf = leaf;
        out
    }

    fn init(&mut self, it: &StmtWith, kind: Kind) -> Result<(), Refusal> {
        if kind != Kind::Leaf {
            return Err(unsayable(
                span(&it.items[0].context_expr),
                "a sum that begins in a block around others",
                "begin it in a block of its own: `decompose_reduction` makes one",
            ));
        }
        let mark = self.scope.mark();
        self.in_body = true;
        let body = self.statements(&it.body);
        self.in_body = false;
        self.scope.leave(mark);
        let init = Stmt::seq(body?);
        let leaf = self.leaf.as_mut().expect("a block is read");
        leaf.init = Some(init);
        Ok(())
    }

    fn remap(&mut self, target: &Expr, call: &ExprCall, kind: Kind) -> Result<(), Refusal> {
        let args = Args::of(call, &["kinds", "bindings", "dtype"])?;
        let kinds = text_of(args.need("kinds")?)?;
        let (names, bindings) = (items(target), items(args.need("bindings")?));
        if kinds.chars().count() != bindings.len() || names.len() != bindings.len() {
            return Err(malformed(span(call), "a kind, a name and a loop for each iterator"));
        }
        for ((letter, name), binding) in kinds.chars().zip(names).zip(bindings) {
            let (Expr::Name(name), Expr::Name(target)) = (name, binding) else {
                return Err(malformed(span(binding), "a name of a loop is expected here"));
            };
            let iter_kind = iter_kind(&letter.to_string(), call)?;
            let axis = match self.scope.find(target.id.as_str()).cloned() {
                Some(Meaning::Loop { value, dtype, start, extent }) => Axis { start, extent, value, dtype },
                // A part of a block has no iterators: what it calls one is the loop.
                Some(Meaning::Index(value, dtype)) if kind == Kind::Part => {
                    Axis { start: Index::int(0), extent: Index::int(1), value, dtype }
                }
                _ => return Err(malformed(span(target), format!("`{}` is no loop", target.id))),
            };
            self.iterator(name, iter_kind, axis, kind);
        }
        Ok(())
    }

    fn one_axis(
        &mut self,
        name: &ast::ExprName,
        call: &ExprCall,
        word: &str,
        kind: Kind,
    ) -> Result<(), Refusal> {
        let args = Args::of(call, &["dom", "binding", "dtype"])?;
        let iter_kind = iter_kind(word, call)?;
        let dom = args.need("dom")?;
        let (start, extent) = match dom {
            Expr::Tuple(_) | Expr::List(_) => match items(dom) {
                [from, to] => {
                    let (from, to) = (self.outside(|it| it.index(from))?, self.outside(|it| it.index(to))?);
                    let extent = difference(&to, &from);
                    (from, extent)
                }
                _ => return Err(malformed(span(dom), "an extent, or a start and an end")),
            },
            dom => (Index::int(0), self.outside(|it| it.index(dom))?),
        };
        let binding = args.need("binding")?;
        let term = self.outside(|it| it.term(binding))?;
        let Some(value) = term.to_index() else {
            return Err(malformed(span(binding), "an index is expected here"));
        };
        let dtype = term.dtype().filter(|it| *it == DType::I64).unwrap_or(INTEGER);
        self.iterator(name, iter_kind, Axis { start, extent, value, dtype }, kind);
        Ok(())
    }

    /// An iterator of a block. It counts from 0, and the file from its start.
    fn iterator(&mut self, name: &ast::ExprName, iter_kind: IterKind, axis: Axis, kind: Kind) {
        let word = name.id.as_str();
        let Axis { start, extent, value, dtype } = axis;
        let is_shifted = start.as_int() != Some(0);
        let binding = if is_shifted { difference(&value, &start) } else { value.clone() };
        let meaning = match (kind, &mut self.leaf) {
            (Kind::Leaf, Some(leaf)) => {
                let var = self.names.iterator(word, &leaf.taken);
                leaf.taken.insert(var.clone());
                leaf.iters.push(Iter::new(&var, extent, iter_kind, binding));
                Meaning::Index(start + Index::var(&var), dtype)
            }
            (Kind::Part, _) => Meaning::Index(value, dtype),
            (Kind::Leaf | Kind::Left, _) => {
                let iter = Iter::new(&Name::new(word), extent, iter_kind, binding);
                Meaning::Outer { iter, start, dtype }
            }
        };
        self.scope.bind(word, meaning);
    }

    /// The iterator of a left-out block: its binding where loops may stand, and an iterator of the block that reads it.
    pub(super) fn outer(&mut self, name: &ast::ExprName, iter: Iter, start: Index, dtype: DType) -> Term {
        let Some(leaf) = self.leaf.as_mut().filter(|_| self.in_body) else {
            return Term::Index(iter.binding + start, dtype);
        };
        let var = self.names.iterator(name.id.as_str(), &leaf.taken);
        leaf.taken.insert(var.clone());
        leaf.has_outer_sum |= iter.kind == IterKind::Reduce;
        leaf.iters.push(Iter { var: var.clone(), ..iter });
        let index = Index::var(&var) + start;
        self.scope.bind(name.id.as_str(), Meaning::Index(index.clone(), dtype));
        Term::Index(index, dtype)
    }
}

fn iter_kind(word: &str, call: &ExprCall) -> Result<IterKind, Refusal> {
    match word {
        "spatial" | "S" => Ok(IterKind::Spatial),
        "reduce" | "R" => Ok(IterKind::Reduce),
        _ => Err(unsayable(
            span(call),
            format!("there are no iterators of kind `{word}`"),
            "there are spatial ones, `T.axis.S`, and reductions, `T.axis.R`",
        )),
    }
}

/// What lies between two indices, in its simplest form.
pub(super) fn difference(upper: &Index, lower: &Index) -> Index {
    ir::arith::Bounds::default().simplify(&(upper - lower))
}
