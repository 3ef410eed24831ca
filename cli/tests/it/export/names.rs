//! Names of tensors, dimensions, axes and workloads that mean something else where a bundle is compiled.

use std::{fs, path::Path, process::Command};

use super::{call, cc};
use crate::common::tilewright;

/// Names of bundles' own sources, keywords of Rust and Python, macros, functions and types of C's headers and of CUDA.
const NASTY: &str = "kernel context BUFFERS DIMS PARAMS LAUNCHES call ARCH \
    lambda def fn match type self Self None True yield async loop impl crate super dyn \
    EOF BUFSIZ I INT64_MAX INT64_C UINT8_MAX SIZE_MAX EXIT_SUCCESS RAND_MAX F_OK SEEK_SET NAN INFINITY M_PI SIGINT \
    pool worker span all rt ctx buffers dims threads code bad run data image options stream handle cuda this_ \
    read write pipe time index y0 j1 clock intmax_t uint_fast8_t off_t pid_t size st_atime major \
    numpy ctypes pathlib Error len print range tuple list str object \
    float3 int3 uint3 char1 cudaStream_t clock64 syncthreads \
    Kernel Option Result Some Vec String Ok Err std core cudarc candle_core \
    in_A out_A dim_A arg_A A_ A__ _a _ a n1 N1 TW tilewright tilewright_kernel Tw";

/// A workload with tensors, an axis and a dimension of such names, and its schedule.
fn write(folder: &Path, at: usize, words: &[&str]) {
    let [names @ .., output, second, axis, dim] = words else { panic!("there are more than four names") };
    let inputs: Vec<_> =
        names.iter().map(|it| format!("\"{it}\": input(dtype: \"f32\", shape: [\"n\"])")).collect();
    let outputs = format!(
        "\"{output}\": output(dtype: \"f32\", shape: [\"n\"]), \"{second}\": output(dtype: \"f32\", shape: [\"n\"])"
    );
    let terms: Vec<_> = names.iter().map(|it| format!("{it}[{axis}]")).collect();
    let workload = format!(
        "workload(name: \"{name}\", about: \"Names.\", params: {{\"n\": size(default: 64)}}, axes: {{\"{axis}\": \"n\"}}, \
         tensors: {{{}, {outputs}}}, stages: [\"{output}[{axis}] = {}\", \"{second}[{axis}] = {}\"])",
        inputs.join(", "),
        terms.join(" + "),
        terms.join(" * "),
        name = names[0].to_owned() + "_",
    );
    fs::write(folder.join(format!("{at}.workload.ron")), workload).unwrap();
    let schedule = format!(
        "schedule(workload: \"./{at}.workload.ron\", target: \"cpu\", params: {{\"n\": \"{dim}\"}}, \
         steps: [split(loop: \"{axis}\", into: {{\"outer\": None, \"inner\": 4}}), parallel(loop: \"outer\")])"
    );
    fs::write(folder.join(format!("{at}.ron")), schedule).unwrap();
    let schedule = format!(
        "schedule(workload: \"./{at}.workload.ron\", target: \"cuda:sm_80\", params: {{\"n\": \"{dim}\"}}, steps: \
         [bind(loop: \"{axis}\", axis: \"blockIdx.x\"), bind(loop: \"{axis}_{second}\", axis: \"blockIdx.x\")])"
    );
    fs::write(folder.join(format!("{at}_cuda.ron")), schedule).unwrap();
}

#[test]
fn no_name_breaks_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words: Vec<_> = NASTY.split_whitespace().collect();
    // Every name is an input once, and some are outputs, axes and dimensions.
    for at in (0..words.len()).step_by(20) {
        let words: Vec<_> = words.iter().copied().cycle().skip(at).take(24).collect();
        write(folder, at, &words);
        let (script, cpu) = (format!("{at}.ron"), format!("{at}"));
        let told = tilewright(folder, &["export", &script, "--out", &cpu]);
        assert!(told.ends_with("exit code 0"), "{words:?}: {told}");
        let bundle = folder.join(&cpu);
        let name = format!("tilewright_{}_", words[0]);
        cc(&bundle, &format!("-o verify main.c reference.c {name}.c {name}_kernel.c"));
        let out = call(&bundle, "verify", &[&format!("{}=9", words[23])]);
        assert!(out.status.success(), "{words:?}: {out:?}");
        rust(&bundle, &name);
        python(&bundle, &name);
        let (script, cuda) = (format!("{at}_cuda.ron"), format!("{at}_cuda"));
        let told = tilewright(folder, &["export", &script, "--out", &cuda, "--source-only"]);
        assert!(told.ends_with("exit code 0"), "{words:?}: {told}");
        cc(&folder.join(&cuda), &format!("-o verify main.c reference.c {name}.c"));
    }
}

/// The example in Rust builds against the library, and runs.
fn rust(bundle: &Path, name: &str) {
    let make =
        Command::new("make").args(["-s", "-C"]).arg(bundle).arg("CFLAGS=-O0 -pthread").output().unwrap();
    assert!(make.status.success(), "{make:?}");
    let library = format!("static={name}");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let arguments = ["--edition", "2024", "-L", ".", "-l", &library, "-l", "m", "example.rs"];
    let out = Command::new(rustc).args(arguments).current_dir(bundle).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = call(bundle, "example", &[]);
    assert!(String::from_utf8_lossy(&out.stdout).ends_with("returned Some(0)\n"), "{out:?}");
}

/// The module for NumPy is Python, where there is one to say so.
fn python(bundle: &Path, name: &str) {
    let Ok(out) = Command::new("python3")
        .args(["-m", "py_compile", &format!("{name}.py")])
        .current_dir(bundle)
        .output()
    else {
        eprintln!("skipped: there is no python3");
        return;
    };
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
