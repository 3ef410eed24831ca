//! The files that bundles for every target have: the reference, the program that verifies, the schedule.

use ir::{Role, cost};
use tuner::{BlockError, build::target_word};

use super::{
    expr::{Lang, fill, product},
    reference::{self, c_name},
    spec::{Buffer, Spec, c_type},
};

/// The version of tilewright.
pub(super) const TOOL: &str = env!("CARGO_PKG_VERSION");

/// `reference.h`.
fn reference_header(spec: &Spec<'_>) -> String {
    let rank = spec.params().iter().map(|it| it.shape.len()).max().unwrap_or(0);
    fill(
        include_str!("templates/reference.h"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("PARAM_COUNT", spec.params.to_string()),
            ("DIM_COUNT", spec.subject.module.dims.len().to_string()),
            ("MAX_RANK", rank.to_string()),
        ],
    )
}

/// `reference.c`.
fn reference_source(spec: &Spec<'_>) -> String {
    let program = reference::print(spec, Lang::C);
    let quoted = spec.dims().map(|it| format!("\"{}\"", it.0)).chain(["NULL".to_owned()]);
    let sizes = spec.subject.dims.values().map(|it| Lang::C.int(*it)).chain(["0".to_owned()]);
    let (errors, count) = block_errors(spec, Lang::C);
    fill(
        include_str!("templates/reference.c"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("PARAM_TABLE", spec.params().iter().map(c_row).collect()),
            ("DIM_NAMES", quoted.collect::<Vec<_>>().join(", ")),
            ("DIM_DEFAULTS", sizes.collect::<Vec<_>>().join(", ")),
            ("SHAPES", spec.params().iter().enumerate().map(|(n, it)| c_shape(spec, n, it)).collect()),
            ("BELOW", spec.params().iter().enumerate().map(|(n, it)| c_below(spec, n, it)).collect()),
            ("FLOPS", flops(spec, Lang::C)),
            ("BLOCK_ERRORS", errors),
            ("BLOCK_COUNT", count.to_string()),
            ("STAGE_COUNT", program.count.to_string()),
            ("STAGES", program.stages),
            ("KEEP", program.keep),
            ("OUTPUTS", program.outputs),
        ],
    )
}

fn c_row(it: &Buffer) -> String {
    let is_output = u8::from(it.role == Role::Output);
    format!("  {{\"{}\", {}, {is_output}, {}}},\n", it.name, c_name(it.dtype), it.shape.len())
}

fn c_shape(spec: &Spec<'_>, number: usize, it: &Buffer) -> String {
    let size = |(axis, size): (usize, &ir::Index)| {
        format!("      shape[{axis}] = {};\n", Lang::C.checked(size, &|name| spec.dim_at(name)))
    };
    let sizes: String = it.shape.iter().enumerate().map(size).collect();
    format!("    case {number}:\n{sizes}      break;\n")
}

fn c_below(spec: &Spec<'_>, number: usize, it: &Buffer) -> String {
    let Some(below) = &it.below else { return String::new() };
    let below = Lang::C.checked(below, &|name| spec.dim_at(name));
    format!("    case {number}: below = {below}; break;\n")
}

/// The arithmetic operations of the program; 0 where they cannot be told.
pub(super) fn flops(spec: &Spec<'_>, lang: Lang) -> String {
    let count = cost::symbolic_flops(&spec.subject.plain).unwrap_or_else(|| ir::Index::int(0));
    lang.checked(&count, &|name| spec.dim_at(name))
}

/// What each block adds to the tolerance, and how many blocks there are.
pub(super) fn block_errors(spec: &Spec<'_>, lang: Lang) -> (String, usize) {
    let terms = BlockError::of(&spec.subject.plain);
    let line = |it: &BlockError| {
        let steps = lang.checked(&product(&it.reduce), &|name| spec.dim_at(name));
        let (written, casts) = (it.written, it.casts);
        match lang {
            Lang::C => format!("  out[n++] = (block_error){{(double){steps}, {written:?}, {casts:?}}};\n"),
            Lang::Rust => format!(
                "        BlockError {{ steps: {steps} as f64, written: {written:?}, casts: {casts:?} }},\n"
            ),
        }
    };
    (terms.iter().map(line).collect(), terms.len())
}

/// The parameters of a C function: `const float *A, float *C, int64_t m, `.
pub(super) fn c_args(spec: &Spec<'_>) -> String {
    let buffer = |it: &Buffer| {
        let access = if it.role == Role::Output { "" } else { "const " };
        format!("{access}{} *{}, ", c_type(it.dtype), it.ident)
    };
    let dims = spec.dims().map(|it| format!("int64_t {}, ", it.1));
    spec.params().iter().map(buffer).chain(dims).collect()
}

/// What each parameter is, a line each.
pub(super) fn signature_words(spec: &Spec<'_>) -> String {
    let buffer = |it: &Buffer| {
        let shape: Vec<_> = it.shape.iter().map(super::expr::words).collect();
        let role = if it.role == Role::Output { "output" } else { "input" };
        format!("   `{}`: {role}, {}[{}].\n", it.ident, it.dtype, shape.join(", "))
    };
    let dims = spec.dims().map(|it| format!("   `{}`: the dimension `{}`, at least 1.\n", it.1, it.0));
    let all: String = spec.params().iter().map(buffer).chain(dims).collect();
    all.trim_start().trim_end_matches('\n').to_owned()
}

/// Files whose names are the same in all bundles.
pub(super) fn named(
    files: impl IntoIterator<Item = (&'static str, String)>,
) -> impl Iterator<Item = (String, String)> {
    files.into_iter().map(|(name, text)| (name.to_owned(), text))
}

/// The files that bundles for every target have.
pub(super) fn files(spec: &Spec<'_>) -> impl Iterator<Item = (String, String)> {
    let [program, schedule] = schedule(spec);
    named([
        ("reference.h", reference_header(spec)),
        ("reference.c", reference_source(spec)),
        ("program.tw", program),
        ("schedule.ron", schedule),
    ])
}

/// The unscheduled program, and what schedules it as this bundle was.
fn schedule(spec: &Spec<'_>) -> [String; 2] {
    let subject = spec.subject;
    let steps: Vec<_> = subject.steps.iter().map(|it| format!("        {},\n", it.to_ron())).collect();
    let steps = steps.concat();
    let text = format!(
        "schedule(\n    about: \"Exported by tilewright {TOOL}: {}.\",\n    workload: \"./program.tw\",\n    target: \
         \"{}\",\n    steps: [\n{steps}    ],\n)\n",
        subject.origin.escape_default(),
        target_word(&subject.target),
    );
    [ir::text::print(&subject.plain).text, text]
}
