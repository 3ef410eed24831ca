//! Parses the lowered form, so that tests can say what lowering would never make, people can change a kernel by
//! hand, and each pass can be started from a text.
//!
//! What is printed is read back as it was, comments on lines of their own among statements included. Other comments
//! are not read.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    MAX_DEPTH, bulk,
    instr::{WORDS, instr},
    lex::{Cursor, Failure, Line, ParseError, ParseErrorKind, Token, lines_with_comments},
    parse::{dtype, layout, role, scope},
};
use crate::{
    Alloc, Arg, For, ForKind, Independence, Index, Kernel, Mbarriers, Module, Name, Op, Origin, Participants,
    RingCounter, ThreadAxis, WarpRole,
};

/// Parses the text form of a module. The result is well formed in the sense of the grammar only; the names in it may
/// mean nothing.
pub fn parse_module(text: &str) -> Result<Module, ParseError> {
    let module = || {
        let lines = lines_with_comments(text)?;
        let first = lines.iter().position(|it| it.comment.is_none()).unwrap_or(lines.len());
        let Some((first, rest)) = lines[first..].split_first() else {
            let kind = ParseErrorKind::expected("`module`", "the end of the text".to_owned());
            return Err(Failure { at: text.len(), kind });
        };
        Parser { lines: rest, origin: Origin::default() }.module(first)
    };
    module().map_err(|it| it.place(text))
}

struct Parser<'a> {
    /// What is still to be read.
    lines: &'a [Line<'a>],
    /// Where the instructions read next come from.
    origin: Origin,
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
        self.skip_comments();
        while let Some(line) = self.lines.first().filter(|it| it.level == 1) {
            let mut line = Cursor::new(line);
            let Some(role) = role(&line) else { break };
            line.bump();
            let at = line.at();
            let name = line.name("the name of a buffer")?;
            line.expect(":")?;
            let dtype = dtype(&mut line)?;
            line.expect("[")?;
            let shape = line.list("]", Cursor::index)?;
            let layout = layout(&mut line)?;
            let zeroed = line.eat_word("zeroed");
            let below = line.below()?;
            line.finish()?;
            if args.insert(name.clone(), Arg { dtype, shape, layout, role, zeroed, below }).is_some() {
                return Err(Failure { at, kind: ParseErrorKind::Twice(name.to_string()) });
            }
            self.lines = &self.lines[1..];
            self.skip_comments();
        }
        let mut kernels = vec![];
        while let Some((line, rest)) = self.lines.split_first() {
            if line.level != 1 {
                return Err(Cursor::new(line).expected("a kernel"));
            }
            self.lines = rest;
            kernels.push(self.kernel(Cursor::new(line))?);
            self.skip_comments();
        }
        Ok(Module { name, dims, args, kernels })
    }

    /// Goes on to the next line that is more than a comment.
    fn skip_comments(&mut self) {
        let count = self.lines.iter().take_while(|it| it.comment.is_some()).count();
        self.lines = &self.lines[count..];
    }

    fn kernel(&mut self, mut line: Cursor<'_>) -> Result<Kernel, Failure> {
        line.expect_word("kernel")?;
        let name = line.name("the name of the kernel")?;
        let launch = launch(&mut line)?.unwrap_or_default();
        line.expect("(")?;
        let args = line.list(")", |line| {
            let written = line.is_word("mut")
                && matches!(line.peek_second(), Some(Token::Word(_)))
                && line.eat_word("mut");
            Ok((line.name("a buffer")?, written))
        })?;
        let resident = line.eat_word("blocks_per_sm");
        let blocks_per_sm = if resident { Some(line.count::<u32>("how many blocks")?.into()) } else { None };
        let programmatic_launch = line.eat_word("programmatic_launch");
        let wide = line.eat_word("index");
        if wide {
            line.expect_word("i64")?;
        }
        line.finish()?;
        let args = args.into_iter().collect();
        let mut kernel =
            Kernel { args, blocks_per_sm, programmatic_launch, wide, ..Kernel::new(name, launch) };
        self.head(&mut kernel)?;
        self.origin = Origin::default();
        kernel.body = self.body(2)?;
        Ok(kernel)
    }

    /// What a kernel has before its statements.
    fn head(&mut self, kernel: &mut Kernel) -> Result<(), Failure> {
        self.skip_comments_of_head();
        while let Some(line) = self.lines.first().filter(|it| it.level == 2 && it.comment.is_none()) {
            let mut line = Cursor::new(line);
            let Some(Token::Word(word @ ("tensor_map" | "mbarriers" | "claims" | "role"))) = line.peek()
            else {
                break;
            };
            if line.peek_second() == Some(&Token::Sign("[")) {
                break;
            }
            line.bump();
            let at = line.at();
            let name = line.name("a name")?;
            let known = match *word {
                "tensor_map" => {
                    line.expect("=")?;
                    kernel.maps.insert(name.clone(), bulk::tensor_map(&mut line)?).is_some()
                }
                "claims" => kernel.claims.replace(name.clone()).is_some(),
                "mbarriers" => kernel.mbarriers.insert(name.clone(), mbarriers(&mut line)?).is_some(),
                _ => kernel.roles.insert(name.clone(), warp_role(&mut line)?).is_some(),
            };
            if known {
                return Err(Failure { at, kind: ParseErrorKind::Twice(name.to_string()) });
            }
            line.finish()?;
            self.lines = &self.lines[1..];
            self.skip_comments_of_head();
        }
        Ok(())
    }

    /// Goes on to the next line of a kernel's head, if there is one behind comments.
    fn skip_comments_of_head(&mut self) {
        let count = self.lines.iter().take_while(|it| it.comment.is_some()).count();
        let is_head = |it: &Line<'_>| {
            let word = Cursor::new(it).peek().cloned();
            matches!(word, Some(Token::Word("tensor_map" | "mbarriers" | "claims" | "role")))
        };
        if self.lines.get(count).is_some_and(is_head) {
            self.lines = &self.lines[count..];
        }
    }

    /// The statements at a level.
    fn body(&mut self, level: usize) -> Result<Vec<Op>, Failure> {
        let mut ops = Vec::new();
        while let Some(line) = self.lines.first().filter(|it| it.level >= level) {
            if let Some(text) = line.comment {
                if line.level == level {
                    ops.push(Op::comment(text, self.origin.clone()));
                }
                self.lines = &self.lines[1..];
                continue;
            }
            if line.level > level {
                return Err(Failure { at: line.start(), kind: ParseErrorKind::TooDeepLine });
            }
            if level > MAX_DEPTH as usize {
                return Err(Failure { at: line.start(), kind: ParseErrorKind::TooDeep });
            }
            self.lines = &self.lines[1..];
            let mut cursor = Cursor::new(line);
            if cursor.is_word("of") && cursor.peek_second() != Some(&Token::Sign("[")) {
                cursor.bump();
                self.origin = origin(&mut cursor)?;
                continue;
            }
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
        if word == "for" {
            return self.for_loop(line, below);
        }
        if let Some(it) = instr(&mut line)? {
            return Ok(Op::Instr(it, self.origin.clone()));
        }
        let unknown =
            line.expected(&format!("`alloc`, `for`, `if`, `leader`, `in`, {WORDS}, a store or a copy"));
        line.bump();
        match word {
            "alloc" => {
                let it = alloc(&mut line)?;
                line.finish()?;
                Ok(Op::Alloc(it))
            }
            "leader" => {
                let of = Participants::TEAMS.into_iter().find(|it| line.eat_word(it.as_str()));
                let of =
                    of.ok_or_else(|| line.expected("`warp`, `warpgroup`, `role`, `block` or `cluster`"))?;
                line.finish()?;
                Ok(Op::Leader(of, self.body(below)?))
            }
            "in" => {
                let name = line.name("a role")?;
                line.finish()?;
                Ok(Op::Role(name, self.body(below)?))
            }
            "if" => {
                let cond = line.conditions()?;
                line.finish()?;
                Ok(Op::If(cond, self.body(below)?))
            }
            _ => Err(unknown),
        }
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
        let independent = independence(&mut line)?;
        let mut counters = Vec::new();
        if line.eat_word("with") {
            counters.push(ring_counter(&mut line)?);
            while line.eat(",") {
                counters.push(ring_counter(&mut line)?);
            }
        }
        line.finish()?;
        let body = self.body(below)?;
        Ok(Op::For(Arc::new(For { var, extent, kind, counters, independent, body })))
    }
}

/// `C @ko steady 0 component 1`, to the end of the line.
fn origin(line: &mut Cursor<'_>) -> Result<Origin, Failure> {
    let start = line.at();
    let mut text = String::new();
    while let Some(token) = line.peek() {
        let word = match token {
            Token::Word(word) => *word,
            Token::Number { digits, suffix: "" } => *digits,
            Token::Sign("@") => "@",
            Token::Number { .. } | Token::Text(_) | Token::Sign(_) => {
                return Err(line.expected("a word, a number or `@`"));
            }
        };
        let blank = if text.is_empty() || text.ends_with('@') { "" } else { " " };
        text.extend([blank, word]);
        line.bump();
    }
    Origin::parse(&text)
        .map_err(|wanted| Failure { at: start, kind: ParseErrorKind::expected(&wanted, format!("`{text}`")) })
}

/// `ko_2_of_3 from 2 of 3`.
fn ring_counter(line: &mut Cursor<'_>) -> Result<RingCounter, Failure> {
    let var = line.name("a variable")?;
    line.expect_word("from")?;
    let start = line.count::<u32>("the first slot")?.into();
    line.expect_word("of")?;
    Ok(RingCounter { var, start, count: line.count::<u32>("how many slots there are")?.into() })
}

/// `X: f32[8, 64] @shared align(0, 32, 8) per k at 1024 align 1024`.
fn alloc(line: &mut Cursor<'_>) -> Result<Alloc, Failure> {
    let name = line.name("the name of a buffer")?;
    line.expect(":")?;
    let dtype = dtype(line)?;
    line.expect("[")?;
    let shape = line.list("]", |line| Ok(i64::from(line.count::<u32>("how many elements")?)))?;
    line.expect("@")?;
    let scope = scope(line)?;
    let layout = layout(line)?;
    let per = if line.eat_word("per") { Some(line.name("a loop")?) } else { None };
    let is_register = line.eat_word("register");
    let offset = if line.eat_word("at") { Some(i64::from(line.count::<u32>("an offset")?)) } else { None };
    let align =
        if line.eat_word("align") { line.count::<u32>("a number of bytes")?.into() } else { Alloc::ALIGN };
    Ok(Alloc { name, dtype, shape, layout, scope, per, offset, is_register, align })
}

/// `[4] arrivals 1`.
pub(super) fn mbarriers(line: &mut Cursor<'_>) -> Result<Mbarriers, Failure> {
    line.expect("[")?;
    let slots = line.count::<u32>("how many there are")?.into();
    line.expect("]")?;
    line.expect_word("arrivals")?;
    Ok(Mbarriers { slots, arrivals: line.count::<u32>("how many arrivals")?.into() })
}

/// `<<<threadIdx.x: 128>>> registers 40`.
fn warp_role(line: &mut Cursor<'_>) -> Result<WarpRole, Failure> {
    let unknown = line.expected("`<<<`, thread axes with constants, and `>>>`");
    let mut axes = IndexMap::new();
    for (axis, extent) in launch(line)?.ok_or(unknown)? {
        let unknown = line.expected("thread axes with constants before this");
        axes.insert(axis, extent.as_int().filter(|_| axis.is_thread()).ok_or(unknown)?);
    }
    let registers = if line.eat_word("registers") { Some(line.count("how many registers")?) } else { None };
    Ok(WarpRole { axes, registers })
}

/// `<<<blockIdx.x: 4, threadIdx.x: 32>>>`, or nothing.
fn launch(line: &mut Cursor<'_>) -> Result<Option<IndexMap<ThreadAxis, Index>>, Failure> {
    if !line.eat("<<<") {
        return Ok(None);
    }
    Ok(Some(line.list(">>>", axis)?.into_iter().collect()))
}

/// Nothing, `independent` or `independent along threadIdx.y`.
fn independence(line: &mut Cursor<'_>) -> Result<Independence, Failure> {
    match () {
        () if !line.eat_word("independent") => Ok(Independence::Unknown),
        () if !line.eat_word("along") => Ok(Independence::Iterations),
        () => {
            let unknown = line.expected("`threadIdx.x`, `threadIdx.y` or `threadIdx.z`");
            let axis = axis_name(line)?;
            if axis.is_thread() { Ok(Independence::Along(axis)) } else { Err(unknown) }
        }
    }
}

/// `blockIdx.x: 4`.
fn axis(line: &mut Cursor<'_>) -> Result<(ThreadAxis, Index), Failure> {
    let axis = axis_name(line)?;
    line.expect(":")?;
    Ok((axis, line.index()?))
}

/// `blockIdx.x`.
pub(super) fn axis_name(line: &mut Cursor<'_>) -> Result<ThreadAxis, Failure> {
    let unknown = line.expected("a thread axis such as `blockIdx.x`");
    let word: Name = line.name("a thread axis")?;
    line.expect(".")?;
    let axis = line.name("`x`, `y` or `z`")?;
    ThreadAxis::parse(&format!("{word}.{axis}")).ok_or(unknown)
}
