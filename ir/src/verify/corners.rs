//! Runs each block at corners of its iteration space and reports a run that leaves a range.
//!
//! Indices are mostly sums with positive factors, largest where all loop variables are. Where guards cut that
//! corner off, loops are raised one by one as far as the guards allow, once from the outside and once from the
//! inside. Where something is subtracted, each loop is also raised alone.

use super::{Example, Kept, VerifyError, VerifyErrorKind};
use crate::{Access, Block, Func, Index, IndexKind, IterKind, Less, Loop, Name, Stmt, Value};

/// Values of the symbolic dimensions to try: the least one, and one that few factors divide.
const SIZES: [i64; 2] = [1, 61];

/// Checks every block; reports at most one run of each.
pub(super) fn check<'a>(func: &'a Func, kept: Kept<'a>) -> Vec<VerifyError> {
    let mut it = Corners { func, kept, around: Vec::with_capacity(16), errors: Vec::new() };
    it.stmt(&func.body);
    it.errors
}

struct Corners<'a> {
    func: &'a Func,
    kept: Kept<'a>,
    around: Vec<&'a Loop>,
    errors: Vec<VerifyError>,
}

impl<'a> Corners<'a> {
    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Loop(it) => {
                self.around.push(it);
                self.stmt(&it.body);
                self.around.pop();
            }
            Stmt::Block(it) => {
                if !self.kept.next() {
                    self.block(it);
                }
            }
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.stmt(it)),
            Stmt::Store(_) | Stmt::Instr(_) => {}
        }
    }

    fn block(&mut self, block: &'a Block) {
        let (func, around) = (self.func, self.around.as_slice());
        let sizes = if func.dims.is_empty() { &SIZES[..1] } else { &SIZES[..] };
        let found = sizes.iter().find_map(|size| Space { func, around, block, size: *size }.explore());
        self.errors.extend(found.map(|kind| VerifyError { at: block.name.clone(), kind }));
    }
}

/// The runs of a block for one size of all dimensions.
struct Space<'a, 's> {
    func: &'a Func,
    around: &'s [&'a Loop],
    block: &'a Block,
    size: i64,
}

/// Which iteration of a loop.
#[derive(Clone, Copy)]
enum At {
    First,
    Step(i64),
    Last,
}

/// Values of variables.
type Point<'a> = Vec<(&'a Name, i64)>;

impl<'a> Space<'a, '_> {
    /// What goes wrong at the first corner where something does.
    fn explore(&self) -> Option<VerifyErrorKind> {
        let count = self.around.len();
        let mut corners = vec![vec![At::First; count]];
        if self.runs(&vec![At::Last; count]).is_some() {
            corners.push(vec![At::Last; count]);
        } else {
            corners.push(self.raised((0..count).collect()));
            corners.push(self.raised((0..count).rev().collect()));
        }
        if self.subtracts() {
            let alone = |at| (0..count).map(|it| if it == at { At::Last } else { At::First }).collect();
            corners.extend((0..count).map(alone));
        }
        if self.block.init.is_some() {
            corners.push(self.around.iter().map(|it| self.first_reduction(it)).collect());
        }
        corners.iter().find_map(|corner| self.run(&self.runs(corner)?))
    }

    /// The corner of a loop at which the init runs: the first of reductions, the last of all else.
    fn first_reduction(&self, around: &Loop) -> At {
        let mut reductions = self.block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
        let drives = reductions.any(|it| it.binding.any_var(&|var| *var == around.var));
        if drives { At::First } else { At::Last }
    }

    /// Raises loops in the given order, each as far as the block still runs.
    fn raised(&self, order: Vec<usize>) -> Vec<At> {
        let mut corner = vec![At::First; self.around.len()];
        for loop_at in order {
            let Some(point) = self.runs(&corner) else { return corner };
            let Some(extent) = at(&point, &self.around[loop_at].extent) else { return corner };
            corner[loop_at] = At::Last;
            if self.runs(&corner).is_some() {
                continue;
            }
            let (mut runs, mut fails) = (0, extent - 1);
            while fails - runs > 1 {
                let middle = runs + (fails - runs) / 2;
                corner[loop_at] = At::Step(middle);
                *(if self.runs(&corner).is_some() { &mut runs } else { &mut fails }) = middle;
            }
            corner[loop_at] = At::Step(runs);
        }
        corner
    }

    /// The values of dimensions and loop variables at a corner, if the block runs there.
    fn runs(&self, corner: &[At]) -> Option<Point<'a>> {
        let mut point: Point<'a> = Vec::with_capacity(self.func.dims.len() + self.around.len());
        point.extend(self.func.dims.iter().map(|it| (it, self.size)));
        for (it, step) in self.around.iter().zip(corner) {
            let last = at(&point, &it.extent)?.checked_sub(1)?;
            let step = match step {
                At::First => 0,
                At::Step(step) => *step,
                At::Last => last,
            };
            (0..=last).contains(&step).then(|| point.push((&it.var, step)))?;
        }
        holds(&point, &self.block.guards)?.then_some(point)
    }

    /// Whether some index of the block has a negative constant.
    fn subtracts(&self) -> bool {
        let mut found = self.block.iters.iter().any(|it| is_negative(&it.binding));
        for stmt in self.block.init.iter().chain([&self.block.body]) {
            stmt.each_store(&mut |store| {
                found |= store.place.indices.iter().any(is_negative);
                store.value.each_index(&mut |index| found |= is_negative(index));
            });
        }
        found
    }

    /// Runs the block once.
    fn run(&self, outside: &Point<'a>) -> Option<VerifyErrorKind> {
        let mut inside: Point<'a> = self.func.dims.iter().map(|it| (it, self.size)).collect();
        let mut is_first = true;
        for iter in &self.block.iters {
            if overflows(outside, &iter.binding) {
                let (iter, index, example) = (iter.var.clone(), iter.binding.clone(), example(outside));
                return Some(VerifyErrorKind::DomainOverflow { iter, index, example });
            }
            let (value, extent) = (at(outside, &iter.binding)?, at(outside, &iter.extent)?);
            if !(0..extent).contains(&value) {
                let example = example(outside);
                return Some(VerifyErrorKind::OutOfDomain { iter: iter.var.clone(), value, extent, example });
            }
            is_first &= iter.kind == IterKind::Spatial || value == 0;
            inside.push((&iter.var, value));
        }
        let init = self.block.init.iter().filter(|_| is_first);
        let mut bodies = init.chain([&self.block.body]);
        let run = bodies.find_map(|stmt| {
            [false, true].into_iter().find_map(|raised| self.stmt(stmt, &mut inside.clone(), raised))
        });
        run.map(|wrong| {
            let (buffer, dimension, example) = (wrong.buffer.clone(), wrong.dimension, example(outside));
            if let Some(value) = wrong.value {
                VerifyErrorKind::OutOfBounds { buffer, dimension, value, extent: wrong.extent, example }
            } else {
                let index = wrong.index.clone();
                VerifyErrorKind::SubscriptOverflow { buffer, dimension, index, example }
            }
        })
    }

    /// Runs a statement inside the block; loops stay at their first iteration or at their last one.
    fn stmt(&self, stmt: &'a Stmt, point: &mut Point<'a>, raised: bool) -> Option<Wrong<'a>> {
        match stmt {
            Stmt::Loop(it) => {
                let extent = at(point, &it.extent).filter(|it| *it > 0)?;
                point.push((&it.var, if raised { extent - 1 } else { 0 }));
                let out = self.stmt(&it.body, point, raised);
                point.pop();
                out
            }
            Stmt::Seq(stmts) => stmts.iter().find_map(|it| self.stmt(it, point, raised)),
            Stmt::Store(it) => self.value(&it.value, point).or_else(|| self.access(&it.place, point)),
            Stmt::Block(_) | Stmt::Instr(_) => None,
        }
    }

    fn value(&self, value: &'a Value, point: &Point<'a>) -> Option<Wrong<'a>> {
        match value {
            Value::Const(_) | Value::Index(..) => None,
            Value::Load(access) => self.access(access, point),
            Value::Cast(_, a) | Value::Unary(_, a) => self.value(a, point),
            Value::Binary(_, a, b) => self.value(a, point).or_else(|| self.value(b, point)),
            Value::Where(cond, a, b) => [cond, a, b].into_iter().find_map(|it| self.value(it, point)),
            Value::Select(cond, a, b) => self.value(if holds(point, cond)? { a } else { b }, point),
        }
    }

    fn access(&self, access: &'a Access, point: &Point<'a>) -> Option<Wrong<'a>> {
        let shape = &self.func.buffers.get(&access.buffer)?.shape;
        access.indices.iter().zip(shape).enumerate().find_map(|(dimension, (index, extent))| {
            let (value, extent) = (at(point, index), at(point, extent)?);
            let fits = match value {
                Some(value) => (0..extent).contains(&value),
                None => !overflows(point, index),
            };
            (!fits).then_some(Wrong { buffer: &access.buffer, dimension, index, value, extent })
        })
    }
}

/// A subscript outside its range.
struct Wrong<'a> {
    buffer: &'a Name,
    dimension: usize,
    index: &'a Index,
    /// `None` where it overflows.
    value: Option<i64>,
    extent: i64,
}

/// The value of an index at a point, if it has one.
fn at(point: &Point<'_>, index: &Index) -> Option<i64> {
    index.eval(&|var| point.iter().rev().find(|it| it.0 == var).map(|it| it.1))
}

/// Whether an index has no value at a point because its arithmetic overflows.
fn overflows(point: &Point<'_>, index: &Index) -> bool {
    let value = |var: &Name| point.iter().rev().find(|it| it.0 == var).map(|it| it.1);
    index.eval(&value).is_none() && index.overflows(&value)
}

/// Whether all conditions hold at a point; `None` where one has no value.
fn holds(point: &Point<'_>, all: &[Less]) -> Option<bool> {
    all.iter().try_fold(true, |so_far, it| Some(so_far && at(point, &it.lhs)? < at(point, &it.rhs)?))
}

fn example(point: &Point<'_>) -> Example {
    Example(point.iter().map(|(name, value)| ((*name).clone(), *value)).collect())
}

fn is_negative(index: &Index) -> bool {
    match index.kind() {
        IndexKind::Int(value) => value < 0,
        IndexKind::Var(_) | IndexKind::Element(..) => false,
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::FloorMod(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b) => is_negative(a) || is_negative(b),
    }
}
