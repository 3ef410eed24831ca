//! A GPU, where there is one: handwritten kernels, numbers, times, occupancy and the cuBLAS baseline. Tells what it
//! does on stderr, for it is also run by hand on machines with a GPU. `TILEWRIGHT_REQUIRE_GPU=1` turns a skip into a
//! failure. What a tuner asks of a GPU besides is in the module `tuning`,
//! and what only some GPUs have in `hopper`.

use std::io::Write as _;

use ir::{Arch, DType};
use tilewright_codegen::device::{
    BufferId, CudaMachine, DeviceError, Gemm, Launch, Machine, Program, ProgramId, nvrtc, occupancy,
};

macro_rules! say {
    ($($words:tt)*) => { writeln!(std::io::stderr(), $($words)*).expect("stderr is open") };
}

#[path = "cuda_device/hopper.rs"]
mod hopper;
#[path = "cuda_device/products.rs"]
mod products;
#[path = "it/hopper/subject.rs"]
mod subject;
#[path = "cuda_device/tuning.rs"]
mod tuning;

/// The GPU and NVRTC, or a word on what was skipped.
fn machine(test: &str) -> Option<CudaMachine> {
    let required = std::env::var_os("TILEWRIGHT_REQUIRE_GPU").is_some_and(|it| it == "1");
    let found = CudaMachine::open(0).and_then(|it| nvrtc::find().map(|_| it));
    match found {
        Ok(machine) => Some(machine),
        Err(err) => {
            assert!(!required, "{err:?}");
            say!("skipped: {test}: {err}");
            None
        }
    }
}

fn arch(machine: &CudaMachine) -> Arch {
    Arch::parse(&machine.info().arch).expect("the machine names its architecture")
}

fn launch(kernel: &str, blocks: u32, threads: u32, buffers: &[usize], dims: &[i64]) -> Launch {
    Launch {
        kernel: kernel.into(),
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 0,
        programmatic: false,
        maps: vec![],
        buffers: buffers.to_vec(),
        dims: dims.to_vec(),
    }
}

fn upload(machine: &mut CudaMachine, bytes: &[u8]) -> BufferId {
    let buffer = machine.alloc(bytes.len()).expect("GPU memory");
    machine.upload(buffer, bytes).expect("it fits");
    buffer
}

fn upload_f32(machine: &mut CudaMachine, numbers: &[f32]) -> BufferId {
    let bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_ne_bytes()).collect();
    upload(machine, &bytes)
}

fn download_f32(machine: &mut CudaMachine, buffer: BufferId, count: usize) -> Vec<f32> {
    let mut raw = vec![0; count * 4];
    machine.download(buffer, &mut raw).expect("it fits");
    raw.as_chunks().0.iter().map(|it| f32::from_ne_bytes(*it)).collect()
}

const SOURCE: &str = r#"
extern "C" __global__ void saxpy(const float *x, float *y, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + y[i];
}
extern "C" __global__ void __launch_bounds__(256) large(float *y, long long n) {
  extern __shared__ float tile[];
  for (long long i = threadIdx.x; i < n; i += 256) tile[i] = y[i];
  __syncthreads();
  for (long long i = threadIdx.x; i < n; i += 256) y[i] = tile[n - 1 - i];
}
extern "C" __global__ void __launch_bounds__(128) fixed_tile(float *y) {
  __shared__ float tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 128) tile[i] = y[i];
  __syncthreads();
  for (int i = threadIdx.x; i < 1024; i += 128) y[i] += tile[1023 - i];
}
"#;

#[test]
fn saxpy_is_right_and_timed() {
    let Some(mut machine) = machine("saxpy_is_right_and_timed") else { return };
    say!("{:#?}", machine.info());
    let compiled = nvrtc::compile(SOURCE, "source.cu", &arch(&machine), &[]).unwrap();
    let count = (1usize << 24) + 3;
    let n = i64::try_from(count).unwrap();
    let blocks = u32::try_from(count.div_ceil(256)).unwrap();
    let x: Vec<f32> = (0..count).map(|it| (it % 1000) as f32).collect();
    for (what, binary) in [("cubin", compiled.cubin), ("PTX", compiled.ptx.into_bytes())] {
        let program = Program {
            binary,
            launches: vec![launch("saxpy", blocks, 256, &[0, 1], &[n])],
            buffers: vec![count * 4; 2],
            zeroed: vec![],
        };
        let loaded = machine.load(&program).unwrap();
        let (dx, dy) = (upload_f32(&mut machine, &x), upload_f32(&mut machine, &vec![1.0; count]));
        machine.run(loaded, &[dx, dy], 1).unwrap();
        let got = download_f32(&mut machine, dy, count);
        assert!(got.iter().zip(&x).all(|(got, x)| got.to_bits() == (2.0 * x + 1.0).to_bits()), "{what}");
        machine.flush_cache().unwrap();
        let seconds = machine.run(loaded, &[dx, dy], 20).unwrap() / 20.0;
        let rate = 12.0 * count as f64 / seconds / 1e9;
        let peak = machine.info().peak_gb_per_s.unwrap();
        say!("saxpy from {what}: right; {:.1} us a call, {rate:.0} GB/s of {peak:.0}", seconds * 1e6);
        assert!(rate > 0.1 * peak && rate < 1.05 * peak, "{rate} GB/s");
        machine.free(dx);
        machine.free(dy);
    }
}

#[test]
fn large_shared_memory_works_and_its_limit_is_named() {
    let Some(mut machine) = machine("large_shared_memory_works_and_its_limit_is_named") else { return };
    let arch = arch(&machine);
    let compiled = nvrtc::compile(SOURCE, "source.cu", &arch, &[]).unwrap();
    let bytes = arch.caps().max_shared_per_block;
    let count = usize::try_from(bytes / 4).unwrap();
    let program = |shared_bytes| Program {
        binary: compiled.cubin.clone(),
        launches: vec![Launch { shared_bytes, ..launch("large", 1, 256, &[0], &[i64::from(bytes / 4)]) }],
        buffers: vec![count * 4],
        zeroed: vec![],
    };
    let y: Vec<f32> = (0..count).map(|it| it as f32).collect();
    let dy = upload_f32(&mut machine, &y);
    let loaded = machine.load(&program(bytes)).unwrap();
    machine.run(loaded, &[dy], 1).unwrap();
    let got = download_f32(&mut machine, dy, count);
    assert!(got.iter().zip(y.iter().rev()).all(|(got, y)| got.to_bits() == y.to_bits()));
    say!("{bytes} bytes of dynamic shared memory: right");

    let err = machine.load(&program(bytes + 4)).unwrap_err();
    say!("4 bytes more: {err}");
    assert!(matches!(err, DeviceError::Unsupported(_)), "{err:?}");
    let absent = Program { launches: vec![launch("absent", 1, 1, &[0], &[])], ..program(0) };
    let err = machine.load(&absent).unwrap_err();
    say!("an absent kernel: {err}");
    assert!(err.to_string().contains("`absent`"), "{err}");
    let err = machine.load(&Program { binary: b"nonsense".to_vec(), ..program(0) }).unwrap_err();
    say!("a broken module: {err}");
    assert!(matches!(err, DeviceError::Call { .. }), "{err:?}");
}

#[test]
fn occupancy_agrees_with_the_driver() {
    let Some(mut machine) = machine("occupancy_agrees_with_the_driver") else { return };
    let arch = arch(&machine);
    let mut cases = 0;
    for limit in [24, 32, 40, 56, 72, 96, 128, 168, 255] {
        let options = format!("--maxrregcount={limit}");
        let compiled = nvrtc::compile(&heavy_source(), "source.cu", &arch, &[&options]).unwrap();
        for needs in &compiled.resources {
            for threads in [32, 64, 96, 128, 224, 256, 384, 512, 1024] {
                for shared_bytes in [0, 1000, 16 * 1024, 40 * 1024, 100 * 1024, 200 * 1024] {
                    let launch = Launch { shared_bytes, ..launch(&needs.kernel, 1, threads, &[0], &[1]) };
                    let program = Program {
                        binary: compiled.cubin.clone(),
                        launches: vec![launch],
                        buffers: vec![4],
                        zeroed: vec![],
                    };
                    let ours = occupancy(needs, threads, shared_bytes, &arch).unwrap();
                    // The machine refuses what does not fit at all.
                    let theirs = match machine.load(&program) {
                        Ok(loaded) => machine.resident_blocks(loaded).unwrap()[0],
                        Err(DeviceError::Unsupported(_)) => 0,
                        Err(err) => panic!("{err}"),
                    };
                    assert_eq!(ours.blocks, theirs, "{needs:?} {threads} {shared_bytes} {ours:?}");
                    cases += 1;
                }
            }
        }
    }
    say!("occupancy: {cases} cases agree with the driver");
}

/// Kernels that use as many registers as they may, with and without barriers and declared shared memory.
fn heavy_source() -> String {
    let body = |barrier: &str| {
        format!(
            "{{ float a[120]; for (int i = 0; i < 120; ++i) a[i] = y[i * 1024 + threadIdx.x]; {barrier} \
             for (int k = 0; k < n; ++k) {{ float s = y[k]; \
             _Pragma(\"unroll\") for (int i = 0; i < 120; ++i) a[i] = a[i] * s + a[(i + 7) % 120]; }} \
             for (int i = 0; i < 120; ++i) y[i * 1024 + threadIdx.x] = a[i]; }}\n"
        )
    };
    let tile =
        "__shared__ float t[3000]; t[threadIdx.x] = a[0]; __syncthreads(); a[1] += t[2999 - threadIdx.x];";
    format!(
        "extern \"C\" __global__ void plain(float *y, long long n) {}\
         extern \"C\" __global__ void tiled(float *y, long long n) {}",
        body(""),
        body(tile)
    )
}

fn number(it: usize) -> f32 {
    // Between -1 and 1, exact in f16 and bf16.
    (f32::from(u8::try_from(it * 37 % 127).expect("a remainder")) - 63.0) / 64.0
}

/// A small float as bytes of a type.
fn encode(dtype: DType, numbers: &[f32]) -> Vec<u8> {
    match dtype {
        DType::F64 => numbers.iter().flat_map(|it| f64::from(*it).to_ne_bytes()).collect(),
        DType::F16 => numbers.iter().flat_map(|it| half::f16::from_f32(*it).to_ne_bytes()).collect(),
        DType::Bf16 => numbers.iter().flat_map(|it| half::bf16::from_f32(*it).to_ne_bytes()).collect(),
        // In steps of 1/64.
        #[expect(clippy::cast_possible_truncation, reason = "these are whole numbers below 64")]
        DType::I8 => numbers.iter().flat_map(|it| i8::to_ne_bytes((it * 64.0) as i8)).collect(),
        _ => numbers.iter().flat_map(|it| it.to_ne_bytes()).collect(),
    }
}

fn decode(dtype: DType, raw: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F64 => raw.as_chunks().0.iter().map(|it| f64::from_ne_bytes(*it)).collect(),
        DType::F16 => raw.as_chunks().0.iter().map(|it| half::f16::from_ne_bytes(*it).to_f64()).collect(),
        DType::Bf16 => raw.as_chunks().0.iter().map(|it| half::bf16::from_ne_bytes(*it).to_f64()).collect(),
        DType::I32 => {
            raw.as_chunks().0.iter().map(|it| f64::from(i32::from_ne_bytes(*it)) / 4096.0).collect()
        }
        _ => raw.as_chunks().0.iter().map(|it| f64::from(f32::from_ne_bytes(*it))).collect(),
    }
}

/// The types of the inputs, the accumulator and the output of products that the vendor's libraries have, and how exact
/// they are.
const PRODUCTS: [([DType; 3], f64); 9] = [
    ([DType::F32, DType::F32, DType::F32], 1e-5),
    ([DType::F64, DType::F64, DType::F64], 1e-13),
    ([DType::F16, DType::F32, DType::F32], 1e-5),
    ([DType::F16, DType::F32, DType::F16], 1e-2),
    ([DType::F16, DType::F16, DType::F16], 1e-1),
    ([DType::Bf16, DType::F32, DType::F32], 1e-5),
    ([DType::Bf16, DType::F32, DType::Bf16], 1e-1),
    ([DType::Tf32, DType::F32, DType::F32], 1e-5),
    ([DType::I8, DType::I32, DType::I32], 0.0),
];

#[test]
fn cublas_is_right_in_every_type_and_layout() {
    let Some(mut machine) = machine("cublas_is_right_in_every_type_and_layout") else { return };
    for ([input, accumulator, output], tolerance) in PRODUCTS {
        for (batch, b_transposed) in [(1, false), (1, true), (3, false), (3, true)] {
            let [m, n, k] = if input == DType::I8 { [67, 44, 132] } else { [67, 45, 133] };
            let gemm = Gemm { batch, m, n, k, input, accumulator, output, b_transposed, fast_sums: false };
            let program = match machine.load_gemm(&gemm) {
                Ok(it) => it,
                Err(DeviceError::Unsupported(why)) if input == DType::I8 && !b_transposed => {
                    say!("refused: {why}");
                    continue;
                }
                Err(err @ DeviceError::Missing { .. }) => {
                    say!("skipped: cuBLAS: {err}");
                    return;
                }
                Err(err) => panic!("{err}"),
            };
            let worst = check_gemm(&mut machine, program, &gemm);
            say!(
                "cuBLAS {input} -> {output} by {accumulator}, batch {batch}, B transposed {b_transposed}: off by \
                 {worst:.1e}"
            );
            assert!(worst <= tolerance, "{gemm:?}: {worst}");
        }
    }
    say!("{:?}", machine.info().versions);
    let refused = Gemm { input: DType::I32, output: DType::I32, ..square(64) };
    assert!(matches!(machine.load_gemm(&refused), Err(DeviceError::Unsupported(_))));
}

/// Runs a product on numbers and gives the largest difference from the naive sum in f64.
fn check_gemm(machine: &mut CudaMachine, program: ProgramId, gemm: &Gemm) -> f64 {
    let Gemm { batch, m, n, k, input, accumulator: _, output, b_transposed, .. } = *gemm;
    let a: Vec<f32> = (0..batch * m * k).map(number).collect();
    let b: Vec<f32> = (0..batch * k * n).map(|it| number(it * 5 + 11)).collect();
    let (da, db) = (upload(machine, &encode(input, &a)), upload(machine, &encode(input, &b)));
    let mut raw = vec![0xff; batch * m * n * output.bytes()];
    let dc = upload(machine, &raw);
    machine.run(program, &[da, db, dc], 2).expect("cuBLAS runs");
    machine.download(dc, &mut raw).expect("it fits");
    for it in [da, db, dc] {
        machine.free(it);
    }
    let worst = decode(output, &raw).into_iter().enumerate().map(|(at, got)| {
        let (i, row, column) = (at / (m * n), at / n % m, at % n);
        let b_at = |p: usize| if b_transposed { column * k + p } else { p * n + column };
        let product = |p: usize| f64::from(a[(i * m + row) * k + p]) * f64::from(b[i * k * n + b_at(p)]);
        let exact: f64 = (0..k).map(product).sum();
        // `max` passes over a NaN, which is as wrong as can be.
        if got.is_nan() { f64::INFINITY } else { (got - exact).abs() }
    });
    worst.fold(0.0, f64::max)
}

/// A product in f32.
fn square(size: usize) -> Gemm {
    let (input, accumulator, output) = (DType::F32, DType::F32, DType::F32);
    Gemm {
        batch: 1,
        m: size,
        n: size,
        k: size,
        input,
        accumulator,
        output,
        b_transposed: false,
        fast_sums: false,
    }
}

#[test]
fn tf32_is_off_and_the_baseline_is_fast() {
    let Some(mut machine) = machine("tf32_is_off_and_the_baseline_is_fast") else { return };
    let size = 2048;
    let program = match machine.load_gemm(&square(size)) {
        Ok(it) => it,
        Err(err) => return say!("skipped: cuBLAS: {err}"),
    };
    // 1 + 2^-14 is 1 in TF32, so that a product with TF32 gives exactly the size.
    let operand = vec![1.0 + 2f32.powi(-14); size * size];
    let (a, b) = (upload_f32(&mut machine, &operand), upload_f32(&mut machine, &operand));
    let c = upload_f32(&mut machine, &vec![f32::NAN; size * size]);
    machine.run(program, &[a, b, c], 3).unwrap();
    let got = download_f32(&mut machine, c, size * size)[size + 1];
    let exact = size as f32 * (1.0 + 2f32.powi(-13));
    assert!((got - exact).abs() < 0.1 * size as f32 * 2f32.powi(-13), "{got} instead of {exact}");
    let seconds = machine.run(program, &[a, b, c], 10).unwrap() / 10.0;
    let gflops = 2.0 * (size as f64).powi(3) / seconds / 1e9;
    let peak = machine.info().peak_f32_gflops.unwrap();
    say!("cuBLAS f32 {size}^3, TF32 off: {gflops:.0} GFLOPS of {peak:.0}");
    assert!(gflops < 1.05 * peak, "faster than the machine without tensor cores");
}

/// What the matrix units reach, and that it is not more than they can.
#[test]
fn products_of_matrix_units_are_below_their_peak() {
    let Some(mut machine) = machine("products_of_matrix_units_are_below_their_peak") else { return };
    let size = 4096;
    for ([input, accumulator, output], _) in PRODUCTS {
        let Some(peak) = machine.info().peak_product_gflops(input) else { continue };
        let gemm = Gemm { input, accumulator, output, b_transposed: true, ..square(size) };
        let program = match machine.load_gemm(&gemm) {
            Ok(it) => it,
            Err(err) => return say!("skipped: cuBLAS: {err}"),
        };
        let numbers: Vec<f32> = (0..size * size).map(number).collect();
        let (a, b) =
            (upload(&mut machine, &encode(input, &numbers)), upload(&mut machine, &encode(input, &numbers)));
        let c = upload(&mut machine, &vec![0; size * size * output.bytes()]);
        machine.run(program, &[a, b, c], 3).unwrap();
        let seconds = machine.run(program, &[a, b, c], 20).unwrap() / 20.0;
        let gflops = 2.0 * (size as f64).powi(3) / seconds / 1e9;
        say!("cuBLAS {input} -> {output} by {accumulator}, {size}^3 NT: {gflops:.0} GFLOPS of {peak:.0}");
        assert!(gflops < 1.02 * peak, "faster than the matrix units");
        for it in [a, b, c] {
            machine.free(it);
        }
    }
}
