//! From a program to TVMScript, in the language of TVM 0.27. What is written and read again is the same program.
//!
//! What TVM has no words for goes where its parser keeps what it does not know: intrinsics, roles and the like as annotations, layouts
//! and bounds as attributes of the function. TVM does not obey them.

mod expr;
mod head;
mod stmt;

use std::fmt::Write;

use indexmap::IndexMap;
use ir::{Code, Coded, Func, Name, Stmt};

use expr::Printer;

/// What TVMScript cannot say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unwritable {
    /// What it is about: a loop, a block or a buffer.
    pub(crate) at: Name,
    pub(crate) message: String,
}

impl Unwritable {
    pub(crate) const CODES: &'static [Code] = &[Code::new(4507)];
}

impl Coded for Unwritable {
    fn code(&self) -> Code {
        Unwritable::CODES[0]
    }
}

/// A program as a Python file with one function.
pub(crate) fn script(func: &Func) -> Result<String, Unwritable> {
    let mut out = "from tvm.script import tirx as T\n\n\n@T.prim_func(s_tir=True)\n".to_owned();
    let printer = Printer { func, at: &func.name };
    expect_words(func)?;
    head::write(&printer, &mut out)?;
    stmt::write(&printer, &func.body, 1, &mut out)?;
    Ok(out)
}

/// The names that Python has another use for, each with the word that stands for it.
fn other_words(func: &Func) -> IndexMap<String, Name> {
    let mut out = IndexMap::new();
    let mut add = |name: &Name| {
        let word = word(name);
        if *name != *word.as_str() {
            out.insert(word, name.clone());
        }
    };
    [&func.name].into_iter().chain(&func.dims).chain(func.buffers.keys()).for_each(&mut add);
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(it) => add(&it.var),
        Stmt::Block(it) => it.iters.iter().for_each(|it| add(&it.var)),
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    out
}

/// Refuses a program in which a word that would stand for a name is a name itself.
fn expect_words(func: &Func) -> Result<(), Unwritable> {
    let clash = other_words(func).into_iter().find(|it| func.is_taken(&Name::new(&it.0)));
    clash.map_or(Ok(()), |(word, at)| {
        let message = format!("`{at}` is a word of Python's or of the file, and `{word}` a name already");
        Err(Unwritable { at, message })
    })
}

/// A name of the program as one of Python's.
fn word(name: &Name) -> String {
    let is_taken = KEYWORDS.split(' ').any(|it| *name == it);
    if is_taken { format!("{name}_") } else { name.to_string() }
}

/// The words of Python that are none of C's, and what the file uses.
const KEYWORDS: &str = "False None True and as assert async await class def del elif except finally from global import in is \
    lambda nonlocal not or pass raise with yield range tvm T";

/// A text as a literal of Python's.
fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => {
                write!(out, "\\u{:04x}", u32::from(letter)).expect("writing to a string does not fail");
            }
            letter => out.push(letter),
        }
    }
    out + "\""
}

/// Items in parentheses, as Python writes a tuple.
fn tuple(items: &[String]) -> String {
    match items {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}
