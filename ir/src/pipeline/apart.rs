//! Whether the rest of a program has nothing of what a loop leaves in a temporary.

use std::collections::BTreeSet;

use super::{
    private::{fills, is_inside},
    walk::{Values, few_runs, walk},
    written::{in_earlier_iteration, in_same_iteration, inside},
};
use crate::{
    Func, Loop, Name,
    access::{AccessRelation, Axes, Conflict, FuncAccess, Iteration, accesses, never_missed},
    region::{Nest, Way, starts_anew},
    solve::Problem,
};

/// The first block outside a loop that may read what the loop leaves in a buffer. If there is none, the loop may have a
/// buffer of its own.
///
/// Where boxes do not tell, the solver is asked about each element that a block may have from the loop. Where it does not
/// know either, a small program is gone through.
pub(super) fn seen_by(func: &Func, nests: &[Nest<'_>], it: &Loop, buffer: &Name) -> Option<Name> {
    let at = nests.iter().position(|nest| is_inside(nest, it))?;
    let outside = (0..nests.len()).filter(|n| !is_inside(&nests[*n], it));
    let mut readers = outside.filter(|n| nests[*n].reaches(buffer, Way::Read));
    let sees = readers.find(|n| {
        !filled_outside(func, nests, (at, *n), it, buffer)
            && !nothing_flows(func, it, &nests[*n].block.name, buffer)
            && !nothing_is_seen(func, nests, it, &nests[*n].block.name, buffer)
    });
    sees.map(|n| nests[n].block.name.clone())
}

/// Whether a block outside reads what blocks outside have written, with no iteration of the loop in between. The loop is
/// around block `at`, and the reader is block `n`.
fn filled_outside(
    func: &Func,
    nests: &[Nest<'_>],
    (at, n): (usize, usize),
    it: &Loop,
    buffer: &Name,
) -> bool {
    // The loop is not in between if it comes before or after both, and not again before they are through.
    let outside_of = |first: usize, last: usize, shared: usize| {
        let met = if at < first {
            nests[at].shared_loops(&nests[first])
        } else {
            nests[at].shared_loops(&nests[last])
        };
        (at < first || at > last) && met <= shared
    };
    let reader = &nests[n];
    let own = starts_anew(reader).filter(|_| reader.reaches(buffer, Way::Write));
    own.is_some_and(|loops| outside_of(n, n, loops))
        || (0..n).any(|m| {
            let writer = &nests[m];
            !is_inside(writer, it)
                && outside_of(m, n, writer.shared_loops(reader))
                && fills(func, writer, reader, buffer)
        })
}

/// Whether the solver finds that no value flows from a write in a loop to a read of a block outside: an element that the
/// loop has written, now or in an earlier iteration of the loops around both, is written again before it is read.
fn nothing_flows(func: &Func, it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let all: Vec<_> =
        accesses(&func.body, Axes::AsLoops).into_iter().filter(|it| it.buffer == buffer).collect();
    let is_inside = |access: &FuncAccess<'_>| access.loops.iter().any(|other| other.var == it.var);
    let Some(at) = all.iter().position(is_inside) else { return true };
    let is_read = |it: &FuncAccess<'_>| !it.write && it.block_name() == *reader;
    let mut reads = all.iter().enumerate().filter(|it| is_read(it.1));
    reads.all(|(n, read)| {
        let around = all[at].shared_loops(read);
        let mut misses = Vec::new();
        for (m, write) in all.iter().enumerate().filter(|(_, it)| it.write && !is_inside(it)) {
            if write.shared_loops(read) < around {
                continue;
            }
            if m < n && (n < at || at < m) {
                misses.push(in_same_iteration(write, read).misses(&read.indices));
            }
            let loops = around..write.shared_loops(read);
            misses.extend(loops.map(|at| in_earlier_iteration(write, read, at).misses(&read.indices)));
        }
        all.iter().filter(|it| it.write && is_inside(it)).all(|source| {
            let again = (0..around).map(|loops| flow(func, read, &in_earlier_iteration(source, read, loops)));
            let now = (at < n).then(|| flow(func, read, &inside(source, around)));
            again.chain(now).all(|flow| flow.solve().is_never() || never_missed(&flow, &misses))
        })
    })
}

/// The points at which a read touches an element that was written, by a write with variables of its own.
fn flow(func: &Func, read: &FuncAccess<'_>, source: &AccessRelation) -> Problem {
    let when = |_: &Name| Iteration::Same;
    Conflict { first: &read.relation(), second: source, dims: &func.dims, when: &when }.problem()
}

/// Whether no read of a block outside sees an element that the loop has written last, going through a small program.
fn nothing_is_seen(func: &Func, nests: &[Nest<'_>], it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let users: Vec<_> = nests.iter().filter(|nest| nest.uses(buffer)).collect();
    if !few_runs(func, &users) {
        return false;
    }
    let inside = users.iter().filter(|nest| is_inside(nest, it)).map(|nest| &nest.block.name);
    let inside: Vec<_> = inside.collect();
    let mut left = BTreeSet::new();
    walk(&func.body, buffer, &mut Values::new(), &mut |touch, place| {
        let block = touch.block_name();
        match (touch.write, inside.contains(&&block)) {
            (true, true) => drop(left.insert(place)),
            (true, false) => drop(left.remove(&place)),
            (false, _) => return block != *reader || !left.contains(&place),
        }
        true
    })
}
