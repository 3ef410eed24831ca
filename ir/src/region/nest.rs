//! A block with what is around it, looked up once for many questions.

use std::cell::OnceCell;

use super::{Region, Way, bounds_of, is_relaxed, touched};
use crate::{Access, Block, Func, Index, Loop, Name, Stmt, arith::Bounds};

/// A block and the loops around it.
#[derive(Debug)]
pub struct Nest<'a> {
    /// The block.
    pub block: &'a Block,
    /// The loops around it, outermost first.
    pub loops: Vec<&'a Loop>,
    func: &'a Func,
    reads: Vec<&'a Access>,
    writes: Vec<&'a Access>,
    bounds: OnceCell<Bounds>,
}

impl<'a> Nest<'a> {
    /// Those of all blocks of a program, in program order.
    pub fn all(func: &'a Func) -> Vec<Nest<'a>> {
        let mut out = Vec::new();
        collect(func, &func.body, &mut Vec::new(), &mut out);
        out
    }

    /// That of one block of a program.
    pub fn of(func: &'a Func, block: &'a Block) -> Nest<'a> {
        Nest::new(func, block, func.loops_of(&block.name).unwrap_or_default())
    }

    fn new(func: &'a Func, block: &'a Block, loops: Vec<&'a Loop>) -> Nest<'a> {
        Nest { block, loops, func, reads: block.reads(), writes: block.writes(), bounds: OnceCell::new() }
    }

    /// The shape of a buffer.
    pub(super) fn shape(&self, buffer: &Name) -> &'a [Index] {
        &self.func.buffers[buffer].shape
    }

    /// What is known of dimensions and loop variables in the block, guards left aside.
    pub fn bounds(&self) -> &Bounds {
        self.bounds.get_or_init(|| bounds_of(self.func, &self.loops))
    }

    /// What the block reads or writes, as [`Block::reads`] and [`Block::writes`] have it.
    pub fn accesses(&self, way: Way) -> &[&'a Access] {
        match way {
            Way::Read => &self.reads,
            Way::Write => &self.writes,
        }
    }

    /// Whether the block reads or writes a buffer.
    pub fn reaches(&self, buffer: &Name, way: Way) -> bool {
        self.accesses(way).iter().any(|it| it.buffer == *buffer)
    }

    /// Whether the block reads or writes a buffer, whichever.
    pub fn uses(&self, buffer: &Name) -> bool {
        self.reaches(buffer, Way::Read) || self.reaches(buffer, Way::Write)
    }

    /// How many of the loops are also around another block.
    pub fn shared_loops(&self, other: &Nest<'_>) -> usize {
        self.loops.iter().zip(&other.loops).take_while(|(a, b)| a.var == b.var).count()
    }

    /// What the block reads or writes of a buffer in one iteration of its outermost `fixed` loops.
    pub fn touched_in_one(&self, buffer: &Name, fixed: usize, way: Way) -> Region {
        self.touched_where(buffer, fixed, way, &|_| false)
    }

    /// As [`super::touched_below`].
    pub(super) fn touched_below(&self, buffer: &Name, fixed: usize, way: Way) -> Region {
        let relaxed = |it: &Loop| way == Way::Read && is_relaxed(&self.func.buffers[buffer], it);
        self.touched_where(buffer, fixed, way, &relaxed)
    }

    fn touched_where(
        &self,
        buffer: &Name,
        fixed: usize,
        way: Way,
        relaxed: &dyn Fn(&Loop) -> bool,
    ) -> Region {
        let accesses: Vec<&Access> =
            self.accesses(way).iter().copied().filter(|it| it.buffer == *buffer).collect();
        let is_inner = |var: &Name| {
            self.loops.iter().enumerate().any(|(n, it)| it.var == *var && (n >= fixed || relaxed(it)))
        };
        touched(self.block, &accesses, self.shape(buffer), self.bounds(), &is_inner)
    }
}

fn collect<'a>(func: &'a Func, stmt: &'a Stmt, around: &mut Vec<&'a Loop>, out: &mut Vec<Nest<'a>>) {
    match stmt {
        Stmt::Loop(it) => {
            around.push(it);
            collect(func, &it.body, around, out);
            around.pop();
        }
        Stmt::Block(it) => out.push(Nest::new(func, it, around.clone())),
        Stmt::Seq(stmts) => stmts.iter().for_each(|it| collect(func, it, around, out)),
        Stmt::Store(_) => {}
    }
}
