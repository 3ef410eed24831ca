//! Bundles whose kernels take tensor maps, have roles or start early: their launchers tell the driver what tilewright itself would tell
//! it. The driver is one of ours, which tells what it is told.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use codegen::device::{Launch, MapSpec, MapWords};
use indexmap::IndexMap;
use ir::{Arch, Target};
use tilewright::Plan;

use super::cc;
use crate::{common::run, cuda::has_nvrtc};

/// A rung of a ladder with changes, and the sizes at which it is launched: those of its symbolic dimensions.
struct Case {
    name: &'static str,
    ladder: &'static str,
    rung: &'static str,
    changes: &'static [(&'static str, &'static str)],
    sizes: &'static [&'static [i64]],
}

const SYMBOLIC: (&str, &str) = (r#""m": 4096, "n": 4096, "k": 4096"#, r#""m": "m", "n": "n", "k": 320"#);
const EARLY: (&str, &str) = (
    "        warp_specialize(",
    "        annotate(loop: \"by\", key: \"programmatic_launch\", value: 1),\n        warp_specialize(",
);
const BIND_EARLY: (&str, &str) =
    ("    ],\n)", "        annotate(loop: \"i\", key: \"programmatic_launch\", value: 1),\n    ],\n)");
const SIZES: &[&[i64]] = &[&[250, 250], &[1, 7], &[100_000, 4096]];

const CASES: [Case; 7] = [
    Case { name: "tiles", ladder: "matmul-hopper", rung: "01_tma_wgmma", changes: &[SYMBOLIC], sizes: SIZES },
    Case { name: "fixed", ladder: "matmul-hopper", rung: "01_tma_wgmma", changes: &[], sizes: &[&[]] },
    Case {
        name: "roles",
        ladder: "matmul-hopper",
        rung: "04_warp_specialised",
        changes: &[SYMBOLIC, EARLY],
        sizes: SIZES,
    },
    Case { name: "stored", ladder: "matmul-hopper", rung: "07_store", changes: &[], sizes: &[&[]] },
    Case {
        name: "turns",
        ladder: "matmul-hopper",
        rung: "09_ping_pong",
        changes: &[("bf16", "f16")],
        sizes: &[&[]],
    },
    Case { name: "sums", ladder: "matmul-hopper-i8", rung: "01_store", changes: &[], sizes: &[&[]] },
    Case {
        name: "ahead",
        ladder: "matmul-cuda-f32",
        rung: "01_bind",
        changes: &[("\"cuda\"", "\"cuda:sm_90a\""), BIND_EARLY],
        sizes: &[&[]],
    },
];

/// Where the fake driver has the memory of a buffer.
const fn address(buffer: usize) -> u64 {
    (buffer as u64 + 1) << 50
}

impl Case {
    fn script(&self) -> String {
        let ladders = workloads::ladders();
        let rungs = &ladders.iter().find(|it| it.name == self.ladder).unwrap().rungs;
        let text = &rungs.iter().find(|it| it.name == self.rung).unwrap().text;
        self.changes.iter().fold(text.to_string(), |text, (from, to)| {
            assert!(text.contains(from), "{}: {from}", self.name);
            text.replace(from, to)
        })
    }

    /// Exports it into a folder of its name.
    fn export(&self, folder: &Path, more: &[&str], environment: &[(&str, &str)]) -> PathBuf {
        let script = format!("{}.ron", self.name);
        fs::write(folder.join(&script), self.script()).unwrap();
        let arguments = [&["export", &script, "--out", self.name, "--name", self.name], more].concat();
        let told = run(folder, &arguments, environment);
        assert!(told.ends_with("exit code 0"), "{told}");
        folder.join(self.name)
    }

    /// The launches that tilewright would make itself, for each of the sizes.
    fn launches(&self) -> Vec<Result<Vec<Launch>, codegen::LaunchError>> {
        let target = Target::Cuda(Arch::parse("sm_90a").unwrap());
        let plan = Plan::parse(Path::new("it.ron"), &self.script(), &[]).unwrap();
        let session = plan.schedule(&target, None).unwrap();
        let module = codegen::compile_module(session.func(), &target).unwrap();
        let at = |sizes: &&[i64]| {
            let dims: IndexMap<_, _> = module.dims.iter().cloned().zip(sizes.iter().copied()).collect();
            Ok(codegen::program(&module, &dims, vec![])?.launches)
        };
        self.sizes.iter().map(at).collect()
    }

    /// What the driver is told of them.
    fn expected(&self) -> Vec<String> {
        let text = |it: Result<Vec<Launch>, _>| {
            let all = it.unwrap();
            let maps: String = all.iter().flat_map(|it| &it.maps).map(map_words).collect();
            maps + &all.iter().map(launch_words).collect::<String>() + "no error\n"
        };
        self.launches().into_iter().map(text).collect()
    }

    /// How many maps a kernel takes, and how many arguments after them, for the driver.
    fn counts(&self) -> [(&'static str, String); 2] {
        let first = self.launches().remove(0).unwrap().remove(0);
        let more = first.buffers.len() + first.dims.len();
        [("MAPS", first.maps.len().to_string()), ("ARGUMENTS", more.to_string())]
    }
}

fn numbers<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|it| it.to_string()).collect::<Vec<_>>().join(" ")
}

fn map_words(it: &MapSpec) -> String {
    let words = MapWords::of(it.dtype, it.swizzle).unwrap();
    format!(
        "map of {:#x}: type {}, sizes {}, distances {}, box {}, interleave {}, swizzle {}, promotion {}, fill {}\n",
        address(it.buffer),
        words.data_type.number,
        numbers(it.dims.iter().rev()),
        numbers(it.strides.iter().rev().skip(1)),
        numbers(it.tile.iter().rev()),
        words.interleave.number,
        words.swizzle.number,
        words.promotion.number,
        words.fill.number,
    )
}

fn launch_words(it: &Launch) -> String {
    let ([gx, gy, gz], [bx, by, bz]) = (it.grid, it.block);
    let maps = it.maps.iter().map(|it| format!(" map of {:#x}", address(it.buffer)));
    let buffers = it.buffers.iter().map(|it| format!(" {}", address(*it)));
    let arguments = maps.chain(buffers).chain(it.dims.iter().map(|it| format!(" {it}"))).collect::<String>();
    let how = if it.programmatic { "early" } else { "in turn" };
    format!(
        "{} on {gx}x{gy}x{gz} blocks of {bx}x{by}x{bz} threads with {} bytes, {how}:{arguments}\n",
        it.kernel, it.shared_bytes
    )
}

/// The driver as a library that is found in the folder.
pub(super) fn make_driver(folder: &Path) {
    fs::write(folder.join("driver.c"), include_str!("driver.c")).unwrap();
    cc(folder, "-shared -fPIC -o libcuda.so.1 driver.c");
}

/// What a program says with that driver.
pub(super) fn told(program: &Path, driver: &Path, arguments: &[i64], counts: &[(&str, String)]) -> String {
    let out = Command::new(program)
        .args(arguments.iter().map(ToString::to_string))
        .env("LD_LIBRARY_PATH", driver)
        .envs(counts.iter().map(|(name, it)| (name, it)))
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// A program in C that launches a bundle with sizes from its command line.
fn c_program(case: &Case) -> String {
    let name = case.name;
    let buffers = (0..3).map(|it| format!("UINT64_C({})", address(it)));
    let sizes = (1..=case.sizes[0].len()).map(|it| format!("atoll(argv[{it}])"));
    let arguments = buffers.chain(sizes).collect::<Vec<_>>().join(", ");
    format!(
        "#include \"{name}/{name}.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint {name}_main(char **argv);\n\
         int {name}_main(char **argv) {{\n  {name} *it;\n  (void)argv;\n  int code = {name}_open(\"image\", &it);\n  if (code == 0) \
         code = {name}_launch(it, {arguments}, NULL);\n  puts(strchr({name}_error(code), ' ') + 1);\n  {name}_close(it);\n  \
         return 0;\n}}\n"
    )
}

const MAIN: &str =
    "int NAME_main(char **argv);\nint main(int argc, char **argv) { return argc < 1 || NAME_main(argv); }\n";

/// Builds such a program for some bundles; the last one's sizes are those of the command line.
fn build(folder: &Path, cases: &[&Case], main: &str) {
    let mut sources = vec!["main.c".to_owned()];
    fs::write(folder.join("main.c"), main).unwrap();
    for it in cases {
        let name = it.name;
        fs::write(folder.join(format!("{name}.c")), c_program(it)).unwrap();
        sources.extend([format!("{name}.c"), format!("{name}/{name}.c")]);
    }
    cc(folder, &format!("-o program {}", sources.join(" ")));
}

#[test]
fn the_c_launcher_tells_the_driver_what_tilewright_does() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make_driver(folder);
    for case in &CASES {
        case.export(folder, &["--source-only"], &[]);
        build(folder, &[case], &MAIN.replace("NAME", case.name));
        for (sizes, expected) in case.sizes.iter().zip(case.expected()) {
            let got = told(&folder.join("program"), folder, sizes, &case.counts());
            assert_eq!(got, expected, "{} {sizes:?}", case.name);
        }
    }
    let text = fs::read_to_string(folder.join("roles/kernel.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let page = fs::read_to_string(folder.join("roles/README.md")).unwrap();
    let page: Vec<_> = page.lines().skip_while(|it| !it.contains("tensor maps")).take(8).collect();
    let shown = [&manifest["constraints"], &manifest["launches"]];
    let shown = shown.map(|it| serde_json::to_string_pretty(it).unwrap());
    insta::assert_snapshot!(format!("{}\n\n{}\n", shown.join("\n"), page.join("\n")));
}

#[test]
fn two_bundles_with_maps_in_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make_driver(folder);
    let [tiles, _, roles, ..] = &CASES;
    for it in [tiles, roles] {
        it.export(folder, &["--source-only"], &[]);
    }
    let main = "int tiles_main(char **argv);\nint roles_main(char **argv);\n\
                int main(int argc, char **argv) { return argc < 1 || tiles_main(argv) || roles_main(argv); }\n";
    build(folder, &[tiles, roles], main);
    let got = told(&folder.join("program"), folder, SIZES[0], &tiles.counts());
    assert_eq!(got, tiles.expected().remove(0) + &roles.expected().remove(0));
}

/// Sizes that the copy engine does not take are refused, and nothing is launched.
#[test]
fn sizes_that_no_map_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    make_driver(folder);
    let case = Case { sizes: &[&[1, 1 << 33]], ..CASES[0] };
    let bundle = case.export(folder, &["--source-only"], &[]);
    let own = case.launches().remove(0).unwrap_err().to_string();
    assert!(own.contains("the copy engine takes sizes from 1 to 2^32"), "{own}");
    let words = "the copy engine takes sizes from 1 to 2^32, and rows at distances in bytes that are multiples of 16 below 2^40\n";
    build(folder, &[&case], &MAIN.replace("NAME", case.name));
    let counts = CASES[0].counts();
    assert_eq!(told(&folder.join("program"), folder, case.sizes[0], &counts), words);
    // No schedule leads to rows that are no multiple of 16 bytes; a table that was changed does.
    assert!(edit(&bundle.join("tiles.c"), &[("{INT64_C(2), INT64_C(640)}", "{INT64_C(2), INT64_C(648)}")]));
    build(folder, &[&case], &MAIN.replace("NAME", case.name));
    assert_eq!(told(&folder.join("program"), folder, SIZES[0], &counts), words);
}

/// A program in Rust that does the same through the bundle's crate.
fn rust_program(case: &Case) -> String {
    let (name, count) = (case.name, case.sizes[0].len());
    let sizes = (0..count).map(|it| format!(", dims[{it}]")).collect::<Vec<_>>().concat();
    let buffers = ["a", "b", "mut c"]
        .map(|it| format!("    let {it} = stream.alloc_zeros(sizes.next().unwrap()).unwrap();\n"));
    format!(
        "fn main() {{\n    let dims: Vec<i64> = std::env::args().skip(1).map(|it| it.parse().unwrap()).collect();\n    let dims: \
         [i64; {count}] = dims.try_into().unwrap();\n    let context = cudarc::driver::CudaContext::new(0).unwrap();\n    let \
         stream = context.default_stream();\n    let mut kernel = {name}::Kernel::new(&context).unwrap();\n    let mut sizes = \
         {name}::sizes::elements(&dims).unwrap().into_iter().map(|it| it as usize);\n{}    match kernel.launch(&stream, &a, &b, \
         &mut c{sizes}) {{\n        Ok(()) => println!(\"no error\"),\n        Err(err) => println!(\"{{err}}\"),\n    }}\n}}\n",
        buffers.concat()
    )
}

/// Gives a crate 16 bits for halves, and leaves out its program, which computes with them: what cudarc wants of the crate `half` is no
/// dependency of tilewright's, and a test finds no others.
fn without_half(bundle: &Path) {
    if edit(&bundle.join("Cargo.toml"), &[(", \"f16\"", ""), ("half = \"2\"", "")]) {
        edit(&bundle.join("launcher.rs"), &[("half::bf16", "u16"), ("half::f16", "u16")]);
        fs::write(bundle.join("main.rs"), "fn main() {}\n").unwrap();
    }
}

/// Replaces words of a file; whether it had any of them.
fn edit(path: &Path, words: &[(&str, &str)]) -> bool {
    let text = fs::read_to_string(path).unwrap();
    let new = words.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to));
    fs::write(path, &new).unwrap();
    text != new
}

/// Compiles the crate of a bundle with what is on this machine; warnings are errors.
fn build_crate(bundle: &Path, made: &Path) {
    let out = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--offline"])
        .env("CARGO_TARGET_DIR", made)
        .env("RUSTFLAGS", "-D warnings")
        .current_dir(bundle)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}: {}", bundle.display(), String::from_utf8_lossy(&out.stderr));
}

#[test]
fn the_crate_tells_the_driver_what_tilewright_does() {
    // A folder that stays, so that what the bundles have in common is compiled once, and nothing piles up.
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("bundles");
    fs::create_dir_all(folder).unwrap();
    if !has_nvrtc(folder) {
        return;
    }
    make_driver(folder);
    let made = folder.join("target");
    let program = made.join("debug/told");
    for case in &CASES {
        let bundle = case.export(folder, &["--force"], &[]);
        without_half(&bundle);
        fs::write(bundle.join("told.rs"), rust_program(case)).unwrap();
        let bin = "[[bin]]\nname = \"told\"\npath = \"told.rs\"\n\n[[bin]]\nname = \"verify\"";
        assert!(edit(&bundle.join("Cargo.toml"), &[("[[bin]]\nname = \"verify\"", bin)]));
        build_crate(&bundle, &made);
        for (sizes, expected) in case.sizes.iter().zip(case.expected()) {
            assert_eq!(told(&program, folder, sizes, &case.counts()), expected, "{} {sizes:?}", case.name);
        }
    }
    // What no map has is refused, and nothing is launched. No schedule leads to such rows; a table that was changed does.
    let (tiles, bundle) = (&CASES[0], folder.join("tiles"));
    edit(
        &bundle.join("sizes.rs"),
        &[("strides: vec![640_i64, 2_i64]", "strides: vec![dims[0] * 648, 2_i64]")],
    );
    build_crate(&bundle, &made);
    let refused = [&[2, 1 << 33], &[1, 7]].map(|it| told(&program, folder, it, &tiles.counts()));
    insta::assert_snapshot!(refused.concat());
}
