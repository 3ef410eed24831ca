//! Fused workloads against the library's product and elementwise kernels.

use codegen::device::{CpuMachine, Machine, cc};
use indexmap::IndexMap;
use ir::Target;
use schedule::workload::{self, Param};
use tilewright_tuner::{
    Bench, Candidate, Case, Comparison, Regime, Settings, bench,
    build::{Problem, generate},
    protocol::Final,
};

use super::quick;

const RELU: &str = include_str!("../../../../workloads/matmul_bias_relu/matmul_bias_relu.ron");
const GELU: &str =
    include_str!("../../../../workloads/matmul_bias_gelu_residual/matmul_bias_gelu_residual.ron");

fn case(text: &str, [m, n, k]: [i64; 3], dtype: &str, symbolic: bool) -> Case {
    let mut params: IndexMap<String, Param> =
        [("m", m), ("n", n), ("k", k)].map(|(name, it)| (name.to_owned(), Param::Int(it))).into();
    params.insert("dtype".to_owned(), Param::Text(dtype.to_owned()));
    let mut dims = IndexMap::new();
    if symbolic {
        params.insert("m".to_owned(), Param::Text("m".to_owned()));
        dims.insert("m".into(), m);
    }
    let func = workload::parse(text).unwrap().instantiate(&params).unwrap();
    Case::new(func, dims, 3).unwrap()
}

fn short() -> Settings {
    Settings { rounds: 2, sample: 1e-4, warm_up: 1e-4, ..quick(Regime::Cool) }
}

/// Compares the unscheduled program with the baselines.
fn compared(case: &Case, settings: &Settings) -> Option<Comparison> {
    // Without a compiler nothing is compiled.
    cc::find().ok()?;
    let problem = Problem { case: case.clone(), target: Target::Cpu };
    let made = generate(&problem, &[]).unwrap().compile(&Target::Cpu).unwrap();
    let inputs = case.inputs();
    let mut reference = case.reference(&inputs).unwrap();
    let mut machine = CpuMachine::open().unwrap();
    let mut bench = Bench::new(&mut machine, case, &inputs, &mut reference).unwrap();
    let candidate = Candidate { label: "plain".to_owned(), program: &made.program };
    Some(bench.compare(&[candidate], settings, &mut |_| {}))
}

#[test]
fn products_with_elementwise_stages_have_two_baselines() {
    for (text, dtype, symbolic, kernels) in [(GELU, "f16", true, 3), (RELU, "f32", false, 2)] {
        let case = case(text, [13, 37, 20], dtype, symbolic);
        let Some(found) = compared(&case, &short()) else { return };
        assert_eq!(found.no_baseline, None);
        let all: Vec<_> =
            found.candidates.iter().chain(&found.baseline).chain(&found.other_baselines).collect();
        assert_eq!(
            all.iter().map(|it| it.label.clone()).collect::<Vec<_>>(),
            [
                "plain".to_owned(),
                format!("gemm and {kernels} elementwise kernels"),
                "gemm and one elementwise kernel".to_owned()
            ]
        );
        for it in all {
            assert_eq!(it.failure, None, "{dtype}: {}: {:?}", it.label, it.wrong_output());
            assert!(it.gflops.is_some());
            // Every tensor in between is rounded, once more than a fused program does it, which only they may do.
            let error = it.before.as_ref().unwrap().error_in_tolerances();
            assert!(error < if it.label == "plain" { 1.0 } else { 0.7 }, "{}: {error}", it.label);
        }
        assert!(found.candidates[0].versus_baseline.is_some());
    }
}

/// bf16 has no product in the CPU's library: that is told, and stops nothing.
#[test]
fn no_product_is_no_baseline() {
    let Some(found) = compared(&case(GELU, [8, 8, 8], "bf16", false), &short()) else { return };
    assert!(found.baseline.is_none() && found.no_baseline.is_some() && found.other_baselines.is_empty());
    assert!(found.candidates[0].gflops.is_some());
}

#[test]
fn finals_have_it_too() {
    let case = case(GELU, [16, 24, 8], "f32", false);
    if cc::find().is_err() {
        return;
    }
    let problem = Problem { case: case.clone(), target: Target::Cpu };
    let made = generate(&problem, &[]).unwrap().compile(&Target::Cpu).unwrap();
    let inputs = case.inputs();
    let mut reference = case.reference(&inputs).unwrap();
    let mut machine = CpuMachine::open().unwrap();
    let how = Final { regime: Regime::Cool, rounds: 6, threads: 0, baseline: true };
    let found = {
        let machine: &mut dyn Machine = &mut machine;
        let mut bench = Bench::new(machine, &case, &inputs, &mut reference).unwrap();
        bench::finals(&mut bench, &[made.program], &how).unwrap()
    };
    let baseline = found.baseline.unwrap();
    assert_eq!(baseline.name, "gemm and 3 elementwise kernels");
    assert!(baseline.gflops > 0.0 && found.finalists[0].versus_baseline.is_some());
}
