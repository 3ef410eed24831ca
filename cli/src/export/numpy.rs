//! The Python module of a bundle for a processor: the C function on arrays of NumPy, which are checked.

use ir::{DType, Index, IndexKind, Name, Role};

use super::{
    common::{TOOL, signature_words},
    expr::fill,
    spec::{Buffer, Spec, dim_ident},
};

/// The module.
pub(super) fn module(spec: &Spec<'_>) -> String {
    let params = spec.params();
    let (outputs, inputs): (Vec<_>, Vec<_>) = params.iter().partition(|it| it.role == Role::Output);
    let required = inputs.iter().map(|it| format!("{}, ", it.ident));
    let arguments = required.chain(outputs.iter().map(|it| format!("{}=None, ", it.ident))).collect();
    let example: Vec<_> = inputs.iter().map(|it| it.name.to_string()).collect();
    let results: Vec<_> = outputs.iter().map(|it| it.name.to_string()).collect();
    let list = |all: Vec<String>| all.join(", ");
    fill(
        include_str!("templates/interface.py.txt"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("NAME", spec.name.to_owned()),
            ("UNIQUE", spec.unique.clone()),
            ("EXAMPLE", format!("{} = {}.run({})", results.join(", "), spec.name, example.join(", "))),
            ("PARAMS", params.iter().map(|it| param(spec, it)).collect()),
            ("DIMS", spec.dims().map(|it| dim(spec, it.0)).collect()),
            ("ARGS", arguments),
            ("DIM_ARGS", spec.dims().map(|it| it.1 + "=None, ").collect()),
            ("SIGNATURE_DOC", signature_words(spec).replace("\n   ", "\n    ")),
            ("ARRAYS", list(params.iter().map(|it| it.ident.clone()).collect())),
            ("DIM_VALUES", list(spec.dims().map(|it| it.1).collect())),
        ],
    )
}

fn param(spec: &Spec<'_>, it: &Buffer) -> String {
    let dims: Vec<_> = spec.dims().map(|it| it.1).collect();
    let is_output = if it.role == Role::Output { "True" } else { "False" };
    let types = tuple(types(it.dtype).iter().map(|it| format!("\"{it}\"")));
    let shape = tuple(it.shape.iter().map(python));
    let space = if dims.is_empty() { "" } else { " " };
    format!("    _Param(\"{}\", {is_output}, {types}, lambda{space}{}: {shape}),\n", it.name, dims.join(", "))
}

/// A symbolic dimension with the axes that are as long as it.
fn dim(spec: &Spec<'_>, name: &Name) -> String {
    let is_dim = |size: &Index| matches!(size.kind(), IndexKind::Var(it) if it == name);
    let axes = spec.params().iter().enumerate().flat_map(|(at, it)| {
        let sizes = it.shape.iter().enumerate();
        sizes.filter(|it| is_dim(it.1)).map(move |(axis, _)| format!("({at}, {axis})"))
    });
    format!("    (\"{name}\", {}),\n", tuple(axes))
}

/// A tuple of Python; one of one element has a comma.
fn tuple(all: impl Iterator<Item = String>) -> String {
    match all.collect::<Vec<_>>().as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    }
}

/// What NumPy calls a type of elements; for those that it lacks the integers that hold their bits, then the names that
/// the package `ml_dtypes` gives them.
const fn types(dtype: DType) -> &'static [&'static str] {
    match dtype {
        DType::Bool => &["bool"],
        DType::I8 => &["int8"],
        DType::I16 => &["int16"],
        DType::I32 => &["int32"],
        DType::I64 => &["int64"],
        DType::U8 => &["uint8"],
        DType::U16 => &["uint16"],
        DType::U32 => &["uint32"],
        DType::F16 => &["float16"],
        DType::Bf16 => &["uint16", "bfloat16"],
        DType::F8e4m3 => &["uint8", "float8_e4m3fn"],
        DType::F8e5m2 => &["uint8", "float8_e5m2"],
        DType::F8e8m0 => &["uint8", "float8_e8m0fnu"],
        DType::Tf32 | DType::F32 => &["float32"],
        DType::F64 => &["float64"],
    }
}

/// A size in Python, whose integers do not overflow and whose quotients are rounded down.
fn python(index: &Index) -> String {
    let infix = |a: &Index, sign: &str, b: &Index| format!("({} {sign} {})", python(a), python(b));
    let call = |word: &str, a: &Index, b: &Index| format!("{word}({}, {})", python(a), python(b));
    match index.kind() {
        IndexKind::Int(it) => it.to_string(),
        IndexKind::Var(name) => dim_ident(name),
        IndexKind::Add(a, b) => infix(a, "+", b),
        IndexKind::Mul(a, b) => infix(a, "*", b),
        IndexKind::FloorDiv(a, b) => infix(a, "//", b),
        IndexKind::FloorMod(a, b) => infix(a, "%", b),
        IndexKind::Min(a, b) => call("min", a, b),
        IndexKind::Max(a, b) => call("max", a, b),
        IndexKind::Xor(a, b) => infix(a, "^", b),
        IndexKind::Element(..) => unreachable!("sizes are over dimensions alone"),
    }
}
