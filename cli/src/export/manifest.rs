//! `kernel.json`: what a tool has to know to load and launch the kernels by itself.

use codegen::device::Resources;
use ir::{Arch, Index, Role, Target, ThreadAxis, cost};
use serde_json::{Map, Value, json};
use tuner::{BlockError, build::target_word};

use super::{
    common::TOOL,
    expr::words,
    maps,
    spec::{Buffer, Launch, Spec},
    write::SCHEMA,
};

/// What a compiler made of the source.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// Name and version of the compiler.
    pub(super) compiler: Option<String>,
    /// What each kernel needs.
    pub(super) resources: Vec<Resources>,
}

/// The manifest of a bundle with these files.
pub(super) fn manifest(spec: &Spec<'_>, compiled: &Compiled, files: &[(String, Vec<u8>)]) -> String {
    let subject = spec.subject;
    let arch = match &subject.target {
        Target::Cpu => None,
        Target::Cuda(arch) => Some(arch.to_string()),
    };
    let shas = files.iter().map(|(name, bytes)| (name.clone(), json!(tuner::sha256(bytes))));
    let mut provenance = subject.provenance.clone();
    provenance["tool"] = json!(format!("tilewright {TOOL}"));
    provenance["compiler"] = json!(compiled.compiler);
    provenance["steps"] = subject.steps.iter().map(|it| json!(it.to_ron())).collect();
    let all = json!({
        "schema": SCHEMA,
        "name": subject.module.name,
        "interface": spec.name,
        "symbol": spec.unique,
        "target": target_word(&subject.target),
        "arch": arch,
        "entry_points": spec.launches.iter().map(|it| &it.symbol).collect::<Vec<_>>(),
        "dims": subject.dims.iter().map(|(name, value)| json!({"name": name, "least": 1, "value": value})).collect::<Vec<_>>(),
        "params": spec.params().iter().map(|it| param(spec, it)).collect::<Vec<_>>(),
        "workspace": spec.workspace().iter().map(|it| workspace(spec, it)).collect::<Vec<_>>(),
        "launches": spec.launches.iter().map(|it| launch(spec, it)).collect::<Vec<_>>(),
        "constraints": constraints(spec),
        "numerics": numerics(spec),
        "resources": compiled.resources,
        "provenance": provenance,
        "sha256": shas.collect::<Map<_, _>>(),
    });
    let text = serde_json::to_string_pretty(&all).expect("it is plain data");
    text + "\n"
}

fn size(spec: &Spec<'_>, it: &Index) -> Value {
    json!({"expression": words(it), "value": spec.value(it)})
}

fn param(spec: &Spec<'_>, it: &Buffer) -> Value {
    json!({
        "name": it.name,
        "role": if it.role == Role::Output { "output" } else { "input" },
        "dtype": it.dtype,
        "shape": it.shape.iter().map(|it| size(spec, it)).collect::<Vec<_>>(),
        "layout": "row-major",
        "align": it.align,
        "access": if it.is_written { "write" } else { "read" },
    })
}

fn workspace(spec: &Spec<'_>, it: &Buffer) -> Value {
    json!({
        "name": it.name,
        "dtype": it.dtype,
        "elements": size(spec, &it.elements()),
        "bytes": size(spec, &it.bytes()),
        "align": it.align,
        "zero_before_first_run": it.zeroed,
    })
}

fn launch(spec: &Spec<'_>, it: &Launch) -> Value {
    let sizes = |all: &[Index]| all.iter().map(|it| size(spec, it)).collect::<Vec<_>>();
    let maps = it.maps.iter().map(|it| json!(spec.maps[*it].name));
    let names = it.buffers.iter().map(|it| json!(spec.buffers[*it].name));
    let dims = spec.dims().map(|it| json!(it.0));
    let arguments: Vec<_> = maps.chain(names).chain(dims).collect();
    match spec.subject.target {
        Target::Cpu => json!({"entry": it.symbol, "arguments": arguments}),
        Target::Cuda(_) => json!({
            "entry": it.symbol,
            "arguments": arguments,
            "grid": sizes(&it.grid),
            "block": sizes(&it.block),
            "shared_bytes_dynamic": it.shared_bytes,
            "programmatic": it.programmatic,
            "tensor_maps": maps::manifest(spec, it, &|it| size(spec, it)),
        }),
    }
}

/// What the launchers check at call time, each with an error of its own.
fn constraints(spec: &Spec<'_>) -> Vec<String> {
    let dims = spec.dims().map(|it| format!("{} >= 1", it.0));
    let params = spec.params().iter();
    let aligned =
        params.clone().filter(|it| it.align > 1).map(|it| format!("{} % {} == 0", it.name, it.align));
    let lengths = params.map(|it| format!("elements({}) == {}", it.name, words(&it.elements())));
    let apart = "no output overlaps another buffer".to_owned();
    let device = match &spec.subject.target {
        Target::Cpu => None,
        Target::Cuda(arch) => Some(format!("the device runs code for {arch}")),
    };
    let limits = [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ].map(Arch::axis_limit);
    let grids = spec.launches.iter().flat_map(|it| it.grid.iter().zip(limits));
    let grids = grids.filter(|it| it.0.as_int().is_none());
    let grids = grids.map(|(it, most)| format!("{} <= {most}", words(it)));
    let maps = maps::constraints(spec);
    dims.chain(lengths).chain(aligned).chain(maps).chain([apart]).chain(grids).chain(device).collect()
}

fn numerics(spec: &Spec<'_>) -> Value {
    let terms = BlockError::of(&spec.subject.plain);
    let steps = |it: &BlockError| {
        let mut all = it.reduce.iter().map(|it| spec.value(it).and_then(|it| u64::try_from(it).ok()));
        all.try_fold(1u64, |all, it| Some(all.saturating_mul(it?)))
    };
    let tolerance = terms.iter().map(|it| Some(it.at(steps(it)?))).sum::<Option<f64>>();
    let blocks = terms.iter().map(|it| {
        json!({
            "block": it.block,
            "combines": it.reduce.iter().map(|it| size(spec, it)).collect::<Vec<_>>(),
            "unit_roundoff_written": it.written,
            "unit_roundoff_casts": it.casts,
        })
    });
    let func = &spec.subject.plain;
    let written = func.body.blocks().into_iter().flat_map(|it| {
        it.writes()
            .into_iter()
            .filter_map(|access| Some(json!({"block": it.name, "dtype": func.dtype_of(&access.buffer)?})))
    });
    // A block that reduces writes twice: its first value, and its sums.
    let mut accumulation: Vec<Value> = written.collect();
    accumulation.dedup();
    json!({
        "reference": "the unscheduled program in double arithmetic on the inputs as they were rounded",
        "rule": "|x - reference| <= relative_tolerance * max |reference| over the compared elements of the output; \
                 integers are equal",
        "formula": "sum over blocks of 8 u(written) + [K > 1] 4 sqrt(K) u(written) + 8 sqrt(K) u(casts)",
        "relative_tolerance": tolerance,
        "blocks": blocks.collect::<Vec<_>>(),
        "accumulation": accumulation,
        "flops": size(spec, &cost::symbolic_flops(func).unwrap_or_else(|| Index::int(0))),
    })
}
