//! Emitted C on the CPU machine, against the oracle.

use std::io::Write as _;

use indexmap::IndexMap;
use ir::{BinaryOp, DType, Module, Name, Target, UnaryOp, Value, number};
use std::sync::Arc;
use tilewright_codegen::{
    device::{BufferId, CpuMachine, Machine, cc},
    emit::emit,
    program,
};

use super::{build::*, oracle, programs};

/// Compiles and runs a module; the bytes of its buffers afterwards. `None` where there is no compiler.
pub(crate) fn run(
    module: &Module,
    dims: &[(&str, i64)],
    fill: &dyn Fn(&Name, usize) -> f64,
) -> Option<Vec<Vec<u8>>> {
    let compiler = cc::find()
        .inspect_err(|err| writeln!(std::io::stderr(), "skipped: {err}").expect("stderr is open"))
        .ok()?;
    let source = emit(module, &Target::Cpu).unwrap();
    let binary = compiler.compile(&source).unwrap_or_else(|err| panic!("{err}\n{source}"));
    let dims: IndexMap<_, _> = dims.iter().map(|(name, value)| (n(name), *value)).collect();
    let program = program(module, &dims, binary).unwrap();
    let mut machine = CpuMachine::open().unwrap();
    let loaded = machine.load(&program).unwrap();
    let mut buffers: Vec<BufferId> = Vec::new();
    for ((name, arg), size) in module.args.iter().zip(&program.buffers) {
        let mut bytes = Vec::new();
        for at in 0..size / arg.dtype.bytes() {
            number::encode(arg.dtype, fill(name, at), &mut bytes);
        }
        let buffer = machine.alloc(*size).unwrap();
        machine.upload(buffer, &bytes).unwrap();
        buffers.push(buffer);
    }
    machine.run(loaded, &buffers, 1).unwrap();
    let read = |(buffer, size): (&BufferId, &usize)| {
        let mut bytes = vec![0; *size];
        machine.download(*buffer, &mut bytes).unwrap();
        bytes
    };
    Some(buffers.iter().zip(&program.buffers).map(read).collect())
}

/// Runs a module as the passes leave it, and demands what the oracle says of it before they ran.
fn check(module: Module, dims: &[(&str, i64)], tolerance: f64, fill: &dyn Fn(&Name, usize) -> f64) {
    let expected = oracle::run(&module, dims, fill);
    let finished = finish(module, &Target::Cpu);
    let after = oracle::run(&finished, dims, fill);
    let Some(got) = run(&finished, dims, fill) else { return };
    for ((name, arg), bytes) in finished.args.iter().zip(got) {
        let wanted = &expected.buffers[name].1;
        let kept = &after.buffers[name].1;
        for (at, element) in bytes.chunks(arg.dtype.bytes()).enumerate() {
            let x = number::decode(arg.dtype, element);
            let y = wanted[at];
            let same = |x: f64| {
                let is_equal =
                    x.partial_cmp(&y).is_none_or(std::cmp::Ordering::is_eq) && x.is_nan() == y.is_nan();
                is_equal || (x - y).abs() <= tolerance * y.abs()
            };
            assert!(
                same(kept[at]),
                "{}: the passes changed {name}[{at}] to {} from {y}",
                finished.name,
                kept[at]
            );
            assert!(same(x), "{}: {name}[{at}] is {x}, not {y}", finished.name);
        }
    }
}

fn pattern(name: &Name, at: usize) -> f64 {
    let seed = name.as_str().bytes().map(usize::from).sum::<usize>();
    ((at * 7 + seed) % 13) as f64 - 6.0
}

#[test]
fn register_tiles() {
    for (tile, threads) in
        [((2, 2, 4), false), ((3, 1, 8), true), ((4, 2, 16), false), ((1, 1, 2), true), ((6, 3, 1), false)]
    {
        let m = tile.0 * tile.1 * tile.2 * 2;
        check(programs::tiled_matmul(m, 20, tile, threads), &[], 0.0, &pattern);
    }
}

#[test]
fn guards_and_padding() {
    for size in [1, 3, 4, 5, 16, 19] {
        check(programs::guarded_axpy(), &[("n", size)], 0.0, &pattern);
    }
    check(programs::padded(), &[], 0.0, &pattern);
    check(programs::not_lanes(), &[], 0.0, &pattern);
}

#[test]
fn narrow_floats_in_lanes() {
    for lanes in [1, 4, 16, 64] {
        check(programs::narrow_floats(lanes), &[], 1e-3, &pattern);
    }
}

/// Numbers at which conversions go wrong.
const SPECIAL: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    127.4,
    127.5,
    128.0,
    129.0,
    -128.5,
    -129.0,
    255.5,
    256.0,
    257.0,
    32767.5,
    40000.0,
    65504.0,
    65519.0,
    65520.0,
    70000.0,
    -70000.0,
    448.0,
    460.0,
    464.0,
    465.0,
    480.0,
    57344.0,
    61440.0,
    61441.0,
    1e-3,
    6.1e-5,
    6e-5,
    6e-8,
    3e-8,
    2.9e-8,
    1e-8,
    0.001_953_125,
    0.001,
    0.000_9,
    1e-40,
    1e-45,
    3.4e38,
    3.39e38,
    3.5e38,
    1e300,
    -1e300,
    2_147_483_647.0,
    2_147_483_648.0,
    -2_147_483_649.0,
    4_294_967_296.0,
    9e18,
    1e19,
    -1e19,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.000_488_281_25,
    1.000_488_281_250_001,
    1.001_953_125,
    2049.0,
    2051.0,
    1.003_906_25,
    0.1,
    0.3,
    3.3,
];

/// One loop over special numbers for each of several statements, in lanes and one by one.
fn over_special(name: &str, from: DType, outputs: &[(String, DType, Value)], lanes: i64) -> Module {
    let len = 72;
    let mut args = vec![("x", from, len.into()), ("y", from, len.into())];
    let names: Vec<_> = outputs.iter().map(|it| format!("{}+", it.0)).collect();
    args.extend(names.iter().zip(outputs).map(|(name, it)| (name.as_str(), it.1, len.into())));
    let at = |var: &ir::Name| (var.as_str() == "i").then(|| v("io") * lanes + v("i"));
    let stores = outputs
        .iter()
        .map(|(name, _, value)| vectorized("i", lanes, vec![store(name, v("i"), value.clone()).subst(&at)]));
    module(name, &[], &args, vec![serial("io", len / lanes, stores.collect())])
}

fn special(name: &Name, at: usize) -> f64 {
    let shift = if *name == "y" { 5 } else { 0 };
    SPECIAL[(at + shift) % SPECIAL.len()]
}

/// The widths worth a compilation: most types compute their lanes one by one, which tests both.
fn widths(dtype: DType) -> &'static [i64] {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F32 | DType::I32 => &[1, 8],
        _ => &[8],
    }
}

#[test]
fn every_conversion_rounds_wraps_and_saturates() {
    for from in DType::ALL {
        let outputs = DType::ALL.map(|to| (format!("to_{to}"), to, cast(to, load("x", v("i")))));
        // An i64 beyond 2^53 is not exact in the oracle.
        let fill = |name: &Name, at: usize| {
            let x = special(name, at);
            if from == DType::I64 { x.clamp(-1e12, 1e12) } else { x }
        };
        for lanes in widths(from) {
            check(over_special("casts", from, &outputs, *lanes), &[], 0.0, &fill);
        }
    }
}

#[test]
fn every_operation_in_every_type() {
    for dtype in DType::ALL {
        let (x, y) = (load("x", v("i")), load("y", v("i")));
        let mut outputs: Vec<_> = BinaryOp::ALL
            .into_iter()
            .filter(|op| op.takes(dtype) && *op != BinaryOp::Div)
            .map(|op| (format!("out_{op:?}"), op.result(dtype), Value::binary(op, x.clone(), y.clone())))
            .collect();
        let less = Value::binary(BinaryOp::Lt, x.clone(), y.clone());
        outputs.push(("out_where".into(), dtype, Value::choice(less, y.clone(), x.clone())));
        let divisor = Value::binary(BinaryOp::Max, y.clone(), constant(dtype, 1.0));
        outputs.push(("out_Div".into(), dtype, Value::binary(BinaryOp::Div, x.clone(), divisor)));
        for op in UnaryOp::ALL.into_iter().filter(|op| op.is_exact() && op.takes(dtype)) {
            outputs.push((format!("out_{op:?}"), dtype, Value::Unary(op, Arc::new(x.clone()))));
        }
        let fill = |name: &Name, at: usize| {
            let x = special(name, at);
            if dtype == DType::I64 { x.clamp(-1e6, 1e6) } else { x }
        };
        for lanes in widths(dtype) {
            check(over_special("operations", dtype, &outputs, *lanes), &[], 0.0, &fill);
        }
    }
}

#[test]
fn library_functions() {
    let functions: Vec<_> = UnaryOp::ALL.into_iter().filter(|op| !op.is_exact()).collect();
    for (dtype, tolerance) in
        [(DType::F64, 1e-14), (DType::F32, 1e-6), (DType::F16, 2e-3), (DType::Bf16, 1e-2)]
    {
        let call =
            |op: UnaryOp| (format!("out_{op:?}"), dtype, Value::Unary(op, Arc::new(load("x", v("i")))));
        let outputs: Vec<_> = functions.iter().copied().map(call).collect();
        for lanes in [1, 8] {
            check(over_special("functions", dtype, &outputs, lanes), &[], tolerance, &|_, at| {
                at as f64 / 16.0
            });
        }
    }
}
