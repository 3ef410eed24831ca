//! The elementwise kernels on the virtual GPU, which needs none.

use std::fmt::Write as _;

use codegen::vgpu::{self, Settings};
use schedule::workload::{self, Param};

use super::*;
use crate::Expected;

const GELU: &str =
    include_str!("../../../../workloads/matmul_bias_gelu_residual/matmul_bias_gelu_residual.ron");

fn case([m, n]: [i64; 2], dtype: &str) -> Case {
    let mut params: IndexMap<String, Param> =
        [("m", m), ("n", n), ("k", 8)].map(|(name, it)| (name.to_owned(), Param::Int(it))).into();
    params.insert("dtype".to_owned(), Param::Text(dtype.to_owned()));
    Case::new(workload::parse(GELU).unwrap().instantiate(&params).unwrap(), IndexMap::new(), 1).unwrap()
}

fn gpu() -> Target {
    Target::Cuda(Arch { sm: 80, suffix: None })
}

#[test]
fn kernels_are_right_on_a_gpu() {
    for (sizes, dtype) in
        [([3, 37], "f16"), ([2, 64], "bf16"), ([1, 4], "f32"), ([2, 2056], "f16"), ([5, 1], "f32")]
    {
        let case = case(sizes, dtype);
        for grouping in [Grouping::Separate, Grouping::Together] {
            for it in Unfused::of(&case, grouping).unwrap().kernels {
                let kernel = Case::new(it.func.clone(), IndexMap::new(), 2).unwrap();
                let problem = Problem { case: kernel.clone(), target: gpu() };
                let module = generate(&problem, &it.steps(&gpu())).unwrap().module;
                let inputs = kernel.inputs();
                let mut memory = inputs.iter().map(|(name, it)| (name.clone(), it.to_f64())).collect();
                let settings = &Settings::hostile(1)[0];
                let dims = IndexMap::new();
                let report = vgpu::run_seen(&module, &dims, &mut memory, settings, &mut |_| {}).unwrap();
                assert!(report.findings.is_empty());
                let mut reference = kernel.reference(&inputs).unwrap();
                for expected in Expected::of(&kernel, &mut reference).unwrap() {
                    let check = expected.check_numbers(&memory[&expected.buffer], &mut reference);
                    assert_eq!((check.wrong, check.unwritten), (0, 0), "{sizes:?} {}", kernel.func.name);
                }
            }
        }
    }
}

#[test]
fn kernels_use_whole_vectors() {
    let case = case([4096, 4096], "f16");
    let mut listing = String::new();
    for grouping in [Grouping::Separate, Grouping::Together] {
        let unfused = Unfused::of(&case, grouping).unwrap();
        writeln!(listing, "{}, buffers {:?}", unfused.name("library"), unfused.operands).unwrap();
        for it in unfused.kernels {
            let kernel = Case::new(it.func.clone(), IndexMap::new(), 2).unwrap();
            let made = generate(&Problem { case: kernel, target: gpu() }, &it.steps(&gpu())).unwrap();
            write!(listing, "\nbuffers {:?}\n{}", it.buffers, made.module).unwrap();
        }
        listing += "\n";
    }
    insta::assert_snapshot!(listing);
}
