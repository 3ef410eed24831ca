//! Whether what a block reads was written in the same iteration, guards considered.

use super::{
    depend::Setting,
    touch::{Touch, touches},
};
use crate::{Index, Less, Loop, Name, arith::Bounds, solve::Problem};

/// The most questions that are asked of the solver about one read.
const MAX_QUESTIONS: usize = 200;

/// Whether each element of a buffer that a block in the loop reads is written before in the same iteration, by stores
/// that write one element at each of their points.
///
/// The point of such a store at which it writes a given element can be solved for. What is left are the ways in which
/// there is no such point, or a guard keeps it from being run. An element that no store writes fails each in some way: of
/// every choice of ways, the solver has to say that it never happens.
pub(super) fn written(setting: &Setting<'_>, it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let touches: Vec<Touch> = touches(&it.body).into_iter().filter(|it| it.buffer == *buffer).collect();
    touches.iter().enumerate().filter(|(_, it)| !it.write && it.block == *reader).all(|(n, read)| {
        let all = touches.iter().enumerate().rev().filter(|(_, it)| it.write);
        let before = all.clone().filter(|it| it.0 < n);
        let mut stores: Vec<_> = before.filter_map(|it| failures(it.1, read, None)).collect();
        for (_, write) in all {
            let earlier = (0..shared(write, read)).rev();
            stores.extend(
                earlier.filter_map(|at| failures(&renamed(write, at), read, Some(&read.loops[at].0))),
            );
        }
        !stores.is_empty() && never(&setting.problem_at(read), &stores, &mut 0)
    })
}

/// Whether there is no point at which every store fails in one of its ways.
fn never(problem: &Problem, stores: &[Vec<Less>], questions: &mut usize) -> bool {
    let Some((ways, others)) = stores.split_first() else { return false };
    ways.iter().all(|way| {
        *questions += 1;
        let mut problem = problem.clone();
        problem.less(way);
        *questions <= MAX_QUESTIONS && (problem.solve().is_never() || never(&problem, others, questions))
    })
}

/// How many loops, inside the pipelined one, are around both.
fn shared(write: &Touch, read: &Touch) -> usize {
    write.loops.iter().zip(&read.loops).take_while(|(a, b)| a.0 == b.0).count()
}

/// The store with variables of its own for its loops from one on: it may run in another iteration of them.
fn renamed(write: &Touch, at: usize) -> Touch {
    let own: Vec<&Name> = write.loops[at..].iter().map(|it| &it.0).collect();
    let name = |it: &Name| if own.contains(&it) { Name::new(format!("{it}'")) } else { it.clone() };
    let with = |it: &Name| own.contains(&it).then(|| Index::var(&name(it)));
    Touch {
        indices: write.indices.iter().map(|it| it.subst(&with)).collect(),
        loops: write.loops.iter().map(|(var, extent)| (name(var), extent.subst(&with))).collect(),
        conditions: write.conditions.iter().map(|it| it.subst(&with)).collect(),
        ..write.clone()
    }
}

/// The ways in which an element read may not have been written by a store, each as a condition at the point of the read;
/// none if the store cannot be solved for. The store comes before the read in the iteration that both are in of the
/// loops around both; or, if it has a variable of its own for a loop, in an earlier iteration of that one.
fn failures(write: &Touch, read: &Touch, earlier: Option<&Name>) -> Option<Vec<Less>> {
    let own = &write.loops[shared(write, read)..];
    let is_own = |name: &Name| own.iter().any(|it| it.0 == *name);
    let mut solved: Vec<(Name, Index)> = Vec::new();
    let mut out = Vec::new();
    let bounds = Bounds::default();
    for (place, wanted) in write.indices.iter().zip(&read.indices) {
        let free = own.iter().find(|it| place.any_var(&|name| *name == it.0));
        let Some((var, extent)) = free else {
            out.extend([Less::new(place.clone(), wanted.clone()), Less::new(wanted.clone(), place.clone())]);
            continue;
        };
        let rest = bounds.simplify(&(place - &Index::var(var)));
        if rest.any_var(&is_own) || extent.any_var(&is_own) || solved.iter().any(|it| it.0 == *var) {
            return None;
        }
        let value = wanted - &rest;
        out.push(Less::new(value.clone(), Index::int(0)));
        out.push(Less::new(extent.clone(), value.clone() + 1));
        solved.push((var.clone(), value));
    }
    // A loop that does not matter to the place may as well be at its beginning, if it has one.
    for (var, extent) in own {
        if !solved.iter().any(|it| it.0 == *var) {
            out.push(Less::new(extent.clone(), Index::int(1)));
            solved.push((var.clone(), Index::int(0)));
        }
    }
    if let Some(var) = earlier {
        let value = own.first().and_then(|first| solved.iter().find(|it| it.0 == first.0));
        out.push(Less::new(Index::var(var), &value?.1 + 1));
    }
    let with = |name: &Name| solved.iter().find(|it| it.0 == *name).map(|it| it.1.clone());
    let fails = |it: &Less| Less::new(it.rhs.subst(&with), it.lhs.subst(&with) + 1);
    let out: Vec<Less> = out.into_iter().chain(write.conditions.iter().map(fails)).collect();
    (!out.iter().any(|it| it.lhs.any_var(&is_own) || it.rhs.any_var(&is_own))).then_some(out)
}
