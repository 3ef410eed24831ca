//! The crate for GPUs: the launchers of the kernels' bundles as modules.

use codegen::device::nvrtc;
use ir::Role;

use super::{
    super::spec::{Buffer, Spec, rust_type},
    Table,
    text::{args, example, list, pass},
};

/// The files of the crate that are its own.
pub(super) fn files(table: &Table, specs: &[Spec<'_>]) -> Vec<(&'static str, String)> {
    let half = specs[0].params().iter().any(|it| rust_type(it.dtype).starts_with("half"));
    let (feature, dependency) = if half { (", \"f16\"", "\nhalf = \"2\"") } else { ("", "") };
    let dependencies = format!(
        "cudarc = {{ version = \"0.19.10\", default-features = false, features = [\"std\", \"driver\", \"nvrtc\", \"cuda-12090\", \
         \"dynamic-loading\"{feature}] }}{dependency}"
    );
    let manifest = table.cargo_toml("", dependencies);
    vec![("Cargo.toml", manifest), ("lib.rs", library(table, specs))]
}

fn library(table: &Table, specs: &[Spec<'_>]) -> String {
    let first = &specs[0];
    let kind = |it: &Buffer| {
        let access = if it.role == Role::Output { "DevicePtrMut" } else { "DevicePtr" };
        format!("impl {access}<{}>", rust_type(it.dtype))
    };
    let module = |it: &Spec<'_>| {
        format!("#[path = \"{}/launcher.rs\"]\npub mod {};\n", Table::folder(it.subject), it.name)
    };
    let numbered = || specs.iter().enumerate();
    let field =
        |(number, it): (usize, &Spec<'_>)| format!("    kernel_{number}: Option<{}::Kernel>,\n", it.name);
    let none: Vec<_> = numbered().map(|(number, _)| format!("kernel_{number}: None")).collect();
    table.fill(
        include_str!("../templates/table_cuda.rs.txt"),
        vec![
            ("EXAMPLE", example(first)),
            ("MODULES", specs.iter().map(module).collect()),
            ("FIELDS", numbered().map(field).collect()),
            ("NONE", none.join(", ")),
            ("START_ARGS", args(first, false, &kind)),
            ("ARGS", args(first, true, &kind)),
            ("GIVEN", list(first.params(), |it| format!("{}.given(stream)", it.ident))),
            ("PASS", pass(first).trim_end_matches(", ").to_owned()),
            ("CALLS", numbered().map(|(number, it)| call(number, it)).collect()),
        ],
    )
}

fn call(number: usize, spec: &Spec<'_>) -> String {
    let buffers = spec.params().iter().map(|it| format!("{}.data", it.ident));
    let dims = (0..spec.subject.module.dims.len()).map(|at| format!("dims[{at}]"));
    let all: Vec<_> = buffers.chain(dims).collect();
    format!(
        "            {number} => {{\n                let loaded = match &mut self.kernel_{number} {{\n                    Some(it) => \
         it,\n                    slot => slot.insert({0}::Kernel::new(&self.context).map_err(|err| failed(kernel, &err))?),\n                \
         }};\n                loaded.launch(stream, {1}).map_err(|err| failed(kernel, &err))\n            }}\n",
        spec.name,
        all.join(", ")
    )
}

/// The oldest driver that loads what this machine's NVRTC makes: one of its own version of CUDA, whatever the minor one.
pub(super) fn oldest_driver() -> String {
    nvrtc::find().map_or("None".to_owned(), |it| format!("Some({})", it.version.0 * 1000))
}
