//! Every lowered program in `tests/vgpu`, and what the virtual GPU says about it.
//!
//! A program has a twin, `NAME_clean.tw`, in which nothing is wrong; where the counters are what is shown, the
//! program is called `count_…` and nothing is wrong with it either. `// dims: n=5` gives the symbolic dimensions.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{Module, Name, Role};
use tilewright_codegen::vgpu::{self, Report, Settings};

#[test]
fn programs() {
    insta::glob!("../vgpu", "*.tw", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let module = ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        let dims = dims(&text);
        let mut reports = Settings::hostile(1).map(|settings| run(&module, &dims, &settings)).into_iter();
        let first = reports.next().unwrap();
        let name = path.file_stem().unwrap().to_string_lossy();
        let clean = name.ends_with("_clean") || name.starts_with("count_");
        assert_eq!(first.is_clean(), clean, "{name}: {:#?}", first.findings);
        // The words depend on the order: what is read too early was then never written. The verdict does not.
        for other in reports {
            assert_eq!(other.is_clean(), clean, "{name}: {:#?}", other.findings);
        }
        insta::assert_snapshot!(transcript(&first, name.starts_with("count_")));
    });
}

/// Each file of `tests/vgpu_refused` is a kernel that cannot be run at all.
#[test]
fn kernels_that_cannot_be_run() {
    insta::glob!("../vgpu_refused", "*.tw", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let module = ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        let dims = dims(&text);
        let refused =
            vgpu::run(&module, &dims, &mut inputs(&module, &dims), &Settings::default()).unwrap_err();
        insta::assert_snapshot!(refused);
    });
}

#[test]
fn each_kind_of_finding_and_a_clean_twin_has_a_program() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vgpu");
    let mut seen = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let report = run(&ir::text::parse_module(&text).unwrap(), &dims(&text), &Settings::default());
        seen.extend(report.findings.iter().map(|it| it.finding.title()));
        let twin = folder.join(format!("{name}_clean.tw"));
        assert!(report.is_clean() || twin.exists(), "{name} has no clean twin");
    }
    let all = [
        "block has ended",
        "block has not begun",
        "bytes of a phase",
        "copy never waited for",
        "data race",
        "deadlock",
        "divergent barrier",
        "division by zero",
        "misaligned access",
        "missing proxy fence",
        "missing wait",
        "missing wgmma fence",
        "out of bounds",
        "out of turn",
        "output not written",
        "part of a warp",
        "part of a warpgroup",
        "phase not over",
        "registers in flight",
        "still under way",
        "too many arrivals",
        "turns not over",
        "uninitialised read",
        "wrong phase",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
}

fn run(module: &Module, dims: &IndexMap<Name, i64>, settings: &Settings) -> Report {
    vgpu::run(module, dims, &mut inputs(module, dims), settings).unwrap()
}

/// Inputs are 1, 2, 3 and so on.
fn inputs(module: &Module, dims: &IndexMap<Name, i64>) -> IndexMap<Name, Vec<f64>> {
    let mut memory = IndexMap::new();
    for (name, arg) in module.args.iter().filter(|(_, it)| it.role == Role::Input) {
        let len = arg.elements().eval(&|it| dims.get(it).copied()).unwrap();
        memory.insert(name.clone(), (1..=len).map(|it| it as f64).collect());
    }
    memory
}

fn dims(text: &str) -> IndexMap<Name, i64> {
    let line = text.lines().find_map(|it| it.strip_prefix("// dims: ")).unwrap_or_default();
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap();
        (Name::new(name), value.parse().unwrap())
    };
    line.split_whitespace().map(pair).collect()
}

fn transcript(report: &Report, counted: bool) -> String {
    let mut out = String::new();
    for it in &report.findings {
        writeln!(out, "{it}").unwrap();
    }
    if report.is_clean() {
        writeln!(out, "nothing is wrong").unwrap();
    }
    if report.benign_writes > 0 {
        writeln!(out, "writes of what was there: {}", report.benign_writes).unwrap();
    }
    for it in report.counters.iter().flat_map(|it| &it.traffic).filter(|_| counted) {
        writeln!(
            out,
            "line {} {} {} {}: {} requests, {} units where {} would do, worst {} where {} would do",
            it.line,
            it.space,
            word(it.direction),
            it.buffer,
            it.requests,
            it.units,
            it.ideal,
            it.worst,
            it.worst_ideal
        )
        .unwrap();
    }
    out
}

fn word(it: vgpu::Direction) -> &'static str {
    match it {
        vgpu::Direction::Read => "reads",
        vgpu::Direction::Write => "writes",
    }
}

/// A kernel that somebody changed by hand may be anything.
#[test]
fn no_change_of_a_character_panics() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vgpu");
    let (mut read, mut ran) = (0, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let dims = dims(&text);
        // Of what those do that take long, smaller ones do all.
        if vgpu::estimate(&ir::text::parse_module(&text).unwrap(), &dims) > 10_000 {
            continue;
        }
        for at in 0..text.len() {
            for with in ["", "9", "-", "]"] {
                let changed = [&text[..at], with, &text[at + usize::from(with != "9")..]].concat();
                let Ok(module) = ir::text::parse_module(&changed) else { continue };
                read += 1;
                let size = |it: &ir::Arg| {
                    it.elements().eval(&|it| dims.get(it).copied()).unwrap_or(0).clamp(0, 1 << 12)
                };
                let inputs = module.args.iter().filter(|(_, it)| it.role == Role::Input);
                let mut memory = inputs
                    .map(|(name, it)| (name.clone(), (1..=size(it)).map(|it| it as f64).collect()))
                    .collect();
                ran += usize::from(vgpu::run(&module, &dims, &mut memory, &Settings::default()).is_ok());
            }
        }
    }
    assert!(read > 1000 && ran > 1000, "{read} {ran}");
}

/// A transposing matrix load takes elements of 2 bytes apart, and there is no other.
#[test]
fn a_matrix_load_of_another_type_is_refused() {
    let kernel = |dtype: &str| {
        format!(
            "module m\n  out B: {dtype}[512]\n\n  kernel k<<<threadIdx.x: 32>>>(mut B)\n    \
             alloc S: {dtype}[512] @shared\n    alloc F: {dtype}[16] @local\n    \
             S[threadIdx_x*16 +: 16] = 1{dtype}\n    barrier\n    \
             F[0 +: 8] = ldmatrix_x4_trans(S[threadIdx_x*8 +: 8])\n    F[8 +: 8] = F[0 +: 8]\n    \
             B[threadIdx_x*16 +: 16] = F[0 +: 16]\n"
        )
    };
    let verdict = |dtype: &str| {
        let module = ir::text::parse_module(&kernel(dtype)).unwrap();
        let settings = Settings::default();
        let report = vgpu::run(&module, &IndexMap::new(), &mut IndexMap::new(), &settings);
        report.map(|it| it.is_clean()).map_err(|it| it.to_string())
    };
    assert_eq!(verdict("i16"), Ok(true));
    let refused = "kernel `k` gives `ldmatrix_x4_trans` other operands than it takes";
    for dtype in ["i8", "i32", "i64"] {
        assert_eq!(verdict(dtype), Err(refused.to_owned()));
    }
}
