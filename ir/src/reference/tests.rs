//! Slices of programs against whole runs, and bounds against what machines may do.

use super::*;
use crate::{DType, Tensor, interp, interp::resolve::MOST_HELD, text};

/// Programs that are not plain: every way in which a later store, a guard or an iteration decides what an element is.
const PROGRAMS: [&str; 10] = [
    // Two blocks write one buffer, and both of them some elements.
    "func two
  in A: f32[24]
  out B: f32[24]

  for i in 0..16
    block B_low(v: 24 = i)
      B[v] = A[v] * 3.0f32
  for j in 0..16
    block B_high(v: 24 = j + 8)
      B[v] = A[v] + 1.5f32
",
    // The later block reads what the earlier one left.
    "func chain
  in A: f32[24]
  out B: f32[24]

  for i in 0..24
    block B_first(v: 24 = i)
      B[v] = A[v]
  for j in 0..23
    block B_next(v: 24 = j)
      B[v] = B[v + 1] * 0.5f32 + B[v]
",
    // Outer iterations refill a temporary, the second one with something else.
    "func refilled
  in A: f32[4, 6]
  out B: f32[4, 6]
  temp T: f32[6]

  for i in 0..4
    for j in 0..6
      block T(vi: 4 = i, vj: 6 = j)
        T[vj] = A[vi, vj] * 0.125f32
    for j_1 in 0..6
      block B(vi: 4 = i, vj: 6 = j_1)
        B[vi, vj] = T[5 - vj] + T[vj]
",
    // A temporary that not every iteration fills.
    "func kept
  in A: f32[8]
  out C: f32[8]
  temp B: f32[1]

  for i in 0..8
    for j in 0..1
      block W(v: 8 = i) if i mod 3 < 1
        B[0] = A[v]
    block R(v: 8 = i)
      C[v] = B[0]
",
    // A triangle, and a sum that begins anew where its iterator is zero.
    "func triangle
  in A: f32[12]
  out B: f32[12]

  for i in 0..12
    for j in 0..i + 1
      block B(vi: 12 = i, vj: reduce 12 = j)
        init
          B[vi] = 0.0f32
        B[vi] = B[vi] + A[vj] * A[vi]
",
    // A product that was tiled, with a guard at the ragged end.
    "func tiled
  in A: f16[10, 12]
  in B: f16[12, 7]
  out C: f32[10, 7]
  temp C_local: f32[10, 7]

  for io in 0..3
    for f in 0..28
      for ko in 0..3
        for ki in 0..4
          block C(vi: 10 = io*4 + f floordiv 7, vj: 7 = f mod 7, vk: reduce 12 = ko*4 + ki) if io*4 + f floordiv 7 < 10
            init
              C_local[vi, vj] = 0.0f32
            C_local[vi, vj] = C_local[vi, vj] + f32(A[vi, vk]) * f32(B[vk, vj])
    for f_1 in 0..28
      block C_out(vi: 10 = io*4 + f_1 floordiv 7, vj: 7 = f_1 mod 7) if io*4 + f_1 floordiv 7 < 10
        C[vi, vj] = C_local[vi, vj]
",
    // Initialisation apart from the update, and the update without any iterator of its own.
    "func apart
  in A: f32[5, 9]
  out B: f32[5]

  for i in 0..5
    block B_init(v: 5 = i)
      B[v] = 0.25f32
    for k in 0..9
      block B_update(v: 5 = i, vk: reduce 9 = k)
        B[v] = B[v] - A[v, vk]
",
    // What is written at the end does not depend on what was there.
    "func overwritten
  in A: i32[16]
  out B: i32[16]

  for t in 0..5
    for i in 0..16
      block B(v: 16 = xor(i, t), vt: 5 = t)
        B[v] = A[xor(v, 3)] * i32{vt} + i32{v}
",
    // A prefix sum in place.
    "func prefix
  in A: f32[20]
  out B: f32[20]

  block First()
    B[0] = A[0]
  for i in 0..19
    block B(v: 19 = i)
      B[v + 1] = B[v] + A[v + 1]
",
    // Selects read one side only: the other does not exist.
    "func padded
  in A: f32[10]
  out B: f32[12]
  temp P: f32[12]

  for i in 0..12
    block P(v: 12 = i)
      P[v] = select(0 < v && v < 11, A[v - 1], 0.0f32)
  for j in 0..6
    for k in 0..2
      block B(v: 12 = j*2 + k)
        B[v] = select(v < 11, P[v + 1], P[0]) + P[min(v + 2, 11)]
",
];

fn inputs(func: &Func) -> Vec<Tensor> {
    let inputs = func.buffers.values().filter(|it| it.role == Role::Input);
    let tensor = |(salt, it): (usize, &crate::Buffer)| {
        let shape: Vec<usize> =
            it.shape.iter().map(|it| usize::try_from(it.as_int().unwrap()).unwrap()).collect();
        let count: usize = shape.iter().product();
        Tensor::new(it.dtype, &shape, (0..count).map(|at| ((at * 7 + salt * 5) % 13) as f64 * 0.7 - 4.0))
    };
    inputs.enumerate().map(tensor).collect()
}

#[test]
fn slices_and_whole_runs_are_what_the_interpreter_says() {
    for program in PROGRAMS {
        let func = text::parse(program).unwrap();
        crate::verify(&func).unwrap_or_else(|errors| panic!("{}: {errors:?}", func.name));
        let (dims, inputs) = (IndexMap::new(), inputs(&func));
        assert!(Reference::check(&func, &dims).is_err(), "{}", func.name);
        let whole = interp::run(&func, &dims, &inputs).unwrap();
        let elements: Vec<_> = inputs.iter().map(|it| Elements::Numbers(&it.data)).collect();
        let shapes = shapes(&func, &dims, MOST_HELD).unwrap();
        let sources = input_sources(&func, &shapes, &elements).unwrap();
        for is_short in [true, false] {
            let tables = tables(&func, &shapes, &|buffer, at| sources[buffer].read(at));
            let given = Given { func: &func, dims: &dims, shapes: &shapes, tables: &tables };
            let mut own = General::<f64>::new(given, &func, &sources).unwrap();
            let mut near = General::<Near>::new(given, &func, &sources).unwrap();
            (own.is_short, near.is_short) = (is_short, is_short);
            let outputs = func.buffers.iter().enumerate().filter(|(_, (_, it))| it.role == Role::Output);
            for ((number, _), output) in outputs.zip(&whole) {
                let offsets: Vec<usize> = (0..output.data.len()).collect();
                let found: Vec<_> = own.elements(number, &offsets).unwrap().into_iter().flatten().collect();
                assert_eq!(found, output.data, "{}", func.name);
                // One at a time, what others depend on is not there by chance.
                for at in offsets {
                    assert_eq!(
                        own.elements(number, &[at]).unwrap(),
                        [Some(output.data[at])],
                        "{}",
                        func.name
                    );
                    let near = near.elements(number, &[at]).unwrap()[0].unwrap();
                    let (error, allowed) = near.error(output.data[at]);
                    assert!(error <= allowed, "{}: {} is not {near:?}", func.name, output.data[at]);
                    assert!(allowed <= 1e-4 * near.value.abs().max(1.0), "{}: {near:?}", func.name);
                }
            }
        }
    }
}

#[test]
fn a_slice_of_a_long_program_is_short() {
    let program = "func long
  in A: f32[4096, 64]
  in B: f32[64, 4096]
  out C: f32[4096, 4096]

  for io in 0..64
    for jo in 0..64
      for ko in 0..16
        for f in 0..4096
          for ki in 0..4
            block C(vi: 4096 = io*64 + f floordiv 64, vj: 4096 = jo*64 + f mod 64, vk: reduce 64 = ko*4 + ki)
              init
                C[vi, vj] = 0.0f32
              C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
";
    let (func, dims) = (text::parse(program).unwrap(), IndexMap::new());
    let inputs = inputs(&func);
    let elements: Vec<_> = inputs.iter().map(|it| Elements::Numbers(&it.data)).collect();
    let mut reference = Reference::new(&func, &dims, &elements).unwrap();
    assert!(!reference.is_cheap());
    let places = [[0, 0], [4095, 4095], [17, 4000], [2048, 63]];
    let found = reference.elements(&"C".into(), &places).unwrap();
    for ([i, j], found) in places.into_iter().zip(found) {
        let at = |row: i64, column: i64, width| usize::try_from(row * width + column).unwrap();
        let products = (0..64).map(|k| inputs[0].data[at(i, k, 64)] * inputs[1].data[at(k, j, 4096)]);
        assert!((found.unwrap().value - products.sum::<f64>()).abs() < 1e-9);
    }
}

#[test]
fn what_is_never_written_has_no_value() {
    let program = "func half
  in A: f32[8]
  out B: f32[8]

  for i in 0..4
    block B(v: 8 = i*2)
      B[v] = A[v]
";
    let (func, dims) = (text::parse(program).unwrap(), IndexMap::new());
    let inputs = inputs(&func);
    let elements = [Elements::Numbers(&inputs[0].data)];
    let mut reference = Reference::new(&func, &dims, &elements).unwrap();
    let found = reference.elements(&"B".into(), &[[2], [3]]).unwrap();
    assert_eq!((found[0].map(|it| it.value), found[1]), (Some(inputs[0].data[2]), None));
    let err = reference.element(&"B".into(), &[3]).unwrap_err();
    assert_eq!(err.to_string(), "the program ends without writing B[3]");
}

/// The one element of a program over `X: f32[1]`, with bounds and in its own types.
fn single(value: &str, x: f64) -> (Near, f64) {
    let program = format!(
        "func single\n  in X: f32[1]\n  out Y: f32[1]\n\n  for i in 0..1\n    block Y(v: 1 = i)\n      Y[v] = {value}\n"
    );
    let (func, dims) = (text::parse(&program).unwrap(), IndexMap::new());
    let input = [number::round(DType::F32, x)];
    let mut reference = Reference::new(&func, &dims, &[Elements::Numbers(&input)]).unwrap();
    let own = reference.in_own_types(&"Y".into(), &[0]).unwrap().unwrap();
    (reference.element(&"Y".into(), &[0]).unwrap(), own)
}

#[test]
fn bounds_follow_the_conditioning() {
    let values = [
        "exp(X[v] * 20.0f32)",
        "X[v] * X[v] + 10000.0f32 - 10000.0f32",
        "(X[v] * 100000000.0f32 + X[v]) - X[v] * 100000000.0f32",
        "log(abs(X[v]) + 1.0f32)",
        "tanh(X[v] * 3.0f32) * erf(X[v]) / (X[v] * X[v] + 0.1f32)",
        "sqrt(max(X[v] + 0.1f32 - X[v], 0.0f32))",
        "rsqrt(X[v] * X[v] + 0.001f32)",
        "f32(bf16(X[v] * 1.7f32)) - f32(f16(X[v] * 0.3f32))",
        "f32(f8e4m3(X[v] * 300.0f32))",
        "f32(i32(X[v] * 1000.0f32))",
        "min(abs(X[v] * 0.1f32), 0.3f32) - 0.3f32",
        "sin(X[v] * 100.0f32) + cos(X[v] * 0.1f32)",
        "log2(exp2(X[v] * 1.7f32) + 1.0f32)",
        "floor(X[v] * 0.1f32 * 10.0f32) + rint(X[v]) * ceil(X[v] * 0.3f32)",
        "where(X[v] * 0.1f32 * 10.0f32 <= X[v], X[v], X[v] + 1.0f32)",
    ];
    let mut digits = vec![];
    for value in values {
        let mut least = f64::INFINITY;
        for step in -40..=40 {
            let x = f64::from(step) * 0.11;
            let (near, own) = single(value, x);
            let (error, allowed) = near.error(own);
            assert!(error <= allowed, "{value} at {x}: {own} is not {near:?}");
            let relative = near.below.max(near.above) / near.value.abs();
            least = least.min(if near.value == 0.0 { f64::INFINITY } else { -relative.log10() });
        }
        digits.push(format!("{value}: {least:.1}"));
    }
    insta::assert_snapshot!(digits.join("\n"));
}

#[test]
fn what_has_no_bound_may_be_anything() {
    for value in [
        "1.0f32 / (X[v] * 0.1f32 - X[v] * 0.1f32)",
        "log(X[v] * 0.1f32 - X[v] * 0.1f32)",
        "exp(X[v] * 1000.0f32)",
    ] {
        let (near, _) = single(value, 0.7);
        assert!(near.is_unbounded(), "{value}: {near:?}");
        assert!(near.error(f64::NAN).0 <= 0.0);
    }
    // What is masked by infinity is nothing, however wrong the rest is.
    for value in
        ["exp(-inf_f32 - X[v] * 0.1f32)", "exp(X[v] * 0.1f32 + -inf_f32)", "exp(X[v] * 0.1f32 - inf_f32)"]
    {
        let (near, _) = single(value, 0.7);
        assert_eq!((near.value, near.is_unbounded()), (0.0, false), "{value}");
        assert!(near.above < 1e-30, "{value}: {near:?}");
    }
    // A division by zero that is one in any arithmetic has a value.
    let (near, _) = single("X[v] / 0.0f32", 1.0);
    assert_eq!((near.value, near.is_unbounded()), (f64::INFINITY, false));
    assert!(near.error(1.0).0.is_infinite());
}

#[test]
fn a_temporary_that_nothing_could_hold_has_elements() {
    let func = "func large
  in A: f32[131072]
  temp S: f32[131072, 131072]
  out B: f32[131072]

  for i in 0..131072
    for j in 0..131072
      block S(vi: 131072 = i, vj: 131072 = j)
        S[vi, vj] = A[vi] * A[vj]
  for ib in 0..131072
    block B(vi: 131072 = ib)
      B[vi] = S[vi, 131071 - vi]
";
    let func = text::parse(func).unwrap();
    let data: Vec<f64> = (0..131_072).map(|it| f64::from(it % 7)).collect();
    let dims = IndexMap::new();
    let mut reference = Reference::new(&func, &dims, &[Elements::Numbers(&data)]).unwrap();
    let found = reference.element(&"B".into(), &[131_070]).unwrap();
    assert!((found.value - f64::from(131_070 % 7)).abs() < 1e-6);
}

#[test]
fn scans_go_on_from_what_is_known_of_them() {
    for (cond, term) in [
        ("vk < vj + 1", "A[vi, vk]"),
        ("vk < vj", "A[vi, vk]"),
        ("vj < vk + 1", "A[vi, vk]"),
        ("vj < vk", "A[vi, vk] * 0.5f32"),
    ] {
        let program = format!(
            "func scan
  in A: f32[3, 11]
  out B: f32[3, 11]

  for i in 0..3
    for j in 0..11
      for k in 0..11
        block B(vi: 3 = i, vj: 11 = j, vk: reduce 11 = k)
          init
            B[vi, vj] = 0.0f32
          B[vi, vj] = B[vi, vj] + select({cond}, {term}, 0.0f32)
"
        );
        let (func, dims) = (text::parse(&program).unwrap(), IndexMap::new());
        let inputs = inputs(&func);
        let whole = interp::run(&func, &dims, &inputs).unwrap();
        let elements: Vec<_> = inputs.iter().map(|it| Elements::Numbers(&it.data)).collect();
        let mut reference = Reference::new(&func, &dims, &elements).unwrap();
        // In an order in which some results are behind, and some before, those that are known.
        for at in (0..33).map(|it| it * 7 % 33) {
            let place = [i64::try_from(at / 11).unwrap(), i64::try_from(at % 11).unwrap()];
            let (near, got) = (reference.element(&"B".into(), &place).unwrap(), whole[0].data[at]);
            let (error, allowed) = near.error(got);
            assert!(error <= allowed && allowed < 1e-4, "{cond} at {place:?}: {got} is not {near:?}");
            assert_eq!(
                reference.in_own_types(&"B".into(), &place).unwrap(),
                Some(got),
                "{cond} at {place:?}"
            );
        }
    }
}
