//! Every program in `tests/mechanism`: what is chosen for its components and why, and what becomes of it. The result is
//! a program that verifies and computes the same.

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Role, Target, interp::Tensor};

use super::choose_mechanisms;
use crate::lower::{Context, MechanismChoice};

#[test]
fn programs() {
    insta::glob!("../../../../tests/mechanism", "*.tw", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(transcript(&text));
    });
}

/// The first line is the target: `test cpu`, `test sm_80`.
fn transcript(text: &str) -> String {
    let (head, program) = text.split_once('\n').unwrap();
    let target = match head.trim_start_matches("test ") {
        "cpu" => Target::Cpu,
        arch => Target::Cuda(Arch::parse(arch).unwrap()),
    };
    let func = ir::text::parse(program).unwrap();
    ir::verify::verify(&func).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut context = Context::new(&target);
    let chosen = match choose_mechanisms(func.clone(), &mut context) {
        Ok(it) => it,
        Err(err) => {
            let mut out = format!("refused: {err}\nabout: {:?}\n", err.names());
            err.help().iter().for_each(|help| writeln!(out, "help: {help}").unwrap());
            return out;
        }
    };
    ir::verify::verify(&chosen).unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(outputs(&func), outputs(&chosen));

    let mut out = String::new();
    for ((var, component), MechanismChoice { mechanism, reason, .. }) in &context.mechanisms {
        writeln!(out, "{var}: {component} is {mechanism}. {reason}").unwrap();
    }
    writeln!(out, "\n{}", ir::text::print(&chosen).text).unwrap();
    out
}

/// What a program computes from inputs with no two neighbours alike; dimensions are small and odd.
fn outputs(func: &Func) -> Vec<Tensor> {
    let dims: IndexMap<Name, i64> = func.dims.iter().cloned().zip([5, 7, 3]).collect();
    let inputs = func.buffers.values().filter(|it| it.role == Role::Input).map(|it| {
        let size =
            |it: &ir::Index| usize::try_from(it.eval(&|name| dims.get(name).copied()).unwrap()).unwrap();
        let shape: Vec<_> = it.shape.iter().map(size).collect();
        let count: u32 = u32::try_from(shape.iter().product::<usize>()).unwrap();
        Tensor::new(it.dtype, &shape, (0..count).map(|at| f64::from(at * 7 % 31)))
    });
    ir::interp::run(func, &dims, &inputs.collect::<Vec<_>>()).unwrap()
}
