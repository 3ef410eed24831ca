//! From TVMScript to a program: a parser of Python, and a reader of what TVM's own parser takes.
//!
//! Python is read by `ruff_python_parser`; nothing of the file is run. What a function says is then read from the top: the
//! header and its buffers (`function.rs`), loops and sequences (`stmt.rs`, `loops.rs`), blocks (`block.rs`), and expressions, which
//! know their types as TVM's do (`term.rs`, `expr.rs`, `call.rs`, `cond.rs`).
//!
//! Blocks inside blocks, which programs here have not, come in two ways. A block with iterators whose inner ones are plain nests
//! is one block with loops inside. Any other is left out: its guards go to the blocks in it, and its iterators to those that
//! read them. Neither changes what is computed.

mod access;
mod args;
mod attrs;
mod block;
mod buffer;
mod call;
mod cond;
mod error;
mod expr;
mod function;
mod length;
mod loops;
mod names;
mod nested;
mod scope;
mod stmt;
mod term;

use std::ops::Range;

use indexmap::IndexMap;
use ir::{Func, Name};
use ruff_python_ast::{Decorator, Expr, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

pub(super) use call::dtype_word;
pub(crate) use error::ImportProblem;
use error::{Refusal, refuse};
pub(super) use function::{BELOW, LAYOUT, NAMES, TOLERANCE};
pub(super) use loops::{VIRTUAL_THREAD, axis_word};

/// A program, and where its parts stand in the file.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) func: Func,
    /// What introduces loops, blocks and buffers.
    pub(crate) places: IndexMap<Name, Range<usize>>,
    /// Names that could not be kept: what the file says, and what the program says.
    pub(crate) renamed: Vec<(String, Name)>,
}

/// The bytes of the text that a node stands at.
fn span(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start().to_usize()..range.end().to_usize()
}

/// A function that TVM compiles, and what its module calls the language: `T` as a rule.
struct PrimFunc<'a> {
    def: &'a StmtFunctionDef,
    alias: &'a str,
}

/// Reads a function of a file: that of a name, or the only one.
pub(crate) fn import(text: &str, name: Option<&str>) -> Result<Imported, Refusal> {
    length::check(text)?;
    let parsed = ruff_python_parser::parse_module(text).map_err(|err| {
        let at = err.location.start().to_usize()..err.location.end().to_usize();
        refuse(ImportProblem::Python, at, format!("this is not Python: {}", err.error))
    })?;
    let body = &parsed.syntax().body;
    let mut found = vec![];
    collect(body, &mut found);
    let chosen = choose(&found, name)?;
    function::read(chosen, body)
}

fn collect<'a>(body: &'a [Stmt], found: &mut Vec<PrimFunc<'a>>) {
    for stmt in body {
        match stmt {
            Stmt::FunctionDef(def) => match def.decorator_list.iter().find_map(alias) {
                Some(alias) => found.push(PrimFunc { def, alias }),
                None => collect(&def.body, found),
            },
            Stmt::ClassDef(class) => collect(&class.body, found),
            _ => {}
        }
    }
}

/// What stands before `.prim_func` in a decorator.
fn alias(decorator: &Decorator) -> Option<&str> {
    let expr = match &decorator.expression {
        Expr::Call(call) => &*call.func,
        expr => expr,
    };
    match expr {
        Expr::Attribute(it) if it.attr.as_str() == "prim_func" => match &*it.value {
            Expr::Name(name) => Some(name.id.as_str()),
            _ => None,
        },
        _ => None,
    }
}

fn choose<'a, 'b>(found: &'b [PrimFunc<'a>], name: Option<&str>) -> Result<&'b PrimFunc<'a>, Refusal> {
    let names = || found.iter().map(|it| it.def.name.as_str());
    let listed = || names().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    let missing = |title: String| refuse(ImportProblem::Function, 0..0, title);
    match (name, found) {
        (_, []) => Err(missing("the file has no function that is decorated with `@T.prim_func`".to_owned())
            .help("`print(mod.script())` writes one, for a module `mod` of TVM's")),
        (Some(name), _) => match found.iter().rev().find(|it| it.def.name.as_str() == name) {
            Some(it) => Ok(it),
            None => Err(missing(format!(
                "the file has no function `{name}` that is decorated with `@T.prim_func`"
            ))
            .help(match schedule::nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there is {}", listed()),
            })),
        },
        (None, [it]) => Ok(it),
        (None, [_, second, ..]) => {
            let title = format!("the file has {} functions, and a program is one", found.len());
            Err(refuse(ImportProblem::Function, span(&second.def.name), title)
                .help(format!("name one by `--func`; there is {}", listed())))
        }
    }
}
