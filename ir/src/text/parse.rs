//! Parses a function: lines by their first word, bodies by indentation.

use std::{str::FromStr, sync::Arc};

use indexmap::IndexMap;

use super::{
    MAX_DEPTH,
    instr::instr,
    lex::{Cursor, Failure, Line, ParseError, ParseErrorKind, Token, lines},
    parse_attrs::annotations,
    parse_kernel::mbarriers,
};
use crate::{
    AllocScope, Block, BlockAttrs, Buffer, Buffers, DType, Func, Index, Instr, Iter, IterKind, Layout, Less,
    Literal, Loop, LoopAttrs, LoopKind, Role, Scope, Stmt, StorageAlign, Swizzle, ThreadAxis, Value,
    XorSwizzle,
};

/// Parses the text form of a function. The result is well formed in the sense of the grammar only; ask
/// [`crate::verify()`] for the rest.
pub fn parse(text: &str) -> Result<Func, ParseError> {
    let func = || {
        let lines = lines(text)?;
        let Some((first, rest)) = lines.split_first() else {
            let kind = ParseErrorKind::expected("`func`", "the end of the text".to_owned());
            return Err(Failure { at: text.len(), kind });
        };
        Parser { lines: rest }.func(first)
    };
    func().map_err(|it| it.place(text))
}

struct Parser<'a> {
    /// What is still to be read.
    lines: &'a [Line<'a>],
}

impl<'a> Parser<'a> {
    fn func(&mut self, first: &Line<'_>) -> Result<Func, Failure> {
        if first.level > 0 {
            return Err(Failure { at: first.start(), kind: ParseErrorKind::TooDeepLine });
        }
        let mut line = Cursor::new(first);
        line.expect_word("func")?;
        let name = line.name("the name of the function")?;
        let dims = if line.eat("(") { line.list(")", |it| it.name("a dimension"))? } else { vec![] };
        let tolerance = if line.eat_word("tolerance") { Some(tolerance(&mut line)?) } else { None };
        line.finish()?;

        let mut buffers = Buffers::default();
        while let Some(line) = self.lines.first().filter(|it| it.level == 1) {
            let mut line = Cursor::new(line);
            let Some(role) = role(&line) else { break };
            line.bump();
            let at = line.at();
            let name = line.name("the name of a buffer")?;
            line.expect(":")?;
            let buffer = buffer(&mut line, role)?;
            if buffers.insert(name.clone(), buffer).is_some() {
                return Err(Failure { at, kind: ParseErrorKind::Twice(name.to_string()) });
            }
            self.lines = &self.lines[1..];
        }
        let mut barriers = IndexMap::new();
        while let Some(line) = self.lines.first().filter(|it| it.level == 1) {
            let mut line = Cursor::new(line);
            if !matches!(
                (line.peek(), line.peek_second()),
                (Some(Token::Word("mbarriers")), Some(Token::Word(_)))
            ) {
                break;
            }
            line.bump();
            let at = line.at();
            let name = line.name("a name")?;
            if barriers.insert(name.clone(), mbarriers(&mut line)?).is_some() {
                return Err(Failure { at, kind: ParseErrorKind::Twice(name.to_string()) });
            }
            line.finish()?;
            self.lines = &self.lines[1..];
        }
        let body = self.body(1)?;
        match self.lines.first() {
            None => Ok(Func { name, dims, tolerance, buffers, mbarriers: barriers, body }),
            Some(line) => Err(Cursor::new(line).expected("one function in a text")),
        }
    }

    /// The statements at a level.
    fn body(&mut self, level: usize) -> Result<Stmt, Failure> {
        let mut stmts = Vec::new();
        while let Some(line) = self.lines.first().filter(|it| it.level >= level) {
            if line.level > level {
                return Err(Failure { at: line.start(), kind: ParseErrorKind::TooDeepLine });
            }
            if level > MAX_DEPTH as usize {
                return Err(Failure { at: line.start(), kind: ParseErrorKind::TooDeep });
            }
            self.lines = &self.lines[1..];
            stmts.push(self.stmt(line)?);
        }
        Ok(Stmt::seq(stmts))
    }

    fn stmt(&mut self, line: &'a Line<'a>) -> Result<Stmt, Failure> {
        let below = line.level + 1;
        let mut line = Cursor::new(line);
        match (line.peek(), line.peek_second()) {
            (Some(Token::Word("for")), Some(Token::Word(_))) => self.for_loop(line, below),
            (Some(Token::Word("block")), Some(Token::Word(_))) => self.block(line, below),
            (Some(Token::Word("init")), None) => {
                Err(line.expected("a statement (`init` is the first line in a block)"))
            }
            (Some(Token::Word(_)), _) if role(&line).is_none() => match instr(&mut line)? {
                Some(Instr::Store(place, value)) => Ok(Stmt::store(place, value)),
                Some(it) => Ok(Stmt::Instr(Arc::new(it))),
                None => Err(line.expected("`for`, `block` or a store")),
            },
            _ if role(&line).is_some() => Err(line.expected("a statement (buffers come before statements)")),
            _ => Err(line.expected("`for`, `block` or a store")),
        }
    }

    fn for_loop(&mut self, mut line: Cursor<'_>, below: usize) -> Result<Stmt, Failure> {
        line.expect_word("for")?;
        let var = line.name("a variable")?;
        line.expect_word("in")?;
        match line.peek() {
            Some(Token::Number { digits: "0", suffix: "" }) => line.bump(),
            _ => return Err(line.expected("`0`, where every loop starts")),
        }
        line.expect("..")?;
        let extent = line.index()?;
        let kind = if line.eat("@") { loop_kind(&mut line)? } else { LoopKind::Serial };
        let mut attrs = LoopAttrs::default();
        annotations(&mut line, &mut |key, value| attrs.set(key, value))?;
        line.finish()?;
        let body = self.body(below)?;
        Ok(Stmt::Loop(Arc::new(Loop { var, extent, kind, attrs, body })))
    }

    fn block(&mut self, mut line: Cursor<'_>, below: usize) -> Result<Stmt, Failure> {
        line.expect_word("block")?;
        let name = line.name("the name of the block")?;
        line.expect("(")?;
        let iters = line.list(")", iter)?;
        let guards = if line.eat_word("if") { line.conditions()? } else { vec![] };
        let mut attrs = BlockAttrs::default();
        annotations(&mut line, &mut |key, value| attrs.set(key, value))?;
        line.finish()?;
        let init = match self.lines.first() {
            Some(line) if line.level == below && is_init(line) => {
                self.lines = &self.lines[1..];
                Some(self.body(below + 1)?)
            }
            _ => None,
        };
        let body = self.body(below)?;
        Ok(Stmt::Block(Arc::new(Block { name, iters, guards, attrs, init, body })))
    }
}

/// How far outputs may be from exact ones.
fn tolerance(line: &mut Cursor<'_>) -> Result<Literal, Failure> {
    let Some(Token::Number { digits, suffix: "f64" }) = line.peek() else {
        return Err(line.expected("a number of type f64"));
    };
    let literal = Literal::parse(false, digits, DType::F64);
    let literal = literal.map_err(|kind| Failure { at: line.at(), kind })?;
    line.bump();
    Ok(literal)
}

fn is_init(line: &Line<'_>) -> bool {
    let cursor = Cursor::new(line);
    cursor.is_word("init") && cursor.peek_second().is_none()
}

/// The role of the buffer that a line declares.
pub(super) fn role(line: &Cursor<'_>) -> Option<Role> {
    let word = match (line.peek(), line.peek_second()) {
        (Some(Token::Word(word)), Some(Token::Word(_))) => *word,
        _ => return None,
    };
    [Role::Input, Role::Output, Role::Temp].into_iter().find(|it| it.as_str() == word)
}

/// What follows the colon of a buffer.
fn buffer(line: &mut Cursor<'_>, role: Role) -> Result<Buffer, Failure> {
    let dtype = dtype(line)?;
    line.expect("[")?;
    let shape = line.list("]", Cursor::index)?;
    let scope = if line.eat("@") { scope(line)? } else { Scope::Global };
    let layout = layout(line)?;
    let alloc_scope = if line.eat_word("once") {
        Some(AllocScope::Program)
    } else if line.eat_word("per") {
        Some(AllocScope::Loop(line.name("a loop")?))
    } else {
        None
    };
    let below = line.below()?;
    line.finish()?;
    Ok(Buffer { dtype, shape, scope, role, layout, alloc_scope, below })
}

/// `align(0, 32, 8) swizzle(3, 4, 3)`, or nothing.
pub(super) fn layout(line: &mut Cursor<'_>) -> Result<Layout, Failure> {
    let mut layout = Layout::default();
    while line.is_word("align") && line.peek_second() == Some(&Token::Sign("(")) {
        line.bump();
        line.expect("(")?;
        let axis = line.count("a dimension")?;
        line.expect(",")?;
        let factor = line.integer()?;
        line.expect(",")?;
        let offset = line.integer()?;
        line.expect(")")?;
        layout.align.push(StorageAlign { axis, factor, offset });
    }
    if line.eat_word("swizzle") {
        line.expect("(")?;
        layout.swizzle = Some(swizzle(line)?);
        line.expect(")")?;
    }
    if line.eat_word("panel") {
        let none = line.expected("a number of elements");
        let count: u32 = line.count("a number of elements")?;
        layout.panel = Some(i64::from(count)).filter(|it| *it > 0);
        layout.panel.ok_or(none)?;
    }
    Ok(layout)
}

/// What stands between the parentheses of a swizzle.
fn swizzle(line: &mut Cursor<'_>) -> Result<Swizzle, Failure> {
    if line.eat_word("auto") {
        return Ok(Swizzle::Auto);
    }
    if line.eat_word("none") {
        return Ok(Swizzle::None);
    }
    let bits = line.count("a number of bits, or `auto`")?;
    line.expect(",")?;
    let base = line.count("the lowest bit")?;
    line.expect(",")?;
    let shift = line.count("a distance of bits")?;
    Ok(Swizzle::Xor(XorSwizzle { bits, base, shift }))
}

pub(super) fn dtype(line: &mut Cursor<'_>) -> Result<DType, Failure> {
    let dtype = match line.peek() {
        Some(Token::Word(word)) => word.parse().ok(),
        _ => None,
    };
    let dtype = dtype.ok_or_else(|| line.expected("a type such as `f32`"))?;
    line.bump();
    Ok(dtype)
}

/// What follows the `@` of a buffer.
pub(super) fn scope(line: &mut Cursor<'_>) -> Result<Scope, Failure> {
    let scope = match line.peek() {
        Some(Token::Word(word)) => Scope::parse(word),
        _ => None,
    };
    let scope = scope.ok_or_else(|| line.expected("`global`, `shared`, `fragment` or `local`"))?;
    line.bump();
    Ok(scope)
}

/// What follows the `@` of a loop.
fn loop_kind(line: &mut Cursor<'_>) -> Result<LoopKind, Failure> {
    let unknown = line.expected("`parallel`, `vectorized`, `unrolled` or a thread axis such as `blockIdx.x`");
    let word = match line.peek() {
        Some(Token::Word(word)) => *word,
        _ => return Err(unknown),
    };
    line.bump();
    match word {
        "parallel" => Ok(LoopKind::Parallel),
        "vectorized" => Ok(LoopKind::Vectorized),
        "unrolled" => Ok(LoopKind::Unrolled),
        "blockIdx" | "cluster" | "threadIdx" => {
            line.expect(".")?;
            let axis = line.name("`x`, `y` or `z`")?;
            ThreadAxis::parse(&format!("{word}.{axis}")).map(LoopKind::Bound).ok_or(unknown)
        }
        _ => Err(unknown),
    }
}

/// `vk: reduce 64 = k`.
fn iter(line: &mut Cursor<'_>) -> Result<Iter, Failure> {
    let var = line.name("an iterator")?;
    line.expect(":")?;
    let kind = if line.eat_word("reduce") { IterKind::Reduce } else { IterKind::Spatial };
    let extent = line.index()?;
    line.expect("=")?;
    let binding = line.index()?;
    Ok(Iter { var, extent, kind, binding })
}

/// Parses a text that is one line and nothing else.
fn alone<T>(
    text: &str,
    what: &str,
    parse: impl FnOnce(&mut Cursor<'_>) -> Result<T, Failure>,
) -> Result<T, ParseError> {
    let text = text.trim_start();
    let whole = || {
        let lines = lines(text)?;
        let Some((first, rest)) = lines.split_first() else {
            return Err(Failure { at: 0, kind: ParseErrorKind::expected(what, "nothing".to_owned()) });
        };
        let mut line = Cursor::new(first);
        let out = parse(&mut line)?;
        line.finish()?;
        match rest.first() {
            None => Ok(out),
            Some(second) => Err(Cursor::new(second).expected("one line")),
        }
    };
    whole().map_err(|it| it.place(text))
}

fn less(line: &mut Cursor<'_>) -> Result<Less, Failure> {
    let lhs = line.index()?;
    line.expect("<")?;
    Ok(Less::new(lhs, line.index()?))
}

fn index(line: &mut Cursor<'_>) -> Result<Index, Failure> {
    line.index()
}

fn value(line: &mut Cursor<'_>) -> Result<Value, Failure> {
    line.value()
}

impl FromStr for Index {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Index, ParseError> {
        alone(text, "an index", index)
    }
}

impl FromStr for Less {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Less, ParseError> {
        alone(text, "a condition", less)
    }
}

impl FromStr for Value {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Value, ParseError> {
        alone(text, "a value", value)
    }
}
