//! Blocks in blocks: which of them can be parts of the outer one.

use ruff_python_ast::{Expr, Stmt};

use super::args::path_below;

/// What is inside a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// No block.
    Flat,
    /// Blocks of plain loops and stores, and the outer one has iterators: they are parts of it.
    Plain,
    /// Other blocks.
    Nested,
}

/// Looks at the body of a block.
pub(super) fn shape(body: &[Stmt], alias: &str) -> Shape {
    let looked = Looked::at(body, alias);
    match looked {
        Looked { blocks: false, .. } => Shape::Flat,
        Looked { is_plain: true, has_iterators: true, .. } => Shape::Plain,
        Looked { .. } => Shape::Nested,
    }
}

/// What is found in a block.
struct Looked {
    blocks: bool,
    has_iterators: bool,
    is_plain: bool,
}

impl Looked {
    fn at(body: &[Stmt], alias: &str) -> Looked {
        let mut out = Looked { blocks: false, has_iterators: false, is_plain: true };
        out.look(body, alias, 0);
        out
    }

    fn look(&mut self, body: &[Stmt], alias: &str, depth: usize) {
        for stmt in body {
            match stmt {
                Stmt::For(it) => {
                    let call = if let Expr::Call(call) = &*it.iter { Some(call) } else { None };
                    let path = call.and_then(|it| path_below(&it.func, alias));
                    self.is_plain &= matches!(path.as_deref(), None | Some("grid" | "serial"));
                    self.is_plain &= call.is_none_or(|it| it.arguments.keywords.is_empty());
                    self.look(&it.body, alias, depth);
                }
                Stmt::With(it) => {
                    let path = it.items.first().and_then(|it| match &it.context_expr {
                        Expr::Call(call) => path_below(&call.func, alias),
                        _ => None,
                    });
                    match path.as_deref() {
                        Some("block" | "sblock") => {
                            self.blocks = true;
                            self.look(&it.body, alias, depth + 1);
                        }
                        Some("init") => {
                            self.is_plain &= depth == 0;
                            self.look(&it.body, alias, depth);
                        }
                        _ => self.look(&it.body, alias, depth),
                    }
                }
                Stmt::If(it) => {
                    self.is_plain = false;
                    self.look(&it.body, alias, depth);
                }
                Stmt::Assign(it) => {
                    if let Expr::Call(call) = &*it.value
                        && path_below(&call.func, alias).is_some_and(|it| it.starts_with("axis."))
                    {
                        self.has_iterators |= depth == 0;
                    }
                }
                Stmt::Expr(it) => {
                    if let Expr::Call(call) = &*it.value
                        && let Some("where" | "block_attr" | "sblock_attr") =
                            path_below(&call.func, alias).as_deref()
                    {
                        self.is_plain &= depth == 0;
                    }
                }
                _ => {}
            }
        }
    }
}
