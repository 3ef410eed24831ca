//! The bundle for a processor: emitted C, a C function around it that checks its arguments, a program that verifies.

use codegen::emit::emit;
use ir::{Name, Role, Target};

use super::{
    common::{self, TOOL, c_args, signature_words},
    expr::{Lang, fill},
    numpy,
    spec::{Buffer, Spec, c_type, dim_ident, rust_type},
};

/// The options that the bundle's C is compiled with: those that the tuner measures with. Vectors may be wider than those of the machine that
/// it is compiled on; GCC warns that functions would return them otherwise elsewhere, which all are part of the kernel.
pub(super) const OPTIONS: &str =
    "-std=gnu11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wno-psabi -pthread";

/// The C sources of the library of a bundle.
pub(super) fn sources(name: &str) -> [String; 2] {
    [format!("{name}.c"), format!("{name}_kernel.c")]
}

/// The files, but for the manifest and the page for readers.
pub(super) fn files(spec: &Spec<'_>) -> Vec<(String, String)> {
    let [interface, kernel] = sources(spec.name);
    let named = [
        (kernel, kernel_source(spec)),
        (format!("{}.h", spec.name), fill(include_str!("templates/interface.h"), &names(spec))),
        (interface, wrapper(spec)),
        (format!("{}.py", spec.name), numpy::module(spec)),
    ];
    let others = [
        ("main.c", main(spec)),
        ("Makefile", fill(include_str!("templates/cpu.mk"), &names(spec))),
        ("example.rs", example(spec)),
    ];
    named.into_iter().chain(common::named(others)).chain(common::files(spec)).collect()
}

/// The emitted C, with kernels that no other file of a program can mean and no library shows.
fn kernel_source(spec: &Spec<'_>) -> String {
    let mut module = spec.subject.module.clone();
    for (kernel, launch) in module.kernels.iter_mut().zip(&spec.launches) {
        kernel.name = Name::new(launch.symbol.as_str());
    }
    let source = emit(&module, &Target::Cpu).expect("it has a source under other names");
    format!(
        "/* Only {}.c calls what is here. */\n#if defined(__GNUC__)\n#pragma GCC visibility push(hidden)\n#endif\n\n{source}",
        spec.name
    )
}

fn names(spec: &Spec<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("FUNC", spec.subject.module.name.to_string()),
        ("TOOL", TOOL.to_owned()),
        ("NAME", spec.name.to_owned()),
        ("UNIQUE", spec.unique.clone()),
        ("PASS", pass(spec)),
        ("UPPER", spec.name.to_uppercase()),
        ("ARGS", c_args(spec)),
        ("SIGNATURE_DOC", signature_words(spec)),
        ("OPTIONS", OPTIONS.to_owned()),
    ]
}

/// The parameters passed on: `in_A, out_C, dim_m, `.
fn pass(spec: &Spec<'_>) -> String {
    let idents = spec.params().iter().map(|it| it.ident.clone()).chain(spec.dims().map(|it| it.1));
    idents.map(|it| it + ", ").collect()
}

fn wrapper(spec: &Spec<'_>) -> String {
    let prototype = |it: &super::spec::Launch| {
        format!("void {}(void *const *buffers, const int64_t *dims, const tw_runtime *rt);\n", it.symbol)
    };
    let span = |it: &Buffer| {
        let start = if it.role == Role::Temp {
            "NULL".to_owned()
        } else {
            format!("(char *)(uintptr_t){}", it.ident)
        };
        let bytes = Lang::C.checked(&it.bytes(), &|name| spec.dim_at(name));
        format!("    {{{start}, {bytes}, {}, {}}},\n", it.align, u8::from(it.is_written))
    };
    let launch = |it: &super::spec::Launch| {
        let buffers: Vec<_> = it.buffers.iter().map(|it| format!("all[{it}].start")).collect();
        format!("  {}((void *const[]){{{}}}, dims, &rt);\n", it.symbol, buffers.join(", "))
    };
    let zeroed = spec.buffers.iter().any(|it| it.zeroed);
    let dims = spec.dims().map(|it| it.1).chain(["0".to_owned()]);
    let mut holes = names(spec);
    holes.extend([
        ("PROTOTYPES", spec.launches.iter().map(prototype).collect()),
        ("BUFFER_COUNT", spec.buffers.len().to_string()),
        ("PARAM_COUNT", spec.params.to_string()),
        ("DIM_COUNT", spec.subject.module.dims.len().to_string()),
        ("DIM_VALUES", dims.collect::<Vec<_>>().join(", ")),
        ("SPANS", spec.buffers.iter().map(span).collect()),
        ("ZERO", if zeroed { "    memset(all[i].start, 0, bytes);".to_owned() } else { String::new() }),
        ("LAUNCHES", spec.launches.iter().map(launch).collect()),
    ]);
    fill(include_str!("templates/interface.c"), &holes)
}

fn main(spec: &Spec<'_>) -> String {
    let buffers = spec.params().iter().enumerate().map(|(n, _)| format!("data[{n}], "));
    let dims = (0..spec.subject.module.dims.len()).map(|n| format!("o->dims[{n}], "));
    let call: String = buffers.chain(dims).collect();
    let mut holes = names(spec);
    holes.push(("CALL", format!("{}({call}o->threads)", spec.name)));
    let device = fill(include_str!("templates/cpu_device.c"), &holes);
    holes.extend([
        ("DEVICE", device),
        ("USAGE", " [--threads N]".to_owned()),
        ("NO_DEVICE", "77 nothing to run on".to_owned()),
        ("INCLUDES", format!("#include \"{}.h\"", spec.name)),
        (
            "OPTIONS",
            "    else if (i + 1 < argc && strcmp(argv[i], \"--threads\") == 0) o.threads = atoi(argv[++i]);"
                .to_owned(),
        ),
    ]);
    // The options of main are asked for, and those of the compiler are none of its holes.
    holes.retain(|it| it.0 != "OPTIONS" || it.1.starts_with("    else"));
    fill(include_str!("templates/main.c"), &holes)
}

/// A Rust program that calls the C function.
fn example(spec: &Spec<'_>) -> String {
    let c = |it: &Buffer| {
        let access = if it.role == Role::Output { "*mut" } else { "*const" };
        format!("{}: {access} {}, ", it.ident, raw_type(it))
    };
    let dims = || spec.dims().map(|it| format!("{}: i64, ", it.1));
    let slice = |it: &Buffer| {
        let access = if it.role == Role::Output { "&mut " } else { "&" };
        format!("{}: {access}[{}], ", it.ident, raw_type(it))
    };
    let length = |it: &Buffer| {
        let size = Lang::Rust.checked(&it.elements(), &dim_ident);
        format!("    if {}.len() as i64 != {size} {{\n        return None;\n    }}\n", it.ident)
    };
    let pointer = |it: &Buffer| {
        format!("{}.{}(), ", it.ident, if it.role == Role::Output { "as_mut_ptr" } else { "as_ptr" })
    };
    let make = |it: &Buffer| {
        let size = spec.value(&it.elements()).unwrap_or(0);
        let mutable = if it.role == Role::Output { "mut " } else { "" };
        format!("    let {mutable}{} = vec![Default::default(); {size}];\n", it.ident)
    };
    let give = |it: &Buffer| format!("{}{}, ", if it.role == Role::Output { "&mut " } else { "&" }, it.ident);
    let params = spec.params();
    let mut holes = names(spec);
    holes.extend([
        ("EXTERN", params.iter().map(c).chain(dims()).collect::<String>()),
        ("SLICES", params.iter().map(slice).chain(dims()).collect::<String>()),
        ("LENGTHS", params.iter().map(length).collect()),
        ("POINTERS", params.iter().map(pointer).chain(spec.dims().map(|it| format!("{}, ", it.1))).collect()),
        ("MAKE", params.iter().map(make).collect()),
        (
            "GIVE",
            params.iter().map(give).chain(spec.subject.dims.values().map(|it| format!("{it}, "))).collect(),
        ),
    ]);
    fill(include_str!("templates/example.rs.txt"), &holes)
}

/// What stands for an element where no crate is at hand: the bits of halves.
fn raw_type(it: &Buffer) -> &'static str {
    match (c_type(it.dtype), rust_type(it.dtype)) {
        ("uint16_t", _) => "u16",
        (_, it) => it,
    }
}
