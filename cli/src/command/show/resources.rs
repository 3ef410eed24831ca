//! `tilewright show --emit resources`: what the kernels need of a multiprocessor.

use codegen::device::{Launch, Limit, Occupancy, Resources, occupancy};
use ir::{Arch, Func, Target};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::build::target_word;

use crate::{
    build::{Built, build, expect_gpu},
    constant::{True, word},
    diagnostic::Diagnostic,
    plan::Plan,
    term::report::Report,
    term::{shell::Shell, table::Table},
};

/// What a table of them has.
pub(crate) const HEADS: [&str; 10] = [
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

/// What a kernel needs of a multiprocessor.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "KernelNeeds")]
pub(crate) struct Needs {
    /// What the compiler says.
    resources: Resources,
    /// How it is launched.
    launch: Launch,
    /// How full a multiprocessor gets, where the limits of the architecture are known.
    occupancy: Option<Occupancy>,
    /// The same as a row of a table.
    #[serde(skip)]
    pub(crate) cells: [String; HEADS.len()],
}

/// What the kernels of a program need.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "--emit resources")]
pub(crate) struct ResourcesReport {
    ok: True,
    /// What is shown.
    emit: word::Resources,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: String,
    /// The kernels, in the order in which they run.
    kernels: Vec<Needs>,
    /// Which patterns of shared memory were chosen, in sentences.
    swizzles: Vec<String>,
    #[serde(skip)]
    remarks: Vec<String>,
}

impl Report for ResourcesReport {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut table = Table::new(HEADS);
        for it in &self.kernels {
            table.row(it.cells.clone());
        }
        table.print(shell.out)?;
        Ok(self.remarks.iter().try_for_each(|it| writeln!(shell.out, "{it}"))?)
    }
}

/// What each kernel of a program needs.
pub(crate) fn needs(built: &Built, arch: &Arch) -> Vec<Needs> {
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
        Some(Needs { resources: it.clone(), launch: launch.clone(), occupancy: full, cells })
    };
    built.program.launches.iter().filter_map(of).collect()
}

/// What the compiler warns of, and which patterns of shared memory were chosen.
pub(crate) fn remarks(built: &Built) -> Vec<String> {
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
    shell.report(&ResourcesReport {
        ok: True,
        emit: word::Resources,
        target: target_word(target),
        kernels: needs(&built, arch),
        swizzles: built.swizzles.clone(),
        remarks: remarks(&built),
    })
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
