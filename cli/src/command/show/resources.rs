//! `tilewright show --emit resources`: what the kernels need of a multiprocessor.

use codegen::device::{Limit, occupancy};
use ir::{Arch, Func, Target};
use serde_json::{Value, json};
use tuner::build::target_word;

use crate::{
    build::{Built, build, expect_gpu},
    diagnostic::Diagnostic,
    plan::Plan,
    term::{shell::Shell, table::Table},
};

/// What a table of them has.
pub(super) const HEADS: [&str; 10] = [
    "kernel",
    "threads",
    "registers",
    "spilled bytes",
    "stack bytes",
    "shared bytes",
    "barriers",
    "blocks per SM",
    "warps",
    "limited by",
];

/// A kernel as a row and as data.
pub(super) struct Needs {
    pub(super) cells: [String; HEADS.len()],
    data: Value,
}

/// What each kernel of a program needs.
pub(super) fn needs(built: &Built, arch: &Arch) -> Vec<Needs> {
    let of = |launch: &codegen::device::Launch| {
        let it = built.resources.iter().find(|it| it.kernel == launch.kernel)?;
        let (threads, dynamic) = (launch.block.iter().product(), launch.shared_bytes);
        let full = occupancy(it, threads, dynamic, arch);
        let unknown = || "—".to_owned();
        let cells = [
            it.kernel.clone(),
            threads.to_string(),
            it.registers.to_string(),
            (it.spill_store_bytes + it.spill_load_bytes).to_string(),
            it.stack_bytes.to_string(),
            (it.static_shared_bytes + dynamic).to_string(),
            it.barriers.to_string(),
            full.as_ref().map_or_else(unknown, |it| it.blocks.to_string()),
            full.as_ref().map_or_else(unknown, |it| format!("{} of {}", it.warps, it.max_warps)),
            full.as_ref().map(|it| limits(&it.limited_by)).unwrap_or_default(),
        ];
        Some(Needs { cells, data: json!({"resources": it, "launch": launch, "occupancy": full}) })
    };
    built.program.launches.iter().filter_map(of).collect()
}

/// What the compiler warns of, and which patterns of shared memory were chosen.
pub(super) fn remarks(built: &Built) -> Vec<String> {
    let warnings =
        built.resources.iter().flat_map(|it| it.warnings.iter().map(|word| format!("{}: {word}", it.kernel)));
    built.swizzles.iter().cloned().chain(warnings).collect()
}

pub(super) fn show(
    plan: &Plan,
    func: &Func,
    target: &Target,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let arch = expect_gpu(target)?;
    plan.expect_dims()?;
    let built = build(func, target, &plan.dims)?;
    let all = needs(&built, arch);
    if shell.json {
        let data: Vec<_> = all.into_iter().map(|it| it.data).collect();
        let all = json!({
            "ok": true, "emit": "resources", "target": target_word(target), "kernels": data, "swizzles": built.swizzles,
        });
        return shell.json(&all);
    }
    let mut table = Table::new(HEADS);
    for it in all {
        table.row(it.cells);
    }
    table.print(shell.out)?;
    for it in remarks(&built) {
        writeln!(shell.out, "{it}")?;
    }
    Ok(())
}

fn limits(limits: &[Limit]) -> String {
    let word = |it: &Limit| match it {
        Limit::Registers => "registers",
        Limit::Shared => "shared memory",
        Limit::Threads => "threads",
        Limit::Blocks => "blocks",
        Limit::Barriers => "barriers",
    };
    limits.iter().map(word).collect::<Vec<_>>().join(", ")
}
