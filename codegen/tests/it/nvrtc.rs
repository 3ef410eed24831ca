//! Sources through the real NVRTC, where there is one. `TILEWRIGHT_REQUIRE_NVRTC=1` turns a skip into a failure.

use ir::Arch;
use std::io::Write as _;

use tilewright_codegen::device::{DeviceError, nvrtc, occupancy};

/// Whether NVRTC is here. Says so when a test is skipped.
fn have_nvrtc(test: &str) -> bool {
    match nvrtc::find() {
        Ok(info) => {
            assert!(info.version.0 >= 11, "{info:?}");
            true
        }
        Err(err) => {
            let required = std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|it| it == "1");
            assert!(!required, "{err}");
            // Straight to the stream: `cargo test` swallows what `eprintln!` says in a test that passes.
            writeln!(std::io::stderr(), "skipped: {test}: {err}").expect("stderr is open");
            false
        }
    }
}

fn arch(text: &str) -> Arch {
    Arch::parse(text).expect("an architecture")
}

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(const float *x, float *y, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + y[i];
}
extern "C" __global__ void __launch_bounds__(128) reverse(float *x) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[127 - threadIdx.x];
}
"#;

#[test]
fn a_suffix_that_came_later_is_refused_before_nvrtc_is_asked() {
    for (target, first) in [("sm_80a", "sm_90"), ("sm_89a", "sm_90"), ("sm_90f", "sm_100")] {
        let err = nvrtc::compile(SAXPY, "saxpy.cu", &arch(target), &[]).unwrap_err();
        assert!(
            matches!(&err, DeviceError::Unsupported(it) if it.contains(target) && it.ends_with(first)),
            "{err}"
        );
    }
}

/// NVRTC keeps what it made on the disk where there is a driver, and gives it again without a log.
#[test]
fn the_second_time_is_like_the_first() {
    if !have_nvrtc("the_second_time_is_like_the_first") {
        return;
    }
    let [first, second] = [(); 2].map(|()| nvrtc::compile(SAXPY, "saxpy.cu", &arch("sm_90a"), &[]).unwrap());
    assert_eq!(first, second);
    assert_eq!(second.resources.len(), 2);
}

#[test]
fn machine_code_and_resources() {
    if !have_nvrtc("machine_code_and_resources") {
        return;
    }
    for target in ["sm_80", "sm_90a"] {
        let out = nvrtc::compile(SAXPY, "saxpy.cu", &arch(target), &[]).unwrap();
        assert!(out.cubin.starts_with(b"\x7fELF"));
        assert!(out.ptx.contains(&format!(".target {target}")), "{}", out.ptx);
        eprintln!("{}", out.log);
        let mut kernels = out.resources.clone();
        kernels.sort_by(|a, b| a.kernel.cmp(&b.kernel));
        let [reverse, saxpy] = &kernels[..] else { panic!("{kernels:?}") };
        assert_eq!((&*reverse.kernel, &*saxpy.kernel), ("reverse", "saxpy"));
        assert_eq!((reverse.static_shared_bytes, reverse.barriers), (512, 1));
        assert_eq!((saxpy.static_shared_bytes, saxpy.barriers), (0, 0));
        for it in &kernels {
            assert!((4..64).contains(&it.registers), "{it:?}");
            assert_eq!((it.stack_bytes, it.spill_store_bytes, it.spill_load_bytes), (0, 0, 0));
            assert!(it.warnings.is_empty());
        }
        let full = occupancy(saxpy, 256, 0, &arch(target)).unwrap();
        assert_eq!((full.blocks, full.warps), (8, full.max_warps));
        // The same source gives the same bytes.
        assert_eq!(nvrtc::compile(SAXPY, "saxpy.cu", &arch(target), &[]).unwrap(), out);
    }
}

#[test]
fn spills_and_stack_are_seen() {
    if !have_nvrtc("spills_and_stack_are_seen") {
        return;
    }
    let source = r#"
extern "C" __global__ void __launch_bounds__(1024, 2) heavy(const float *x, float *y, int n) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = x[threadIdx.x + 1024 * i];
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i * 7 + 3) % 64] + x[k];
  for (int i = 0; i < 64; ++i) y[threadIdx.x + 1024 * i] = a[i];
}
extern "C" __global__ void indexed(const int *at, float *y) {
  float a[32];
  for (int i = 0; i < 32; ++i) a[i] = y[i * 32];
  for (int i = 0; i < 32; ++i) a[at[i]] += 1.0f;
  y[threadIdx.x] = a[at[threadIdx.x]];
}
"#;
    let out = nvrtc::compile(source, "heavy.cu", &arch("sm_90a"), &[]).unwrap();
    eprintln!("{}", out.log);
    let find = |name: &str| out.resources.iter().find(|it| it.kernel == name).unwrap();
    let (heavy, indexed) = (find("heavy"), find("indexed"));
    assert_eq!(heavy.registers, 32);
    assert!(heavy.stack_bytes > 0 && heavy.spill_store_bytes > 0 && heavy.spill_load_bytes > 0, "{heavy:?}");
    assert!(indexed.stack_bytes >= 128 && indexed.spill_store_bytes == 0, "{indexed:?}");
}

#[test]
fn a_performance_warning_is_kept() {
    if !have_nvrtc("a_performance_warning_is_kept") {
        return;
    }
    let source = r#"
extern "C" __global__ void plain(float *y) { y[threadIdx.x] = 1.0f; }
extern "C" __global__ void serial(float *y, unsigned long long a, unsigned long long b) {
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  asm volatile("wgmma.fence.sync.aligned;");
  for (int k = 0; k < 4; ++k) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
    d[0] += 1.0f;
  }
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = d[i];
}
"#;
    let out = nvrtc::compile(source, "serial.cu", &arch("sm_90a"), &[]).unwrap();
    eprintln!("{}", out.log);
    let warned: Vec<_> =
        out.resources.iter().filter(|it| !it.warnings.is_empty()).map(|it| &*it.kernel).collect();
    assert_eq!(warned, ["serial"]);
}

#[test]
fn refusals_are_precise() {
    if !have_nvrtc("refusals_are_precise") {
        return;
    }
    let broken = "extern \"C\" __global__ void k(float *x) { x[0] = undeclared; }";
    let err = nvrtc::compile(broken, "broken.cu", &arch("sm_80"), &[]).unwrap_err();
    let DeviceError::Compile { compiler, log } = err else { panic!("{err:?}") };
    assert!(compiler.starts_with("NVRTC "));
    assert!(log.contains("broken.cu(1)") && log.contains("undeclared"), "{log}");

    let err = nvrtc::compile(broken, "broken.cu", &arch("sm_50"), &[]).unwrap_err();
    assert!(err.to_string().contains("cannot compile for sm_50; it knows sm_"), "{err}");

    let err = nvrtc::compile("a\0b", "zero.cu", &arch("sm_80"), &[]).unwrap_err();
    assert!(matches!(err, DeviceError::Unsupported(_)), "{err:?}");

    let large = r#"extern "C" __global__ void k(float *x) {
      __shared__ float t[60000]; t[threadIdx.x] = x[0]; __syncthreads(); x[0] = t[5]; }"#;
    let err = nvrtc::compile(large, "large.cu", &arch("sm_80"), &[]).unwrap_err();
    let DeviceError::Compile { log, .. } = err else { panic!("{err:?}") };
    assert!(log.starts_with("ptxas error") && log.contains("too much shared data"), "{log}");

    let err = nvrtc::compile(SAXPY, "saxpy.cu", &arch("sm_80"), &["--no-such-option"]).unwrap_err();
    let DeviceError::Call { call, reason } = err else { panic!("{err:?}") };
    assert!(call == "nvrtcCompileProgram" && reason.contains("INVALID_OPTION"), "{reason}");
}
