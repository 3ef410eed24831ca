//! Prints and parses instructions.

use std::fmt::{self, Display, Formatter};

use super::{
    expr::{Quoted, separated},
    lex::{Cursor, Failure, Token},
};
use crate::{Barrier, Instr, Name, Semaphore, SemaphoreKind, TensorOp, Wait, intrin};

/// The instructions that begin with a word of their own.
pub(super) const WORDS: &str = "`commit`, `wait`, `barrier`, `acquire`, `release`";

impl Display for Instr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Instr::Store(place, value) => write!(f, "{place} = {value}"),
            Instr::AsyncCopy(place, value) => write!(f, "{place} <- {value}"),
            Instr::AtomicAdd(place, value) => write!(f, "{place} += {value}"),
            Instr::Tensor(TensorOp { intrinsic, place, operands }) => {
                write!(f, "{place} = {}(", intrinsic.name)?;
                separated(f, ", ", operands)?;
                f.write_str(")")
            }
            Instr::Commit => f.write_str("commit"),
            Instr::Wait(Wait { in_flight, buffers }) => {
                write!(f, "wait {in_flight}")?;
                if !buffers.is_empty() {
                    f.write_str(" for ")?;
                    separated(f, ", ", buffers)?;
                }
                Ok(())
            }
            Instr::Barrier(Barrier { proof }) => {
                f.write_str("barrier")?;
                let mut mark = " ";
                for it in proof {
                    write!(f, "{mark}{}", Quoted(it))?;
                    mark = ", ";
                }
                Ok(())
            }
            Instr::Semaphore(Semaphore { kind, counter, turn, count }) => {
                let word = match kind {
                    SemaphoreKind::Acquire => "acquire",
                    SemaphoreKind::Release => "release",
                };
                write!(f, "{word} {counter} at {turn} of {count}")
            }
            Instr::Comment(text) => {
                let lines: Vec<_> = text.lines().map(|it| format!("// {it}")).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

/// Reads an instruction up to the end of its line; none where the line begins with no word of one.
pub(super) fn instr(line: &mut Cursor<'_>) -> Result<Option<Instr>, Failure> {
    let Some(Token::Word(word)) = line.peek() else { return Ok(None) };
    if let Some(Token::Sign("[")) = line.peek_second() {
        let it = assignment(line)?;
        line.finish()?;
        return Ok(Some(it));
    }
    let parse = match *word {
        "commit" => |_: &mut Cursor<'_>| Ok(Instr::Commit),
        "barrier" => barrier,
        "wait" => wait,
        "acquire" => |line: &mut Cursor<'_>| semaphore(line, SemaphoreKind::Acquire),
        "release" => |line: &mut Cursor<'_>| semaphore(line, SemaphoreKind::Release),
        _ => return Ok(None),
    };
    line.bump();
    let it = parse(line)?;
    line.finish()?;
    Ok(Some(it))
}

/// `C[i] = x`, `C[i] <- x`, `C[i] += x` or `C[i] = mma_…(a, b, c)`.
fn assignment(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let place = line.access()?;
    let (copies, adds) = (line.eat("<"), line.eat("+"));
    line.expect(if copies { "-" } else { "=" })?;
    if let (Some(Token::Word(word)), Some(Token::Sign("("))) = (line.peek(), line.peek_second())
        && let Some(intrinsic) = intrin::find(word).filter(|_| !copies && !adds)
    {
        line.bump();
        line.bump();
        let operands = line.list(")", Cursor::access)?;
        return Ok(Instr::Tensor(TensorOp { intrinsic, place, operands }));
    }
    let value = line.value()?;
    Ok(match (copies, adds) {
        (true, _) => Instr::AsyncCopy(place, value),
        (false, true) => Instr::AtomicAdd(place, value),
        (false, false) => Instr::Store(place, value),
    })
}

/// Nothing, or `"A_shared: written before, read after"`.
fn barrier(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let mut proof = Vec::new();
    if line.peek().is_some() {
        proof.push(line.text()?);
        while line.eat(",") {
            proof.push(line.text()?);
        }
    }
    Ok(Instr::Barrier(Barrier { proof }))
}

/// `1 for A_shared, B_shared`.
fn wait(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let in_flight = line.count("how many may be in flight")?;
    let mut buffers: Vec<Name> = Vec::new();
    if line.eat_word("for") {
        buffers.push(line.name("a buffer")?);
        while line.eat(",") {
            buffers.push(line.name("a buffer")?);
        }
    }
    Ok(Instr::Wait(Wait { in_flight, buffers }))
}

/// `turns[blockIdx_x] at blockIdx_z of 4`.
fn semaphore(line: &mut Cursor<'_>, kind: SemaphoreKind) -> Result<Instr, Failure> {
    let counter = line.access()?;
    line.expect_word("at")?;
    let turn = line.index()?;
    line.expect_word("of")?;
    Ok(Instr::Semaphore(Semaphore { kind, counter, turn, count: line.index()? }))
}
