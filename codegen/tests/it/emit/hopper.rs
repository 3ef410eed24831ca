//! Kernels with the copy engine, mbarriers, warpgroups and roles: as text, and through NVRTC.

use std::{fmt::Write as _, fs, io::Write as _, path::Path};

use insta::assert_snapshot;
use ir::{Module, Target};
use tilewright_codegen::{
    device::{DeviceError, disasm, nvrtc},
    emit::emit,
    program,
};

use super::build::{cuda, n};

fn read(path: &Path) -> (String, Module) {
    let text = fs::read_to_string(path).unwrap();
    let module = ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    ir::verify_module(&module).unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
    (text, module)
}

/// What a text is for: `// sm_100` at its top, or `// target: sm_100a` somewhere, else Hopper.
fn target_of(text: &str) -> Target {
    let top = text.lines().next().and_then(|it| it.strip_prefix("// ")).filter(|it| it.starts_with("sm_"));
    let named = text.lines().find_map(|it| it.strip_prefix("// target: "));
    cuda(top.or(named).unwrap_or("sm_90a"))
}

/// Compiles a source without a spill, without an array in memory and without a warning; none where there is no NVRTC.
fn compile(name: &str, source: &str, target: &Target) -> Option<nvrtc::Compiled> {
    let Target::Cuda(arch) = target else { panic!("{name} is for no GPU") };
    match nvrtc::compile(source, name, arch, &[]) {
        Ok(out) => {
            for it in &out.resources {
                let memory = [it.stack_bytes, it.spill_store_bytes, it.spill_load_bytes];
                assert_eq!(memory, [0; 3], "{name}: {it:?}");
                assert!(it.warnings.is_empty(), "{name}: {it:?}");
            }
            Some(out)
        }
        Err(err @ DeviceError::Missing { .. }) => {
            let required = std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|it| it == "1");
            assert!(!required, "{err}");
            writeln!(std::io::stderr(), "skipped: {name}: {err}").expect("stderr is open");
            None
        }
        Err(err) => panic!("{name}: {err}\n{source}"),
    }
}

/// Each file of `tests/emit`, and the kernels of `tests/vgpu` that use warpgroups: the snapshot is the source.
#[test]
fn sources() {
    let each = |path: &Path| {
        let (text, module) = read(path);
        let target = target_of(&text);
        let source = match emit(&module, &target) {
            Ok(source) => source,
            Err(err) => {
                assert_snapshot!(format!("refused: {err}\n"));
                return;
            }
        };
        assert_eq!(source, emit(&module, &target).unwrap());
        let name = path.file_stem().unwrap().to_string_lossy();
        assert_snapshot!(source);
        compile(&name, &source, &target);
    };
    insta::glob!("../../emit", "*.tw", each);
    insta::glob!("../../vgpu", "{wgmma,tcgen05}_*_clean.tw", each);
}

/// Each file of `tests/emit_refused` is a kernel that no verifier has seen, of which there is no source.
#[test]
fn kernels_that_nobody_verified_are_refused() {
    insta::glob!("../../emit_refused", "*.tw", |path| {
        let text = fs::read_to_string(path).unwrap();
        let module = ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        assert_snapshot!(emit(&module, &target_of(&text)).unwrap_err());
    });
}

/// The machine code of a text, as a disassembler prints it; none where a program for it is missing.
fn sass(path: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (text, module) = read(&folder.join(path));
    let target = target_of(&text);
    let compiled = compile(path, &emit(&module, &target).unwrap(), &target)?;
    let found = disasm::find().inspect_err(|err| {
        writeln!(std::io::stderr(), "skipped: {path}: {err}").expect("stderr is open");
    });
    Some(found.ok()?.print(&compiled.cubin).unwrap())
}

/// What the hardware does for hours is what was meant: whole products, copies that no loop over lanes is around, and nothing in memory that
/// should be a register.
#[test]
fn machine_code() {
    for (path, columns) in [
        ("vgpu/wgmma_ring_clean.tw", 64),
        ("vgpu/wgmma_roles_clean.tw", 64),
        ("emit/wgmma_roles_n256.tw", 256),
    ] {
        let Some(sass) = sass(path) else { return };
        let count = |word: &str| sass.lines().filter(|it| it.contains(word)).count();
        assert_eq!(count(&format!("HGMMA.64x{columns}x16.F32.BF16")), 4, "{path}\n{sass}");
        assert_eq!(count("HGMMA"), 4, "{path}");
        assert!(count("UTMALDG.2D") >= 2, "{path}");
        assert_eq!(count("BRA.U.ANY"), 0, "{path}: a loop over the lanes of a warp\n{sass}");
        assert_eq!([count("LDL"), count("STL")], [0; 2], "{path}\n{sass}");
    }
    for path in ["vgpu/tcgen05_one_stage_clean.tw", "vgpu/tcgen05_ring_clean.tw"] {
        let Some(sass) = sass(path) else { return };
        let count = |word: &str| sass.lines().filter(|it| it.contains(word)).count();
        assert_eq!(count("UTCHMMA"), 4, "{path}\n{sass}");
        assert_eq!([count("LDL"), count("STL")], [0; 2], "{path}\n{sass}");
    }
    let of_four_bits = ["tcgen05_mxfp4_clean", "tcgen05_nvfp4_clean"].map(|it| (it, "UTCOMMA"));
    for (path, product) in [("tcgen05_scaled_clean", "UTCQMMA")].into_iter().chain(of_four_bits) {
        let Some(sass) = sass(&format!("vgpu/{path}.tw")) else { return };
        let count = |word: &str| sass.lines().filter(|it| it.contains(word)).count();
        assert_eq!(
            [count(product), count("UTCCP"), count("LDL"), count("STL")],
            [4, 2, 0, 0],
            "{path}\n{sass}"
        );
    }
}

/// Without the passes for its target a kernel has no source.
#[test]
fn what_a_target_has_not_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut lines = Vec::new();
    let paths = [
        "vgpu/wgmma_ring_clean.tw",
        "vgpu/tcgen05_ring_clean.tw",
        "vgpu/tcgen05_scaled_clean.tw",
        "emit/wgmma_forms.tw",
        "emit/teams.tw",
        "emit/cluster_memory.tw",
    ];
    for path in paths {
        let (_, module) = read(&folder.join(path));
        for target in [Target::Cpu, cuda("sm_80"), cuda("sm_90"), cuda("sm_100a"), cuda("sm_120a")] {
            let said = emit(&module, &target).map_or_else(|err| err.to_string(), |_| "a source".to_owned());
            lines.push(format!("{path}: {said}"));
        }
    }
    assert_snapshot!(lines.join("\n"));
}

/// What a machine is told of a launch besides its grid; or why there is none.
fn launches(module: &Module, dims: &[(&str, i64)]) -> String {
    let dims = dims.iter().map(|(name, value)| (n(name), *value)).collect();
    let program = match program(module, &dims, vec![]) {
        Ok(program) => program,
        Err(err) => return format!("refused: {err}; {}", err.help().unwrap_or_default()),
    };
    let mut out = String::new();
    for it in &program.launches {
        write!(
            out,
            "{} {:?} blocks of {:?} threads, {} bytes",
            it.kernel, it.grid, it.block, it.shared_bytes
        )
        .unwrap();
        for map in &it.maps {
            write!(out, "\n  {map:?}").unwrap();
        }
    }
    out
}

/// CUDA's grid has all blocks of all clusters, and no more of them than it numbers.
#[test]
fn grids_of_clusters() {
    let one = |axes: &str, n: i64| {
        let text =
            format!("module m(n)\n  out B: f32[n]\n\n  kernel m<<<{axes}>>>(mut B)\n    B[0] = 1.0f32\n");
        let module = ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{axes}: {err}"));
        format!("{axes} where n is {n}: {}", launches(&module, &[("n", n)]))
    };
    let all = [
        ("blockIdx.x: n, cluster.x: 2, threadIdx.x: 64", 5),
        ("blockIdx.x: n, blockIdx.y: 3, cluster.y: 4, cluster.x: 2", 5),
        ("cluster.z: 3, threadIdx.x: 64", 5),
        ("blockIdx.y: n, cluster.y: 8", 8191),
        ("blockIdx.y: n, cluster.y: 8", 8192),
        ("blockIdx.x: n, cluster.x: 2", 1 << 30),
    ];
    assert_snapshot!(all.map(|(axes, n)| one(axes, n)).join("\n"));
}

#[test]
fn tensor_maps_with_their_sizes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (_, roles) = read(&folder.join("vgpu/wgmma_roles_clean.tw"));
    let (_, stores) = read(&folder.join("emit/bulk_stores.tw"));
    let one = |map: &str| {
        let text = format!(
            "module copy(n)\n  in A: bf16[n*64]\n\n  kernel copy<<<blockIdx.x: 1>>>(A)\n    tensor_map A_map = A{map}\n"
        );
        ir::text::parse_module(&text).unwrap_or_else(|err| panic!("{map}: {err}"))
    };
    let mut out = vec![launches(&roles, &[]), launches(&stores, &[("n", 3)])];
    let cases = [
        ("[n, 64] box 8 x 64 swizzle 128B", 3),
        ("[n, 64] box 8 x 64 swizzle 128B", 1 << 33),
        ("[64, n] box 8 x 8", 100),
        ("[64, n] box 8 x 8", 104),
        ("[n, 64] strides (n, 1) box 8 x 8", 72),
        ("[n + 1, 64] box 8 x 8", 3),
        ("[n, 64] box 8 x 64 swizzle 64B", 3),
        ("[n, 64] box 8 x 4", 3),
    ];
    for (map, n) in cases {
        out.push(format!("{map} where n is {n}: {}", launches(&one(map), &[("n", n)])));
    }
    assert_snapshot!(out.join("\n"));
}
