//! Kernels as C, compiled and run.

use std::{io::Write as _, sync::Once};

use codegen::device::{BufferId, CpuMachine, Machine, Program, cc};
use ir::{Module, Target, number};

use super::check::Expected;

/// The C compiler, or a word on what is skipped, once.
pub(crate) fn compiler() -> Option<cc::Compiler> {
    static SAID: Once = Once::new();
    let say = |err: &_| {
        SAID.call_once(|| {
            writeln!(std::io::stderr(), "skipped: kernels on the CPU: {err}").expect("stderr is open");
        });
    };
    cc::find().inspect_err(say).ok()
}

/// Runs a module as the tool would, where there is a C compiler.
pub(crate) fn run(module: &Module, expected: &Expected) -> Result<(), String> {
    let Some(compiler) = compiler() else { return Ok(()) };
    let source = codegen::emit::emit(module, &Target::Cpu).map_err(|err| err.to_string())?;
    let binary = compiler.compile(&source).map_err(|err| format!("{err}\n{source}"))?;
    let program = codegen::program(module, &expected.dims, binary).map_err(|err| err.to_string())?;
    let mut machine = CpuMachine::open().unwrap();
    // More than one, so that parallel loops run in parallel on any machine.
    machine.set_threads(3);
    execute(&mut machine, module, &program, expected).map_err(|err| format!("{err}\n{source}"))
}

/// Loads a program, runs it on the inputs and compares its outputs.
pub(crate) fn execute(
    machine: &mut CpuMachine,
    module: &Module,
    program: &Program,
    expected: &Expected,
) -> Result<(), String> {
    let loaded = machine.load(program).map_err(|err| err.to_string())?;
    let mut buffers: Vec<BufferId> = Vec::new();
    for ((name, arg), size) in module.args.iter().zip(&program.buffers) {
        let mut bytes = Vec::new();
        match expected.inputs.get(name) {
            Some(input) => input.data.iter().for_each(|it| number::encode(arg.dtype, *it, &mut bytes)),
            // NaN in every floating-point type.
            None => bytes.resize(*size, 0xff),
        }
        let buffer = machine.alloc(*size).unwrap();
        machine.upload(buffer, &bytes).unwrap();
        buffers.push(buffer);
    }
    machine.run(loaded, &buffers, 1).map_err(|err| err.to_string())?;
    for name in expected.outputs.keys() {
        let at = module.args.get_index_of(name).unwrap();
        let dtype = module.args[at].dtype;
        let mut bytes = vec![0; program.buffers[at]];
        machine.download(buffers[at], &mut bytes).unwrap();
        let got: Vec<_> = bytes.chunks(dtype.bytes()).map(|it| number::decode(dtype, it)).collect();
        expected.compare("the CPU", name, &got)?;
    }
    for it in buffers {
        machine.free(it);
    }
    Ok(())
}
