//! Software pipelines: what their annotations name, and whether they keep every dependence.
//!
//! Component `c` of iteration `i` runs at time `(i + stage, order)`. A dependence from `src` at iteration `i` to
//! `dst` at iteration `i + d` holds if `(stage_src, order_src) < (stage_dst + d, order_dst)`, compared first by
//! stage. A buffer that each iteration fills before using gets as many copies as iterations overlap, and only its
//! dependences within one iteration count; every other buffer has its dependences at all distances, of which those
//! at 0 and 1 imply the rest. Dependences are judged by buffer, not by element: a pipeline may be refused that
//! would be right, but not the other way round.

use indexmap::IndexMap;
use ir::{
    Annotation, Block, Func, IterKind, Loop, Name, Role, Stmt,
    deps::{DepKind, between},
    region::Nest,
};

use crate::{
    PipelineError, ScheduleError,
    check::independent::{accumulates, uncovered},
};

/// The annotation of stages.
pub(crate) const STAGE: &str = "software_pipeline_stage";
/// The annotation of orders.
pub(crate) const ORDER: &str = "software_pipeline_order";

/// What a loop repeats, statement by statement, each with its blocks in program order.
pub(crate) fn components(it: &Loop) -> Vec<Vec<&Block>> {
    match &it.body {
        Stmt::Seq(stmts) => stmts.iter().map(Stmt::blocks).collect(),
        other @ (Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_)) => vec![other.blocks()],
    }
}

/// Positional numbers as a map: each component under the name of its last block.
pub(crate) fn named(it: &Loop, list: &[i64]) -> Result<IndexMap<Name, i64>, ScheduleError> {
    let components = components(it);
    if components.len() != list.len() {
        let (name, components) = (it.var.clone(), components.len());
        return Err(PipelineError::PipelineArity { name, components, given: list.len() }.into());
    }
    let ends = components.iter().filter_map(|blocks| blocks.last()).map(|block| block.name.clone());
    Ok(ends.zip(list.iter().copied()).collect())
}

/// The number of each component, in program order, under the name that the map gives it.
pub(crate) fn in_program_order(
    it: &Loop,
    key: &'static str,
    map: &IndexMap<Name, i64>,
) -> Result<IndexMap<Name, i64>, ScheduleError> {
    let components = components(it);
    if components.len() < 2 {
        return Err(PipelineError::OneComponent { name: it.var.clone() }.into());
    }
    let inside = |name: &Name| components.iter().flatten().any(|block| block.name == *name);
    if let Some(block) = map.keys().find(|name| !inside(name)) {
        return Err(PipelineError::NotInLoop { name: it.var.clone(), block: block.clone() }.into());
    }
    let mut out = IndexMap::new();
    for blocks in &components {
        let mut given = blocks.iter().filter_map(|block| map.get_key_value(&block.name));
        let Some((first, number)) = given.next() else {
            let block = blocks.last().map_or_else(|| it.var.clone(), |block| block.name.clone());
            return Err(PipelineError::PipelineMissing { name: it.var.clone(), key, block }.into());
        };
        if let Some((second, _)) = given.find(|(_, other)| *other != number) {
            let (first, second) = (first.clone(), second.clone());
            return Err(PipelineError::OneStatement { name: it.var.clone(), first, second }.into());
        }
        out.insert(first.clone(), *number);
    }
    Ok(out)
}

/// Checks every loop with both annotations, but for those that are the same in a checked program `before` of which the
/// step has `kept` everything ([`ir::kept()`]).
pub(crate) fn check_pipelines(
    func: &Func,
    before: Option<&Func>,
    kept: &[bool],
) -> Result<(), ScheduleError> {
    let before = before.filter(|it| kept.iter().all(|it| *it) && are_same_blocks(it, func));
    for it in func.loops() {
        if let (Some(Annotation::Map(stages)), Some(Annotation::Map(orders))) =
            (it.annotations.get(STAGE), it.annotations.get(ORDER))
        {
            let was = before.and_then(|before| before.find_loop(&it.var));
            if was.is_some_and(|was| was.annotations == it.annotations) {
                continue;
            }
            let stages = in_program_order(it, STAGE, stages)?;
            let orders = in_program_order(it, ORDER, orders)?;
            let times = stages.values().copied().zip(orders.values().copied()).collect::<Vec<_>>();
            check(func, it, &times)?;
        }
    }
    Ok(())
}

/// Whether blocks of the same names stand in the same order.
fn are_same_blocks(a: &Func, b: &Func) -> bool {
    a.body.blocks().iter().map(|it| &it.name).eq(b.body.blocks().iter().map(|it| &it.name))
}

/// Checks the dependences of a loop whose components have these (stage, order) pairs.
fn check(func: &Func, it: &Loop, times: &[(i64, i64)]) -> Result<(), ScheduleError> {
    let components = components(it);
    let nests = Nest::all(func);
    let is_private = |name: &&Name| is_private(func, &nests, it, name);
    let private: Vec<&Name> = func.buffers.keys().filter(is_private).collect();
    for (src, earlier) in components.iter().enumerate() {
        for (dst, later) in components.iter().enumerate() {
            for distance in 0..=1 {
                let kept = times[src] < (times[dst].0 + distance, times[dst].1);
                if kept || distance == 0 && dst <= src {
                    continue;
                }
                if let Some((src, dst, kind, buffer)) =
                    hazard(earlier, later, &|name| distance == 1 && private.contains(&name))
                {
                    let name = it.var.clone();
                    return Err(PipelineError::Hazard { name, kind, src, dst, buffer, distance }.into());
                }
            }
        }
    }
    Ok(())
}

/// The first hazard between blocks of two components, on a buffer that is not `ignored`.
fn hazard(
    earlier: &[&Block],
    later: &[&Block],
    ignored: &dyn Fn(&Name) -> bool,
) -> Option<(Name, Name, DepKind, Name)> {
    let pairs = earlier.iter().flat_map(|src| later.iter().map(move |dst| (*src, *dst)));
    pairs.into_iter().find_map(|(src, dst)| {
        let dep = between(src, dst).into_iter().find(|dep| !ignored(&dep.buffer))?;
        Some((src.name.clone(), dst.name.clone(), dep.kind, dep.buffer))
    })
}

/// Whether every iteration of the loop fills what it uses of a temporary, so that iterations may have copies.
fn is_private(func: &Func, nests: &[Nest<'_>], it: &Loop, buffer: &Name) -> bool {
    if func.buffers.get(buffer).is_none_or(|it| it.role != Role::Temp) {
        return false;
    }
    let users: Vec<&Nest<'_>> = nests.iter().filter(|nest| nest.uses(buffer)).collect();
    let level = |nest: &&Nest<'_>| nest.loops.iter().position(|other| other.var == it.var);
    let inside: Vec<&Nest<'_>> = users.iter().copied().filter(|nest| level(nest).is_some()).collect();
    let [first, others @ ..] = inside.as_slice() else { return false };
    let loops = loops_in(&it.body);
    let within = |var: &Name| loops.contains(&var);
    let carried =
        match accumulates(first.block) {
            Ok(false) => false,
            Ok(true) => {
                first.block.init.is_none()
                    || first.block.iters.iter().any(|iter| {
                        iter.kind == IterKind::Reduce && iter.binding.any_var(&|var| !within(var))
                    })
            }
            Err(_) => true,
        };
    let fixed = level(first).map_or(0, |level| level + 1);
    inside.len() == users.len() && !carried && uncovered(func, fixed, first, others, buffer).is_none()
}

fn loops_in(stmt: &Stmt) -> Vec<&Name> {
    let mut out = Vec::new();
    stmt.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            out.push(&it.var);
        }
    });
    out
}
