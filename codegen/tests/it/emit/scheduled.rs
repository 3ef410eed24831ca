//! Scheduled programs all the way: lowered, emitted, compiled, and on a CPU run against the interpreter.

use indexmap::IndexMap;
use ir::{Name, Role, Target, interp::Tensor, number};
use tilewright_codegen::compile_module;

use super::{build::cuda, cuda, run};

/// The value of every symbolic dimension: it divides nothing.
const SIZE: i64 = 13;

#[test]
fn programs_of_the_lowering_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lower");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(path).unwrap();
        let (head, program) = text.split_once('\n').unwrap();
        let func = ir::text::parse(program).unwrap();
        if head.ends_with("cpu") {
            check_cpu(&func);
        } else if let Ok(module) = compile_module(&func, &cuda("sm_80")) {
            cuda::compile_finished(func.name.as_str(), &module, "sm_80");
            cuda::compile_finished(func.name.as_str(), &module, "sm_90a");
        }
    }
}

fn check_cpu(func: &ir::Func) {
    let Ok(module) = compile_module(func, &Target::Cpu) else { return };
    let dims: IndexMap<Name, i64> = func.dims.iter().map(|it| (it.clone(), SIZE)).collect();
    let fill = |name: &Name, at: usize| (name.as_str().len() + at * 5) as f64 % 7.0 - 3.0;
    let of_role = |role| func.buffers.iter().filter(move |(_, it)| it.role == role);
    let inputs: Vec<_> = of_role(Role::Input)
        .map(|(name, buffer)| {
            let size =
                |it: &ir::Index| usize::try_from(it.eval(&|dim| dims.get(dim).copied()).unwrap()).unwrap();
            let shape: Vec<_> = buffer.shape.iter().map(size).collect();
            Tensor::new(buffer.dtype, &shape, (0..shape.iter().product()).map(|at| fill(name, at)))
        })
        .collect();
    let expected = ir::interp::run(func, &dims, &inputs).unwrap();
    let sizes: Vec<_> = dims.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let Some(got) = run::run(&module, &sizes, &fill) else { return };
    for ((name, buffer), tensor) in of_role(Role::Output).zip(expected) {
        let bytes = &got[module.args.get_index_of(name).unwrap()];
        let elements = bytes.chunks(buffer.dtype.bytes()).map(|it| number::decode(buffer.dtype, it));
        assert_eq!(elements.collect::<Vec<_>>(), tensor.data, "{}: {name}", func.name);
    }
}
