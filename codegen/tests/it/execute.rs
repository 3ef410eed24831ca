//! Every program in `tests/lower` that lowers computes on the virtual GPU what the interpreter says, to the bit.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use indexmap::IndexMap;
use ir::{Arch, Func, Instr, Module, Name, Op, Role, Target, interp};
use tilewright_codegen::{
    compile_module,
    vgpu::{self, Settings, ThreadOrder},
};

#[test]
fn programs_compute_what_they_mean() {
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lower")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, program) = text.split_once('\n').unwrap();
        let func = ir::text::parse(program).unwrap();
        let target = match head.rsplit(' ').next().unwrap() {
            "cpu" => Target::Cpu,
            _ => Target::Cuda(Arch { sm: 80, suffix: None }),
        };
        if compile_module(&func, &target).is_err() {
            continue;
        }
        let sizes: &[i64] = if func.dims.is_empty() { &[1] } else { &[1, 3, 37] };
        for &n in sizes {
            check(&func, &target, n, &path.display().to_string());
        }
        count += 1;
    }
    assert!(count >= 12, "{count} programs ran");
}

fn check(func: &Func, target: &Target, n: i64, what: &str) {
    let dims: IndexMap<Name, i64> = func.dims.iter().map(|it| (it.clone(), n)).collect();
    let shape = |it: &ir::Buffer| -> Vec<usize> {
        let sizes = it.shape.iter().map(|it| it.eval(&|name| dims.get(name).copied()).unwrap());
        sizes.map(|it| usize::try_from(it).unwrap()).collect()
    };
    let inputs = func.buffers.iter().filter(|(_, it)| it.role == Role::Input);
    let inputs = inputs.map(|(name, it)| {
        let shape = shape(it);
        let count: usize = shape.iter().product();
        let data = (0..count).map(|at| ((at * 7 + 3) % 11) as f64 - 5.0);
        (name.clone(), interp::Tensor::new(it.dtype, &shape, data))
    });
    let inputs: IndexMap<_, _> = inputs.collect();
    let tensors: Vec<_> = inputs.values().cloned().collect();
    let expected = interp::run(func, &dims, &tensors).unwrap_or_else(|err| panic!("{what}: {err}"));

    let module = compile_module(func, target).unwrap();
    if let Err(err) = agree(func, &module, &dims, &inputs, &expected) {
        panic!("{what}, n = {n}: {err}\n{module}");
    }
    let bare = module.clone().map_bodies(&mut |_, body| without_barriers(&body));
    if what.contains("/barrier_") {
        assert!(agree(func, &bare, &dims, &inputs, &expected).is_err(), "{what}: no barrier is needed");
    }
}

/// Whether a module computes what is expected, in several orders of threads, and without a finding.
fn agree(
    func: &Func,
    module: &Module,
    dims: &IndexMap<Name, i64>,
    inputs: &IndexMap<Name, interp::Tensor>,
    expected: &[interp::Tensor],
) -> Result<(), String> {
    for order in [ThreadOrder::Forward, ThreadOrder::Reversed, ThreadOrder::Shuffled] {
        let mut memory = inputs.iter().map(|(name, it)| (name.clone(), it.data.clone())).collect();
        let settings = Settings { order, ..Settings::default() };
        let report = vgpu::run(module, dims, &mut memory, &settings).map_err(|err| err.to_string())?;
        if let Some(found) = report.findings.first() {
            return Err(format!("{found} ({order:?})"));
        }
        let outputs = func.buffers.iter().filter(|(_, it)| it.role == Role::Output);
        for ((name, _), expected) in outputs.zip(expected) {
            if memory[name] != expected.data {
                return Err(format!("`{name}` is wrong, {order:?}"));
            }
        }
    }
    Ok(())
}

/// The statements without their barriers, to see that those are needed.
fn without_barriers(ops: &[Op]) -> Vec<Op> {
    let kept = ops.iter().filter(|op| !matches!(op, Op::Instr(Instr::Barrier(_), _)));
    kept.map(|op| op.clone().map_children(&mut |body| without_barriers(&body))).collect()
}
