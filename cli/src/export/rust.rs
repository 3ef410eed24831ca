//! The crate of a bundle for a GPU: a launcher through cudarc, the reference, a program that verifies.

use ir::{Arch, DType, Index, Role};
use tuner::build::target_word;

use super::{
    common::{self, TOOL},
    expr::{Lang, fill},
    maps,
    reference::{self, rust_name},
    spec::{Buffer, Launch, Spec, rust_type},
};

/// The files of the crate.
pub(super) fn files(spec: &Spec<'_>, arch: &Arch) -> Vec<(&'static str, String)> {
    let half = spec.params().iter().any(|it| rust_type(it.dtype).starts_with("half"));
    let manifest = fill(
        include_str!("templates/Cargo.toml.txt"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("CRATE", spec.name.to_owned()),
            ("F16", if half { ", \"f16\"".to_owned() } else { String::new() }),
            ("HALF", if half { "half = \"2\"".to_owned() } else { String::new() }),
        ],
    );
    let mut out = vec![
        ("Cargo.toml", manifest),
        ("launcher.rs", launcher(spec, arch)),
        ("main.rs", main(spec)),
        ("reference.rs", reference_source(spec)),
        ("sizes.rs", sizes(spec, arch)),
    ];
    if !spec.maps.is_empty() {
        out.push(("tensor_maps.rs", maps::rust_file(spec)));
    }
    if spec.is_early() {
        let holes = [("TOOL", TOOL.to_owned())];
        out.push(("early.rs", fill(include_str!("templates/early.rs.txt"), &holes)));
    }
    out
}

fn size(spec: &Spec<'_>, it: &Index) -> String {
    Lang::Rust.checked(it, &|name| spec.dim_at(name))
}

fn list<T>(all: &[T], word: impl Fn(&T) -> String) -> String {
    all.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn sizes(spec: &Spec<'_>, arch: &Arch) -> String {
    let row = |it: &Buffer| {
        let (name, dtype) = (&it.name, rust_name(it.dtype));
        format!("    Param {{ name: \"{name}\", dtype: {dtype}, is_output: {} }},\n", it.role == Role::Output)
    };
    let shape = |(n, it): (usize, &Buffer)| {
        format!("        {n} => Some(vec![{}]),\n", list(&it.shape, |it| size(spec, it)))
    };
    let launch = |it: &Launch| {
        format!(
            "        [{}, {}],\n",
            list(&it.grid, |it| size(spec, it)),
            list(&it.block, |it| size(spec, it))
        )
    };
    let programmatic = if spec.is_early() {
        let each = list(&spec.launches, |it| it.programmatic.to_string());
        format!(
            "/// Whether each may start before what is ahead of it in the stream has ended.\npub const PROGRAMMATIC: [bool; LAUNCHES] \
             = [{each}];\n"
        )
    } else {
        String::new()
    };
    let dims: Vec<_> = spec.subject.dims.iter().collect();
    fill(
        include_str!("templates/sizes.rs.txt"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("PARAM_COUNT", spec.params.to_string()),
            ("DIM_COUNT", dims.len().to_string()),
            ("BUFFER_COUNT", spec.buffers.len().to_string()),
            ("LAUNCH_COUNT", spec.launches.len().to_string()),
            ("ARCH_NUMBER", arch.sm.to_string()),
            ("ARCH_SUFFIX", format!("{:?}", arch.suffix)),
            ("PARAM_TABLE", spec.params().iter().map(row).collect()),
            ("DIM_NAMES", list(&dims, |it| format!("\"{}\"", it.0))),
            ("DIM_DEFAULTS", list(&dims, |it| it.1.to_string())),
            ("ALIGN", list(&spec.buffers, |it| it.align.to_string())),
            ("ZEROED", list(&spec.buffers, |it| it.zeroed.to_string())),
            ("ENTRIES", list(&spec.launches, |it| format!("\"{}\"", it.symbol))),
            ("SHARED", list(&spec.launches, |it| it.shared_bytes.to_string())),
            ("LARGE_CLUSTER", list(&spec.launches, |it| it.large_cluster.to_string())),
            ("ARGUMENTS", list(&spec.launches, |it| format!("&{:?}", it.buffers))),
            ("PROGRAMMATIC", programmatic),
            ("MAPS", maps::rust_sizes(spec)),
            ("SHAPES", spec.params().iter().enumerate().map(shape).collect()),
            ("ELEMENTS", list(&spec.buffers, |it| size(spec, &it.elements()))),
            ("BYTES", list(&spec.buffers, |it| size(spec, &it.bytes()))),
            ("SIZES", spec.launches.iter().map(launch).collect()),
            ("FLOPS", common::flops(spec, Lang::Rust)),
            ("BLOCK_ERRORS", common::block_errors(spec, Lang::Rust).0),
        ],
    )
}

/// `reference.rs`.
pub(super) fn reference_source(spec: &Spec<'_>) -> String {
    let program = reference::print(spec, Lang::Rust);
    fill(
        include_str!("templates/reference.rs.txt"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("STAGE_COUNT", program.count.to_string()),
            ("KEEP", program.keep),
            ("OUTPUTS", program.outputs),
            ("STAGES", program.stages),
        ],
    )
}

const fn is_output(it: &Buffer) -> bool {
    matches!(it.role, Role::Output)
}

fn launcher(spec: &Spec<'_>, arch: &Arch) -> String {
    let slice = |it: &Buffer| {
        let kind = if is_output(it) { "mut impl DevicePtrMut" } else { "impl DevicePtr" };
        format!("        {}: &{kind}<{}>,\n", it.ident, rust_type(it.dtype))
    };
    let dims = spec.dims().map(|it| format!("        {}: i64,\n", it.1));
    let pointer = |it: &Buffer| {
        let (ident, how) = (&it.ident, if is_output(it) { "device_ptr_mut" } else { "device_ptr" });
        format!("        let (at_{ident}, _guard_{ident}) = {ident}.{how}(stream);\n")
    };
    let given = |it: &Buffer| format!("&{}{}", if is_output(it) { "mut " } else { "" }, it.ident);
    let names: Vec<_> = spec.dims().map(|it| it.1).collect();
    let example: Vec<_> = spec.params().iter().map(given).chain(names.clone()).collect();
    let params = spec.params();
    let mut holes = map_holes(spec);
    holes.extend([
        ("FUNC", spec.subject.module.name.to_string()),
        ("TOOL", TOOL.to_owned()),
        ("TARGET", target_word(&spec.subject.target)),
        ("ARCH", arch.to_string()),
        ("CRATE", spec.name.to_owned()),
        ("EXAMPLE", example.join(", ")),
        ("SLICES", params.iter().map(slice).chain(dims).collect()),
        ("DIM_VALUES", names.join(", ")),
        ("LENGTHS", list(params, |it| format!("{}.len()", it.ident))),
        ("CONTEXTS", list(params, |it| format!("{}.stream().context() == &self.context", it.ident))),
        ("POINTERS", params.iter().map(pointer).collect()),
        ("ADDRESSES", list(params, |it| format!("at_{}", it.ident))),
    ]);
    fill(include_str!("templates/launcher.rs.txt"), &holes)
}

/// What `launcher.rs` has of tensor maps and of launches that start early: nothing where there are none.
fn map_holes(spec: &Spec<'_>) -> Vec<(&'static str, String)> {
    let (has_maps, is_early) = (!spec.maps.is_empty(), spec.is_early());
    let given = |is: bool, text: &str| if is { text.to_owned() } else { String::new() };
    let (launch, argument) = if is_early {
        (
            include_str!("templates/launch_early.rs.txt"),
            "arguments.push((&raw const maps[*at]).cast_mut().cast())",
        )
    } else {
        (include_str!("templates/launch.rs.txt"), "builder.arg(&maps[*at])")
    };
    let arguments = format!(
        "            for at in sizes::MAP_ARGUMENTS[launch] {{\n                {argument};\n            }}\n"
    );
    let launch = fill(launch, &[("MAP_ARGUMENTS", given(has_maps, &arguments))]);
    let errors = "    /// The copy engine of the GPU does not take a tensor of this size.\n    Map { map: &'static str, refusal: \
                  sizes::MapRefusal },\n    /// The driver is older than tensor maps.\n    NoMaps,\n";
    let words = "            Error::Map { map, refusal: sizes::MapRefusal { what, value, rule } } => {\n                write!(f, \
                 \"tensor map `{map}` would have {what} {value}; the copy engine takes {rule}\")\n            }\n            \
                 Error::NoMaps => write!(f, \"the driver has no tensor maps: it takes one for CUDA 12.0 or later\"),\n";
    vec![
        ("EARLY_MODULE", given(is_early, "mod early;")),
        ("MAP_MODULE", given(has_maps, "mod tensor_maps;")),
        ("MAP_ERRORS", given(has_maps, errors)),
        ("MAP_WORDS", given(has_maps, words)),
        ("MAP_SIZES", given(has_maps, "        let map_sizes = tensor_maps::sizes(dims)?;")),
        ("MAP_ENCODE", given(has_maps, "        let maps = tensor_maps::encode(&all, &map_sizes)?;")),
        ("LAUNCH", launch),
    ]
}

/// How elements of a type are made and read in `main.rs`: a function that draws one, one that makes a number of one, and
/// what an output holds before it is written.
fn element(dtype: DType) -> [String; 3] {
    let kind = rust_type(dtype);
    let plain =
        |poison: &str| [format!("<{kind} as Element>::random"), "f64::from".to_owned(), poison.to_owned()];
    match dtype {
        DType::Tf32 => ["random_tf32".to_owned(), "f64::from".to_owned(), "f32::NAN".to_owned()],
        DType::Bool => {
            ["random_bool".to_owned(), "|it| f64::from(u8::from(it != 0))".to_owned(), "!0".to_owned()]
        }
        DType::F8e4m3 | DType::F8e5m2 => {
            [format!("random_{dtype}"), format!("number_{dtype}"), "0x7f".to_owned()]
        }
        DType::F8e8m0 => [format!("random_{dtype}"), format!("number_{dtype}"), "0xff".to_owned()],
        DType::I64 => {
            [plain("")[0].clone(), "|it| it as f64".to_owned(), "<i64 as Element>::poison()".to_owned()]
        }
        DType::F16 | DType::Bf16 => {
            [plain("")[0].clone(), format!("{kind}::to_f64"), format!("<{kind} as Element>::poison()")]
        }
        DType::I8
        | DType::I16
        | DType::I32
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::F32
        | DType::F64 => plain(&format!("<{kind} as Element>::poison()")),
    }
}

/// What `main.rs` needs for types that Rust has not.
fn more_elements(spec: &Spec<'_>) -> String {
    let has = |dtype: DType| spec.params().iter().any(|it| it.dtype == dtype);
    let parts = [
        (DType::F16, include_str!("templates/f16.rs.txt")),
        (DType::Bf16, include_str!("templates/bf16.rs.txt")),
        (DType::Tf32, include_str!("templates/tf32.rs.txt")),
        (DType::Bool, include_str!("templates/bool.rs.txt")),
        (DType::F8e4m3, include_str!("templates/f8e4m3.rs.txt")),
        (DType::F8e5m2, include_str!("templates/f8e5m2.rs.txt")),
        (DType::F8e8m0, include_str!("templates/f8e8m0.rs.txt")),
    ];
    let used = parts.into_iter().filter(|it| has(it.0));
    used.map(|it| format!("\n{}", it.1)).collect::<Vec<_>>().concat()
}

fn main(spec: &Spec<'_>) -> String {
    let make = |(n, it): (usize, &Buffer)| {
        let (ident, kind) = (&it.ident, rust_type(it.dtype));
        let [draw, number, poison] = element(it.dtype);
        if is_output(it) {
            return format!(
                "    let before: Vec<{kind}> = vec![{poison}; elements[{n}] as usize];\n    let mut on_{ident} = \
                 stream.clone_htod(&before)?;\n"
            );
        }
        let drawn = match &it.below {
            None => format!("random(elements[{n}], &mut state, {draw})"),
            Some(below) => {
                let below = size(spec, below);
                format!(
                    "{{\n        let below = (|| Some({below}))().ok_or(\"a size overflows\")?;\n        \
                     (0..elements[{n}]).map(|_| state.below(below) as {kind}).collect()\n    }}"
                )
            }
        };
        format!(
            "    let host_{ident}: Vec<{kind}> = {drawn};\n    let numbers_{ident} = \
             numbers(&host_{ident}, {number});\n    let on_{ident} = stream.clone_htod(&host_{ident})?;\n"
        )
    };
    let check = |(n, it): (usize, &Buffer)| {
        let [_, number, _] = element(it.dtype);
        let ident = &it.ident;
        format!(
            "    let got = numbers(&stream.clone_dtoh(&on_{ident})?, {number});\n    let (part, right) = check(&mut \
             reference, {n}, &dims, seed, &got).ok_or(\"a size overflows\")?;\n    share = share.max(part);\n    \
             is_right = is_right && right;\n"
        )
    };
    let give = |it: &Buffer| format!("&{}on_{}", if is_output(it) { "mut " } else { "" }, it.ident);
    let dims = (0..spec.subject.module.dims.len()).map(|n| format!("dims[{n}]"));
    let params = spec.params();
    let given: Vec<_> = params.iter().map(give).chain(dims).collect();
    let outputs = params.iter().enumerate().filter(|it| is_output(it.1));
    let input = |it: &Buffer| {
        if is_output(it) { "Vec::new()".to_owned() } else { format!("numbers_{}", it.ident) }
    };
    fill(
        include_str!("templates/main.rs.txt"),
        &[
            ("FUNC", spec.subject.module.name.to_string()),
            ("TOOL", TOOL.to_owned()),
            ("CRATE", spec.name.to_owned()),
            ("HALVES", more_elements(spec)),
            ("MAKE", params.iter().enumerate().map(make).collect()),
            ("GIVE", given.join(", ")),
            ("INPUTS", list(params, input)),
            ("CHECK", outputs.map(check).collect()),
        ],
    )
}
