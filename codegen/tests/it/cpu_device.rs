//! Handwritten C through the CPU machine, end to end.

use std::io::Write as _;

use ir::DType;
use tilewright_codegen::device::{
    BufferId, CPU_ABI_HEADER, CpuMachine, DeviceError, Gemm, Launch, Machine, Program, cc,
};

/// A compiler, or a word on what was skipped.
fn compiler(test: &str) -> Option<cc::Compiler> {
    cc::find()
        .inspect_err(|err| writeln!(std::io::stderr(), "skipped: {test}: {err}").expect("stderr is open"))
        .ok()
}

fn launch(kernel: &str, buffers: &[usize], dims: &[i64]) -> Launch {
    let (buffers, dims) = (buffers.to_vec(), dims.to_vec());
    Launch {
        kernel: kernel.into(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        programmatic: false,
        maps: vec![],
        buffers,
        dims,
    }
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

fn upload(machine: &mut CpuMachine, numbers: &[f32]) -> BufferId {
    let buffer = machine.alloc(numbers.len() * 4).expect("little memory");
    machine.upload(buffer, &bytes(numbers)).expect("it fits");
    buffer
}

fn download(machine: &mut CpuMachine, buffer: BufferId, count: usize) -> Vec<f32> {
    let mut raw = vec![0; count * 4];
    machine.download(buffer, &mut raw).expect("it fits");
    raw.as_chunks().0.iter().map(|it| f32::from_ne_bytes(*it)).collect()
}

const SOURCE: &str = r"
struct args { void *const *buffers; const int64_t *dims; const tw_runtime *rt; };

static void cell(void *ctx, int64_t j) {
  int64_t *at = ctx;
  ((float *)at[0])[at[1] * at[2] + j] += (float)(at[1] * 1000 + j);
}
static void row(void *ctx, int64_t i) {
  const struct args *args = ctx;
  int64_t at[3] = {(int64_t)args->buffers[1], i, args->dims[1]};
  args->rt->parallel(args->rt, args->dims[1], cell, at);
}
/* y = x * 2, then y[i, j] += 1000 i + j in nested parallel loops */
void twice(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = 0; i < dims[0]; ++i) y[i] = 2.0f * x[i];
}
void nested(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {
  struct args args = {buffers, dims, rt};
  rt->parallel(rt, dims[0], row, &args);
}
";

/// A product of two numbers.
const ONE_BY_ONE: Gemm = Gemm {
    batch: 1,
    m: 1,
    n: 1,
    k: 1,
    input: DType::F32,
    accumulator: DType::F32,
    output: DType::F32,
    b_transposed: false,
    fast_sums: false,
};

#[test]
fn launches_buffers_dims_and_threads() {
    let Some(compiler) = compiler("launches_buffers_dims_and_threads") else { return };
    let binary = compiler.compile(&format!("{CPU_ABI_HEADER}{SOURCE}")).unwrap();
    let (rows, columns) = (37, 53);
    let count = rows * columns;
    let x: Vec<f32> = (0..count).map(|it| it as f32 * 0.5).collect();
    let dims = [rows, columns].map(|it| i64::try_from(it).unwrap());
    let total = i64::try_from(count).unwrap();
    let launches = vec![launch("twice", &[0, 1], &[total]), launch("nested", &[0, 1], &dims)];
    let program = Program { binary, launches, buffers: vec![count * 4; 2], zeroed: vec![] };

    let mut machine = CpuMachine::open().unwrap();
    let input = upload(&mut machine, &x);
    for threads in [0, 1, 3] {
        machine.set_threads(threads);
        let output = upload(&mut machine, &vec![f32::NAN; count]);
        let loaded = machine.load(&program).unwrap();
        let seconds = machine.run(loaded, &[input, output], 3).unwrap();
        assert!(seconds > 0.0);
        machine.flush_cache().unwrap();
        let expected: Vec<f32> =
            (0..count).map(|it| 2.0 * x[it] + (it / columns * 1000 + it % columns) as f32).collect();
        assert_eq!(download(&mut machine, output, count), expected, "{threads} threads");
        machine.free(output);
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let Some(compiler) = compiler("what_does_not_fit_is_refused_in_words") else { return };
    let binary = compiler.compile(&format!("{CPU_ABI_HEADER}{SOURCE}")).unwrap();
    let mut machine = CpuMachine::open().unwrap();
    let program =
        |launches| Program { binary: binary.clone(), launches, buffers: vec![16, 16], zeroed: vec![] };
    let good = machine.load(&program(vec![launch("twice", &[0, 1], &[4])])).unwrap();
    let (a, b, small) = (machine.alloc(16).unwrap(), machine.alloc(16).unwrap(), machine.alloc(8).unwrap());

    let mut words = String::new();
    let mut note = |err: DeviceError| {
        words += &format!("{err}\n").replace(env!("CARGO_MANIFEST_DIR"), "");
    };
    note(machine.run(good, &[a], 1).unwrap_err());
    note(machine.run(good, &[a, small], 1).unwrap_err());
    note(machine.run(good, &[a, a], 1).unwrap_err());
    note(machine.run(good, &[a, BufferId(99)], 1).unwrap_err());
    machine.free(b);
    note(machine.run(good, &[a, b], 1).unwrap_err());
    note(machine.upload(small, &[0; 9]).unwrap_err());
    note(machine.download(small, &mut [0; 9]).unwrap_err());
    note(machine.load(&program(vec![launch("twice", &[0, 2], &[4])])).unwrap_err());
    let DeviceError::Call { call, .. } =
        machine.load(&program(vec![launch("absent", &[0], &[])])).unwrap_err()
    else {
        panic!("a call");
    };
    note(DeviceError::Call { call, reason: "…".into() });
    let gemm = Gemm {
        batch: 1,
        m: 2,
        n: 2,
        k: 2,
        input: DType::Bf16,
        accumulator: DType::F32,
        output: DType::F32,
        b_transposed: false,
        fast_sums: false,
    };
    note(machine.load_gemm(&gemm).unwrap_err());
    insta::assert_snapshot!(words);

    let broken =
        Program { binary: b"not a library".to_vec(), launches: vec![], buffers: vec![], zeroed: vec![] };
    assert!(matches!(machine.load(&broken), Err(DeviceError::Call { .. })));
    let err = machine.alloc(usize::MAX / 4).unwrap_err();
    assert!(err.to_string().starts_with("taking "), "{err}");
}

#[test]
fn empty_buffers_and_no_calls() {
    let mut machine = CpuMachine::open().unwrap();
    let empty = machine.alloc(0).unwrap();
    machine.upload(empty, &[]).unwrap();
    machine.download(empty, &mut []).unwrap();
    let gemm = ONE_BY_ONE;
    let (a, b) = (upload(&mut machine, &[3.0]), upload(&mut machine, &[5.0]));
    let c = upload(&mut machine, &[-1.0]);
    let program = machine.load_gemm(&gemm).unwrap();
    machine.run(program, &[a, b, c], 0).unwrap();
    assert_eq!(download(&mut machine, c, 1), [-1.0]);
    machine.run(program, &[a, b, c], 1).unwrap();
    assert_eq!(download(&mut machine, c, 1), [15.0]);
}

#[test]
fn unloaded_programs_are_gone_and_the_others_stay() {
    let mut machine = CpuMachine::open().unwrap();
    let gemm = ONE_BY_ONE;
    let (a, b) = (upload(&mut machine, &[3.0]), upload(&mut machine, &[5.0]));
    let c = upload(&mut machine, &[-1.0]);
    let first = machine.load_gemm(&gemm).unwrap();
    let choices = machine.load_gemm_choices(&gemm, 8).unwrap();
    let [second] = choices[..] else { panic!("{choices:?}") };
    machine.unload(first);
    machine.unload(first);
    let err = machine.run(first, &[a, b, c], 1).unwrap_err();
    assert_eq!(err.to_string(), "there is no program 0");
    machine.run(second, &[a, b, c], 1).unwrap();
    assert_eq!(download(&mut machine, c, 1), [15.0]);
    assert_eq!(machine.load_gemm(&gemm).unwrap(), tilewright_codegen::device::ProgramId(2));

    let Some(compiler) = compiler("unloaded_programs_are_gone_and_the_others_stay") else { return };
    let binary = compiler.compile(&format!("{CPU_ABI_HEADER}{SOURCE}")).unwrap();
    let program = Program {
        binary,
        launches: vec![launch("twice", &[0, 1], &[1])],
        buffers: vec![4, 4],
        zeroed: vec![],
    };
    let loaded: Vec<_> = (0..3).map(|_| machine.load(&program).unwrap()).collect();
    machine.unload(loaded[0]);
    machine.unload(loaded[2]);
    assert!(machine.run(loaded[2], &[a, c], 1).is_err());
    machine.run(loaded[1], &[a, c], 1).unwrap();
    assert_eq!(download(&mut machine, c, 1), [6.0]);
}

#[test]
fn the_baseline_multiplies() {
    let mut machine = CpuMachine::open().unwrap();
    let (batch, m, n, k) = (2, 33, 17, 29);
    let number = |it: usize| f32::from(u8::try_from(it * 7 % 11).unwrap()) - 5.0;
    let a: Vec<f32> = (0..batch * m * k).map(number).collect();
    let b: Vec<f32> = (0..batch * k * n).map(|it| number(it * 3 + 1)).collect();
    for b_transposed in [false, true] {
        for threads in [1, 0] {
            machine.set_threads(threads);
            let gemm = Gemm {
                batch,
                m,
                n,
                k,
                input: DType::F32,
                accumulator: DType::F32,
                output: DType::F32,
                b_transposed,
                fast_sums: false,
            };
            let (da, db) = (upload(&mut machine, &a), upload(&mut machine, &b));
            let dc = upload(&mut machine, &vec![f32::NAN; batch * m * n]);
            let program = machine.load_gemm(&gemm).unwrap();
            machine.run(program, &[da, db, dc], 1).unwrap();
            let got = download(&mut machine, dc, batch * m * n);
            for (at, got) in got.iter().enumerate() {
                let (i, row, column) = (at / (m * n), at / n % m, at % n);
                let b_at = |p: usize| if b_transposed { column * k + p } else { p * n + column };
                // Small whole numbers: every order of summation gives the same.
                let sum: f32 = (0..k).map(|p| a[(i * m + row) * k + p] * b[i * k * n + b_at(p)]).sum();
                assert!((got - sum).abs() < 1e-3, "{at}: {got} {sum}");
            }
        }
    }
}

#[test]
fn the_machine_is_described_and_measured() {
    let Some(_) = compiler("the_machine_is_described_and_measured") else { return };
    let machine = CpuMachine::open().unwrap();
    let info = machine.info();
    writeln!(std::io::stderr(), "{info:?}").unwrap();
    assert!(!info.name.is_empty() && info.arch == "cpu" && info.units >= 1);
    assert!(info.cache_bytes >= 1 << 18);
    let (flops, bytes) = (info.peak_f32_gflops.unwrap(), info.peak_gb_per_s.unwrap());
    assert!((0.1..1e6).contains(&flops) && (0.05..1e5).contains(&bytes), "{flops} {bytes}");
    assert_eq!(info.versions[0].0, "cc");
}
