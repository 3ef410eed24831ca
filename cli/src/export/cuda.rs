//! The bundle for a GPU: emitted CUDA C++, PTX and machine code, launchers in C and in Rust, a program that verifies.

use codegen::device::nvrtc;
use ir::{Arch, Index, Role};
use tuner::build::target_word;

use super::{
    bundle::{Files, texts},
    candle,
    common::{self, TOOL, signature_words},
    expr::{Lang, fill},
    manifest::Compiled,
    maps, rust,
    spec::{Buffer, Launch, Spec},
};
use crate::{build::compile_cuda, diagnostic::Diagnostic};

/// The options that the bundle's C is compiled with.
pub(super) const OPTIONS: &str = "-std=gnu11 -O2";

/// The C source of the library of a bundle.
pub(super) fn launcher_source(name: &str) -> String {
    format!("{name}.c")
}

/// The files, but for the manifest and the page for readers.
pub(super) fn files(spec: &Spec<'_>, arch: &Arch, source_only: bool) -> Result<Files, Diagnostic> {
    let named = [
        (format!("{}.h", spec.name), fill(include_str!("templates/launcher.h"), &names(spec, arch))),
        (launcher_source(spec.name), launcher(spec, arch)),
    ];
    let others = [
        ("kernel.cu", spec.subject.source.clone()),
        ("main.c", main(spec, arch)),
        ("Makefile", fill(include_str!("templates/cuda.mk"), &names(spec, arch))),
    ];
    let mut out: Vec<_> = named.into_iter().chain(common::named(others)).chain(common::files(spec)).collect();
    let mut left_out = vec![];
    if source_only {
        left_out.push(
            "kernel.ptx and kernel.cubin were left out on request, and with them the Rust launcher".into(),
        );
        return Ok(Files { all: texts(out), compiled: Compiled::default(), left_out });
    }
    out.extend(common::named(rust::files(spec, arch)));
    match candle::files(spec, arch) {
        Ok(files) => {
            out.extend(common::named(files));
            if spec.is_early() {
                left_out.push("the op for candle launches plainly: no kernel starts before what is ahead of it has ended".into());
            }
        }
        Err(why) => left_out.push(format!("there is no op for candle: {why}")),
    }
    let made = compile(spec, arch)?;
    let mut all = texts(out);
    all.push(("kernel.ptx".to_owned(), made.ptx.into_bytes()));
    all.push(("kernel.cubin".to_owned(), made.cubin));
    let compiler = nvrtc::find().ok().map(|it| format!("NVRTC {}.{}", it.version.0, it.version.1));
    Ok(Files { all, compiled: Compiled { compiler, resources: made.resources }, left_out })
}

fn compile(spec: &Spec<'_>, arch: &Arch) -> Result<nvrtc::Compiled, Diagnostic> {
    compile_cuda(&spec.subject.source, &spec.subject.plain, arch).map_err(|err| {
        let is_missing = nvrtc::find().is_err();
        let help = "install NVRTC (`pip install nvidia-cuda-nvrtc`, or a CUDA toolkit), or leave PTX and machine \
                    code out with `--source-only`";
        if is_missing { err.help(help.to_owned()) } else { err }
    })
}

fn names(spec: &Spec<'_>, arch: &Arch) -> Vec<(&'static str, String)> {
    let buffer = |it: &Buffer| format!("uint64_t {}, ", it.ident);
    let dims = spec.dims().map(|it| format!("int64_t {}, ", it.1));
    vec![
        ("FUNC", spec.subject.module.name.to_string()),
        ("TOOL", TOOL.to_owned()),
        ("TARGET", target_word(&spec.subject.target)),
        ("NAME", spec.name.to_owned()),
        ("UNIQUE", spec.unique.clone()),
        ("UPPER", spec.name.to_uppercase()),
        ("ARGS", spec.params().iter().map(buffer).chain(dims).collect()),
        ("SIGNATURE_DOC", signature_words(spec)),
        ("OPTIONS", OPTIONS.to_owned()),
        ("ARCH", arch.to_string()),
        ("MAP_CODE", maps::c_code(spec)),
    ]
}

fn launcher(spec: &Spec<'_>, arch: &Arch) -> String {
    let size = |it: &Index| Lang::C.checked(it, &|name| spec.dim_at(name));
    let span = |it: &Buffer| {
        let start = if it.role == Role::Temp { "0".to_owned() } else { it.ident.clone() };
        let (written, zeroed) = (u8::from(it.is_written), u8::from(it.zeroed));
        format!("    {{{start}, {}, {}, {written}, {zeroed}}},\n", size(&it.bytes()), it.align)
    };
    let sizes = |it: &Launch| {
        let all: Vec<_> = it.grid.iter().chain(&it.block).map(size).collect();
        format!("    {{{}}},\n", all.join(", "))
    };
    let start = |(n, it): (usize, &Launch)| {
        let maps = it.maps.iter().map(|it| format!("&maps[{it}]"));
        let buffers = it.buffers.iter().map(|it| format!("&all[{it}].start"));
        let dims = (0..spec.subject.module.dims.len()).map(|it| format!("&dims[{it}]"));
        let arguments: Vec<_> = maps.chain(buffers).chain(dims).collect();
        let start = if it.programmatic { "start_early" } else { "start" };
        format!(
            "  if (code == {upper}_OK) {{\n    void *arguments[] = {{{}}};\n    code = {start}(kernel->functions[{n}], \
             sizes[{n}], shared_bytes[{n}], stream, arguments);\n  }}\n",
            arguments.join(", "),
            upper = spec.name.to_uppercase(),
        )
    };
    let list =
        |word: &dyn Fn(&Launch) -> String| spec.launches.iter().map(word).collect::<Vec<_>>().join(", ");
    // Threads are known before the call wherever they are constants; others are checked by the driver.
    let threads = |it: &Launch| {
        let all = it.block.iter().map(|it| it.as_int().unwrap_or(1));
        all.fold(1i64, i64::saturating_mul).to_string()
    };
    let dims = spec.dims().map(|it| it.1).chain(["0".to_owned()]);
    let mut holes = names(spec, arch);
    holes.extend([
        ("BUFFER_COUNT", spec.buffers.len().to_string()),
        ("PARAM_COUNT", spec.params.to_string()),
        ("DIM_COUNT", spec.subject.module.dims.len().to_string()),
        ("LAUNCH_COUNT", spec.launches.len().to_string()),
        ("ARCH_NUMBER", arch.sm.to_string()),
        ("ARCH_SUFFIX", arch.suffix.map_or("0".to_owned(), |it| format!("'{it}'"))),
        ("ENTRIES", list(&|it| format!("\"{}\"", it.symbol))),
        ("SHARED", list(&|it| it.shared_bytes.to_string())),
        ("THREADS", list(&threads)),
        ("LARGE_CLUSTER", list(&|it| u8::from(it.large_cluster).to_string())),
        ("DIM_VALUES", dims.collect::<Vec<_>>().join(", ")),
        ("SPANS", spec.buffers.iter().map(span).collect()),
        ("SIZES", spec.launches.iter().map(sizes).collect()),
        ("LAUNCHES", spec.launches.iter().enumerate().map(start).collect()),
    ]);
    holes.extend(more_calls(spec));
    holes.extend(maps::c_holes(spec));
    fill(include_str!("templates/launcher.c"), &holes)
}

/// How kernels are started, and what of the driver not every bundle needs: an older driver may lack it.
fn more_calls(spec: &Spec<'_>) -> [(&'static str, String); 3] {
    let is_early = |it: &&Launch| it.programmatic;
    let (early, plain): (Vec<_>, Vec<_>) = spec.launches.iter().partition(is_early);
    let encode = "  int (*encode)(void *map, unsigned type, unsigned rank, void *start, const uint64_t *dims, const uint64_t *distances,\n                \
                  const uint32_t *box, const uint32_t *steps, unsigned interleave, unsigned swizzle, unsigned promotion,\n                \
                  unsigned fill);\n";
    let launch = "  int (*launch_early)(const void *configuration, handle function, void **arguments, void **extra);\n";
    let wanted = [
        (!spec.maps.is_empty(), encode, ", \"cuTensorMapEncodeTiled\""),
        (!early.is_empty(), launch, ", \"cuLaunchKernelEx\""),
    ];
    let wanted: Vec<_> = wanted.into_iter().filter(|it| it.0).collect();
    let starts = [
        (!plain.is_empty(), include_str!("templates/start.c")),
        (!early.is_empty(), include_str!("templates/start_early.c")),
    ];
    [
        ("MORE_FUNCTIONS", wanted.iter().map(|it| it.1).collect()),
        ("MORE_NAMES", wanted.iter().map(|it| it.2).collect()),
        ("STARTS", starts.into_iter().filter(|it| it.0).map(|it| it.1).collect()),
    ]
}

fn main(spec: &Spec<'_>, arch: &Arch) -> String {
    let buffers = (0..spec.params).map(|n| format!("address[{n}], "));
    let dims = (0..spec.subject.module.dims.len()).map(|n| format!("o->dims[{n}], "));
    let call: String = buffers.chain(dims).collect();
    let mut holes = names(spec, arch);
    holes.retain(|it| it.0 != "OPTIONS");
    holes.push(("CALL", format!("{}_launch(kernel, {call}NULL)", spec.name)));
    let device = fill(include_str!("templates/cuda_device.c"), &holes);
    let image = "    else if (i + 1 < argc && strcmp(argv[i], \"--image\") == 0) o.image = argv[++i];";
    holes.extend([
        ("DEVICE", device),
        ("USAGE", " [--image FILE]".to_owned()),
        ("NO_DEVICE", "77 there is no GPU".to_owned()),
        ("INCLUDES", format!("#include \"{}.h\"\n\n#include <dlfcn.h>", spec.name)),
        ("OPTIONS", image.to_owned()),
    ]);
    fill(include_str!("templates/main.c"), &holes)
}
