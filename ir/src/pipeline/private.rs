//! Which temporaries each iteration of a loop fills before it uses them, so that iterations may have their own.

use std::collections::BTreeSet;

use super::{
    apart::seen_by,
    depend::Setting,
    walk::{Values, each_point, few_runs, walk},
    written::written,
};
use crate::{
    Func, Index, IterKind, Less, Loop, Name, Role, Stmt,
    region::{Nest, Way, bounds_of, covers, reads_own_places, runs, starts_anew, writes_box},
};

/// The temporaries of a loop that carry nothing from one of its iterations to another, nor into or out of it.
///
/// Each read has to follow a write in the same iteration: by a block whose box covers what is read, or, where boxes
/// do not tell, by a store that can be solved for, or, where the loop is small, in fact. What the rest of the program
/// does with the buffer has to have nothing to do with the loop.
pub fn private(func: &Func, it: &Loop) -> BTreeSet<Name> {
    let nests = Nest::all(func);
    temporaries(func).filter(|name| is_private(func, &nests, it, name)).cloned().collect()
}

/// The first by name of such temporaries that the rest of the program uses as well.
pub(super) fn shared_in_name(func: &Func, it: &Loop) -> Option<Name> {
    let nests = Nest::all(func);
    let used_outside = |name: &&Name| nests.iter().any(|nest| !is_inside(nest, it) && nest.uses(name));
    // Few temporaries are, and whether one carries something is the longer question.
    temporaries(func).filter(used_outside).filter(|name| is_private(func, &nests, it, name)).min().cloned()
}

fn temporaries(func: &Func) -> impl Iterator<Item = &Name> {
    func.buffers.iter().filter(|(_, info)| info.role == Role::Temp).map(|(name, _)| name)
}

pub(super) fn is_inside(nest: &Nest<'_>, it: &Loop) -> bool {
    nest.loops.iter().any(|other| other.var == it.var)
}

fn is_private(func: &Func, nests: &[Nest<'_>], it: &Loop, name: &Name) -> bool {
    let users = nests.iter().filter(|nest| nest.uses(name));
    let (inside, outside): (Vec<_>, Vec<_>) = users.partition(|nest| is_inside(nest, it));
    inside.first().is_some_and(|first| !reads_first(first, it, name))
        && (covered(func, &inside, it, name) || fills_first(func, &inside, it, name))
        && (outside.is_empty() || seen_by(func, nests, it, name).is_none())
}

/// Of a temporary that the iterations of a loop cannot have for their own, the first block that may read what an earlier
/// one has left in it.
pub(super) fn kept_for(func: &Func, it: &Loop, name: &Name) -> Option<Name> {
    let nests = Nest::all(func);
    let inside: Vec<_> = nests.iter().filter(|nest| nest.uses(name) && is_inside(nest, it)).collect();
    let uncovered = (0..inside.len()).find(|n| !is_covered(func, &inside, *n, it, name));
    match uncovered.filter(|_| !fills_first(func, &inside, it, name)) {
        Some(n) => Some(inside[n].block.name.clone()),
        None => seen_by(func, &nests, it, name),
    }
}

/// Whether a block, the first in a loop that uses a buffer, surely reads there what an iteration of the loop has not written:
/// it adds to what is there, and runs. Nothing that is harder to find out matters then.
fn reads_first(nest: &Nest<'_>, it: &Loop, buffer: &Name) -> bool {
    nest.reaches(buffer, Way::Read)
        && is_one_store(&nest.block.body)
        && (nest.block.init.is_none() || goes_on(nest, it))
        && nest.block.guards.is_empty()
        && reads_own_places(nest)
        && runs(nest, 0)
}

/// Whether the second iteration of a loop begins at a point at which the init of a block does not run.
fn goes_on(nest: &Nest<'_>, it: &Loop) -> bool {
    let Some(level) = nest.loops.iter().position(|other| other.var == it.var) else { return false };
    let inside = &nest.loops[level + 1..];
    let beginning = |name: &Name| {
        let is_inside = || inside.iter().any(|other| other.var == *name);
        if *name == it.var { Some(Index::int(1)) } else { is_inside().then(|| Index::int(0)) }
    };
    let is_begun = |binding: &Index| {
        let some = Less::new(Index::int(0), binding.subst(&beginning));
        nest.bounds().prove(&some) == Some(true)
    };
    let mut reduced = nest.block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    it.extent.as_int().is_some_and(|it| it > 1) && reduced.any(|it| is_begun(&it.binding))
}

/// Whether the body of a block is one assignment, in loops of its own or not.
fn is_one_store(body: &Stmt) -> bool {
    match body {
        Stmt::Store(_) => true,
        Stmt::Loop(it) => is_one_store(&it.body),
        Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => false,
    }
}

/// Whether every read follows writes that cover it.
fn covered(func: &Func, users: &[&Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    (0..users.len()).all(|n| is_covered(func, users, n, it, buffer))
}

/// Whether what one of the users of a buffer reads follows writes that cover it.
fn is_covered(func: &Func, users: &[&Nest<'_>], n: usize, it: &Loop, buffer: &Name) -> bool {
    let reader = users[n];
    let level = reader.loops.iter().position(|other| other.var == it.var);
    !reader.reaches(buffer, Way::Read)
        || reader.reaches(buffer, Way::Write) && starts_anew(reader) > level
        || users[..n].iter().any(|writer| fills(func, writer, reader, buffer))
        || level.is_some_and(|level| {
            let setting = Setting { func, around: &reader.loops[..level], var: &it.var, extent: &it.extent };
            written(&setting, it, &reader.block.name, buffer)
        })
}

/// Whether a block writes all that a later one reads, in the same iteration of the loops around both.
pub(super) fn fills(func: &Func, writer: &Nest<'_>, reader: &Nest<'_>, buffer: &Name) -> bool {
    let Some(info) = func.buffers.get(buffer).filter(|_| writer.reaches(buffer, Way::Write)) else {
        return false;
    };
    let fixed = writer.shared_loops(reader);
    if !writes_box(writer, reader.block, buffer, fixed) {
        return false;
    }
    let bounds = bounds_of(func, &reader.loops[..fixed]);
    let written = writer.touched_in_one(buffer, fixed, Way::Write);
    let read = reader.touched_in_one(buffer, fixed, Way::Read);
    covers(&written, &read, &info.shape, &bounds)
}

/// Whether every read follows a write, going through every iteration of a loop of known and small extents.
fn fills_first(func: &Func, users: &[&Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    let Some(first) = users.first().filter(|_| few_runs(func, users)) else { return false };
    let around = first.loops.iter().take_while(|other| other.var != it.var).copied();
    let loops: Vec<&Loop> = around.chain([it]).collect();
    each_point(&loops, &mut Values::new(), &mut |values| {
        let mut written = BTreeSet::new();
        walk(&it.body, buffer, &mut values.clone(), &mut |touch, place| {
            if touch.write {
                written.insert(place);
                true
            } else {
                written.contains(&place)
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::private;
    use crate::Name;

    /// The temporaries that iterations of `k` may have for their own, where sums go on from each to the next or, if `k` has
    /// only one, start in it.
    fn private_of_sums(iterations: i64) -> Vec<String> {
        let text = format!(
            "
func sums()
  in A: f32[8, 32]
  out C: f32[8]
  temp S: f32[8]

  for i in 0..8
    for k in 0..{iterations}
      for l in 0..4
        block S(v: 8 = i, r: reduce 32 = k*4 + l)
          init
            S[v] = 0.0f32
          S[v] = S[v] + A[v, r]
      block C(v_1: 8 = i)
        C[v_1] = S[v_1]
"
        );
        let func = crate::text::parse(&text).expect("the text above is a program");
        let it = func.find_loop(&Name::new("k")).expect("it is there");
        private(&func, it).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sums_that_go_on_are_not_private() {
        assert!(private_of_sums(8).is_empty());
        assert_eq!(private_of_sums(1), ["S"]);
    }
}
