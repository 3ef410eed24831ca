//! Workloads whose numbers are hard, and kernels that are wrong in small ways.

use indexmap::IndexMap;
use ir::interp;
use schedule::workload;

use super::*;

/// An elementwise workload in f32 or another type, over `X` of 512 elements.
fn elementwise(dtype: &str, tolerance: &str, value: &str) -> Case {
    let text = format!(
        r#"workload(
            name: "hard", about: "Hard numbers.", {tolerance}
            params: {{"n": size(default: 512)}},
            axes: {{"i": "n"}},
            tensors: {{"X": input(dtype: "{dtype}", shape: ["n"]), "Y": output(dtype: "{dtype}", shape: ["n"])}},
            stages: ["Y[i] = {value}"],
        )"#
    );
    let func = workload::parse(&text).unwrap().instantiate(&IndexMap::new()).unwrap();
    Case::new(func, IndexMap::new(), 1).unwrap()
}

/// What a machine makes of the unscheduled program: each operation rounded to its type.
fn run(case: &Case) -> Vec<Tensor> {
    let inputs = case.inputs();
    let tensors: Vec<_> =
        inputs.values().map(|it| ir::Tensor::new(it.dtype, &it.shape, it.to_f64())).collect();
    let outputs = interp::run(&case.func, &case.dims, &tensors).unwrap();
    let tensor = |it: &ir::Tensor| {
        let mut out = Tensor::zeroed(it.dtype, &it.shape);
        it.data.iter().enumerate().for_each(|(at, value)| out.set(at, *value));
        out
    };
    outputs.iter().map(tensor).collect()
}

/// The verdict on outputs, after a change.
fn verdict(case: &Case, change: impl Fn(&mut Tensor)) -> OutputCheck {
    let inputs = case.inputs();
    let mut reference = case.reference(&inputs).unwrap();
    let expected = Expected::of(case, &mut reference).unwrap();
    let mut output = run(case).remove(0);
    change(&mut output);
    expected[0].check(&output, &mut reference)
}

#[test]
fn hard_workloads_are_right() {
    let summands = vec!["X[i] * 1.1"; 65].join(" + ");
    let products = vec!["(X[i] * 0.3 + 1.01)"; 40].join(" * ");
    let values = [
        "exp(X[i] * 20)",
        "X[i] * X[i] + 10000 - 10000",
        &summands,
        &products,
        "exp(X[i] * 300) / (exp(X[i] * 300) + 1)",
        "tanh(X[i]) - X[i] * X[i] * X[i] / 3",
        "1 / (X[i] * X[i] - X[i] * X[i] * 0.999)",
        "log(abs(X[i] * 0.001) + 1) * 1000",
        "f32(f16(X[i] * 1000) * f16(X[i] * 0.001))",
    ];
    for value in values {
        let check = verdict(&elementwise("f32", "", value), |_| ());
        assert_eq!((check.wrong, check.compared), (0, 512), "{value}: {}", check.wrong_words());
    }
    for dtype in ["f16", "bf16", "f64"] {
        for value in ["exp(X[i] * 5)", "X[i] * X[i] + 100 - 100", "X[i] / (abs(X[i]) + 0.5) * 3"] {
            let check = verdict(&elementwise(dtype, "", value), |_| ());
            assert_eq!((check.wrong, check.compared), (0, 512), "{dtype} {value}: {}", check.wrong_words());
        }
    }
}

#[test]
fn small_faults_of_hard_workloads_are_wrong() {
    // Wrong by one part in 10,000 in the smallest of the elements, which the scale of the output would hide.
    let case = elementwise("f32", "", "exp(X[i] * 20)");
    let least = |it: &Tensor| {
        let all = it.to_f64();
        (0..all.len()).filter(|at| all[*at] > 0.0).min_by(|a, b| all[*a].total_cmp(&all[*b])).unwrap()
    };
    let check = verdict(&case, |it| it.set(least(it), it.get(least(it)) * 1.0001));
    assert_eq!(check.wrong, 1, "{check:?}");
    assert!(!check.is_ill_conditioned() && check.worst.as_ref().unwrap().own.is_some());
    let check =
        verdict(&elementwise("f32", "", "X[i] * X[i] + 10000 - 10000"), |it| it.set(7, it.get(7) + 0.01));
    assert_eq!((check.wrong, check.worst.unwrap().at), (1, vec![7]));
}

#[test]
fn a_workload_may_say_its_tolerance() {
    let value = "X[i] * X[i] + 10000 - 10000";
    let strict = verdict(&elementwise("f32", "tolerance: 1e-7,", value), |_| ());
    assert!(strict.wrong > 400 && strict.is_ill_conditioned(), "{strict:?}");
    let verdicts = Verification { outputs: vec![strict] };
    assert_eq!(verdicts.failure(Failure::Wrong), Some(Failure::IllConditioned));
    let loose = elementwise("f32", "tolerance: 0.001,", value);
    assert_eq!(verdict(&loose, |_| ()).wrong, 0);
    let wrong = verdict(&loose, |it| it.set(3, it.get(3) + 1.0));
    assert_eq!((wrong.wrong, wrong.is_ill_conditioned()), (1, false));
    assert_eq!(Verification { outputs: vec![wrong] }.failure(Failure::Wrong), Some(Failure::Wrong));
    // It goes with the program wherever that goes as text.
    let text = ir::text::print(&loose.func).text;
    assert!(text.starts_with("func hard tolerance 0.001f64\n"), "{text}");
    assert_eq!(ir::text::parse(&text).unwrap(), loose.func);
}

#[test]
fn sums_are_right_in_any_order_and_wrong_without_a_term() {
    for term in ["X[i, k]", "X[i, k] * X[i, k]", "exp(X[i, k])"] {
        let text = format!(
            r#"workload(
                name: "sum", about: "Long sums.", axes: {{"i": "8", "k": "4096"}},
                tensors: {{"X": input(dtype: "f32", shape: ["8", "4096"]), "Y": output(dtype: "f32", shape: ["8"])}},
                stages: ["Y[i] += {term}"],
            )"#
        );
        let func = workload::parse(&text).unwrap().instantiate(&IndexMap::new()).unwrap();
        let case = Case::new(func, IndexMap::new(), 1).unwrap();
        let inputs = case.inputs();
        let mut reference = case.reference(&inputs).unwrap();
        let rows: Vec<Vec<i64>> = (0..8).map(|i| vec![i]).collect();
        let found = reference.elements(&"Y".into(), &rows).unwrap();
        for (i, near) in found.into_iter().enumerate() {
            let near = near.unwrap();
            let terms = (0..4096).map(|k| {
                let x = inputs["X"].get(i * 4096 + k);
                let value = match term {
                    "X[i, k]" => x,
                    "exp(X[i, k])" => x.exp(),
                    _ => x * x,
                };
                ir::number::round(DType::F32, value)
            });
            let terms: Vec<f64> = terms.collect();
            let add = |a: f64, b: &f64| ir::number::round(DType::F32, a + b);
            let lanes: Vec<f64> = (0..32).map(|n| terms.iter().skip(n).step_by(32).fold(0.0, add)).collect();
            let parts: Vec<f64> = terms.chunks(512).map(|it| it.iter().fold(0.0, add)).collect();
            let orders = [&terms, &lanes, &parts].map(|it| it.iter().fold(0.0, add));
            for got in orders.into_iter().chain([terms.iter().rev().fold(0.0, add)]) {
                let (error, allowed) = near.error(got);
                assert!(error <= allowed, "{term}: {got} is not {near:?}");
            }
            let forgotten = terms.iter().find(|it| it.abs() > 0.5).unwrap();
            let (error, allowed) = near.error(near.value - forgotten);
            assert!(error > 2.0 * allowed, "{term}: {near:?}");
        }
    }
}

/// Two writers under guards, a sum over a triangle, and a temporary that each iteration refills.
fn scheduled(n: i64) -> Case {
    let text = format!(
        "func scheduled
  in A: f32[{n}, 32]
  out B: f32[{n}, 32]
  temp T: f32[32]

  for i in 0..{n}
    for j in 0..32
      for k in 0..j + 1
        block T(vi: {n} = i, vj: 32 = j, vk: reduce 32 = k)
          init
            T[vj] = 0.0f32
          T[vj] = T[vj] + A[vi, vk]
    for j_1 in 0..32
      block B_low(vi: {n} = i, vj: 32 = j_1) if j_1 < 20
        B[vi, vj] = T[31 - vj] * A[vi, vj]
    for j_2 in 0..32
      block B_high(vi: {n} = i, vj: 32 = j_2) if 15 < j_2
        B[vi, vj] = T[vj] + exp(A[vi, vj])
"
    );
    Case::new(ir::text::parse(&text).unwrap(), IndexMap::new(), 1).unwrap()
}

#[test]
fn every_program_that_runs_is_verified() {
    for (n, compared) in [(64, 64 * 32), (2048, 128)] {
        let case = scheduled(n);
        assert!((case.work.flops - (n * (32 * 33 / 2 + 32 + 64)) as f64).abs() < 0.5);
        let check = verdict(&case, |_| ());
        assert_eq!(check.wrong, 0, "{}", check.wrong_words());
        assert!((compared..compared + 64).contains(&check.compared), "{check:?}");
        // The corner is always compared.
        let wrong = verdict(&case, |it| it.set(0, it.get(0) + 0.01));
        assert_eq!((wrong.wrong, wrong.worst.unwrap().at), (1, vec![0, 0]));
    }
}

#[test]
fn what_no_digit_is_left_of_is_told() {
    let case = elementwise("f32", "", "(X[i] * 100000000 + 1) - X[i] * 100000000");
    let check = verdict(&case, |_| ());
    assert_eq!(check.wrong, 0, "{check:?}");
    assert!(check.vague > 400, "{check:?}");
    // Nothing is allowed to leave an element out, even where any number would do.
    let poisoned = verdict(&case, |it| *it = Tensor::poisoned(it.dtype, &it.shape));
    assert_eq!((poisoned.wrong, poisoned.unwritten), (512, 512));
    let unbounded = elementwise("f32", "", "1 / (X[i] * 0.1 - X[i] * 0.1)");
    let poisoned = verdict(&unbounded, |it| *it = Tensor::poisoned(it.dtype, &it.shape));
    assert_eq!(poisoned.wrong, 512);
}

#[test]
fn old_verdicts_are_read() {
    let line = r#"{"buffer":"C","elements":9,"compared":9,"unwritten":0,"nan":0,"wrong":1,"max_error":"inf",
        "tolerance":1e-5,"scale":9.0,"worst":{"at":[1,2],"got":"NaN","expected":0.5}}"#;
    let check: OutputCheck = serde_json::from_str(line).unwrap();
    assert_eq!((check.vague, check.worst.as_ref().unwrap().own), (0, None));
    let again = serde_json::to_string(&check).unwrap();
    assert!(!again.contains("vague") && !again.contains("own"), "{again}");
    let with = OutputCheck { worst: check.worst.map(|it| Worst { own: Some(f64::INFINITY), ..it }), ..check };
    let read: OutputCheck = serde_json::from_str(&serde_json::to_string(&with).unwrap()).unwrap();
    assert_eq!(read.worst.unwrap().own, Some(f64::INFINITY));
}
