//! Several bundles in one program, which has names of its own.

use std::{fs, path::Path, process::Command};

use super::{call, script};
use crate::common::tilewright;

/// Exports workloads, a bundle each, into folders of their names.
fn export_all(folder: &Path, bundles: &[(&str, &str, &str)], more: &[&str]) {
    for (name, workload, params) in bundles {
        let steps =
            if more.is_empty() { "parallel(loop: \"i\")" } else { "bind(loop: \"i\", axis: \"blockIdx.x\")" };
        let text = format!(
            "schedule(workload: \"{workload}\", target: \"cpu\", params: {params}, steps: [{steps}])"
        );
        fs::write(folder.join(format!("{name}.ron")), text).unwrap();
        let script = format!("{name}.ron");
        let told = tilewright(folder, &[&["export", &script, "--out", name, "--name", name], more].concat());
        assert!(told.ends_with("exit code 0"), "{told}");
    }
}

fn make(folder: &Path, goal: &str) {
    let options = "CFLAGS=-std=gnu11 -O1 -Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-parameter -Wno-psabi -pthread";
    let out = Command::new("make").args(["-s", "-C"]).arg(folder).args([goal, options]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Compiles and links; what the compiler said, if it refused.
fn link(folder: &Path, compiler: &str, arguments: &[&str]) -> Result<(), String> {
    let out = Command::new(compiler).args(arguments).current_dir(folder).output().unwrap();
    if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
}

const BUNDLES: [(&str, &str, &str); 5] = [
    ("small", "matmul", r#"{"m": 6, "n": 6, "k": 6}"#),
    ("large", "matmul", r#"{"m": 11, "n": 12, "k": 13}"#),
    ("precise", "matmul", r#"{"m": 6, "n": 6, "k": 6, "dtype": "f64"}"#),
    ("open_ended", "matmul", r#"{"m": "m", "n": "n", "k": "depth"}"#),
    ("sums", "row_sum", r#"{"m": 5, "n": 7}"#),
];

/// A program that calls all five, has functions of the names that occur inside bundles, and tells what is wrong.
const PROGRAM: &str = r#"
#include "large.h"
#include "open_ended.h"
#include "precise.h"
#include "small.h"
#include "sums.h"
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
#define MINE(name) int name(void); int name(void) { abort(); }
MINE(matmul) MINE(row_sum) MINE(tilewright_matmul) MINE(check) MINE(worker) MINE(alone) MINE(together) MINE(grow)
MINE(cores) MINE(take_iterations) MINE(tw_matmul_i_1) MINE(tw_matmul) MINE(small_matmul) MINE(small_kernel)
extern int pool, is_inside;
int pool = 1, is_inside = 1;
#ifdef __cplusplus
}
#endif

static int wrong = 0;
static void expect(const char *what, double got, double expected) {
  if (got == expected) return;
  printf("%s: %g is not %g\n", what, got, expected);
  wrong++;
}

#define MATMUL(type, name, M, N, K, ...) \
  { \
    type a[M * K], b[K * N], c[M * N]; \
    for (int i = 0; i < M * K; i++) a[i] = (type)(i % 7 - 3); \
    for (int i = 0; i < K * N; i++) b[i] = (type)(i % 5 - 2); \
    for (int i = 0; i < M * N; i++) c[i] = -1; \
    expect(#name " returned", name(a, b, c, ##__VA_ARGS__, 2), 0); \
    for (int i = 0; i < M; i++) \
      for (int j = 0; j < N; j++) { \
        type sum = 0; \
        for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j]; \
        expect(#name, c[i * N + j], sum); \
      } \
  }

int main(void) {
  MATMUL(float, small, 6, 6, 6)
  MATMUL(float, large, 11, 12, 13)
  MATMUL(double, precise, 6, 6, 6)
  MATMUL(float, open_ended, 3, 4, 5, 3, 4, 5)
  float x[5 * 7], y[5];
  for (int i = 0; i < 35; i++) x[i] = (float)i;
  expect("sums returned", sums(x, y, 0), 0);
  for (int i = 0; i < 5; i++) expect("sums", y[i], 7 * (7 * i + 3));
  expect("a code", sums(NULL, y, 0), SUMS_NULL);
  puts(wrong ? "WRONG" : "OK");
  return wrong != 0;
}
"#;

#[test]
fn five_bundles_in_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    export_all(folder, &BUNDLES, &[]);
    fs::write(folder.join("program.c"), PROGRAM).unwrap();
    fs::write(folder.join("program.cpp"), PROGRAM).unwrap();
    for (name, ..) in BUNDLES {
        make(&folder.join(name), &format!("lib{name}.a"));
        make(&folder.join(name), "shared");
    }
    let includes = BUNDLES.map(|it| format!("-I{}", it.0));
    let archives = BUNDLES.map(|it| format!("{0}/lib{0}.a", it.0));
    let shared =
        BUNDLES.map(|it| format!("{}/{0}/lib{0}.so", it.0).replacen(it.0, &folder.display().to_string(), 1));
    for (compiler, source) in [("cc", "program.c"), ("c++", "program.cpp")] {
        // Symbols of the program come before those of libraries that are loaded: `-rdynamic` shows them all to these.
        for (libraries, how) in [(&archives, "-pthread"), (&shared, "-rdynamic")] {
            let arguments: Vec<_> = ["-Wall", "-Wextra", "-Werror", how, "-o", "program", source]
                .into_iter()
                .chain(includes.iter().chain(libraries).map(String::as_str))
                .chain(["-lm", "-pthread"])
                .collect();
            link(folder, compiler, &arguments).unwrap();
            let out = call(folder, "program", &[]);
            assert!(out.status.success(), "{compiler} {libraries:?}: {out:?}");
        }
    }
}

/// Nothing of a library is to be seen but what its header declares.
#[test]
fn a_library_shows_its_interface_alone() {
    let folder = tempfile::tempdir().unwrap();
    export_all(folder.path(), &BUNDLES[..1], &[]);
    let small = folder.path().join("small");
    make(&small, "shared");
    let out = Command::new("nm")
        .args(["-D", "--defined-only", "libsmall.so"])
        .current_dir(&small)
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let symbols = text.lines().filter_map(|it| it.split(' ').next_back());
    let (hashed, plain): (Vec<_>, Vec<_>) = symbols.partition(|it| it.len() == "small_".len() + 12);
    assert_eq!((hashed.len(), plain), (1, vec!["small", "small_error"]));
}

/// Two bundles of one name are found out by the compiler or by the linker, and never mixed up.
#[test]
fn bundles_of_one_name_do_not_link() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (at, size) in [("a", 8), ("b", 16)] {
        let size = format!("m={size}");
        let script = script("softmax_cpu");
        let told = tilewright(folder, &["export", &script, "--param", &size, "--out", at]);
        assert!(told.ends_with("exit code 0"), "{told}");
        make(&folder.join(at), "libtilewright_softmax.a");
        let text = format!(
            "#include \"{at}/tilewright_softmax.h\"\nint {at}(void);\nint {at}(void) {{ return tilewright_softmax(0, 0, 0); }}\n"
        );
        fs::write(folder.join(format!("{at}.c")), text).unwrap();
    }
    fs::write(folder.join("main.c"), "int a(void);\nint b(void);\nint main(void) { return a() + b(); }\n")
        .unwrap();
    fs::write(folder.join("both.c"), "#include \"a.c\"\n#include \"b.c\"\n").unwrap();
    let told = link(folder, "cc", &["-c", "both.c"]).unwrap_err();
    assert!(told.contains("two bundles are called `tilewright_softmax`"), "{told}");
    let archives = ["a/libtilewright_softmax.a", "b/libtilewright_softmax.a"];
    let arguments = [&["main.c", "a.c", "b.c"][..], &archives, &["-lm", "-pthread"]].concat();
    let told = link(folder, "cc", &arguments).unwrap_err();
    assert!(told.contains("multiple definition") && told.contains("tilewright_softmax"), "{told}");
}

/// What launchers need of the driver: it tells what is launched.
const DRIVER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int context;
static struct { const char *image; char name[64]; } functions[16];
static int count;
int cuCtxGetCurrent(void **out) { *out = &context; return 0; }
int cuCtxGetDevice(int *out) { *out = 0; return 0; }
int cuDeviceGetAttribute(int *out, int which, int device) { *out = which == 75 ? 8 : which == 76 ? 0 : 1 << 17; return device; }
int cuModuleLoadData(void **out, const void *image) { *out = (void *)image; return 0; }
int cuModuleUnload(void *module) { return module == NULL; }
int cuModuleGetFunction(void **out, void *module, const char *name) {
  functions[count].image = module;
  strncpy(functions[count].name, name, 63);
  *out = &functions[count++];
  return 0;
}
int cuFuncGetAttribute(int *out, int which, void *function) { *out = which == 0 ? 1024 : 0; return function == NULL; }
int cuFuncSetAttribute(void *function, int which, int value) { return function == NULL || which < 0 || value < 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  const int at = (int)((char *)function - (char *)functions) / (int)sizeof *functions;
  printf("%s: %s on %ux%ux%u blocks of %ux%ux%u, %llx first\n", functions[at].image, functions[at].name, gx, gy, gz, bx, by, bz,
         (unsigned long long)*(uint64_t *)arguments[0]);
  return shared != 0 || stream != NULL || extra != NULL;
}
int cuMemAlloc_v2(uint64_t *out, size_t bytes) { *out = 1 << 30; return bytes == 0; }
int cuMemFree_v2(uint64_t address) { return address == 0; }
int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t at) { *base = at & ~0xfffffULL; *bytes = 1 << 20; return 0; }
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void *stream) { return at == 0 || value || !bytes || stream; }
"#;

const LAUNCHES: &str = r#"
#include "large.h"
#include "open_ended.h"
#include "precise.h"
#include "small.h"
#include "sums.h"
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
#define MINE(name) int name(void); int name(void) { abort(); }
MINE(matmul) MINE(row_sum) MINE(tilewright_matmul) MINE(driver) MINE(find_driver) MINE(prepare) MINE(start) MINE(check)
MINE(runs_on) MINE(is_there) MINE(make_workspace) MINE(launch) MINE(cuLaunchKernel) MINE(cuModuleLoadData)
extern int cuda, last_code, entries;
int cuda = 1, last_code = 1, entries = 1;
#ifdef __cplusplus
}
#endif

#define RUN(name, ...) \
  { \
    name *it; \
    const int opened = name##_open(#name, &it); \
    const int launched = opened != 0 ? opened : name##_launch(it, __VA_ARGS__, NULL); \
    printf("%s\n", name##_error(launched)); \
    if (opened == 0) name##_close(it); \
  }

int main(void) {
  RUN(small, 0x100000, 0x200000, 0x300000)
  RUN(large, 0x400000, 0x500000, 0x600000)
  RUN(precise, 0x700000, 0x800000, 0x900000)
  RUN(open_ended, 0xa00000, 0xb00000, 0xc00000, 3, 4, 5)
  RUN(sums, 0xd00000, 0xe00000)
  RUN(sums, 0xd00000, 0xd00004)
  RUN(sums, 0, 0xd00004)
  RUN(sums, 0xd00001, 0xe00004)
  RUN(open_ended, 0xa00000, 0xb00000, 0xc00000, 0, 4, 5)
  sums *none = NULL;
  printf("%s\n", sums_error(sums_open(NULL, &none)));
  printf("%s\n", sums_error(sums_open("", NULL)));
  printf("%s\n", sums_error(sums_launch(NULL, 1, 2, NULL)));
  sums_close(NULL);
  return 0;
}
"#;

#[test]
fn five_launchers_in_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    export_all(folder, &BUNDLES, &["--target", "cuda:sm_80", "--source-only"]);
    fs::write(folder.join("driver.c"), DRIVER).unwrap();
    link(folder, "cc", &["-shared", "-fPIC", "-o", "libcuda.so.1", "driver.c"]).unwrap();
    fs::write(folder.join("program.c"), LAUNCHES).unwrap();
    fs::write(folder.join("program.cpp"), LAUNCHES).unwrap();
    for (name, ..) in BUNDLES {
        make(&folder.join(name), &format!("lib{name}.a"));
        make(&folder.join(name), "shared");
    }
    let includes = BUNDLES.map(|it| format!("-I{}", it.0));
    let mut said = vec![];
    for (compiler, source, end) in
        [("cc", "program.c", "a"), ("c++", "program.cpp", "a"), ("cc", "program.c", "so")]
    {
        let libraries = BUNDLES.map(|it| format!("{}/{1}/lib{1}.{end}", folder.display(), it.0));
        let arguments: Vec<_> = ["-Wall", "-Wextra", "-Werror", "-rdynamic", "-o", "program", source]
            .into_iter()
            .chain(includes.iter().chain(&libraries).map(String::as_str))
            .chain(["-ldl"])
            .collect();
        link(folder, compiler, &arguments).unwrap();
        let out = Command::new(folder.join("program")).env("LD_LIBRARY_PATH", folder).output().unwrap();
        assert!(out.status.success(), "{compiler} {end}: {out:?}");
        said.push(String::from_utf8(out.stdout).unwrap());
    }
    insta::assert_snapshot!(said[0]);
    assert!(said.iter().all(|it| *it == said[0]), "{said:#?}");
}
