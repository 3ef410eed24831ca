//! What the crates for both targets have: the table, and arguments.

use ir::{Role, Target};
use tuner::build::target_word;

use super::{
    super::{
        expr::{Lang, words},
        spec::{Buffer, Spec},
    },
    Table, cuda,
};

/// `table.rs`. `dims` says of each kernel where its dimensions are found.
pub(super) fn table(table: &Table, specs: &[Spec<'_>], dims: &[Vec<(usize, usize)>]) -> String {
    let param = |it: &Buffer| {
        format!(
            "    Param {{ name: \"{}\", dtype: \"{}\", rank: {}, is_output: {} }},\n",
            it.name,
            it.dtype,
            it.shape.len(),
            it.role == Role::Output
        )
    };
    let records = specs.iter().zip(dims).enumerate().map(|(number, (spec, dims))| record(number, spec, dims));
    table.fill(
        include_str!("../templates/table.rs.txt"),
        vec![
            ("PARAM_COUNT", specs[0].params.to_string()),
            ("PARAM_TABLE", specs[0].params().iter().map(param).collect()),
            ("RECORDS", records.collect()),
        ],
    )
}

/// The record of a kernel.
fn record(number: usize, spec: &Spec<'_>, dims: &[(usize, usize)]) -> String {
    let subject = spec.subject;
    let shape = |it: &Buffer| format!("&[{}]", list(&it.shape, |it| format!("{:?}", words(it))));
    let size = |it: &Buffer| {
        let sizes = list(&it.shape, |it| Lang::Rust.checked(it, &|name| spec.dim_at(name)));
        format!("vec![{sizes}]")
    };
    let (capability, driver) = match &subject.target {
        Target::Cpu => ("None".to_owned(), "None".to_owned()),
        Target::Cuda(arch) => (format!("Some(({}, {:?}))", arch.sm, arch.suffix), cuda::oldest_driver()),
    };
    let lines = [
        format!("name: {:?}", spec.name),
        format!("origin: {:?}", subject.origin),
        format!("source: {:?}", tuner::sha256(&subject.source)),
        format!("target: {:?}", target_word(&subject.target)),
        format!("shapes: [{}]", list(spec.params(), shape)),
        format!("is_general: {}", !subject.module.dims.is_empty()),
        format!("align: [{}]", list(spec.params(), |it| it.align.to_string())),
        format!("capability: {capability}"),
        format!("driver: {driver}"),
        format!("number: {number}"),
        format!(
            "dims: |given| {{\n            let _ = given;\n            vec![{}]\n        }}",
            list(dims, |(param, axis)| format!("given[{param}].shape[{axis}] as i64"))
        ),
        format!(
            "sizes: |dims| {{\n            let _ = dims;\n            Some(vec![{}])\n        }}",
            list(spec.params(), size)
        ),
    ];
    format!("    Record {{\n        {},\n    }},\n", lines.join(",\n        "))
}

/// The parameters of a Rust function; `mutable` says whether outputs are changed through their own names.
pub(super) fn args(spec: &Spec<'_>, mutable: bool, kind: &dyn Fn(&Buffer) -> String) -> String {
    let arg = |it: &Buffer| {
        let (mutable, word) = match it.role {
            Role::Output => (if mutable { "mut " } else { "" }, "TensorMut"),
            Role::Input | Role::Temp => ("", "Tensor"),
        };
        format!("    {mutable}{}: {word}<'_, {}>,\n", it.ident, kind(it))
    };
    spec.params().iter().map(arg).collect()
}

/// The names of the parameters, each with a comma behind it.
pub(super) fn pass(spec: &Spec<'_>) -> String {
    let name = |it: &Buffer| format!("{}, ", it.ident);
    spec.params().iter().map(name).collect()
}

/// A call as an example: tensors by name.
pub(super) fn example(spec: &Spec<'_>) -> String {
    list(spec.params(), |it| {
        let (word, access) = if it.role == Role::Output { ("TensorMut", "&mut ") } else { ("Tensor", "&") };
        let shape: Vec<_> = it.shape.iter().map(words).collect();
        format!("{word}::new({access}{}, &[{}])", it.ident, shape.join(", "))
    })
}

/// Words with commas between them.
pub(super) fn list<T>(all: &[T], word: impl Fn(&T) -> String) -> String {
    all.iter().map(word).collect::<Vec<_>>().join(", ")
}
