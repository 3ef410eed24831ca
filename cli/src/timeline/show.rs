//! `tilewright show --emit pipeline`.

use std::{fs, path::Path};

use codegen::{
    device::Resources,
    emit::symbol,
    lower::lower_explained,
    timeline::{Timeline, consequences, timelines},
};
use ir::{Func, Module, Target};
use serde_json::json;

use super::{Drawn, print, svg::draw};
use crate::{
    build::{compile_cuda, source},
    report::Report,
    shell::Shell,
    show::words,
};

/// Prints the timelines of a scheduled program, and draws them if a file is named for it.
pub(crate) fn show(
    func: &Func,
    target: &Target,
    svg: Option<&Path>,
    shell: &mut Shell<'_>,
) -> Result<(), Report> {
    let (module, reports) = lower_explained(func, target).map_err(|err| Report::lower(func, &err))?;
    let timelines = timelines(&module, &reports);
    if timelines.is_empty() && !shell.json {
        let text = "no loop is pipelined: `explain software_pipeline_stage` tells how";
        writeln!(shell.out, "{text}")?;
    }
    let compiled = if timelines.is_empty() { vec![] } else { resources(&module, func, target) };
    let drawn: Vec<_> = timelines.into_iter().map(|it| drawn(it, &module, target, &compiled)).collect();
    if let Some(file) = svg {
        fs::write(file, draw(&drawn)).map_err(|err| Report::usage(format!("{}: {err}", file.display())))?;
    }
    if shell.json {
        let target = words(target);
        return shell.json(&json!({"ok": true, "emit": "pipeline", "target": target, "pipelines": drawn}));
    }
    for (n, it) in drawn.iter().enumerate() {
        if n > 0 {
            writeln!(shell.out, "\n")?;
        }
        print(shell.out, it)?;
    }
    Ok(())
}

/// What each kernel needs, if there is a compiler to tell.
fn resources(module: &Module, func: &Func, target: &Target) -> Vec<Resources> {
    let Target::Cuda(arch) = target else { return vec![] };
    let compiled = source(module, target).and_then(|text| compile_cuda(&text, func, arch));
    compiled.map(|it| it.resources).unwrap_or_default()
}

fn drawn(timeline: Timeline, module: &Module, target: &Target, compiled: &[Resources]) -> Drawn {
    let kernel = module.kernels.iter().find(|it| it.name == timeline.kernel);
    let consequences = match target {
        Target::Cuda(arch) => kernel.map(|kernel| {
            let name = symbol(&kernel.name);
            consequences(&timeline, kernel, arch, compiled.iter().find(|it| it.kernel == name))
        }),
        Target::Cpu => None,
    };
    Drawn { timeline, consequences }
}
