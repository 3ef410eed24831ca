//! Kernels as CUDA C++, compiled by NVRTC where there is one.

use std::{io::Write as _, sync::Once};

use codegen::device::{Resources, nvrtc};
use ir::{Arch, Func, Target};

/// Whether NVRTC is here; says once that something is skipped. `TILEWRIGHT_REQUIRE_NVRTC=1` makes that a failure.
fn have_nvrtc() -> bool {
    static SAID: Once = Once::new();
    let Err(err) = nvrtc::find() else { return true };
    let required = std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|it| it == "1");
    assert!(!required, "{err}");
    SAID.call_once(|| {
        writeln!(std::io::stderr(), "skipped: CUDA sources through NVRTC: {err}").expect("stderr is open");
    });
    false
}

/// Compiles a program for two architectures, without those that are older than its own; what its kernels need on each.
/// Nothing where there is no NVRTC.
pub(crate) fn compile(what: &str, func: &Func, target: &Target) -> Vec<Resources> {
    if !have_nvrtc() {
        return vec![];
    }
    let mut out = Vec::new();
    let least = |arch: &Arch| !matches!(target, Target::Cuda(own) if own.sm > arch.sm);
    for arch in ["sm_80", "sm_90a"].map(|it| Arch::parse(it).unwrap()).into_iter().filter(least) {
        let target = Target::Cuda(arch.clone());
        let module = codegen::compile_module(func, &target).unwrap_or_else(|err| panic!("{what}: {err}"));
        let source = codegen::emit::emit(&module, &target).unwrap_or_else(|err| panic!("{what}: {err}"));
        let compiled = nvrtc::compile(&source, &format!("{}.cu", func.name), &arch, &[])
            .unwrap_or_else(|err| panic!("{what}: {err}\n{source}"));
        assert_eq!(compiled.resources.len(), module.kernels.len(), "{what}: {}", compiled.log);
        out.extend(compiled.resources);
    }
    out
}
