//! Prints and parses instructions.

use std::fmt::{self, Display, Formatter};

use super::{
    bulk,
    expr::{Quoted, separated},
    lex::{Cursor, Failure, Token},
    tcgen05, wgmma,
};
use crate::{
    Access, Arrival, Barrier, BinaryOp, Claim, Fence, Group, Instr, Name, Participants, Phase, Semaphore,
    SemaphoreKind, Take, TensorOp, Tile, Turn, Wait, WarpReduce, intrin,
};

/// The instructions that begin with a word of their own.
pub(super) const WORDS: &str = "`commit`, `wait`, `barrier`, `await`, `expect`, `arrive`, `fence`, `claim`, `take`, `acquire`, `release`";

impl Display for Instr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Instr::Store(place, value) => write!(f, "{place} = {value}"),
            Instr::AsyncCopy(place, value) => write!(f, "{place} <- {value}"),
            Instr::AtomicAdd(place, value) => write!(f, "{place} += {value}"),
            Instr::Tensor(it) => write!(f, "{it}"),
            Instr::WarpReduce(it) => write!(f, "{it}"),
            Instr::Wgmma(it) => write!(f, "{it}"),
            Instr::Tcgen05(it) => write!(f, "{it}"),
            Instr::Bulk(it) => write!(f, "{it}"),
            Instr::Claim(Claim { answer, barrier, slot }) => {
                write!(f, "claim {answer} for {barrier}[{slot}]")
            }
            Instr::Take(Take { answer }) => write!(f, "take {answer}"),
            Instr::Commit(group) => write!(f, "commit{}", GroupWord(*group)),
            Instr::Wait(Wait { group, reads_only, in_flight, buffers }) => {
                let reads = if *reads_only { " reads" } else { "" };
                write!(f, "wait{}{reads} {in_flight}", GroupWord(*group))?;
                if !buffers.is_empty() {
                    f.write_str(" for ")?;
                    separated(f, ", ", buffers)?;
                }
                Ok(())
            }
            Instr::Await(Phase { barrier, slot, phase }) => {
                write!(f, "await {barrier}[{slot}] phase {phase}")
            }
            Instr::Arrive(it) => write!(f, "{it}"),
            Instr::Fence(Fence::Async) => f.write_str("fence async"),
            Instr::Fence(Fence::Wgmma) => f.write_str("fence wgmma"),
            Instr::Barrier(Barrier { among, proof }) => {
                f.write_str("barrier")?;
                if *among != Participants::Block {
                    write!(f, " {}", among.as_str())?;
                }
                let mut mark = " ";
                for it in proof {
                    write!(f, "{mark}{}", Quoted(it))?;
                    mark = ", ";
                }
                Ok(())
            }
            Instr::Semaphore(Semaphore { kind, counter, turn, count }) => {
                write!(f, "{} {counter} at {turn} of {count}", kind.as_str())
            }
            Instr::Turn(Turn { kind, of, turn, count, members }) => {
                write!(f, "{} turn {of} at {turn} of {count} among {members}", kind.as_str())
            }
            Instr::Comment(text) => {
                let lines: Vec<_> = text.lines().map(|it| format!("// {it}")).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

impl Display for Arrival {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Arrival { barrier, slot, bytes, is_late, along, at_first } = self;
        match bytes {
            Some(bytes) => write!(f, "expect {barrier}[{slot}] bytes {bytes}")?,
            None => write!(f, "arrive {barrier}[{slot}]")?,
        }
        if *is_late {
            f.write_str(" behind tcgen05")?;
        }
        if !along.is_empty() {
            f.write_str(" along ")?;
            separated(f, ", ", along.iter().map(|it| it.as_str()))?;
        }
        f.write_str(if *at_first { bulk::AT_FIRST } else { "" })
    }
}

impl Display for TensorOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}(", self.place, self.intrinsic.name)?;
        separated(f, ", ", &self.operands)?;
        f.write_str(")")
    }
}

impl Display for WarpReduce {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}({}, {})", self.place, self.word(), self.operand, self.width)
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
        "commit" => |line: &mut Cursor<'_>| Ok(Instr::Commit(group(line))),
        "barrier" => barrier,
        "wait" => wait,
        "await" => await_phase,
        "expect" => |line: &mut Cursor<'_>| arrival(line, true),
        "arrive" => |line: &mut Cursor<'_>| arrival(line, false),
        "fence" => fence,
        "claim" => claim,
        "take" => |line: &mut Cursor<'_>| Ok(Instr::Take(Take { answer: line.access()? })),
        "acquire" => |line: &mut Cursor<'_>| semaphore(line, SemaphoreKind::Acquire),
        "release" => |line: &mut Cursor<'_>| semaphore(line, SemaphoreKind::Release),
        _ => return Ok(None),
    };
    line.bump();
    let it = parse(line)?;
    line.finish()?;
    Ok(Some(it))
}

/// `C[i] = x`, `C[i] <- x`, `C[i] += x`, `C[i] = mma_…(a, b, c)`, `C[i] <- wgmma_…(a, b)` or a copy of a box.
fn assignment(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let (place, extents) = line.boxed()?;
    if let Some(extents) = extents {
        if !line.eat("<") {
            return bulk::store(line, place, extents);
        }
        line.expect("-")?;
        let unknown = line.expected("a product into tensor memory");
        let word = line.name("a product into tensor memory")?;
        let intrinsic = intrin::find(word.as_str()).ok_or(unknown)?;
        line.expect("(")?;
        return tcgen05::operation(line, intrinsic, Tile { first: place, extents, matrix: None });
    }
    if line.eat("<=") {
        return bulk::to_global(line, place);
    }
    let (copies, adds) = (line.eat("<"), line.eat("+"));
    line.expect(if copies { "-" } else { "=" })?;
    if let (Some(Token::Word(word)), Some(Token::Sign("("))) = (line.peek(), line.peek_second())
        && let Some(intrinsic) = intrin::find(word).filter(|_| !adds)
    {
        line.bump();
        line.bump();
        if copies {
            return wgmma::product(line, intrinsic, place);
        }
        let operands = line.list(")", Cursor::access)?;
        return Ok(Instr::Tensor(TensorOp { intrinsic, place, operands }));
    }
    if let (Some(Token::Word(word)), Some(Token::Sign("("))) = (line.peek(), line.peek_second())
        && let Some((op, _)) = WarpReduce::OPS.into_iter().find(|it| it.1 == *word && !copies && !adds)
    {
        line.bump();
        line.bump();
        return warp_reduce(line, op, place);
    }
    let value = line.value()?;
    Ok(match (copies, adds) {
        (true, _) => Instr::AsyncCopy(place, value),
        (false, true) => Instr::AtomicAdd(place, value),
        (false, false) => Instr::Store(place, value),
    })
}

/// `warp_reduce_add(` was read; what follows is `x[0], 32)`.
fn warp_reduce(line: &mut Cursor<'_>, op: BinaryOp, place: Access) -> Result<Instr, Failure> {
    let operand = line.access()?;
    line.expect(",")?;
    let width = line.count("how many lanes a group has")?;
    if !WarpReduce::WIDTHS.contains(&width) {
        return Err(line.expected("2, 4, 8, 16 or 32 lanes"));
    }
    line.expect(")")?;
    Ok(Instr::WarpReduce(WarpReduce { op, width, place, operand }))
}

/// The word of a group behind the one of an instruction.
struct GroupWord(Group);

impl Display for GroupWord {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == Group::CpAsync { Ok(()) } else { write!(f, " {}", self.0.as_str()) }
    }
}

/// `wgmma`, `tcgen05`, `bulk` or nothing.
fn group(line: &mut Cursor<'_>) -> Group {
    let named = Group::ALL.into_iter().filter(|it| *it != Group::CpAsync);
    named.into_iter().find(|it| line.eat_word(it.as_str())).unwrap_or(Group::CpAsync)
}

/// `ko_full[n mod 4] phase n floordiv 4`.
fn await_phase(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let (barrier, slot) = line.slot()?;
    line.expect_word("phase")?;
    Ok(Instr::Await(Phase { barrier, slot, phase: line.index()? }))
}

/// `ko_empty[n mod 4] along cluster.x`, `ko_empty[n mod 4] behind tcgen05`, `sums_empty[0] at first`, or `ko_full[n mod 4] bytes 49152`.
fn arrival(line: &mut Cursor<'_>, expects: bool) -> Result<Instr, Failure> {
    let (barrier, slot) = line.slot()?;
    let mut bytes = None;
    if expects {
        line.expect_word("bytes")?;
        bytes = Some(line.index()?);
    }
    let is_late = !expects && line.eat_word("behind");
    if is_late {
        line.expect_word("tcgen05")?;
    }
    let mut along = vec![];
    if line.eat_word("along") {
        along.push(bulk::cluster_axis(line)?);
        while line.eat(",") {
            along.push(bulk::cluster_axis(line)?);
        }
    }
    let at_first = bulk::at_first(line)?;
    Ok(Instr::Arrive(Arrival { barrier, slot, bytes, is_late, along, at_first }))
}

/// `tile_answer[0 +: 4] for tile_full[0]`.
fn claim(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let answer = line.access()?;
    line.expect_word("for")?;
    let (barrier, slot) = line.slot()?;
    Ok(Instr::Claim(Claim { answer, barrier, slot }))
}

/// `async` or `wgmma`.
fn fence(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    match () {
        () if line.eat_word("async") => Ok(Instr::Fence(Fence::Async)),
        () if line.eat_word("wgmma") => Ok(Instr::Fence(Fence::Wgmma)),
        () => Err(line.expected("`async` or `wgmma`")),
    }
}

/// Nothing, or `warp "A_shared: written before, read after"`.
fn barrier(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let among = Participants::MEETING.into_iter().find(|it| line.eat_word(it.as_str()));
    let among = among.unwrap_or(Participants::Block);
    let mut proof = Vec::new();
    if line.peek().is_some() {
        proof.push(line.text()?);
        while line.eat(",") {
            proof.push(line.text()?);
        }
    }
    Ok(Instr::Barrier(Barrier { among, proof }))
}

/// `1 for A_shared, B_shared`, `wgmma 1` or `bulk reads 1`.
fn wait(line: &mut Cursor<'_>) -> Result<Instr, Failure> {
    let group = group(line);
    let reads_only = group == Group::Bulk && line.eat_word("reads");
    let in_flight = line.count("how many may be in flight")?;
    let mut buffers: Vec<Name> = Vec::new();
    if line.eat_word("for") {
        buffers.push(line.name("a buffer")?);
        while line.eat(",") {
            buffers.push(line.name("a buffer")?);
        }
    }
    Ok(Instr::Wait(Wait { group, reads_only, in_flight, buffers }))
}

/// `turns[blockIdx_x] at blockIdx_z of 4`, or `turn ko at tile_wave of 8 among 2`.
fn semaphore(line: &mut Cursor<'_>, kind: SemaphoreKind) -> Result<Instr, Failure> {
    if line.is_word("turn") && matches!(line.peek_second(), Some(Token::Word(_))) {
        line.bump();
        let of = line.name("the name of a loop")?;
        line.expect_word("at")?;
        let turn = line.index()?;
        line.expect_word("of")?;
        let count = line.index()?;
        line.expect_word("among")?;
        let members = line.count::<u32>("how many take turns")?.into();
        return Ok(Instr::Turn(Turn { kind, of, turn, count, members }));
    }
    let counter = line.access()?;
    line.expect_word("at")?;
    let turn = line.index()?;
    line.expect_word("of")?;
    Ok(Instr::Semaphore(Semaphore { kind, counter, turn, count: line.index()? }))
}
