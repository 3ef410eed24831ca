//! The module for NumPy. `TILEWRIGHT_PYTHON` names a Python that has it; `TILEWRIGHT_REQUIRE_NUMPY=1` makes its lack a failure.

use std::{env, ffi::OsString, fs, path::Path, process::Command};

use super::call;
use crate::common::tilewright;

/// A Python with NumPy.
fn python() -> Option<OsString> {
    let python = env::var_os("TILEWRIGHT_PYTHON").unwrap_or_else(|| "python3".into());
    let found =
        Command::new(&python).args(["-c", "import numpy"]).output().is_ok_and(|it| it.status.success());
    let required = env::var_os("TILEWRIGHT_REQUIRE_NUMPY").is_some_and(|it| it == "1");
    assert!(found || !required, "TILEWRIGHT_REQUIRE_NUMPY is set, and {} has no NumPy", python.display());
    if !found {
        eprintln!("skipped: {} has no NumPy", python.display());
    }
    found.then_some(python)
}

/// Two outputs, a scalar, an input of a narrow type, sizes that are known at the call, one of them from no shape alone.
const WORKLOAD: &str = r#"workload(
    name: "many",
    about: "Y = s X + bias in f32, and the sums of its rows.",
    params: {"m": size(default: 8), "n": size(default: 8)},
    axes: {"i": "m", "j": "n"},
    tensors: {
        "X": input(dtype: "f16", shape: ["m", "n"]),
        "s": input(dtype: "f32", shape: []),
        "bias": input(dtype: "f64", shape: ["n"]),
        "Y": output(dtype: "f32", shape: ["m", "n"]),
        "sums": output(dtype: "f32", shape: ["m"]),
    },
    stages: ["Y[i, j] = f32(X[i, j]) * s[] + f32(bias[j])", "sums[i] += Y[i, j]"],
)
"#;

const PROGRAM: &str = r#"
import numpy
import many

x = numpy.arange(12, dtype="float16").reshape(3, 4)
s = numpy.array(2, "float32")
bias = numpy.array([1, 2, 3, 4], "float64")
y, sums = many.run(x, s, bias)
assert (y == 2 * x.astype("float32") + bias).all() and (sums == y.sum(axis=1)).all(), (y, sums)
mine = numpy.zeros((3, 4), "float32")
assert many.run(x, s, bias, mine, threads=1)[0] is mine and (mine == y).all()
assert (many.run(x[1:], s, bias)[0] == y[1:]).all()

frozen = mine.copy()
frozen.flags.writeable = False
odd = numpy.frombuffer(bytes(25), "uint8")[1:].view("float16").reshape(3, 4)
cases = {
    "a list": lambda: many.run([1], s, bias),
    "no output's type": lambda: many.run(x, s, bias, mine.astype("float64")),
    "another type": lambda: many.run(x.astype("float32"), s, bias),
    "another order of bytes": lambda: many.run(x.astype(">f2"), s, bias),
    "another shape": lambda: many.run(x, s, bias[:3]),
    "another rank": lambda: many.run(x[0], s, bias),
    "no scalar": lambda: many.run(x, bias[:1].astype("float32"), bias),
    "columns first": lambda: many.run(numpy.asfortranarray(x), s, bias),
    "every other row": lambda: many.run(x[::2], s, bias),
    "read only": lambda: many.run(x, s, bias, frozen),
    "misaligned": lambda: many.run(odd, s, bias),
    "no rows": lambda: many.run(x[:0], s, bias),
    "a size that is none": lambda: many.run(x, s, bias, dim_m="3"),
    "a size of nothing here": lambda: many.run(x, s, bias, dim_m=4),
    "threads": lambda: many.run(x, s, bias, threads=1 << 32),
    "an argument too few": lambda: many.run(x, s),
    "overlap": lambda: many.run(x, s, bias, mine, mine[:, 0].ravel() if False else mine.reshape(-1)[:3]),
}
for what, case in cases.items():
    try:
        case()
        print(f"{what}: no error")
    except Exception as err:
        print(f"{what}: {type(err).__name__}: {err}")
"#;

#[test]
fn arrays_are_checked_and_results_right() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = export(folder.path());
    let without = run(&python, &bundle);
    assert!(
        without.contains("ImportError") && without.contains("run `make shared` in its folder"),
        "{without}"
    );
    let make = Command::new("make")
        .args(["-s", "shared", "CFLAGS=-O1 -pthread"])
        .current_dir(&bundle)
        .output()
        .unwrap();
    assert!(make.status.success(), "{make:?}");
    insta::assert_snapshot!(run(&python, &bundle));
}

/// The same bundle in C: what `make check` runs.
#[test]
fn several_outputs_and_a_scalar() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = export(folder.path());
    super::cc(&bundle, "-fsanitize=address,undefined -o verify main.c reference.c many.c many_kernel.c");
    for size in ["m=1", "m=7"] {
        let out = call(&bundle, "verify", &[size, "n=3"]);
        assert!(out.status.success(), "{out:?}");
    }
}

fn export(folder: &Path) -> std::path::PathBuf {
    fs::write(folder.join("many.workload.ron"), WORKLOAD).unwrap();
    let schedule = r#"schedule(workload: "./many.workload.ron", target: "cpu", params: {"m": "m", "n": "n"}, steps: [])"#;
    fs::write(folder.join("many.ron"), schedule).unwrap();
    let told = tilewright(folder, &["export", "many.ron", "--out", "bundle", "--name", "many"]);
    assert!(told.ends_with("exit code 0"), "{told}");
    folder.join("bundle")
}

fn run(python: &OsString, bundle: &Path) -> String {
    fs::write(bundle.join("program.py"), PROGRAM).unwrap();
    let out = Command::new(python).args(["-B", "program.py"]).current_dir(bundle).output().unwrap();
    [out.stdout, out.stderr].map(|it| String::from_utf8(it).unwrap()).concat()
}
