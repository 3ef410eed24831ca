//! Whether what a block reads was written in the same iteration, guards considered.

use super::{
    depend::Setting,
    touch::{Touch, touches},
};
use crate::{Index, Less, Loop, Name, arith::Bounds};

/// Whether each element of a buffer that a block in the loop reads is written before in the same iteration, by one
/// store that writes one element at each of its points.
///
/// The point of such a store at which it writes a given element can be solved for. What is left are the ways in which
/// there is no such point, or a guard keeps it from being run: of each, the solver has to say that it never happens.
pub(super) fn written(setting: &Setting<'_>, it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let touches: Vec<Touch> = touches(&it.body).into_iter().filter(|it| it.buffer == *buffer).collect();
    touches.iter().enumerate().filter(|(_, it)| !it.write && it.block == *reader).all(|(n, read)| {
        touches[..n].iter().any(|write| {
            write.write
                && failures(write, read).is_some_and(|all| all.iter().all(|it| never(setting, read, it)))
        })
    })
}

/// The ways in which an element read may not have been written by an earlier store, each as a condition at the point
/// of the read; none if the store cannot be solved for.
fn failures(write: &Touch, read: &Touch) -> Option<Vec<Less>> {
    let shared = write.loops.iter().zip(&read.loops).take_while(|(a, b)| a.0 == b.0).count();
    let own = &write.loops[shared..];
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
    let with = |name: &Name| solved.iter().find(|it| it.0 == *name).map(|it| it.1.clone());
    let fails = |it: &Less| Less::new(it.rhs.subst(&with), it.lhs.subst(&with) + 1);
    let out: Vec<Less> = out.into_iter().chain(write.conditions.iter().map(fails)).collect();
    (!out.iter().any(|it| it.lhs.any_var(&is_own) || it.rhs.any_var(&is_own))).then_some(out)
}

/// Whether a condition holds at no point of a read.
fn never(setting: &Setting<'_>, read: &Touch, failure: &Less) -> bool {
    let mut problem = setting.problem_at(read);
    problem.less(failure);
    problem.solve().is_never()
}
