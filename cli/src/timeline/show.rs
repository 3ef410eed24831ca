//! `tilewright show --emit pipeline`.

use std::path::Path;

use codegen::{
    compile_module,
    device::Resources,
    emit::symbol,
    expected::{Expected, expected},
    lower::{Lowered, PipelineReport},
    timeline::{Compiled, Consequences, Timeline, consequences, timelines, without_pipelines},
};
use indexmap::IndexMap;
use ir::{Func, Kernel, Loop, LoopKind, Module, Scope, Stmt, Target, pipeline};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::build::target_word;

use super::{
    Story, print,
    svg::{self, draw},
};
use crate::{
    build::{compile_cuda, lowered, source},
    constant::{True, word},
    diagnostic::Diagnostic,
    new_file,
    term::report::Report,
    term::shell::Shell,
    usage_error::UsageError,
};

/// Prints the timelines of a scheduled program, and draws them if a file is named for it, perhaps over another.
pub(crate) fn show(
    func: &Func,
    target: &Target,
    svg: Option<(&Path, bool)>,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let lowered = lowered(func, target)?;
    let timelines = timelines(&lowered);
    if timelines.is_empty() {
        return Err(no_pipeline(func, &lowered.pipelines));
    }
    let story = story(func, &lowered.module, timelines, target);
    if let Some((file, force)) = svg {
        new_file::write(file, svg::file(&story).as_bytes(), force)?;
    }
    let Story { pipelines, kernels, expected } = &story;
    shell.report(&Timelines {
        ok: True,
        emit: word::Pipeline,
        target: target_word(target),
        pipelines,
        kernels,
        expected,
        story: &story,
    })
}

/// The software pipelines of a program.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "--emit pipeline")]
pub(crate) struct Timelines<'a> {
    ok: True,
    /// What is shown.
    emit: word::Pipeline,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: String,
    /// Each pipelined loop, outer before inner.
    pipelines: &'a [Timeline],
    /// What the slots of each kernel cost, where the target tells.
    kernels: &'a [Consequences],
    /// The cycles that are expected of each kernel, where its GPU was measured.
    expected: &'a [Expected],
    #[serde(skip)]
    story: &'a Story,
}

impl Report for Timelines<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(print(shell.out, self.story)?)
    }
}

/// The timelines of a scheduled program as one drawing, with what their slots cost if that is wanted and a compiler tells;
/// none if no loop is pipelined.
pub(crate) fn drawing(func: &Func, lowered: &Lowered, target: &Target, with_costs: bool) -> Option<String> {
    Some(draw(&story_of(func, lowered, target, with_costs)?))
}

/// The same, and as text.
pub(crate) fn told(
    func: &Func,
    lowered: &Lowered,
    target: &Target,
    with_costs: bool,
) -> Result<Option<(String, String)>, Diagnostic> {
    let Some(story) = story_of(func, lowered, target, with_costs) else { return Ok(None) };
    let mut text = vec![];
    print(&mut text, &story)?;
    Ok(Some((draw(&story), String::from_utf8_lossy(&text).into_owned())))
}

fn story_of(func: &Func, lowered: &Lowered, target: &Target, with_costs: bool) -> Option<Story> {
    let pipelines = timelines(lowered);
    if pipelines.is_empty() {
        return None;
    }
    Some(if with_costs {
        story(func, &lowered.module, pipelines, target)
    } else {
        Story { pipelines, kernels: vec![], expected: vec![] }
    })
}

fn story(func: &Func, module: &Module, pipelines: Vec<Timeline>, target: &Target) -> Story {
    let Target::Cuda(arch) = target else { return Story { pipelines, kernels: vec![], expected: vec![] } };
    let compiled = resources(module, func, target);
    // A program that only lowers as a pipeline has nothing to be compared with.
    let plain = without_pipelines(func);
    let before = compile_module(&plain, target).ok();
    let before_compiled = match &before {
        Some(module) if !compiled.is_empty() => resources(module, &plain, target),
        Some(_) | None => vec![],
    };
    let (mut kernels, mut expectations) = (Vec::new(), Vec::new());
    let units = i64::from(arch.caps().usual_units);
    for kernel in &module.kernels {
        let here: Vec<_> = pipelines.iter().filter(|it| it.kernel == kernel.name).collect();
        let other = before.as_ref().and_then(|it| it.kernels.iter().find(|it| it.name == kernel.name));
        if !here.is_empty() {
            let vars: Vec<_> = here.iter().map(|it| it.var.clone()).collect();
            let (_, needs) = with(kernel, &compiled);
            let sizes = IndexMap::new();
            expectations.extend(expected((module, kernel), &vars, &sizes, (arch, units), needs));
            let before = other.map(|it| with(it, &before_compiled));
            kernels.push(consequences(&here, with(kernel, &compiled), before, arch));
        }
    }
    Story { pipelines, kernels, expected: expectations }
}

/// What each kernel needs, if there is a compiler to tell.
fn resources(module: &Module, func: &Func, target: &Target) -> Vec<Resources> {
    let Target::Cuda(arch) = target else { return vec![] };
    let compiled = source(func, module, target).and_then(|text| compile_cuda(&text, func, arch));
    compiled.map(|it| it.resources).unwrap_or_default()
}

fn with<'a>(kernel: &'a Kernel, compiled: &'a [Resources]) -> Compiled<'a> {
    let name = symbol(&kernel.name);
    (kernel, compiled.iter().find(|it| it.kernel == name))
}

/// That there is nothing to show, and how there would be.
pub(crate) fn no_pipeline(func: &Func, lowered: &[PipelineReport]) -> Diagnostic {
    if let Some(it) = lowered.first() {
        let title = format!("nothing is left of the pipeline of loop `{}`: its statements never run", it.var);
        return Diagnostic::failed(UsageError::NoPipeline, title).help(
            "the conditions of its blocks, or of the loops around it, hold for no iteration".to_owned(),
        );
    }
    let loops = func.loops();
    let has = |it: &Loop, key: &str| it.attrs.entries().contains_key(key);
    let half = loops
        .iter()
        .find(|it| [pipeline::STAGE, pipeline::ORDER, pipeline::ASYNC].iter().any(|key| has(it, key)));
    if let Some(it) = half {
        let missing: Vec<_> = [pipeline::STAGE, pipeline::ORDER]
            .into_iter()
            .filter(|key| !has(it, key))
            .map(|key| call(func, it, key))
            .collect();
        let title =
            format!("loop `{}` is annotated, but not with stages and orders both: it is no pipeline", it.var);
        return Diagnostic::failed(UsageError::NoPipeline, title)
            .help(format!("add {}", missing.join(" and ")));
    }
    let help = match loops.iter().find(|it| suits(func, it)) {
        Some(it) => {
            let (stages, orders) = (call(func, it, pipeline::STAGE), call(func, it, pipeline::ORDER));
            format!("loop `{}` fills temporaries and reads them: try {stages} and {orders}", it.var)
        }
        None => "a loop is pipelined by `software_pipeline_stage` and `software_pipeline_order`: \
                 `tilewright explain software_pipeline_stage` tells how"
            .to_owned(),
    };
    Diagnostic::failed(UsageError::NoPipeline, format!("no loop of `{}` is pipelined", func.name)).help(help)
}

/// Whether a loop fills temporaries in some statements and uses them in others.
fn suits(func: &Func, it: &Loop) -> bool {
    let is_serial = matches!(it.kind, LoopKind::Serial | LoopKind::Unrolled);
    let all = pipeline::components(it, &|_| false);
    let fills = |slot: &pipeline::NamedComponent<'_>| first_stage(func, slot.stmt);
    is_serial && all.len() > 1 && all.iter().any(fills) && !all.iter().all(fills)
}

/// Whether a statement does nothing but fill temporaries near the threads.
fn first_stage(func: &Func, stmt: &Stmt) -> bool {
    let is_near = |name| func.buffers.get(name).is_some_and(|it: &ir::Buffer| it.scope != Scope::Global);
    let blocks = stmt.blocks();
    let (mut reads, mut writes) = (true, true);
    for it in &blocks {
        writes &= it.writes().iter().all(|it| is_near(&it.buffer));
        reads &= it.reads().iter().all(|it| !is_near(&it.buffer));
    }
    !blocks.is_empty() && reads && writes
}

/// The step that a script would give a loop's statements stages or orders by.
fn call(func: &Func, it: &Loop, key: &str) -> String {
    let slots = pipeline::components(it, &|_| false);
    let names: Vec<_> = slots.iter().filter_map(|it| it.names.last()).collect();
    if key == pipeline::ORDER {
        let names: Vec<_> = names.iter().map(|it| format!("\"{it}\"")).collect();
        return format!("`{key}(loop: \"{}\", order: [{}])`", it.var, names.join(", "));
    }
    let stage = |it: &pipeline::NamedComponent<'_>| {
        let stage = usize::from(!first_stage(func, it.stmt));
        it.names.last().map(|name| format!("\"{name}\": {stage}"))
    };
    let stages: Vec<_> = slots.iter().filter_map(stage).collect();
    format!("`{key}(loop: \"{}\", stages: {{{}}})`", it.var, stages.join(", "))
}
