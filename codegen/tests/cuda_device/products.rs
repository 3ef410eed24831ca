//! The products that the virtual GPU computes, on a GPU: that its rules for descriptors, panels and swizzles are those of the hardware.

use std::io::Write as _;

use ir::{Name, Role, Target, number};
use tilewright_codegen::{
    device::{CudaMachine, Machine, nvrtc},
    emit::emit,
    program,
};

use super::{
    arch,
    hopper::hopper,
    subject::{Subject, subjects},
    upload,
};

/// What `C` is.
fn product(machine: &mut CudaMachine, it: &Subject) -> Vec<f64> {
    let arch = arch(machine);
    let source = emit(&it.module, &Target::Cuda(arch.clone())).expect("the GPU has its instructions");
    let compiled = nvrtc::compile(&source, "source.cu", &arch, &[]).expect("the source is right");
    let program =
        program(&it.module, &indexmap::IndexMap::new(), compiled.cubin).expect("the sizes are right");
    let loaded = machine.load(&program).expect("the program is right");
    let (mut buffers, mut found) = (vec![], None);
    for ((name, arg), bytes) in it.module.args.iter().zip(&program.buffers) {
        let none = || vec![f64::NAN; bytes / arg.dtype.bytes()];
        let numbers = it.inputs.get(name).cloned().unwrap_or_else(none);
        let mut raw = vec![];
        for it in numbers {
            number::encode(arg.dtype, it, &mut raw);
        }
        let buffer = upload(machine, &raw);
        if arg.role == Role::Output {
            found = Some((buffer, arg.dtype, raw));
        }
        buffers.push(buffer);
    }
    machine.run(loaded, &buffers, 3).expect("it ends");
    let (buffer, dtype, mut raw) = found.expect("there is an output");
    machine.download(buffer, &mut raw).expect("it fits");
    for it in buffers {
        machine.free(it);
    }
    machine.unload(loaded);
    raw.chunks(dtype.bytes()).map(|it| number::decode(dtype, it)).collect()
}

#[test]
fn products_are_those_of_the_virtual_gpu() {
    let Some(mut machine) = hopper("products_are_those_of_the_virtual_gpu") else { return };
    for it in subjects() {
        let found = product(&mut machine, &it);
        let wrong = found.iter().zip(&it.product).position(|(a, b)| a.to_bits() != b.to_bits());
        let of = Name::new("C");
        assert_eq!(
            wrong,
            None,
            "{}: the first wrong element of {of}, which is {:?}",
            it.name,
            wrong.map(|at| found[at])
        );
        say!("{}: {} numbers are right", it.name, found.len());
    }
}
