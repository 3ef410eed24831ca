//! Parses the lowered form, so that tests can say what lowering would never make and people can change a kernel by
//! hand. Comments are not read, and so neither is for which buffers a wait is there and how many blocks are wanted on
//! a multiprocessor.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    MAX_DEPTH,
    lex::{Cursor, Failure, Line, ParseError, ParseErrorKind, Token, lines},
    parse::{dtype, role, scope},
};
use crate::{Alloc, Arg, For, ForKind, Index, Kernel, Module, Name, Op, ThreadAxis, Turn, TurnKind, Wait};

/// Parses the text form of a module. The result is well formed in the sense of the grammar only; the names in it may
/// mean nothing.
pub fn parse_module(text: &str) -> Result<Module, ParseError> {
    let module = || {
        let lines = lines(text)?;
        let Some((first, rest)) = lines.split_first() else {
            let kind = ParseErrorKind::expected("`module`", "the end of the text".to_owned());
            return Err(Failure { at: text.len(), kind });
        };
        Parser { lines: rest }.module(first)
    };
    module().map_err(|it| it.place(text))
}

struct Parser<'a> {
    /// What is still to be read.
    lines: &'a [Line<'a>],
}

impl<'a> Parser<'a> {
    fn module(&mut self, first: &Line<'_>) -> Result<Module, Failure> {
        if first.level > 0 {
            return Err(Failure { at: first.start(), kind: ParseErrorKind::TooDeepLine });
        }
        let mut line = Cursor::new(first);
        line.expect_word("module")?;
        let name = line.name("the name of the module")?;
        let dims = if line.eat("(") { line.list(")", |it| it.name("a dimension"))? } else { vec![] };
        line.finish()?;

        let mut args = IndexMap::new();
        while let Some(line) = self.lines.first().filter(|it| it.level == 1) {
            let mut line = Cursor::new(line);
            let Some(role) = role(&line) else { break };
            line.bump();
            let at = line.at();
            let name = line.name("the name of a buffer")?;
            line.expect(":")?;
            let dtype = dtype(&mut line)?;
            line.expect("[")?;
            let len = line.index()?;
            line.expect("]")?;
            let zeroed = line.eat_word("zeroed");
            line.finish()?;
            if args.insert(name.clone(), Arg { dtype, len, role, zeroed }).is_some() {
                return Err(Failure { at, kind: ParseErrorKind::Twice(name.to_string()) });
            }
            self.lines = &self.lines[1..];
        }
        let mut kernels = vec![];
        while let Some((line, rest)) = self.lines.split_first() {
            if line.level != 1 {
                return Err(Cursor::new(line).expected("a kernel"));
            }
            self.lines = rest;
            kernels.push(self.kernel(Cursor::new(line))?);
        }
        Ok(Module { name, dims, args, kernels })
    }

    fn kernel(&mut self, mut line: Cursor<'_>) -> Result<Kernel, Failure> {
        line.expect_word("kernel")?;
        let name = line.name("the name of the kernel")?;
        let mut launch = IndexMap::new();
        if line.eat("<") {
            line.expect("<")?;
            line.expect("<")?;
            for (axis, extent) in line.list(">", axis)? {
                launch.insert(axis, extent);
            }
            line.expect(">")?;
            line.expect(">")?;
        }
        line.expect("(")?;
        let args = line.list(")", |line| {
            let written = line.is_word("mut")
                && matches!(line.peek_second(), Some(Token::Word(_)))
                && line.eat_word("mut");
            Ok((line.name("a buffer")?, written))
        })?;
        line.finish()?;
        let args = args.into_iter().collect();
        Ok(Kernel { name, args, launch, blocks_per_sm: None, body: self.body(2)? })
    }

    /// The statements at a level.
    fn body(&mut self, level: usize) -> Result<Vec<Op>, Failure> {
        let mut ops = Vec::new();
        while let Some(line) = self.lines.first().filter(|it| it.level >= level) {
            if line.level > level {
                return Err(Failure { at: line.start(), kind: ParseErrorKind::TooDeepLine });
            }
            if level > MAX_DEPTH as usize {
                return Err(Failure { at: line.start(), kind: ParseErrorKind::TooDeep });
            }
            self.lines = &self.lines[1..];
            ops.push(self.op(line)?);
        }
        Ok(ops)
    }

    fn op(&mut self, line: &'a Line<'a>) -> Result<Op, Failure> {
        let below = line.level + 1;
        let mut line = Cursor::new(line);
        let word = match line.peek() {
            Some(Token::Word(word)) => *word,
            _ => return Err(line.expected("a statement")),
        };
        if let Some(Token::Sign("[")) = line.peek_second() {
            let place = line.access()?;
            let (copies, adds) = (line.eat("<"), line.eat("+"));
            line.expect(if copies { "-" } else { "=" })?;
            let value = line.value()?;
            line.finish()?;
            return Ok(match (copies, adds) {
                (true, _) => Op::Copy(place, value),
                (false, true) => Op::AtomicAdd(place, value),
                (false, false) => Op::Store(place, value),
            });
        }
        if word == "for" {
            return self.for_loop(line, below);
        }
        let unknown = line.expected(
            "`alloc`, `for`, `if`, `commit`, `wait`, `barrier`, `acquire`, `release`, a store or a copy",
        );
        line.bump();
        let op = match word {
            "alloc" => Op::Alloc(alloc(&mut line)?),
            "if" => {
                let cond = line.conditions()?;
                line.finish()?;
                return Ok(Op::If(cond, self.body(below)?));
            }
            "commit" => Op::Commit,
            "wait" => Op::Wait(Wait { in_flight: line.count("how many may be in flight")?, buffers: vec![] }),
            "barrier" => Op::Barrier,
            "acquire" => Op::Turn(turn(&mut line, TurnKind::Acquire)?),
            "release" => Op::Turn(turn(&mut line, TurnKind::Release)?),
            _ => return Err(unknown),
        };
        line.finish()?;
        Ok(op)
    }

    fn for_loop(&mut self, mut line: Cursor<'_>, below: usize) -> Result<Op, Failure> {
        line.expect_word("for")?;
        let var = line.name("a variable")?;
        line.expect_word("in")?;
        match line.peek() {
            Some(Token::Number { digits: "0", suffix: "" }) => line.bump(),
            _ => return Err(line.expected("`0`, where every loop starts")),
        }
        line.expect("..")?;
        let extent = line.index()?;
        let mut kind = ForKind::Serial;
        if line.eat("@") {
            let kinds = [
                ("parallel", ForKind::Parallel),
                ("vectorized", ForKind::Vectorized),
                ("unrolled", ForKind::Unrolled),
            ];
            let found = kinds.into_iter().find(|it| line.eat_word(it.0));
            kind = found.ok_or_else(|| line.expected("`parallel`, `vectorized` or `unrolled`"))?.1;
        }
        line.finish()?;
        Ok(Op::For(Arc::new(For { var, extent, kind, body: self.body(below)? })))
    }
}

/// `X: f32[64] @shared at 1024 align 1024`.
fn alloc(line: &mut Cursor<'_>) -> Result<Alloc, Failure> {
    let name = line.name("the name of a buffer")?;
    line.expect(":")?;
    let dtype = dtype(line)?;
    line.expect("[")?;
    let len = i64::from(line.count::<u32>("how many elements")?);
    line.expect("]")?;
    line.expect("@")?;
    let scope = scope(line)?;
    let offset = if line.eat_word("at") { Some(i64::from(line.count::<u32>("an offset")?)) } else { None };
    let align =
        if line.eat_word("align") { line.count::<u32>("a number of bytes")?.into() } else { Alloc::ALIGN };
    Ok(Alloc { name, dtype, len, scope, offset, align })
}

/// `turns[blockIdx_x] at blockIdx_z of 4`.
fn turn(line: &mut Cursor<'_>, kind: TurnKind) -> Result<Turn, Failure> {
    let counter = line.access()?;
    line.expect_word("at")?;
    let turn = line.index()?;
    line.expect_word("of")?;
    Ok(Turn { kind, counter, turn, count: line.index()? })
}

/// `blockIdx.x: 4`.
fn axis(line: &mut Cursor<'_>) -> Result<(ThreadAxis, Index), Failure> {
    let unknown = line.expected("a thread axis such as `blockIdx.x`");
    let word: Name = line.name("a thread axis")?;
    line.expect(".")?;
    let axis = line.name("`x`, `y` or `z`")?;
    let axis = ThreadAxis::parse(&format!("{word}.{axis}")).ok_or(unknown)?;
    line.expect(":")?;
    Ok((axis, line.index()?))
}
