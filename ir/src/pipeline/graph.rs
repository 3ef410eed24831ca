//! The dependences of a loop that is to be pipelined, before anybody has said when its statements run.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    Component, PipelineError, STAGE,
    annotation::{components, expect_serial, numbers},
    depend::Setting,
    expand::{Expander, NoHooks},
    judge::Judge,
    lifetimes::{split, used_outside},
    private::private,
};
use crate::{Func, Loop, Name, Numbers, Stmt};

/// What has to be known of a loop to say when its statements run.
#[derive(Clone, Debug)]
pub struct DependenceGraph {
    /// The components in program order, all of stage 0.
    pub components: Vec<Component>,
    /// What has to come after what.
    pub dependences: Vec<Dependence>,
    /// The buffers that each iteration fills before it uses them: iterations may have their own.
    pub private: BTreeSet<Name>,
}

/// That a component of an iteration has to run after one of the same or an earlier iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependence {
    /// The place of the earlier one in program order.
    pub src: usize,
    /// The place of the later one.
    pub dst: usize,
    /// The least number of iterations between them.
    pub distance: i64,
}

/// Dependences over more iterations are left to the rule that judges stages and orders.
const FARTHEST: i64 = 2;

/// The components of a loop and what has to come after what. With `in_parts`, pipelines directly inside it count as three
/// components each, where they are written out in parts.
///
/// # Errors
/// Why the loop cannot be pipelined at all.
pub fn dependences(func: &Func, var: &Name, in_parts: bool) -> Result<DependenceGraph, PipelineError> {
    let missing = || PipelineError::NoPipeline { name: var.clone() };
    let it = func.find_loop(var).ok_or_else(missing)?;
    expect_serial(it)?;
    let slots = components(it, &|inner| in_parts && overlaps(inner));
    if slots.len() < 2 {
        return Err(PipelineError::OneComponent { name: var.clone() });
    }
    let names = slots.iter().filter_map(|it| it.names.last().cloned());
    let stages: IndexMap<Name, i64> = names.zip(std::iter::repeat(0)).collect();
    let (func, _) = split(as_written(func, var, &stages));
    let path = func.path_to_loop(var).ok_or_else(missing)?;
    let (it, around) = path.split_last().ok_or_else(missing)?;

    let mut none = NoHooks;
    let mut expander = Expander::new(&func, &mut none);
    let bodies = expander.bodies(it, around, &stages, false)?;
    let component =
        |(order, (body, name)): (i64, (Stmt, &Name))| Component { name: name.clone(), body, stage: 0, order };
    let components: Vec<_> = (0..).zip(bodies.into_iter().zip(stages.keys())).map(component).collect();
    let mut private = private(&func, it);
    let outside = used_outside(&func, var);
    private.retain(|buffer| !outside.contains(buffer));

    let setting = Setting { func: &expander.func, around, var, extent: &it.extent };
    let judge = Judge::new(setting, &components, &private);
    let all = (0..components.len()).flat_map(|src| (0..components.len()).map(move |dst| (src, dst)));
    let least = |(src, dst): (usize, usize)| {
        let mut distances = i64::from(dst <= src)..=FARTHEST;
        let distance = distances.find(|distance| judge.depends(src, dst, *distance))?;
        Some(Dependence { src, dst, distance })
    };
    let dependences = all.filter(|(src, dst)| src != dst).filter_map(least).collect();
    Ok(DependenceGraph { components, dependences, private })
}

/// Whether iterations of a pipeline overlap, so that there is something in all its parts.
fn overlaps(it: &Loop) -> bool {
    numbers(it, STAGE).is_ok_and(|it| it.values().min() != it.values().max())
}

/// The program with a loop annotated so that nothing in it moves.
fn as_written(func: &Func, var: &Name, stages: &IndexMap<Name, i64>) -> Func {
    let mut func = func.clone();
    let orders = stages.keys().cloned().zip(0..).collect();
    func.replace_loop(var, |mut it: Loop| {
        let spec = it.attrs.pipeline_mut();
        (spec.stages, spec.orders) = (Some(Numbers::Map(stages.clone())), Some(Numbers::Map(orders)));
        Stmt::Loop(Arc::new(it))
    });
    func
}
