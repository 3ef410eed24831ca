//! Which temporaries each iteration of a loop fills before it uses them, so that iterations may have their own.

use std::collections::{BTreeMap, BTreeSet};

use super::touch::touches;
use crate::{
    Func, IterKind, Less, Loop, Name, Role, Stmt,
    region::{Nest, Way, bounds_of, covers, writes_box},
};

/// The most runs of statements that are gone through one by one where boxes do not tell.
const MAX_RUNS: i64 = 20_000;

/// The temporaries of a loop that carry nothing from one of its iterations to another, nor out of it.
///
/// Each read has to follow a write in the same iteration: by a block whose box covers what is read, or, where boxes
/// do not tell and the loop is small, in fact.
pub fn private(func: &Func, it: &Loop) -> BTreeSet<Name> {
    let nests = Nest::all(func);
    let level = |nest: &Nest<'_>| nest.loops.iter().position(|other| other.var == it.var);
    let inside: Vec<&Nest<'_>> = nests.iter().filter(|nest| level(nest).is_some()).collect();
    let temps = func.buffers.iter().filter(|(_, info)| info.role == Role::Temp).map(|(name, _)| name);
    let is_private = |name: &&Name| {
        let users: Vec<&Nest<'_>> = inside.iter().copied().filter(|nest| nest.uses(name)).collect();
        let all = nests.iter().filter(|nest| nest.uses(name)).count();
        !users.is_empty()
            && users.len() == all
            && (covered(func, &users, it, name) || fills_first(func, &users, it, name))
    };
    temps.filter(is_private).cloned().collect()
}

/// Whether every read follows a write of a box that covers it.
fn covered(func: &Func, users: &[&Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    let Some(info) = func.buffers.get(buffer) else { return false };
    users.iter().enumerate().all(|(n, reader)| {
        if !reader.reaches(buffer, Way::Read) || reader.reaches(buffer, Way::Write) && starts(reader, it) {
            return true;
        }
        let mut earlier = users[..n].iter().filter(|writer| writer.reaches(buffer, Way::Write));
        earlier.any(|writer| {
            let fixed = writer.shared_loops(reader);
            let bounds = bounds_of(func, &reader.loops[..fixed]);
            let written = writer.touched_in_one(buffer, fixed, Way::Write);
            let read = reader.touched_in_one(buffer, fixed, Way::Read);
            writes_box(writer, reader.block, buffer, fixed) && covers(&written, &read, &info.shape, &bounds)
        })
    })
}

/// Whether a block that reads what it writes starts anew in each iteration of a loop: its init runs there.
fn starts(nest: &Nest<'_>, it: &Loop) -> bool {
    let within = |var: &Name| {
        let level = nest.loops.iter().position(|other| other.var == it.var);
        level.is_some_and(|level| nest.loops[level + 1..].iter().any(|inner| inner.var == *var))
    };
    let mut reduced = nest.block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
    let writes = nest.accesses(Way::Write);
    let own = nest
        .accesses(Way::Read)
        .iter()
        .all(|read| writes.contains(read) || writes.iter().all(|write| write.buffer != read.buffer));
    own && nest.block.init.is_some() && reduced.all(|iter| !iter.binding.any_var(&|var| !within(var)))
}

/// Whether every read follows a write, going through every iteration of a loop of known and small extents.
fn fills_first(func: &Func, users: &[&Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    let extent = |it: &&Loop| it.extent.as_int();
    let runs = users.iter().map(|nest| nest.loops.iter().map(extent).product::<Option<i64>>());
    let Some(first) = users.first().filter(|_| func.dims.is_empty()) else { return false };
    if runs.sum::<Option<i64>>().is_none_or(|it| it > MAX_RUNS) {
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
        }
    }

    fn block(&mut self, block: &Stmt) -> bool {
        for touch in touches(block).into_iter().filter(|it| it.buffer == *self.buffer) {
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
