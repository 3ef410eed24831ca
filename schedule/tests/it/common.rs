//! What the tests of schedules share: programs, inputs, and the comparison of two programs by what they compute.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{fs, path::Path};

use indexmap::IndexMap;
use ir::{Func, Name, Role, Tensor};
use tilewright_schedule::{Script, script::ScriptTarget};

/// The program of a name in `tests/funcs`.
pub(crate) fn program(name: &str) -> Func {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/funcs").join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    ir::text::parse(&text).unwrap_or_else(|err| panic!("{name}: {err:?}"))
}

/// What a script is for, as far as it says.
pub(crate) fn target(script: &Script) -> Option<ir::Target> {
    let target = match &script.target.as_ref()?.value {
        ScriptTarget::Cpu => ir::Target::Cpu,
        ScriptTarget::Cuda(arch) => {
            ir::Target::Cuda(arch.clone().unwrap_or(ir::Arch { sm: 80, suffix: None }))
        }
    };
    Some(target)
}

/// Sizes for the symbolic dimensions, different from each other and not round.
pub(crate) fn sizes(func: &Func, round: usize) -> IndexMap<Name, i64> {
    let choices = [[5, 7, 3], [1, 2, 1], [9, 1, 4]];
    func.dims.iter().cloned().zip(choices[round % choices.len()]).collect()
}

/// Small whole numbers, of which float sums are exact in every order.
pub(crate) fn inputs(func: &Func, dims: &IndexMap<Name, i64>) -> Vec<Tensor> {
    let inputs = func.buffers.values().filter(|it| it.role == Role::Input);
    let mut seed = 7u64;
    inputs
        .map(|buffer| {
            let shape: Vec<usize> = buffer
                .shape
                .iter()
                .map(|it| usize::try_from(it.eval(&|name| dims.get(name).copied()).unwrap()).unwrap())
                .collect();
            let data: Vec<f64> = (0..shape.iter().product())
                .map(|_| {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    // A table holds what its elements are below.
                    let least = if buffer.below.is_some() { 0.0 } else { 3.0 };
                    f64::from(u32::try_from(seed >> 33).unwrap() % 7) - least
                })
                .collect();
            Tensor::new(buffer.dtype, &shape, data)
        })
        .collect()
}

/// What differs between the outputs of two programs with the same inputs, for some sizes.
pub(crate) fn difference(before: &Func, after: &Func) -> Option<String> {
    let rounds = if before.dims.is_empty() { 1 } else { 3 };
    (0..rounds).find_map(|round| {
        let dims = sizes(before, round);
        let inputs = inputs(before, &dims);
        let want = ir::interp::run(before, &dims, &inputs).unwrap();
        match ir::interp::run(after, &dims, &inputs) {
            Ok(got) if got == want => None,
            Ok(got) if has_functions(before) && are_near(&got, &want) => None,
            Ok(_) => Some(format!("other values at {dims:?}")),
            Err(err) => Some(format!("at {dims:?}: {err}")),
        }
    })
}

/// Whether a program computes what no arithmetic is exact for, so that its sums depend on their order.
fn has_functions(func: &Func) -> bool {
    ir::text::print(func).text.contains("exp(")
}

/// Whether numbers differ by a few roundings at most.
fn are_near(got: &[Tensor], want: &[Tensor]) -> bool {
    let same = |a: f64, b: f64| a.is_infinite() && b.is_infinite() && a.signum() * b.signum() > 0.0;
    let near = |(a, b): (&f64, &f64)| {
        same(*a, *b) || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * (1.0 + b.abs())
    };
    got.iter().zip(want).all(|(a, b)| a.data.iter().zip(&b.data).all(near))
}
