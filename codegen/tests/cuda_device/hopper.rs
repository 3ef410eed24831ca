//! Kernels with the copy engine, mbarriers, warpgroups and roles, where the GPU has them: their numbers against plain sums.

use std::{fs, io::Write as _, path::Path};

use indexmap::IndexMap;
use ir::{DType, Feature, Index, Module, Name, Role, Target};
use tilewright_codegen::{
    device::{CudaMachine, Machine, nvrtc},
    emit::emit,
    program,
};

use super::{arch, decode, encode, machine, number, upload};

/// A GPU on which warpgroups multiply.
pub(super) fn hopper(test: &str) -> Option<CudaMachine> {
    let mut machine = machine(test)?;
    if !arch(&machine).has(Feature::Wgmma) {
        say!("skipped: {test}: {} has no wgmma", machine.info().arch);
        return None;
    }
    // What waits for a phase that never comes would wait for ever.
    machine.set_deadline(Some(10.0));
    Some(machine)
}

fn read(path: &str) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path);
    let text = fs::read_to_string(path).expect("the text is there");
    ir::text::parse_module(&text).expect("it is a module")
}

/// Compiles and runs a text so many times, and gives its outputs; what they hold before is given.
fn run(
    machine: &mut CudaMachine,
    module: &Module,
    dims: &[(&str, i64)],
    fill: &dyn Fn(&Name, usize) -> f32,
    calls: u32,
) -> IndexMap<Name, Vec<f64>> {
    let arch = arch(machine);
    let source = emit(module, &Target::Cuda(arch.clone())).expect("the GPU has its instructions");
    let compiled = nvrtc::compile(&source, "source.cu", &arch, &[]).expect("the source is right");
    let dims = dims.iter().map(|(name, value)| (Name::new(name), *value)).collect();
    let program = program(module, &dims, compiled.cubin).expect("the sizes are right");
    let loaded = machine.load(&program).expect("the program is right");
    let mut buffers = Vec::new();
    for ((name, arg), bytes) in module.args.iter().zip(&program.buffers) {
        let numbers: Vec<_> = (0..bytes / arg.dtype.bytes()).map(|at| fill(name, at)).collect();
        buffers.push(upload(machine, &encode(arg.dtype, &numbers)));
    }
    machine.run(loaded, &buffers, calls).expect("it ends");
    let mut out = IndexMap::new();
    for (((name, arg), bytes), buffer) in module.args.iter().zip(&program.buffers).zip(buffers) {
        if arg.role == Role::Output {
            let mut raw = vec![0; *bytes];
            machine.download(buffer, &mut raw).expect("it fits");
            out.insert(name.clone(), decode(arg.dtype, &raw));
        }
        machine.free(buffer);
    }
    machine.unload(loaded);
    out
}

/// C = A·Bᵀ. The numbers are multiples of 1/64 below 1, so that every sum is exact in f32.
#[test]
fn warpgroups_multiply_what_the_copy_engine_brings() {
    let Some(mut machine) = hopper("warpgroups_multiply_what_the_copy_engine_brings") else { return };
    for path in [
        "vgpu/wgmma_one_stage_clean.tw",
        "vgpu/wgmma_ring_clean.tw",
        "vgpu/wgmma_roles_clean.tw",
        "emit/wgmma_roles_n256.tw",
    ] {
        let module = read(path);
        let size = |map: &str, at: usize| {
            let value = module.kernels[0].maps[&Name::new(map)].dims[at].as_int();
            usize::try_from(value.expect("a constant")).expect("a size")
        };
        let ([m, k], n) = ([0, 1].map(|at| size("A_map", at)), size("B_map", 0));
        let of = |name: &str, at: usize| if name == "A" { number(at) } else { number(at * 5 + 11) };
        let fill = |name: &Name, at: usize| if name == "C" { f32::NAN } else { of(name.as_str(), at) };
        let out = run(&mut machine, &module, &[], &fill, 3);
        let c = &out[&Name::new("C")];
        let narrow = module.args[&Name::new("C")].dtype == DType::Bf16;
        assert_eq!(c.len(), m * n);
        for (at, got) in c.iter().enumerate() {
            let (row, column) = (at / n, at % n);
            let product = |p: usize| f64::from(of("A", row * k + p)) * f64::from(of("B", column * k + p));
            let exact: f64 = (0..k).map(product).sum();
            let wanted = if narrow { half::bf16::from_f64(exact).to_f64() } else { exact };
            assert_eq!(got.to_bits(), wanted.to_bits(), "{path}: C[{row}, {column}] is {got}, not {wanted}");
        }
        say!("{path}: {m} x {n} x {k} is right");
    }
}

/// What leaves by the copy engine arrives, is added where it is asked to be, and nothing else is touched.
#[test]
fn boxes_are_stored_and_added() {
    let Some(mut machine) = hopper("boxes_are_stored_and_added") else { return };
    let module = read("emit/bulk_stores.tw");
    let (blocks, calls) = (3, 4);
    let fill = |name: &Name, at: usize| if name == "C" { -7.0 } else { number(at) };
    let out = run(&mut machine, &module, &[("n", blocks)], &fill, calls);
    for (name, numbers) in &out {
        let len = module.args[name].elements().subst(&|_| Some(Index::int(blocks)));
        assert_eq!(Some(numbers.len()), len.as_int().and_then(|it| usize::try_from(it).ok()));
        for (at, got) in numbers.iter().enumerate() {
            let (column, before) = (at % 128, f64::from(fill(name, at)));
            let step = f64::from(u32::try_from(column / 32).expect("a small number"));
            let wanted = match (column < 120, name == "C") {
                (false, _) => before,
                (true, true) => step,
                (true, false) => before + step * f64::from(calls),
            };
            assert_eq!(got.to_bits(), wanted.to_bits(), "{name}[{at}] is {got}, not {wanted}");
        }
    }
    say!("boxes of three dimensions: stored and added");
}
