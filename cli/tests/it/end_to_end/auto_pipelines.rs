//! Pipelines that are worked out, in place of those that the scripts that ship say by hand.

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{
    Arch, Func, Name, Target,
    modulo::{assess, candidates},
    pipeline::{ORDER, STAGE, numbers},
};
use schedule::{Session, Step, primitive::SoftwarePipeline};
use workloads::Ladder;

use super::{
    check::Case,
    ladders::{case, every_rung, steady},
};

const MOST_SLOTS: i64 = 16;

/// The loop whose stages a step says.
fn pipelined(step: &Step) -> Option<&Name> {
    match step {
        Step::SoftwarePipelineStage(it) => Some(&it.target),
        _ => None,
    }
}

/// The steps of a script with `software_pipeline` where it says stages, and without what is part of that.
fn worked_out(steps: Vec<Step>) -> Vec<Step> {
    let replaced = |step: Step| match step {
        Step::SoftwarePipelineStage(it) => {
            Some(Step::SoftwarePipeline(SoftwarePipeline { target: it.target, choice: None, slots: None }))
        }
        Step::SoftwarePipelineOrder(_)
        | Step::SoftwarePipelineAsyncStages(_)
        | Step::DoubleBufferScope(_) => None,
        other => Some(other),
    };
    steps.into_iter().filter_map(replaced).collect()
}

/// The steps, those by which blocks go on to other tiles before those of pipelines: with them, shared memory is not used again for something
/// else behind the loop.
fn in_order(steps: &[Step]) -> Vec<Step> {
    let first = steps.iter().position(|it| pipelined(it).is_some()).unwrap_or(steps.len());
    let (before, after) = steps.split_at(first);
    let (persistent, after): (Vec<_>, Vec<_>) = after
        .iter()
        .cloned()
        .partition(|it| matches!(it, Step::Persistent(_) | Step::ClusterLaunchControl(_)));
    [before, &persistent, &after].concat()
}

/// Every rung that has a pipeline, for a GPU whose latencies were measured.
fn every_pipelined(mut visit: impl FnMut(&Ladder, &str, Case, Vec<Step>)) {
    let mut count = 0;
    every_rung(|ladder, _, rung| {
        let mut case = case(ladder, rung, vec![]);
        case.text = case.text.replace("target: \"cuda\",", "target: \"cuda:sm_90a\",");
        let steps = in_order(&case.steps().into_iter().map(|it| it.value).collect::<Vec<_>>());
        if steps.iter().any(|it| pipelined(it).is_some()) {
            visit(ladder, &format!("{}/{}", ladder.name, rung.name), case, steps);
            count += 1;
        }
    });
    assert!(count >= 30, "{count}");
}

/// Stages and order in one line, as a step would say them.
fn line<'a>(stages: impl Iterator<Item = (&'a Name, i64)>, order: &[Name]) -> String {
    let stages: Vec<_> = stages.map(|(name, stage)| format!("{name} {stage}")).collect();
    let order: Vec<_> = order.iter().map(Name::as_str).collect();
    format!("{}; {}", stages.join(", "), order.join(" "))
}

/// Whether components that do not copy run at several stages.
fn is_skewed(it: &ir::Loop, stages: &IndexMap<Name, i64>) -> bool {
    let asynchronous = it.attrs.pipeline.as_ref().and_then(|it| it.async_blocks.clone()).unwrap_or_default();
    let mut others = stages.iter().filter(|it| !asynchronous.contains(it.0)).map(|it| it.1);
    let first = others.next();
    !asynchronous.is_empty() && others.any(|it| Some(it) != first)
}

/// What is said of a loop by hand, which of the candidates that is, and the best of them; by hand the loop takes so many times as long.
fn beside(out: &mut String, before: &Func, by_hand: &Func, var: &Name, arch: &Arch) {
    let it = by_hand.find_loop(var).unwrap();
    let (stages, orders) = (numbers(it, STAGE).unwrap(), numbers(it, ORDER).unwrap());
    let mut order: Vec<Name> = orders.keys().cloned().collect();
    order.sort_by_key(|name| orders[name]);
    let all = candidates(before, var, arch, MOST_SLOTS).unwrap();
    let best = &all[0];
    let place = |name: &Name| stages.get_index_of(name);
    let same = all.iter().position(|it| {
        it.stages.values().eq(stages.values())
            && it.order.iter().map(|name| it.stages.get_index_of(name)).eq(order.iter().map(place))
    });
    let rank = same.map_or("none".to_owned(), |at| (at + 1).to_string());
    let hand = assess(by_hand, var, arch).unwrap();
    let slower = hand.as_ref().map_or("?".to_owned(), |it| format!("{:.2}", it.cycles / best.reason.cycles));
    let pairs = stages.iter().map(|(name, stage)| (name, *stage));
    writeln!(
        out,
        "  {var} by hand: {}; {slower} times the best, {rank} of {}",
        line(pairs, &order),
        all.len()
    )
    .unwrap();
    let pairs = best.stages.iter().map(|(name, stage)| (name, *stage));
    let slots: Vec<_> =
        best.slots.iter().map(|(block, slots)| format!("; {slots} slots of {block}")).collect();
    writeln!(out, "  {var} best: {}{}", line(pairs, &best.order), slots.concat()).unwrap();
    writeln!(out, "    {}", best.reason).unwrap();
    if let Some(hand) = hand.filter(|_| same.is_some() || !is_skewed(it, &stages)) {
        // Nothing that the clock finds faster is left out, but for what starts the next iteration's work beside copies: of so many orders the search
        // does not come to all.
        assert!(hand.cycles >= best.reason.cycles * 0.99, "{var}: {hand}, and the best is {}", best.reason);
    }
}

/// What is chosen beside what the hand gave.
#[test]
fn beside_what_ships() {
    let mut out = String::new();
    every_pipelined(|_, name, case, steps| {
        writeln!(out, "{name}").unwrap();
        let by_hand = case.schedule_steps(steps.clone());
        let Target::Cuda(arch) = &by_hand.target else { panic!("{name} is for a CPU") };
        let mut session = Session::new(by_hand.before.clone(), Some(by_hand.target.clone()));
        for step in &steps {
            if let Some(var) = pipelined(step) {
                beside(&mut out, session.func(), &by_hand.after, var, arch);
            }
            session.apply(step).unwrap();
        }
    });
    insta::assert_snapshot!(out);
}

/// All that is worked out can be lowered at the sizes of the scripts.
#[test]
fn what_is_worked_out_lowers() {
    every_pipelined(|_, _, case, steps| {
        let scheduled = case.schedule_steps(worked_out(steps));
        case.lower(&scheduled.after, &scheduled.target);
    });
}

/// The virtual GPU finds nothing wrong with it. What pipelines are asked for is nothing to the interpreter.
#[test]
fn what_is_worked_out_computes_the_same() {
    every_pipelined(|ladder, _, case, _| {
        let Some(params) = steady(ladder, &case) else { return };
        let case = Case { params, ..case };
        let steps = in_order(&case.steps().into_iter().map(|it| it.value).collect::<Vec<_>>());
        let scheduled = case.schedule_steps(worked_out(steps));
        case.check_kernels(&scheduled, &case.expected(&scheduled));
    });
}
