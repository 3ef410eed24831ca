//! Crates of several kernels: what a call takes, what it refuses, and that two of them are in one program.

use std::{env, fs, path::Path, process::Command};

use super::maps::{make_driver, told};
use crate::{
    common::{run, tilewright},
    cuda::has_nvrtc,
};

const SCRIPTS: [(&str, &str); 3] = [
    ("any.ron", r#"{"m": "m", "n": "n", "k": "depth"}"#),
    ("tile.ron", r#"{"m": 16, "n": 32, "k": 8}"#),
    ("row.ron", r#"{"m": 1, "n": 32, "k": 8}"#),
];

fn write_scripts(folder: &Path, target: &str) {
    let steps = if target == "cpu" {
        r#"reorder(order: ["i", "k", "j"]), parallel(loop: "i")"#
    } else {
        r#"bind(loop: "i", axis: "blockIdx.x"), bind(loop: "j", axis: "threadIdx.x")"#
    };
    for (name, params) in SCRIPTS {
        // On a GPU a block has at most 1024 threads, so that `n` has to be a number.
        let params =
            if target == "cpu" { params.to_owned() } else { params.replace("\"n\": \"n\"", "\"n\": 32") };
        let text = format!(
            "schedule(workload: \"matmul\", target: \"{target}\", params: {params}, steps: [{steps}])"
        );
        fs::write(folder.join(name), text).unwrap();
    }
}

fn export(folder: &Path, arguments: &[&str]) -> String {
    tilewright(folder, &[&["export", "any.ron", "tile.ron", "row.ron"], arguments].concat())
}

/// Calls both crates with what they take and what they do not.
const PROGRAM: &str = r#"
use products::{Error, Selected, Tensor, TensorMut};

fn told(res: Result<Selected, Error>) -> String {
    match res {
        Ok(it) => {
            let passed: Vec<_> = it.refused.iter().map(|it| format!("\n    not {}: {}", it.kernel.name, it.why)).collect();
            format!("{}{}", it.kernel.name, passed.concat())
        }
        Err(err) => format!("refused: {err}"),
    }
}

/// A product of these sizes by the kernel that is taken, and whether it is right.
fn product(m: usize, n: usize, k: usize) -> String {
    let a: Vec<f32> = (0..m * k).map(|it| (it % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..k * n).map(|it| (it % 5) as f32 - 2.0).collect();
    let mut c = vec![f32::NAN; m * n];
    let shapes = ([m, k], [k, n], [m, n]);
    let (ta, tb) = (Tensor::new(&a, &shapes.0), Tensor::new(&b, &shapes.1));
    let words = told(products::run(ta, tb, TensorMut::new(&mut c, &shapes.2), 2));
    for i in 0..m {
        for j in 0..n {
            let sum: f32 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            assert_eq!(c[i * n + j], sum, "{m} x {n} x {k} at {i}, {j}");
        }
    }
    // The other crate has the same kernels under other names.
    let ta = more::Tensor::new(&a, &shapes.0);
    let done = more::run(ta, more::Tensor::new(&b, &shapes.1), more::TensorMut::new(&mut c, &shapes.2), 0).unwrap();
    format!("{m} x {n} x {k}: {words}; {}", done.kernel.name)
}

fn main() {
    println!("{}\n{}\n{}", product(16, 32, 8), product(1, 32, 8), product(5, 3, 2));
    let data = vec![1.0_f32; 16 * 32];
    let mut out = vec![0.0_f32; 16 * 32];
    let (a, b) = (Tensor::new(&data[..128], &[16, 8]), Tensor::new(&data[..256], &[8, 32]));
    let mut call = |a, b, shape: &[usize], threads| told(products::run(a, b, TensorMut::new(&mut out[..], shape), threads));
    println!("transposed: {}", call(a.with_strides(&[1, 16]), b, &[16, 32], 1));
    println!("row-major: {}", call(a.with_strides(&[8, 1]), b, &[16, 32], 1));
    println!("rank: {}", call(a, b, &[512], 1));
    println!("shape: {}", call(a, b, &[32, 16], 1));
    println!("length: {}", call(Tensor::new(&data[..127], &[16, 8]), b, &[16, 32], 1));
    println!("empty: {}", call(Tensor::new(&data[..0], &[0, 8]), b, &[0, 32], 1));
    println!("threads: {}", call(a, b, &[16, 32], 2000));
    let tile = products::table::find("products_tile").unwrap();
    let five = (Tensor::new(&data[..40], &[5, 8]), TensorMut::new(&mut out[..160], &[5, 32]));
    println!("this one: {}", told(products::run_with(tile, five.0, b, five.1, 1)));
    let strided = Tensor::new(&data[..40], &[5, 8]).with_strides(&[9, 1]);
    println!("no other: {}", told(products::run_with(tile, strided, b, TensorMut::new(&mut out[..160], &[5, 32]), 1)));
    for it in &products::table::TABLE {
        println!("{} {:?} {} {}", it.name, it.shapes, it.is_general, it.source.len());
    }
}
"#;

/// Builds with cargo, offline; warnings are errors.
fn cargo(folder: &Path, words: &[&str]) -> String {
    // That of the bundles with tensor maps, so that cudarc is compiled once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bundles/target");
    let out = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(words)
        .args(["--quiet", "--offline"])
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", "-D warnings")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_call_takes_the_first_kernel_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_scripts(folder, "cpu");
    let mut exported = vec![export(folder, &["--out", "products", "--name", "products", "--verify"])];
    exported.push(export(folder, &["--out", "more", "--name", "more"]));
    assert!(exported.iter().all(|it| it.ends_with("exit code 0")), "{exported:#?}");
    assert_eq!(exported[0].matches("\nOK").count(), 3, "each kernel was run: {}", exported[0]);
    fs::create_dir(folder.join("program")).unwrap();
    let manifest = "[package]\nname = \"program\"\nedition = \"2024\"\n[dependencies]\nproducts = { path = \"../products\" }\nmore = { path = \
                    \"../more\" }\n[workspace]\n[[bin]]\nname = \"program\"\npath = \"main.rs\"\n";
    fs::write(folder.join("program/Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("program/main.rs"), PROGRAM).unwrap();
    insta::assert_snapshot!(cargo(&folder.join("program"), &["run"]));
}

#[test]
fn kernels_that_differ_in_more_than_sizes_are_no_crate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_scripts(folder, "cpu");
    let half = r#"schedule(workload: "matmul", target: "cpu", params: {"m": 8, "n": 8, "k": 8, "dtype": "f16"}, steps: [])"#;
    let sum = r#"schedule(workload: "row_sum", target: "cpu", params: {"m": 8, "n": 8}, steps: [])"#;
    let gpu = r#"schedule(workload: "matmul", target: "cuda:sm_80", params: {"m": 8, "n": 8, "k": 8},
        steps: [bind(loop: "i", axis: "blockIdx.x")])"#;
    // The size of a parameter is twice a dimension, which is the size of none.
    let twice = r#"schedule(workload: "./twice.tw", target: "cpu", steps: [])"#;
    let text = "func twice(m)\n  in A: f32[m*2]\n  out B: f32[m*2]\n\n  for i in 0..m*2\n    block B(vi: m*2 = i)\n      B[vi] = A[vi]\n";
    fs::write(folder.join("twice.tw"), text).unwrap();
    let mut told = vec![];
    for (name, text) in [("half.ron", half), ("sum.ron", sum), ("gpu.ron", gpu), ("twice.ron", twice)] {
        fs::write(folder.join(name), text).unwrap();
        told.push(tilewright(folder, &["export", "tile.ron", name, "--out", "out"]));
    }
    fs::write(folder.join("tile.ron"), twice).unwrap();
    told.push(tilewright(folder, &["export", "tile.ron", "--crate", "--out", "out"]));
    told.push(tilewright(folder, &["export", "gpu.ron", "half.ron", "--out", "out", "--source-only"]));
    insta::assert_snapshot!(told.join("\n"));
    assert!(!folder.join("out").exists());
}

/// Launches what fits through a driver that tells what it is told, and says what was refused before it was asked.
const LAUNCHES: &str = r#"
use products::{Error, Kernels, Selected, Tensor, TensorMut};

fn told(what: &str, res: Result<Selected, Error>) {
    match res {
        Ok(it) => println!("{what}: {} after {}", it.kernel.name, it.refused.len()),
        Err(err) => println!("{what}: {err}"),
    }
}

fn main() {
    let context = cudarc::driver::CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let mut kernels = Kernels::new(&context).unwrap();
    println!("{:?}", kernels.device());
    let data = stream.alloc_zeros::<f32>(4096).unwrap();
    let mut out = stream.alloc_zeros::<f32>(4096).unwrap();
    for m in [16, 5] {
        let (a, b, mut c) = (data.slice(..m * 8), data.slice(..8 * 32), out.slice_mut(..m * 32));
        let (of_a, of_c) = ([m, 8], [m, 32]);
        let (a, b) = (Tensor::new(&a, &of_a), Tensor::new(&b, &[8, 32]));
        told("launched", kernels.launch(&stream, a, b, TensorMut::new(&mut c, &of_c)));
        told("strides", kernels.launch(&stream, a.with_strides(&[1, 99]), b, TensorMut::new(&mut c, &of_c)));
        let tile = products::table::find("products_tile").unwrap();
        told("this one", kernels.launch_with(tile, &stream, a, b, TensorMut::new(&mut c, &of_c)));
    }
}
"#;

#[test]
fn a_crate_for_gpus_asks_the_driver_for_what_fits() {
    // A folder that stays, so that cudarc is compiled once.
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates_cuda");
    fs::create_dir_all(folder).unwrap();
    if !has_nvrtc(folder) {
        return;
    }
    make_driver(folder);
    let mut said = vec![];
    for (target, driver) in [("cuda:sm_90", "13000"), ("cuda:sm_90", "11080"), ("cuda:sm_80", "13000")] {
        write_scripts(folder, target);
        let words = "export any.ron tile.ron row.ron --out products --name products --force";
        let exported = run(folder, &words.split(' ').collect::<Vec<_>>(), &[]);
        assert!(exported.ends_with("exit code 0"), "{exported}");
        let crate_folder = folder.join("products");
        fs::write(crate_folder.join("told.rs"), LAUNCHES).unwrap();
        // It lies in the folder of this workspace, whose member it is not.
        let manifest = fs::read_to_string(crate_folder.join("Cargo.toml")).unwrap();
        let bin = "\n[[bin]]\nname = \"told_crate\"\npath = \"told.rs\"\n\n[workspace]\n";
        fs::write(crate_folder.join("Cargo.toml"), manifest + bin).unwrap();
        cargo(&crate_folder, &["build"]);
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bundles/target/debug/told_crate");
        let counts = [("MAPS", "0".to_owned()), ("ARGUMENTS", "3".to_owned()), ("DRIVER", driver.to_owned())];
        said.push(format!("{target} with a driver of {driver}\n{}", told(&program, folder, &[], &counts)));
    }
    insta::assert_snapshot!(said.join("\n"));
}
