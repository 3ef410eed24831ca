//! Ring counters: variables that stand for the slots of rings and go round with a loop.

use std::{collections::BTreeSet, sync::Arc};

use ir::{For, ForKind, Index, IndexKind, Kernel, Module, Name, Op, RingCounter, Target, arith::Bounds};

use crate::lower::analysis::{bounds::kernel_bounds, names};

/// ```text
/// for ko in 0..61                              for ko in 0..61 with ko_2_of_3 from 2 of 3
///   A_shared[(ko + 2) mod 3*64] = A[ko]   ->     A_shared[ko_2_of_3*64] = A[ko]
/// ```
///
/// On a GPU, `(ko + 2) mod 3` takes a multiplication of 64 bits, a shift and two more instructions, and what is computed from it
/// anew in each iteration takes registers. A variable that starts at 2 and goes on by one, or back to zero, takes an addition
/// and a choice; where all threads agree on it, neither needs a register of theirs. A remainder by a power of two stays:
/// it costs nothing as it is.
pub(crate) fn ring_counters(mut module: Module, target: &Target) -> Module {
    if *target == Target::Cpu {
        return module;
    }
    for at in 0..module.kernels.len() {
        let bounds = kernel_bounds(&module, &module.kernels[at]);
        let taken = names::taken(&module.dims, &module.kernels[at].body);
        let Kernel { body, .. } = &mut module.kernels[at];
        *body = Rewriter { bounds, taken }.ops(std::mem::take(body));
    }
    module
}

struct Rewriter {
    bounds: Bounds,
    taken: BTreeSet<Name>,
}

/// A remainder that a variable is to stand for.
struct Remainder {
    /// As indices have it.
    of: Index,
    start: i64,
    count: i64,
}

impl Rewriter {
    fn ops(&mut self, ops: Vec<Op>) -> Vec<Op> {
        ops.into_iter().map(|op| self.op(op)).collect()
    }

    fn op(&mut self, op: Op) -> Op {
        let outside = self.bounds.clone();
        let op = match op {
            Op::For(it) => Op::For(Arc::new(self.for_loop(Arc::unwrap_or_clone(it)))),
            Op::If(conditions, body) => {
                for it in &conditions {
                    self.bounds.assume(it);
                }
                Op::If(conditions, self.ops(body))
            }
            Op::Leader(..) | Op::Role(..) => op.map_children(&mut |body| self.ops(body)),
            leaf @ (Op::Alloc(_) | Op::Instr(..)) => return leaf,
        };
        self.bounds = outside;
        op
    }

    fn for_loop(&mut self, mut it: For) -> For {
        for remainder in remainders(&it, &self.bounds) {
            let Remainder { of, start, count } = remainder;
            let var = Name::fresh(&format!("{}_{start}_of_{count}", it.var), |it| self.taken.contains(it));
            self.taken.insert(var.clone());
            let new = Index::var(&var);
            it.body =
                it.body.iter().map(|op| op.map_indices(&mut |index| replaced(index, &of, &new))).collect();
            self.bounds.insert(&var, &Index::int(count));
            it.counters.push(RingCounter { var, start, count });
        }
        self.bounds.insert(&it.var, &it.extent);
        it.body = self.ops(it.body);
        it
    }
}

/// The index with a part of it replaced wherever it occurs.
fn replaced(index: &Index, of: &Index, new: &Index) -> Index {
    if index == of { new.clone() } else { index.map_parts(&mut |part| replaced(part, of, new)) }
}

/// The remainders of a loop's variable, plus a constant, by which its body subscripts.
fn remainders(it: &For, bounds: &Bounds) -> Vec<Remainder> {
    let mut out: Vec<Remainder> = Vec::new();
    if it.kind != ForKind::Serial {
        return out;
    }
    for op in &it.body {
        // The rewriting is the identity; it is here for its visits.
        let _ = op.map_indices(&mut |index| {
            collect(index, &it.var, bounds, &mut out);
            index.clone()
        });
    }
    let is_written_out = it.extent.as_int().is_some_and(|extent| out.iter().any(|it| extent <= it.count));
    if is_written_out || redeclares(&it.body, &it.var) { vec![] } else { out }
}

fn collect(index: &Index, var: &Name, bounds: &Bounds, out: &mut Vec<Remainder>) {
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => {}
        IndexKind::FloorMod(a, b) => match remainder(index, a, b, var, bounds) {
            Some(new) if out.iter().all(|it| it.of != new.of) => out.push(new),
            Some(_) => {}
            None => collect(a, var, bounds, out),
        },
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b)
        | IndexKind::Element(_, a, b) => {
            collect(a, var, bounds, out);
            collect(b, var, bounds, out);
        }
    }
}

/// `(var + c) mod n` for constants; a power of two costs nothing as it is.
fn remainder(of: &Index, a: &Index, b: &Index, var: &Name, bounds: &Bounds) -> Option<Remainder> {
    let count =
        b.as_int().filter(|it| *it > 2 && u64::try_from(*it).is_ok_and(|it| !it.is_power_of_two()))?;
    let (1, rest) = bounds.linear_in(a, var)? else { return None };
    Some(Remainder { of: of.clone(), start: rest.as_int()?.rem_euclid(count), count })
}

/// Whether a loop inside has the same variable.
fn redeclares(body: &[Op], var: &Name) -> bool {
    let mut found = false;
    for op in body {
        op.walk(&mut |op| found |= matches!(op, Op::For(it) if it.var == *var));
    }
    found
}
