//! Which temporaries each iteration of a loop fills before it uses them, so that iterations may have their own.

use std::collections::{BTreeMap, BTreeSet};

use super::{depend::Setting, touch::touches, written::written};
use crate::{
    Func, Less, Loop, Name, Role, Stmt,
    region::{Nest, Way, bounds_of, covers, reads_own_places, starts_anew, writes_box},
};

/// The most runs of statements that are gone through one by one where boxes do not tell.
const MAX_RUNS: i64 = 20_000;

/// The temporaries of a loop that carry nothing from one of its iterations to another, nor into or out of it.
///
/// Each read has to follow a write in the same iteration: by a block whose box covers what is read, or, where boxes
/// do not tell, by a store that can be solved for, or, where the loop is small, in fact. What the rest of the program
/// does with the buffer has to have nothing to do with the loop: each read there follows a write there, with the loop
/// not in between.
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

fn is_inside(nest: &Nest<'_>, it: &Loop) -> bool {
    nest.loops.iter().any(|other| other.var == it.var)
}

fn is_private(func: &Func, nests: &[Nest<'_>], it: &Loop, name: &Name) -> bool {
    let users = nests.iter().filter(|nest| nest.uses(name));
    let (inside, outside): (Vec<_>, Vec<_>) = users.partition(|nest| is_inside(nest, it));
    inside.first().is_some_and(|first| !reads_first(first, name))
        && (covered(func, &inside, it, name) || fills_first(func, &inside, it, name))
        && (outside.is_empty() || apart(func, nests, it, name))
}

/// Whether a block, the first that uses a buffer, surely reads each of its elements before it writes it: it adds to what is
/// there, and runs. Nothing that is harder to find out matters then.
fn reads_first(nest: &Nest<'_>, buffer: &Name) -> bool {
    nest.reaches(buffer, Way::Read)
        && is_one_store(&nest.block.body)
        && nest.block.init.is_none()
        && nest.block.guards.is_empty()
        && reads_own_places(nest)
        && nest.loops.iter().all(|it| surely_runs(it))
}

/// Whether the body of a block is one assignment, in loops of its own or not.
fn is_one_store(body: &Stmt) -> bool {
    match body {
        Stmt::Store(_) => true,
        Stmt::Loop(it) => surely_runs(it) && is_one_store(&it.body),
        Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => false,
    }
}

fn surely_runs(it: &Loop) -> bool {
    it.extent.as_int().is_some_and(|it| it > 0)
}

/// Whether every read follows writes that cover it.
fn covered(func: &Func, users: &[&Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    users.iter().enumerate().all(|(n, reader)| {
        let level = reader.loops.iter().position(|other| other.var == it.var);
        !reader.reaches(buffer, Way::Read)
            || reader.reaches(buffer, Way::Write) && starts_anew(reader) > level
            || users[..n].iter().any(|writer| fills(func, writer, reader, buffer))
            || level.is_some_and(|level| {
                let setting =
                    Setting { func, around: &reader.loops[..level], var: &it.var, extent: &it.extent };
                written(&setting, it, &reader.block.name, buffer)
            })
    })
}

/// Whether a block writes all that a later one reads, in the same iteration of the loops around both.
fn fills(func: &Func, writer: &Nest<'_>, reader: &Nest<'_>, buffer: &Name) -> bool {
    let Some(info) = func.buffers.get(buffer).filter(|_| writer.reaches(buffer, Way::Write)) else {
        return false;
    };
    let fixed = writer.shared_loops(reader);
    let bounds = bounds_of(func, &reader.loops[..fixed]);
    let written = writer.touched_in_one(buffer, fixed, Way::Write);
    let read = reader.touched_in_one(buffer, fixed, Way::Read);
    writes_box(writer, reader.block, buffer, fixed) && covers(&written, &read, &info.shape, &bounds)
}

/// Whether no block outside a loop reads what the loop leaves in a buffer: each reads what a block outside has
/// written, with no iteration of the loop in between.
fn apart(func: &Func, nests: &[Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    let is_inside = |nest: &Nest<'_>| is_inside(nest, it);
    let Some(at) = nests.iter().position(is_inside) else { return true };
    // The loop is not in between if it comes before or after both, and not again before they are through.
    let outside_of = |first: usize, last: usize, shared: usize| {
        let met = if at < first {
            nests[at].shared_loops(&nests[first])
        } else {
            nests[at].shared_loops(&nests[last])
        };
        (at < first || at > last) && met <= shared
    };
    let users = nests.iter().enumerate().filter(|(_, nest)| nest.uses(buffer) && !is_inside(nest));
    users.filter(|(_, nest)| nest.reaches(buffer, Way::Read)).all(|(n, reader)| {
        let own = starts_anew(reader).filter(|_| reader.reaches(buffer, Way::Write));
        own.is_some_and(|loops| outside_of(n, n, loops))
            || (0..n).any(|m| {
                let writer = &nests[m];
                !is_inside(writer)
                    && outside_of(m, n, writer.shared_loops(reader))
                    && fills(func, writer, reader, buffer)
            })
    })
}

/// Whether every read follows a write, going through every iteration of a loop of known and small extents.
fn fills_first(func: &Func, users: &[&Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    let extent = |it: &&Loop| it.extent.as_int();
    let runs =
        |nest: &&Nest<'_>| nest.loops.iter().map(extent).try_fold(1_i64, |all, it| all.checked_mul(it?));
    let Some(first) = users.first().filter(|_| func.dims.is_empty()) else { return false };
    let all = users.iter().map(runs).try_fold(0_i64, |all, it| all.checked_add(it?));
    if all.is_none_or(|it| it > MAX_RUNS) {
        return false;
    }
    let around = first.loops.iter().take_while(|other| other.var != it.var).copied();
    let loops: Vec<&Loop> = around.chain([it]).collect();
    each_point(&loops, &mut BTreeMap::new(), &mut |env| {
        let mut trace = Trace { buffer, env: env.clone(), written: BTreeSet::new() };
        trace.stmt(&it.body)
    })
}

/// Calls `f` for each iteration of nested loops of constant extents until it says no; whether it never did.
fn each_point(
    loops: &[&Loop],
    env: &mut BTreeMap<Name, i64>,
    f: &mut dyn FnMut(&BTreeMap<Name, i64>) -> bool,
) -> bool {
    let [first, rest @ ..] = loops else { return f(env) };
    let extent = first.extent.as_int().unwrap_or(0);
    (0..extent).all(|value| {
        env.insert(first.var.clone(), value);
        each_point(rest, env, f)
    })
}

struct Trace<'a> {
    buffer: &'a Name,
    env: BTreeMap<Name, i64>,
    written: BTreeSet<Vec<i64>>,
}

impl Trace<'_> {
    /// Runs a statement; false at a read of what is not written.
    fn stmt(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Loop(it) => {
                let extent = it.extent.eval(&|name| self.env.get(name).copied());
                extent.is_some_and(|extent| {
                    (0..extent).all(|value| {
                        self.env.insert(it.var.clone(), value);
                        self.stmt(&it.body)
                    })
                })
            }
            Stmt::Seq(stmts) => stmts.iter().all(|it| self.stmt(it)),
            Stmt::Block(_) => self.block(stmt),
            Stmt::Store(_) => true,
            Stmt::Instr(_) => false,
        }
    }

    fn block(&mut self, block: &Stmt) -> bool {
        for touch in touches(block).into_iter().filter(|it| it.buffer == *self.buffer) {
            // Loops in the body of a block are not gone through.
            if !touch.loops.is_empty() {
                return false;
            }
            let value = |name: &Name| self.env.get(name).copied();
            let holds = |it: &Less| Some(it.lhs.eval(&value)? < it.rhs.eval(&value)?);
            match touch.conditions.iter().map(holds).collect::<Option<Vec<_>>>() {
                None => return false,
                Some(all) if all.contains(&false) => continue,
                Some(_) => {}
            }
            let Some(place) = touch.indices.iter().map(|it| it.eval(&value)).collect::<Option<Vec<_>>>()
            else {
                return false;
            };
            if touch.write {
                self.written.insert(place);
            } else if !self.written.contains(&place) {
                return false;
            }
        }
        true
    }
}
