//! The crate for a processor: its build compiles the kernels' C.

use ir::Role;

use super::{
    super::{
        common::TOOL,
        cpu::{OPTIONS, sources},
        expr::fill,
        spec::{Buffer, Spec, c_type, rust_type},
    },
    Table,
    text::{args, example, list, pass},
};

/// The files of the crate that are its own.
pub(super) fn files(table: &Table, specs: &[Spec<'_>]) -> Vec<(&'static str, String)> {
    let manifest = table.cargo_toml("build = \"build.rs\"", String::new());
    vec![("Cargo.toml", manifest), ("build.rs", build(specs)), ("lib.rs", library(table, specs))]
}

fn build(specs: &[Spec<'_>]) -> String {
    let paths = |it: &Spec<'_>| sources(it.name).map(|file| format!("{}/{file}", Table::folder(it.subject)));
    let paths: Vec<String> = specs.iter().flat_map(paths).collect();
    let line = |it: &String| format!("    {it:?},\n");
    // Archives of two crates may lie in folders that a linker both looks into.
    let unique: String = specs.iter().map(|it| it.unique.as_str()).collect();
    fill(
        include_str!("../templates/table_build.rs.txt"),
        &[
            ("TOOL", TOOL.to_owned()),
            ("LIBRARY", format!("tilewright_{}", &tuner::sha256(unique)[..16])),
            ("OPTIONS", OPTIONS.to_owned()),
            ("SOURCE_COUNT", paths.len().to_string()),
            ("SOURCES", paths.iter().map(line).collect()),
        ],
    )
}

fn library(table: &Table, specs: &[Spec<'_>]) -> String {
    let first = &specs[0];
    let kind = |it: &Buffer| raw_type(it).to_owned();
    let externs = specs.iter().enumerate().map(|(number, spec)| external(number, spec));
    let calls = specs.iter().enumerate().map(|(number, spec)| call(number, spec));
    table.fill(
        include_str!("../templates/table_cpu.rs.txt"),
        vec![
            ("EXAMPLE", example(first)),
            ("START_ARGS", args(first, false, &kind)),
            ("ARGS", args(first, false, &kind)),
            ("GIVEN", list(first.params(), |it| format!("{}.given()", it.ident))),
            ("PASS", pass(first)),
            ("EXTERNS", externs.collect()),
            ("CALLS", calls.collect()),
        ],
    )
}

/// The declaration of the C function of a kernel, by the name that no other kernel has.
fn external(number: usize, spec: &Spec<'_>) -> String {
    let buffer = |it: &Buffer| {
        let access = if it.role == Role::Output { "*mut" } else { "*const" };
        format!("{}: {access} {}, ", it.ident, raw_type(it))
    };
    let dims = spec.dims().map(|it| format!("{}: i64, ", it.1));
    let all: String = spec.params().iter().map(buffer).chain(dims).collect();
    format!("    #[link_name = \"{}\"]\n    fn kernel_{number}({all}threads: i32) -> i32;\n", spec.unique)
}

fn call(number: usize, spec: &Spec<'_>) -> String {
    let pointer = |it: &Buffer| {
        let how = if it.role == Role::Output { "as_mut_ptr" } else { "as_ptr" };
        format!("{}.data.{how}(), ", it.ident)
    };
    let dims = (0..spec.subject.module.dims.len()).map(|at| format!("dims[{at}], "));
    let all: String = spec.params().iter().map(pointer).chain(dims).collect();
    format!("            {number} => kernel_{number}({all}threads),\n")
}

/// What stands for an element where no crate is at hand: the bits of halves.
fn raw_type(it: &Buffer) -> &'static str {
    match (c_type(it.dtype), rust_type(it.dtype)) {
        ("uint16_t", _) => "u16",
        (_, it) => it,
    }
}
