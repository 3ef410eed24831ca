//! Matrix products in every type: what the library computes, how fast a machine may be, and what counts as right.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use codegen::device::{Gemm, MachineInfo};
use indexmap::IndexMap;
use ir::DType;
use schedule::workload::{self, Param};
use tilewright_tuner::{Bound, Case, Expected, Regime, Roofline, Tensor, gemm_of};

const MATMUL: &str = include_str!("../../../workloads/matmul/matmul.ron");

/// A square product: the types of its factors, its accumulator and its output, and the layout.
fn matmul(size: i64, [dtype, acc, out]: [&str; 3], layout: &str) -> Case {
    let word = |it: &str| Param::Text(it.to_owned());
    let mut params: IndexMap<String, Param> =
        ["m", "n", "k"].map(|it| (it.to_owned(), Param::Int(size))).into();
    for (name, it) in [("dtype", dtype), ("acc", acc), ("out", out), ("layout", layout)] {
        params.insert(name.to_owned(), word(it));
    }
    let func = workload::parse(MATMUL).unwrap().instantiate(&params).unwrap();
    Case::new(func, IndexMap::new(), 1).unwrap()
}

const TYPES: [[&str; 3]; 14] = [
    ["f32", "f32", "f32"],
    ["f64", "f64", "f64"],
    ["f16", "f32", "f16"],
    ["f16", "f32", "f32"],
    ["f16", "f16", "f16"],
    ["f16", "f16", "f32"],
    ["bf16", "f32", "bf16"],
    ["bf16", "f32", "f32"],
    ["tf32", "f32", "f32"],
    ["i8", "i32", "i32"],
    ["f8e4m3", "f32", "bf16"],
    ["f8e4m3", "f32", "f32"],
    ["f8e5m2", "f32", "f16"],
    ["f32", "f32", "f16"],
];

#[test]
fn the_library_has_products_of_these_types() {
    let found = TYPES.map(|types| {
        let both = ["NN", "NT"].map(|layout| gemm_of(&matmul(64, types, layout)).map(|it| it.0));
        // Nobody has asked a library for a product whose left factor is transposed.
        assert!(["TN", "TT"].iter().all(|layout| gemm_of(&matmul(64, types, layout)).is_none()));
        let [Some(plain), Some(transposed)] = both else {
            assert_eq!(both, [None, None]);
            return format!("{types:?}: none");
        };
        assert!(!plain.b_transposed && transposed == Gemm { b_transposed: true, ..plain });
        format!("{types:?}: {} {} {}", plain.input, plain.accumulator, plain.output)
    });
    insta::assert_snapshot!(found.join("\n"));
}

fn h100() -> MachineInfo {
    MachineInfo {
        name: "H100".to_owned(),
        arch: "sm_90a".to_owned(),
        units: 132,
        peak_f32_gflops: Some(132.0 * 256.0 * 1.98),
        peak_gb_per_s: Some(3352.0),
        cache_bytes: 50 << 20,
        id: None,
        versions: vec![],
    }
}

#[test]
fn rooflines_have_matrix_units() {
    let found = TYPES.map(|types| {
        let case = matmul(4096, types, "NN");
        let roofline = Roofline::of(&case, &h100(), Regime::Cool, 0);
        let (seconds, bound) = roofline.seconds().unwrap();
        assert_eq!(bound, Bound::Compute);
        assert!(roofline.is_beaten(seconds / 1.03) && !roofline.is_beaten(seconds / 1.01));
        format!("{types:?}: {:.0} TFLOPS", case.work.flops / seconds / 1e12)
    });
    insta::assert_snapshot!(found.join("\n"));
}

/// What a matrix unit computes: exact products, added up in groups, each sum cut off to the accumulator's type.
fn matrix_unit(a: &Tensor, b: &Tensor, size: usize, [i, j]: [usize; 2], accumulator: DType) -> f64 {
    let cut = |it: f64| match accumulator {
        DType::F32 => f64::from_bits(it.to_bits() & !((1 << 29) - 1)),
        _ => ir::number::round(accumulator, it),
    };
    let mut sum = 0.0;
    for k in (0..size).step_by(8) {
        let group: f64 = (k..k + 8).map(|k| a.get(i * size + k) * b.get(k * size + j)).sum();
        sum = cut(sum + group);
    }
    sum
}

/// Sums that are cut off instead of rounded, as matrix units do it, are within the tolerance; a forgotten product is not.
#[test]
fn matrix_units_are_right_and_a_forgotten_product_is_wrong() {
    let size = 2048;
    for types in TYPES {
        let case = matmul(i64::try_from(size).unwrap(), types, "NN");
        let inputs = case.inputs();
        let mut reference = case.reference(&inputs).unwrap();
        let expected = Expected::of(&case, &mut reference).unwrap().pop().unwrap();
        assert!(expected.samples.len() > 1000 && expected.scale > 100.0, "{types:?}");
        let (a, b) = (&inputs["A"], &inputs["B"]);
        let [accumulator, out] = [types[1], types[2]].map(|it| it.parse::<DType>().unwrap());
        let is_single = accumulator == DType::F32 && types[0] != "f32";
        for (at, near) in expected.samples.iter().step_by(20) {
            let value = near.value;
            let [i, j] = [at / size, at % size];
            let sum = if is_single || accumulator == DType::F16 {
                matrix_unit(a, b, size, [i, j], accumulator)
            } else {
                value
            };
            let got = ir::number::round(out, sum);
            let (error, allowed) = near.error(got);
            assert!(error <= allowed, "{types:?}: {got} is not {near:?}");
            let term = a.get(i * size) * b.get(j);
            if accumulator != DType::F16 && out != DType::Bf16 && out != DType::F16 && term.abs() > 0.1 {
                let (error, allowed) = near.error(got - term);
                assert!(error > 2.0 * allowed, "{types:?}: {allowed} allowed for {value}");
            }
            assert!(out != DType::I32 || allowed == 0.0);
        }
    }
}

/// What Hopper's matrix units compute of factors of eight bits: 32 products and the sum so far, each cut off to 13 bits after
/// the point of the largest of them.
fn eight_bit_unit(products: &[f64]) -> f64 {
    let mut sum = 0.0f64;
    for group in products.chunks(32) {
        let most = group.iter().fold(sum.abs(), |most, it| most.max(it.abs()));
        let last = most.log2().floor().exp2() / 8192.0;
        let cut = |it: f64| if most > 0.0 { (it / last).trunc() * last } else { 0.0 };
        sum = group.iter().fold(cut(sum), |sum, it| sum + cut(*it));
    }
    sum
}

/// On a GPU whose matrix units keep 13 bits a sum in them is right, of numbers of either sign and of one; elsewhere it is wrong, and so
/// is one that a whole slot of products is missing from, everywhere.
#[test]
fn sums_of_eight_bit_floats_are_allowed_what_the_machine_does() {
    let size = 1024;
    for (types, positive) in [
        (["f8e4m3", "f32", "f32"], false),
        (["f8e4m3", "f32", "f32"], true),
        (["f8e5m2", "f32", "f32"], false),
        (["f8e5m2", "f32", "f32"], true),
    ] {
        let case = matmul(i64::try_from(size).unwrap(), types, "NN");
        let mut inputs = case.inputs();
        for tensor in inputs.values_mut().filter(|_| positive) {
            for it in &mut tensor.bytes {
                *it &= 0x7f;
            }
        }
        let expected = |mut reference: ir::reference::Reference<'_>| {
            Expected::of(&case, &mut reference).unwrap().pop().unwrap().samples
        };
        let here = expected(case.reference_on(&h100(), &inputs).unwrap());
        let elsewhere = expected(case.reference(&inputs).unwrap());
        let (a, b) = (inputs["A"].to_f64(), inputs["B"].to_f64());
        let (mut most, mut seen) = (0.0f64, 0);
        for ((at, near), (_, strict)) in here.iter().zip(&elsewhere).step_by(16) {
            let [i, j] = [at / size, at % size];
            let products: Vec<_> = (0..size).map(|k| a[i * size + k] * b[k * size + j]).collect();
            let got = eight_bit_unit(&products);
            let (error, allowed) = near.error(got);
            assert!(error <= allowed, "{types:?} {positive}: {error} of {allowed}");
            most = most.max(error / allowed);
            let (error, strictly) = strict.error(got);
            seen += usize::from(error > strictly);
            let slot: f64 = products[128..256].iter().sum();
            let (error, allowed) = near.error(near.value - slot);
            assert!(slot.abs() < 10.0 || error > allowed, "{types:?} {positive}: {slot} may be missing");
        }
        assert!(most > 0.01 && seen > 40, "{types:?} {positive}: {most}, {seen}");
    }
}
