//! Ring counters: variables that stand for the slots of rings and go round with a loop.
//!
//! `(ko + 2) % 3` takes a multiplication of 64 bits, a shift and two more instructions, and what is computed from it anew in each
//! iteration takes registers. A variable that starts at 2 and goes on by one, or back to zero, takes an addition and a
//! choice; where all threads agree on it, neither needs a register of theirs.

use ir::{For, ForKind, Index, IndexKind, Name, Op, arith::Bounds};

use super::Dialect;

/// A remainder that a variable stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RingCounter {
    /// The remainder, as indices have it.
    pub(super) of: Index,
    /// The variable.
    pub(super) var: String,
    /// What it is in the first iteration.
    start: i64,
    /// How many there are.
    count: i64,
}

/// The remainders of a loop's variable, plus a constant, by which its body subscripts.
pub(super) fn ring_counters(it: &For, dialect: Dialect, bounds: &Bounds) -> Vec<RingCounter> {
    let mut out: Vec<RingCounter> = Vec::new();
    if dialect.is_c() || it.kind != ForKind::Serial {
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

fn collect(index: &Index, var: &Name, bounds: &Bounds, out: &mut Vec<RingCounter>) {
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => {}
        IndexKind::FloorMod(a, b) => {
            let counter = counter(index, a, b, var, bounds);
            match counter {
                Some(counter) if out.iter().all(|it| it.of != counter.of) => out.push(counter),
                Some(_) => {}
                None => collect(a, var, bounds, out),
            }
        }
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b) => {
            collect(a, var, bounds, out);
            collect(b, var, bounds, out);
        }
    }
}

/// `(var + c) mod n` for constants; a power of two costs nothing as it is.
fn counter(of: &Index, a: &Index, b: &Index, var: &Name, bounds: &Bounds) -> Option<RingCounter> {
    let count =
        b.as_int().filter(|it| *it > 2 && u64::try_from(*it).is_ok_and(|it| !it.is_power_of_two()))?;
    let (1, rest) = bounds.linear_in(a, var)? else { return None };
    let start = rest.as_int()?.rem_euclid(count);
    Some(RingCounter { of: of.clone(), var: format!("tw_{var}_{start}_of_{count}"), start, count })
}

/// Whether a loop inside has the same variable.
fn redeclares(body: &[Op], var: &Name) -> bool {
    let mut found = false;
    for op in body {
        op.walk(&mut |op| found |= matches!(op, Op::For(it) if it.var == *var));
    }
    found
}

/// What declares the variables, and what lets them go on, for the head of the loop.
pub(super) fn head(ring_counters: &[RingCounter]) -> (String, String) {
    let start = |it: &RingCounter| format!(", {} = {}", it.var, it.start);
    let step = |RingCounter { var, count, .. }: &RingCounter| {
        format!(", {var} = {var} == {} ? 0 : {var} + 1", count - 1)
    };
    (ring_counters.iter().map(start).collect(), ring_counters.iter().map(step).collect())
}
