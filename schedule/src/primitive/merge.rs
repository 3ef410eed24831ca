use ir::{
    Func, Index, Less, Loop, Name, Stmt,
    access::{Conflict, Iteration},
    arith::Bounds,
    deps,
    region::{Nest, Way},
};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{ScheduleError, ScheduleState, nest, rewrite::subst_loops};

/// Merges loops that stand beside each other into one, whose iterations do what the same iteration of each of them did.
///
/// ```text
/// merge(loops: ["i", "i2"], into: "i")
///
/// for i in 0..m { s }
/// for i2 in 0..m { t }
/// ->
/// for i in 0..m { s; t[i2 := i] }
/// ```
///
/// This is the *loop fusion* of the literature, which is not what `fuse` does. The loops must be plain, have the same number of iterations, and
/// be all outermost or directly in the same loop; those further inside are merged afterwards. No iteration may use, or overwrite,
/// what a later iteration of a loop that came first has. What stands between the loops stays before or behind the merged one, whichever
/// its dependences allow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// The loops to merge.
    pub loops: Vec<Name>,
    /// The name of the loop to make.
    pub into: Name,
}

impl Primitive for Merge {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let [first, rest @ ..] = self.loops.as_slice() else {
            return Err(ScheduleError::TooFewLoops { primitive: "merge", needed: 2 });
        };
        if rest.is_empty() {
            return Err(ScheduleError::TooFewLoops { primitive: "merge", needed: 2 });
        }
        for (n, name) in self.loops.iter().enumerate() {
            state.expect_plain_loop(name)?;
            if self.loops[..n].contains(name) {
                return Err(ScheduleError::NamedTwice { name: name.clone() });
            }
        }
        if !self.loops.contains(&self.into) {
            state.expect_fresh(&self.into)?;
        }
        let mut merged = first.clone();
        for other in rest {
            let pair = Pair::of(&state.func, &merged, other)?;
            pair.expect_independent(&state.func)?;
            merged = pair.first.var.clone();
            pair.merge(&mut state.func);
        }
        let Some(it) = state.func.find_loop(&merged).cloned() else { return Ok(()) };
        let Loop { extent, mut body, .. } = it;
        subst_loops(&mut body, &|var| (*var == merged).then(|| Index::var(&self.into)));
        state.func.replace_loop(&merged, |_| Stmt::serial(&self.into, extent, body));
        Ok(())
    }
}

/// Two loops beside each other, in the order of the program.
struct Pair {
    /// The loop around both.
    within: Option<Name>,
    first: Loop,
    second: Loop,
    /// How many loops are around them.
    level: usize,
    /// Whether the first comes down to the second, or the second up to the first.
    comes_down: bool,
}

impl Pair {
    fn of(func: &Func, one: &Name, other: &Name) -> Result<Pair, ScheduleError> {
        let around = |name: &Name| {
            let path = func.path_to_loop(name).expect("it is one of the program's loops");
            path[..path.len() - 1].iter().map(|it| it.var.clone()).collect::<Vec<_>>()
        };
        let path = around(one);
        if path != around(other) {
            return Err(ScheduleError::NotBeside { first: one.clone(), second: other.clone() });
        }
        let within = path.last().cloned();
        let children = nest::children(func, within.as_ref());
        let at = |name: &Name| {
            let is_it = |stmt: &&Stmt| matches!(stmt, Stmt::Loop(it) if it.var == *name);
            children.iter().position(is_it).expect("the loop is directly in the one around it")
        };
        let (a, b) = (at(one).min(at(other)), at(one).max(at(other)));
        let (Stmt::Loop(first), Stmt::Loop(second)) = (children[a], children[b]) else {
            unreachable!("both are loops")
        };
        let bounds = Bounds::of_dims(func);
        if bounds.simplify(&first.extent) != bounds.simplify(&second.extent) {
            let (first, second) = (first.var.clone(), second.var.clone());
            return Err(ScheduleError::OtherLength { first, second });
        }
        let between = &children[a + 1..b];
        let meets = |before: &Stmt, after: &Stmt| {
            before.blocks().iter().any(|a| after.blocks().iter().any(|b| !deps::between(a, b).is_empty()))
        };
        let comes_down = between.iter().all(|it| !meets(children[a], it));
        if let Some(it) = between.iter().find(|it| !comes_down && meets(it, children[b])) {
            let block = it.blocks()[0].name.clone();
            let (first, second) = (first.var.clone(), second.var.clone());
            return Err(ScheduleError::InTheWay { first, second, block });
        }
        Ok(Pair {
            within,
            first: Loop::clone(first),
            second: Loop::clone(second),
            level: path.len(),
            comes_down,
        })
    }

    /// Refuses to let an iteration of the second loop come before those of the first that it has to follow.
    fn expect_independent(&self, func: &Func) -> Result<(), ScheduleError> {
        let nests = Nest::all(func);
        let inside = |it: &Loop| {
            let var = it.var.clone();
            nests.iter().filter(move |nest| nest.loops.get(self.level).is_some_and(|it| it.var == var))
        };
        for before in inside(&self.first) {
            for after in inside(&self.second) {
                for dep in deps::between(before.block, after.block) {
                    if !self.follows(func, before, after, &dep.buffer) {
                        return Err(ScheduleError::Carried {
                            name: self.second.var.clone(),
                            first: before.block.name.clone(),
                            second: after.block.name.clone(),
                            buffer: dep.buffer,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether no element of a buffer is touched by an iteration of the second loop and by a later one of the first.
    fn follows(&self, func: &Func, before: &Nest<'_>, after: &Nest<'_>, buffer: &Name) -> bool {
        let around = &before.loops[..self.level];
        let when = |name: &Name| Iteration::same_if(around.iter().any(|it| it.var == *name));
        let never = |ours: Way, theirs: Way| {
            let (ours, theirs) = (before.places(buffer, ours), after.places(buffer, theirs));
            ours.iter().all(|first| {
                theirs.iter().all(|second| {
                    let both = Conflict { first, second, dims: &func.dims, when: &when };
                    let overtaken = both.at_second(&Index::var(&self.second.var));
                    both.never_where(&[Less::new(overtaken, Index::var(&self.first.var))])
                })
            })
        };
        never(Way::Write, Way::Read) && never(Way::Read, Way::Write) && never(Way::Write, Way::Write)
    }

    /// Puts both bodies into the first loop, at the place of the one that stays.
    fn merge(self, func: &mut Func) {
        let var = &self.first.var;
        let mut body = self.second.body;
        subst_loops(&mut body, &|it| (*it == self.second.var).then(|| Index::var(var)));
        let body = Stmt::seq([self.first.body, body]);
        let merged = Stmt::serial(var, self.first.extent, body);
        let children = nest::children(func, self.within.as_ref());
        let is = |stmt: &Stmt, name: &Name| matches!(stmt, Stmt::Loop(it) if it.var == *name);
        let (stays, goes) = if self.comes_down { (&self.second.var, var) } else { (var, &self.second.var) };
        let kept = children.into_iter().filter(|it| !is(it, goes));
        let all = Stmt::seq(kept.map(|it| if is(it, stays) { merged.clone() } else { it.clone() }));
        match &self.within {
            Some(name) => {
                func.replace_loop(name, |it| Stmt::Loop(std::sync::Arc::new(Loop { body: all, ..it })));
            }
            None => func.body = all,
        }
    }
}
