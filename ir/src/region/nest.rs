//! A block with what is around it, looked up once for many questions.

use std::cell::OnceCell;

use super::{Region, Way, at_loops, bounds_of, is_relaxed, normal_at_loops, touched_normal};
use crate::{
    Access, Block, Func, Index, Loop, Mode, Name, Stmt,
    access::AccessRelation,
    arith::{Bounds, sum::Sum},
};

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
    /// The loops in the block, with their extents over the loops around it.
    inside: Vec<(&'a Name, Index)>,
    /// What is asked of few nests has its own memory, so that lists of nests are small.
    bounds: OnceCell<Box<Bounds>>,
    /// The subscripts of reads and of writes, over the loops and in their normal form.
    normal: [OnceCell<Box<[Vec<Sum>]>>; 2],
}

impl<'a> Nest<'a> {
    /// Those of all blocks of a program, in program order.
    pub fn all(func: &'a Func) -> Vec<Nest<'a>> {
        let mut out = Vec::with_capacity(6);
        collect(func, &func.body, &mut Vec::with_capacity(16), &mut out);
        out
    }

    /// That of one block of a program.
    pub fn of(func: &'a Func, block: &'a Block) -> Nest<'a> {
        Nest::new(func, block, func.loops_of(&block.name).expect("the block is one of the program's"))
    }

    /// That of another block in this one's place.
    pub(super) fn with<'b>(&self, block: &'b Block) -> Nest<'b>
    where
        'a: 'b,
    {
        Nest::new(self.func, block, self.loops.clone())
    }

    fn new(func: &'a Func, block: &'a Block, loops: Vec<&'a Loop>) -> Nest<'a> {
        let (mut reads, mut writes, mut inside) = (Vec::with_capacity(4), Vec::with_capacity(2), Vec::new());
        let binding = |name: &Name| block.find_iter(name).map(|it| it.binding.clone());
        for stmt in block.init.iter().chain([&block.body]) {
            stmt.each_access(&mut |access, mode| {
                if mode == Mode::Read {
                    reads.push(access);
                }
                if mode.writes() {
                    writes.push(access);
                }
            });
            // Names are unique, so that the loops of the init and of the body stand side by side.
            if !matches!(stmt, Stmt::Store(_)) {
                stmt.walk(&mut |stmt| {
                    if let Stmt::Loop(it) = stmt {
                        inside.push((&it.var, it.extent.subst(&binding)));
                    }
                });
            }
        }
        let (bounds, normal) = (OnceCell::new(), Default::default());
        Nest { block, loops, func, reads, writes, inside, bounds, normal }
    }

    /// The shape of a buffer.
    pub(super) fn shape(&self, buffer: &Name) -> &'a [Index] {
        &self.func.buffers[buffer].shape
    }

    /// What is known before the first iteration of a loop around the block, counted from the outermost one.
    pub(super) fn bounds_outside(&self, loop_number: usize) -> Bounds {
        bounds_of(self.func, &self.loops[..loop_number])
    }

    /// What is known of dimensions and loop variables in the block, guards left aside.
    pub fn bounds(&self) -> &Bounds {
        self.bounds.get_or_init(|| {
            let mut bounds = bounds_of(self.func, &self.loops);
            self.inside.iter().for_each(|(var, extent)| bounds.insert(var, extent));
            Box::new(bounds)
        })
    }

    /// Whether a variable is that of a loop in the block, whose iterations always count at once.
    pub(super) fn is_inside(&self, var: &Name) -> bool {
        self.inside.iter().any(|it| it.0 == var)
    }

    /// These values, over the loops around the block, as a place that it touches wherever it runs.
    pub fn relation(&self, indices: Vec<Index>) -> AccessRelation {
        let vars = self.loops.iter().map(|it| (it.var.clone(), it.extent.clone())).collect();
        AccessRelation { indices, vars, conditions: self.block.guards.clone() }
    }

    /// The symbolic dimensions of the program.
    pub(super) fn dims(&self) -> &'a [Name] {
        &self.func.dims
    }

    /// What the block reads or writes, as [`Block::reads`] and [`Block::writes`] have it.
    pub fn accesses(&self, way: Way) -> &[&'a Access] {
        match way {
            Way::Read => &self.reads,
            Way::Write => &self.writes,
        }
    }

    /// Those of a buffer.
    pub(super) fn accesses_to<'s>(
        &'s self,
        buffer: &'s Name,
        way: Way,
    ) -> impl Iterator<Item = &'a Access> + 's {
        self.accesses(way).iter().copied().filter(move |it| it.buffer == *buffer)
    }

    /// Those of a buffer, with their subscripts over the loops, in their normal form.
    pub(super) fn normal_to<'s>(
        &'s self,
        buffer: &'s Name,
        way: Way,
    ) -> impl Iterator<Item = (&'a Access, &'s [Sum])> + 's {
        let normal = self.normal[way as usize].get_or_init(|| {
            self.accesses(way).iter().map(|it| normal_at_loops(self.block, it, self.bounds())).collect()
        });
        let all = self.accesses(way).iter().copied().zip(normal.iter().map(Vec::as_slice));
        all.filter(move |(it, _)| it.buffer == *buffer)
    }

    /// The places of a buffer that the block reads or writes.
    pub fn places(&self, buffer: &Name, way: Way) -> Vec<AccessRelation> {
        let place = |access| {
            let mut out = self.relation(at_loops(self.block, access));
            out.vars.extend(self.inside.iter().map(|(var, extent)| ((*var).clone(), extent.clone())));
            out
        };
        self.accesses_to(buffer, way).map(place).collect()
    }

    /// Whether the block reads or writes a buffer.
    pub fn reaches(&self, buffer: &Name, way: Way) -> bool {
        self.accesses(way).iter().any(|it| it.buffer == *buffer)
    }

    /// Whether the block reads or writes a buffer, whichever.
    pub fn uses(&self, buffer: &Name) -> bool {
        self.reaches(buffer, Way::Read) || self.reaches(buffer, Way::Write)
    }

    /// Whether a block of another program touches the same elements of a buffer in the same runs: under loops of the
    /// same names and extents, with the same iterators and guards, through the same subscripts.
    pub fn uses_alike(&self, other: &Nest<'_>, buffer: &Name) -> bool {
        let same_loops = self.loops.len() == other.loops.len()
            && self.loops.iter().zip(&other.loops).all(|(a, b)| a.var == b.var && a.extent == b.extent);
        same_loops
            && self.func.dims == other.func.dims
            && self.func.buffers.get(buffer) == other.func.buffers.get(buffer)
            && self.block.iters == other.block.iters
            && self.block.guards == other.block.guards
            && self.inside == other.inside
            && [Way::Read, Way::Write]
                .into_iter()
                .all(|way| self.accesses_to(buffer, way).eq(other.accesses_to(buffer, way)))
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
        let accesses: Vec<&[Sum]> = self.normal_to(buffer, way).map(|it| it.1).collect();
        let is_inner = |var: &Name| {
            self.is_inside(var)
                || self.loops.iter().enumerate().any(|(n, it)| it.var == *var && (n >= fixed || relaxed(it)))
        };
        touched_normal(self.block, &accesses, self.shape(buffer), self.bounds(), &is_inner)
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
        Stmt::Store(_) | Stmt::Instr(_) => {}
    }
}
