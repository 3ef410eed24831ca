//! What programs compute, and where the interpreter stops a wrong one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use indexmap::IndexMap;
use tilewright_ir::{
    DType, InterpError, Name, Tensor, cost, interp,
    reference::{Elements, Reference},
    text,
};

fn run(text: &str, dims: &[(&str, i64)], inputs: &[Tensor]) -> Result<Vec<Tensor>, InterpError> {
    interp::run(&text::parse(text).unwrap(), &sizes(dims), inputs)
}

fn sizes(dims: &[(&str, i64)]) -> IndexMap<Name, i64> {
    dims.iter().map(|(name, value)| (Name::new(*name), *value)).collect()
}

/// The message with which a program without inputs stops.
fn stops(text: &str, dims: &[(&str, i64)]) -> String {
    run(text, dims, &[]).unwrap_err().to_string()
}

fn counting(dtype: DType, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    Tensor::new(dtype, shape, (0..count).map(|it| (it * 7 % 11) as f64 - 5.0))
}

/// A product scheduled with a guard, a staged copy of A, and everything that does not change what is computed.
const TILED: &str = "
func matmul(n)
  in A: f32[n, 6]
  in B: f32[6, 5]
  out C: f32[n, 5]
  temp A_shared: f32[n, 6] @shared align(0, 32, 4)

  for io in 0..(n + 3) floordiv 4 @blockIdx.x
    for a in 0..24 @vectorized
      block A_shared(vi: n = io*4 + a floordiv 6, vk: 6 = a mod 6) if io*4 + a floordiv 6 < n
        A_shared[vi, vk] = A[vi, vk]
    for ii in 0..4 @threadIdx.x
      for j in 0..5 @unrolled
        for k in 0..6
          block C(vi: n = io*4 + ii, vj: 5 = j, vk: reduce 6 = k) if io*4 + ii < n
            init
              C[vi, vj] = 0.0f32
            C[vi, vj] = C[vi, vj] + A_shared[vi, vk] * B[vk, vj]
";

#[test]
fn a_schedule_does_not_change_the_product() {
    for n in [1, 3, 4, 9] {
        let (a, b) = (counting(DType::F32, &[n, 6]), counting(DType::F32, &[6, 5]));
        let dims = [("n", i64::try_from(n).unwrap())];
        let out = run(TILED, &dims, &[a.clone(), b.clone()]).unwrap();
        assert_eq!(out[0].shape, [n, 5]);
        for (at, got) in out[0].data.iter().enumerate() {
            let want: f64 = (0..6).map(|k| a.data[at / 5 * 6 + k] * b.data[k * 5 + at % 5]).sum();
            assert!((got - want).abs() < 1e-9, "n = {n}, element {at}");
        }
    }
}

#[test]
fn each_operation_rounds_to_its_type() {
    let program = |ty: &str| {
        format!(
            "func f()
  in A: {ty}[3]
  out C: {ty}[3]

  for i in 0..3
    block C(v: 3 = i)
      C[v] = A[v] * A[v] + 1.0{ty}
"
        )
    };
    let result = |ty: &str, dtype| {
        let input = Tensor::new(dtype, &[3], [1.0 / 3.0, 100.0, 300.0]);
        run(&program(ty), &[], &[input]).unwrap().remove(0).data
    };
    insta::assert_debug_snapshot!([
        result("f64", DType::F64),
        result("f32", DType::F32),
        result("f16", DType::F16),
        result("bf16", DType::Bf16),
    ]);
    let ints = program("i8").replace("1.0i8", "1i8");
    let input = Tensor::new(DType::I8, &[3], [3.0, 12.0, -11.0]);
    assert_eq!(run(&ints, &[], &[input]).unwrap()[0].data, [10.0, -111.0, 122.0]);
}

/// Wrong programs over `temp T: f32[4]` and `out C: f32[4]`, with the place in question.
fn program(body: &str) -> String {
    format!("func f(n)\n  out C: f32[4]\n  temp T: f32[n]\n\n{body}")
}

#[test]
fn wrong_programs_stop_where_they_go_wrong() {
    let bodies = [
        // A subscript beyond the end.
        "  for i in 0..4\n    for j in 0..2\n      block C(v: 9 = i + 2*j)\n        C[v] = 1.0f32\n",
        // A negative one, read.
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = T[v - 1]\n",
        // Not written before.
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = T[v]\n",
        // Outside the iterator's domain: a guard is missing.
        "  for i in 0..5\n    block C(v: 4 = i)\n      C[v] = 1.0f32\n",
        // Not all is written.
        "  for i in 0..3\n    block C(v: 4 = i)\n      C[v] = 1.0f32\n",
        // The loop variable is hidden in the block.
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[i] = 1.0f32\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = 1.0f64\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = T[v] + 1i32\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = f32(exp(1i32))\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v, 0] = 1.0f32\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = D[v]\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v] = f32(1i32 / i32{v - 1})\n",
        "  for i in 0..4\n    block C(v: 4 = i floordiv (i - 2))\n      C[v] = 1.0f32\n",
        "  for i in 0..4\n    block C(v: 4 = i)\n      C[v*4611686018427387904*2] = 1.0f32\n",
        "  for i in 0..4\n    for j in 0..4611686018427387904*n*2\n      block C(v: 4 = i)\n        C[v] = 1.0f32\n",
    ];
    let messages: Vec<_> = bodies.iter().map(|it| stops(&program(it), &[("n", 4)])).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn wrong_inputs_and_dimensions_are_refused() {
    let a = || counting(DType::F32, &[2, 6]);
    let b = || counting(DType::F32, &[6, 5]);
    let mut short = b();
    short.data.pop();
    let refused = |dims: &[(&str, i64)], inputs: &[Tensor]| run(TILED, dims, inputs).unwrap_err().to_string();
    let messages = [
        refused(&[], &[a(), b()]),
        refused(&[("n", 0)], &[a(), b()]),
        refused(&[("n", 2), ("m", 2)], &[a(), b()]),
        refused(&[("n", i64::MAX)], &[a(), b()]),
        refused(&[("n", 2)], &[a()]),
        refused(&[("n", 2)], &[b(), a()]),
        refused(&[("n", 2)], &[a(), short]),
        refused(&[("n", 2)], &[a(), counting(DType::F16, &[6, 5])]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

/// Several stages; the second reduces the first's rows, the third reads both.
const STAGES: &str = "
func softmax(n)
  in X: f16[n, 7]
  out Y: f32[n, 7]
  temp E: f32[n, 7]
  temp S: f32[n]

  for i in 0..n
    for j in 0..7
      block E(vi: n = i, vj: 7 = j)
        E[vi, vj] = exp(f32(X[vi, vj]))
  for i_1 in 0..n
    for j_1 in 0..7
      block S(vi: n = i_1, vj: reduce 7 = j_1)
        init
          S[vi] = 0.0f32
        S[vi] = S[vi] + E[vi, vj]
  for i_2 in 0..n
    for j_2 in 0..7
      block Y(vi: n = i_2, vj: 7 = j_2)
        Y[vi, vj] = E[vi, vj] / S[vi]
";

#[test]
fn single_elements_agree_with_the_whole_run() {
    let (func, dims) = (text::parse(STAGES).unwrap(), sizes(&[("n", 3)]));
    let input = counting(DType::F16, &[3, 7]);
    let whole = interp::run(&func, &dims, std::slice::from_ref(&input)).unwrap().remove(0);
    let mut bytes = Vec::new();
    input.data.iter().for_each(|it| tilewright_ir::number::encode(DType::F16, *it, &mut bytes));
    for elements in [Elements::Numbers(&input.data), Elements::Bytes(&bytes)] {
        let mut reference = Reference::new(&func, &dims, &[elements]).unwrap();
        for i in 0..3 {
            for j in 0..7 {
                let near = reference.element(&"Y".into(), &[i, j]).unwrap();
                let got = near.value;
                let at = usize::try_from(i * 7 + j).unwrap();
                let row = &input.data[at / 7 * 7..][..7];
                let want = input.data[at].exp() / row.iter().map(|it| it.exp()).sum::<f64>();
                assert!((got - want).abs() < 1e-15);
                assert!((got - whole.data[at]).abs() < 1e-6);
                let (error, allowed) = near.error(whole.data[at]);
                assert!(error <= allowed && allowed < 1e-5 * got, "{near:?}");
                let own = reference.in_own_types(&"Y".into(), &[i, j]).unwrap();
                assert_eq!(own, Some(whole.data[at]));
            }
        }
    }
}

#[test]
fn scheduled_programs_and_wrong_places_are_refused_lazily() {
    let dims = sizes(&[("n", 2)]);
    let func = text::parse(STAGES).unwrap();
    let input = counting(DType::F16, &[2, 7]).data;
    let mut reference = Reference::new(&func, &dims, &[Elements::Numbers(&input)]).unwrap();
    let mut messages = vec![
        reference.element(&"Y".into(), &[0, 7]).unwrap_err().to_string(),
        reference.element(&"Y".into(), &[0]).unwrap_err().to_string(),
        reference.element(&"Q".into(), &[0]).unwrap_err().to_string(),
        Reference::new(&func, &dims, &[Elements::Bytes(&[0; 27])]).unwrap_err().to_string(),
        Reference::new(&func, &dims, &[]).unwrap_err().to_string(),
    ];
    let changes: [(&str, &str); 7] = [
        ("block S(vi: n = i_1,", "block S(vi: n = i_1*1 + 0*j_1 + 1,"),
        ("block Y(vi: n = i_2, vj: 7 = j_2)", "block Y(vi: n = i_2, vj: 7 = j_2) if i_2 < 2"),
        ("Y[vi, vj] = E[vi, vj] / S[vi]", "Y[vi, 0] = E[vi, vj] / S[vi]"),
        ("= exp(f32(X[vi, vj]))", "= S[vi]"),
        ("        init\n          S[vi] = 0.0f32\n", ""),
        ("= E[vi, vj] / S[vi]", "= Y[vi, vj]"),
        ("for j in 0..7", "for j in 0..6"),
    ];
    for (from, to) in changes {
        let func = text::parse(&STAGES.replace(from, to)).unwrap();
        let refused = Reference::check(&func, &dims).unwrap_err();
        let mut reference = Reference::new(&func, &dims, &[Elements::Numbers(&input)]).unwrap();
        let found = reference.element(&"Y".into(), &[1, 0]);
        let found = found.map_or_else(|err| err.to_string(), |it| format!("{:.5}", it.value));
        messages.push(format!("{refused}: {found}"));
    }
    let func = text::parse(&STAGES.replace("= exp(f32(X[vi, vj]))", "= f32(X[vi, vj + 1])")).unwrap();
    let mut reference = Reference::new(&func, &dims, &[Elements::Numbers(&input)]).unwrap();
    messages.push(reference.element(&"Y".into(), &[1, 0]).unwrap_err().to_string());
    messages.push(reference.element(&"Y".into(), &[1, 0]).unwrap_err().to_string());
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn rows_of_products_stop_at_the_edge() {
    let program = |subscript: &str| {
        format!(
            "func dot()
  in A: f32[4, 5]
  out C: f32[4]

  for i in 0..4
    for h in 0..2
      for k in 0..5
        block C(vi: 4 = i, vh: reduce 2 = h, vk: reduce 5 = k)
          init
            C[vi] = 0.0f32
          C[vi] = C[vi] + A[vi, {subscript}] * A[vi, 4 - vk]
"
        )
    };
    let input = counting(DType::F32, &[4, 5]);
    let element = |subscript| {
        let (func, dims) = (text::parse(&program(subscript)).unwrap(), sizes(&[]));
        let lazy = Reference::new(&func, &dims, &[Elements::Numbers(&input.data)])
            .and_then(|mut it| it.element(&"C".into(), &[1]));
        (lazy, interp::run(&func, &dims, std::slice::from_ref(&input)))
    };
    let (lazy, whole) = element("vk");
    assert!((lazy.unwrap().value - whole.unwrap()[0].data[1]).abs() < 1e-9);
    let (lazy, whole) = element("vk + vh");
    assert_eq!(lazy.unwrap_err().to_string(), "block `C`: reads A[1, 5], outside its shape [4, 5]");
    let expected = "block `C`, at i = 0, h = 1, k = 4: reads A[0, 5], outside its shape [4, 5]";
    assert_eq!(whole.unwrap_err().to_string(), expected);
}

#[test]
fn triangles_are_counted_as_they_are() {
    let program = |n: i64, extents: [&str; 2]| {
        let [j, k] = extents;
        let text = format!(
            "func triangle
  in A: f32[{n}]
  out B: f32[{n}]

  for i in 0..{n}
    for j in 0..{j}
      for k in 0..{k}
        block B(v: {n} = i)
          B[v] = A[v] * A[v] + A[v]
"
        );
        cost::flops(&text::parse(&text).unwrap(), &sizes(&[]))
    };
    assert_eq!(program(64, ["i + 1", "1"]), Some(2 * 64 * 65 / 2));
    assert_eq!(program(9, ["(i + 1) mod 3", "j + 1"]), Some(2 * 3 * (1 + 3)));
    assert_eq!(program(64, ["i + 1", "j + 1"]), Some(2 * 64 * 65 * 66 / 6));
    assert_eq!(program(64, ["i - 7", "2"]), Some(2 * 2 * 56 * 57 / 2));
    // Too many to go through; the middle stands for all, exactly where an extent is affine in one loop.
    assert_eq!(program(1 << 30, ["i + 1", "1"]), Some((1 << 30) * ((1 << 30) + 1)));
    assert_eq!(program(i64::MAX, ["i + 1", "1"]), None);
}

#[test]
fn costs_are_those_of_the_text() {
    let func = text::parse(STAGES).unwrap();
    assert_eq!(cost::flops(&func, &sizes(&[("n", 3)])), Some(3 * 7 * 3));
    assert_eq!(cost::bytes(&func, &sizes(&[("n", 3)])), Some(3 * 7 * (2 + 4)));
    assert_eq!(cost::footprint(&func, &sizes(&[("n", 3)])), Some(3 * 7 * (2 + 4 + 4) + 12));
    assert_eq!(cost::flops(&func, &sizes(&[])), None);
    assert_eq!(cost::bytes(&func, &sizes(&[("n", i64::MAX)])), None);
}
