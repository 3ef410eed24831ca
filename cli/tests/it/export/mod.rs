//! Exported bundles: what is in them, and that they build, run and refuse without tilewright.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod crates;
mod linked;
mod maps;
mod names;
mod python;
mod types;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::common::tilewright;

fn script(name: &str) -> String {
    format!("{}/tests/scripts/{name}.ron", env!("CARGO_MANIFEST_DIR"))
}

/// Exports a script of `tests/scripts` into the folder `bundle` of a new one.
fn export(name: &str, arguments: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let script = script(name);
    let told = tilewright(folder.path(), &[&["export", &script, "--out", "bundle"], arguments].concat());
    assert!(told.ends_with("exit code 0"), "{told}");
    let bundle = folder.path().join("bundle");
    (folder, bundle)
}

/// Compiles C as strictly as users do. The emitted kernel has arguments and vectors that it may not use.
fn cc(folder: &Path, arguments: &str) {
    let native = if cfg!(target_arch = "x86_64") { " -march=native" } else { "" };
    let lax = "-Wno-unused-variable -Wno-unused-parameter -Wno-psabi";
    let strict = format!("-std=c11 -O1 -Wall -Wextra -Werror {lax} -pthread{native}");
    let words = strict.split_whitespace().chain(arguments.split_whitespace());
    let out = Command::new("cc").args(words).args(["-lm", "-ldl"]).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

fn call(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(folder.join(program)).args(arguments).current_dir(folder).output().unwrap()
}

const SOURCES: &str = "main.c reference.c it.c it_kernel.c";

#[test]
fn symbolic_sizes_are_taken_at_call_time() {
    let (_folder, bundle) = export("matmul_symbolic_cpu", &["--name", "it", "--dim", "m=17"]);
    cc(&bundle, &format!("-fsanitize=address,undefined -fno-sanitize-recover=all -o verify {SOURCES}"));
    for sizes in [&[][..], &["m=1", "n=1", "depth=1"], &["m=33", "n=20", "depth=9"]] {
        let out = call(&bundle, "verify", &[sizes, &["--threads", "3"]].concat());
        let told = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && told.ends_with("OK\n"), "{sizes:?}: {out:?}");
    }
    for (wrong, code) in [("m=0", 2), ("m=9223372036854775807", 2), ("k=3", 2)] {
        assert_eq!(call(&bundle, "verify", &[wrong]).status.code(), Some(code), "{wrong}");
    }
}

#[test]
fn tables_and_bits_are_right() {
    for name in ["cross_entropy_cpu", "gemv_int4_cpu"] {
        let (_folder, bundle) = export(name, &["--name", "it"]);
        cc(&bundle, &format!("-fsanitize=address,undefined -fno-sanitize-recover=all -o verify {SOURCES}"));
        let out = call(&bundle, "verify", &[]);
        let told = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && told.ends_with("OK\n"), "{name}: {out:?}");
    }
}

#[test]
fn several_stages_and_a_damaged_kernel() {
    let (_folder, bundle) = export("softmax_cpu", &["--name", "it", "--param", "m=5", "--param", "n=37"]);
    cc(&bundle, &format!("-o verify {SOURCES}"));
    assert_eq!(call(&bundle, "verify", &[]).status.code(), Some(0));
    // A row's sum that forgets what it has so far.
    let kernel = bundle.join("it_kernel.c");
    let text = fs::read_to_string(&kernel).unwrap();
    let damaged = text.replacen("row_sum = (row_sum + ", "row_sum = (0.0f + ", 1);
    let damaged = if damaged == text { text.replacen(" / ", " * ", 1) } else { damaged };
    assert_ne!(damaged, text);
    fs::write(&kernel, damaged).unwrap();
    cc(&bundle, &format!("-o verify {SOURCES}"));
    let out = call(&bundle, "verify", &[]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stdout).contains("are wrong; the element at offset"), "{out:?}");
}

/// Calls with each wrong argument, and what the C function says.
const WRONG: &str = r#"#include "tilewright_matmul.h"
#include <stdio.h>
static float a[16 * 16 + 1], b[16 * 16], c[16 * 16];
static void try(const float *x, const float *y, float *z, int64_t m, int threads) {
  printf("%s\n", tilewright_matmul_error(tilewright_matmul(x, y, z, m, 16, 16, threads)));
}
int main(void) {
  try(a, b, c, 16, 1);
  try(NULL, b, c, 16, 1);
  try((const float *)(const void *)((const char *)a + 1), b, c, 16, 1);
  try(a, b, c, 0, 1);
  try(a, b, c, INT64_MAX / 2, 1);
  try(a, b, a + 8, 16, 1);
  try(a, a, c, 16, 1);
  try(a, b, c, 16, -1);
  return 0;
}
"#;

#[test]
fn wrong_arguments_have_errors_with_names() {
    let (_folder, bundle) = export("matmul_symbolic_cpu", &[]);
    fs::write(bundle.join("wrong.c"), WRONG).unwrap();
    cc(
        &bundle,
        "-fsanitize=address,undefined -o wrong wrong.c tilewright_matmul.c tilewright_matmul_kernel.c",
    );
    let out = call(&bundle, "wrong", &[]);
    insta::assert_snapshot!(String::from_utf8(out.stdout).unwrap());
}

#[test]
fn a_bundle_makes_itself_again() {
    let (folder, bundle) = export("matmul_bias_relu_fused_cpu", &[]);
    let told = tilewright(folder.path(), &["export", "bundle/schedule.ron", "--out", "again"]);
    assert!(told.ends_with("exit code 0"), "{told}");
    let name = |end: &str| format!("tilewright_matmul_bias_relu{end}");
    let named = [name(".c"), name(".h"), name(".py"), name("_kernel.c")];
    for name in named.iter().map(String::as_str).chain(["reference.c", "main.c", "program.tw"]) {
        let of = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(of(&bundle), of(&folder.path().join("again")), "{name}");
    }
}

#[test]
fn nothing_but_bundles_is_overwritten() {
    let (folder, bundle) = export("elementwise_symbolic_cpu", &[]);
    fs::create_dir(folder.path().join("mine")).unwrap();
    fs::write(folder.path().join("mine/notes.txt"), "mine").unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let script = script("elementwise_symbolic_cpu");
    let cases: &[&[&str]] = &[
        &["bundle"],
        &["bundle", "--force"],
        &["mine"],
        &["mine", "--force"],
        &["mine/notes.txt", "--force"],
        &["empty"],
        &["deeper/than/before"],
        &["other", "--dim", "rows=3"],
        &["other", "--source-only"],
        &["other", "--run", "1"],
        &["other", "--verify", "--source-only"],
        &["other", "--name", "two words"],
        &["other", "--name", "lambda"],
        &["other", "--name", "printf"],
    ];
    let told = cases.iter().map(|it| {
        let told = tilewright(folder.path(), &[&["export", &script, "--out"], *it].concat());
        format!("$ tilewright export … --out {}\n{}\n", it.join(" "), told.replace(&script, "SCRIPT"))
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
    assert_eq!(fs::read_to_string(folder.path().join("mine/notes.txt")).unwrap(), "mine");
    let left = fs::read_dir(folder.path()).unwrap().filter(|it| {
        let name = it.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(left.count(), 0, "no half-written folder is left");
    assert!(bundle.join("kernel.json").is_file());
}

/// The trial of a log is made again, and is the one of the log.
#[test]
fn a_trial_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let space = "schedule(workload: \"matmul\", target: \"cpu\", params: {\"m\": 24, \"n\": 16, \"k\": 20}, \
                 knobs: {\"ii\": [2, 4]}, steps: [split(loop: \"i\", into: {\"io\": None, \"ii\": \"ii\"})])";
    fs::write(folder.path().join("space.ron"), space).unwrap();
    let tune = ["tune", "space.ron", "--trials", "2", "--workers", "1", "--log", "it.twlog"];
    let told = tilewright(folder.path(), &tune);
    assert!(told.ends_with("exit code 0"), "{told}");
    let out = tilewright(folder.path(), &["--json", "export", "it.twlog", "--out", "best", "--verify"]);
    assert!(out.contains("\"ok\":true,\"out\":\"best\"") && out.ends_with("exit code 0"), "{out}");
    let manifest = fs::read_to_string(folder.path().join("best/kernel.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert!(manifest["provenance"]["log"]["trial"].is_u64(), "{manifest}");
    let out = tilewright(folder.path(), &["export", "it.twlog:1", "--out", "one"]);
    assert!(out.contains("trial 1 of run"), "{out}");
    let out = tilewright(folder.path(), &["export", "it.twlog:7", "--out", "seven"]);
    assert!(out.contains("it.twlog has no trial 7"), "{out}");
}

/// What a GPU bundle has without NVRTC: the C launcher builds, and says that there is no GPU.
#[test]
fn the_c_launcher_of_a_gpu_bundle() {
    let (_folder, bundle) = export("splitk_semaphore_cuda", &["--target", "cuda:sm_80", "--source-only"]);
    let mut manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(bundle.join("kernel.json")).unwrap()).unwrap();
    let names: Vec<_> = manifest["sha256"].as_object().unwrap().keys().cloned().collect();
    for part in ["sha256", "provenance", "symbol"] {
        manifest[part] = serde_json::Value::Null;
    }
    let manifest = serde_json::to_string_pretty(&manifest).unwrap();
    insta::assert_snapshot!(format!("{}\n\n{manifest}", names.join("\n")));
    cc(&bundle, "-o verify main.c reference.c tilewright_matmul.c");
    let code = call(&bundle, "verify", &["--image", "nothing"]).status.code();
    assert!(code == Some(77) || code == Some(2), "without a GPU 77, with one there is no image: {code:?}");
}
