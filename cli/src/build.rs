//! From a scheduled program to one that a machine can load.

use codegen::{
    device::{CpuMachine, CudaMachine, DeviceError, Machine, Program, Resources, cuda_arch, nvrtc},
    emit::emit,
    lower::{Lowered, lower_explained, no_effect},
};
use indexmap::IndexMap;
use ir::{Arch, Func, Module, Name, Target};

use crate::{
    diagnostic::Diagnostic,
    guard::{Activity, Watched, within},
    usage_error::UsageError,
};

/// A program with everything that was made on the way to it.
#[derive(Debug)]
pub struct Built {
    /// The scheduled program.
    pub(crate) func: Func,
    /// The emitted source.
    pub(crate) source: String,
    /// What a machine loads.
    pub(crate) program: Program,
    /// What each kernel needs, where the compiler tells.
    pub(crate) resources: Vec<Resources>,
    /// What the script asks for in vain.
    pub(crate) notes: Vec<String>,
    /// How each buffer with a swizzle lies in memory, in sentences.
    pub(crate) swizzles: Vec<String>,
    /// The lowered program.
    pub(crate) module: Module,
}

impl Built {
    /// The scheduled program.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The emitted C or CUDA C++.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What a machine loads: the machine code, and how each kernel is launched.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What each kernel needs of a multiprocessor, where the compiler tells.
    pub fn resources(&self) -> &[Resources] {
        &self.resources
    }

    /// What the schedule asks for in vain.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The same machine code for other values of the symbolic dimensions.
    pub(crate) fn at(&self, dims: &IndexMap<Name, i64>) -> Result<Program, Diagnostic> {
        let binary = self.program.binary.clone();
        program(&self.func, &self.module, dims, binary)
    }
}

/// Lowers a scheduled program, and tells what its script asks for in vain.
pub(crate) fn lower(func: &Func, target: &Target) -> Result<(Module, Vec<String>), Diagnostic> {
    let it = lowered(func, target)?;
    let notes = no_effect(func, &it.pipelines);
    Ok((it.module, notes))
}

/// A program up to what a compiler takes.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// The lowered program.
    pub module: Module,
    /// The C or CUDA C++.
    pub source: String,
    /// What the schedule asks for in vain.
    pub notes: Vec<String>,
}

/// What `check` asks of a scheduled program: that it can be lowered, and that its target has words for what comes out. Needs no compiler.
pub fn emitted(func: &Func, target: &Target) -> Result<Emitted, Diagnostic> {
    let (module, notes) = lower(func, target)?;
    // What is lowered may still ask for what the language of the target has no words for.
    let source = source(func, &module, target)?;
    Ok(Emitted { module, source, notes })
}

/// Lowers a scheduled program, with all there is to tell about it.
pub(crate) fn lowered(func: &Func, target: &Target) -> Result<Lowered, Diagnostic> {
    lower_explained(func, target).map_err(|err| Diagnostic::lower(func, &err))
}

/// The source of a lowered program. `func` is what it was lowered from, to point at.
pub(crate) fn source(func: &Func, module: &Module, target: &Target) -> Result<String, Diagnostic> {
    emit(module, target).map_err(|err| Diagnostic::emit(func, &err))
}

/// What a machine loads, at values of the symbolic dimensions.
pub(crate) fn program(
    func: &Func,
    module: &Module,
    dims: &IndexMap<Name, i64>,
    binary: Vec<u8>,
) -> Result<Program, Diagnostic> {
    codegen::program(module, dims, binary).map_err(|err| Diagnostic::launch(func, &err))
}

/// Lowers, emits and compiles.
pub fn build(func: &Func, target: &Target, dims: &IndexMap<Name, i64>) -> Result<Built, Diagnostic> {
    let (lowered, source, binary, resources) = compiled(func, target)?;
    let program = program(func, &lowered.module, dims, binary)?;
    Ok(built(func, lowered, (source, program, resources)))
}

/// What a program is lowered to, its source, the machine code of that, and what its kernels need: all that depends on no size.
pub(crate) fn compiled(
    func: &Func,
    target: &Target,
) -> Result<(Lowered, String, Vec<u8>, Vec<Resources>), Diagnostic> {
    let lowered = lowered(func, target)?;
    let source = source(func, &lowered.module, target)?;
    let (binary, resources) = machine_code(&source, &func.name, target)?;
    Ok((lowered, source, binary, resources))
}

/// Lowers and emits, and compiles where the compiler is found: without it, the program has no machine code and its needs are
/// not known.
pub(crate) fn sketch(func: &Func, target: &Target, dims: &IndexMap<Name, i64>) -> Result<Built, Diagnostic> {
    let lowered = lowered(func, target)?;
    let source = source(func, &lowered.module, target)?;
    let (binary, resources) = match machine_code(&source, &func.name, target) {
        Err(DeviceError::Missing { .. }) => (vec![], vec![]),
        it => it?,
    };
    let program = program(func, &lowered.module, dims, binary)?;
    Ok(built(func, lowered, (source, program, resources)))
}

fn built(
    func: &Func,
    lowered: Lowered,
    (source, program, resources): (String, Program, Vec<Resources>),
) -> Built {
    let notes = no_effect(func, &lowered.pipelines);
    let Lowered { module, swizzles, .. } = lowered;
    Built { func: func.clone(), source, program, resources, notes, swizzles, module }
}

/// Compiles a source, in time.
fn machine_code(
    source: &str,
    name: &Name,
    target: &Target,
) -> Result<(Vec<u8>, Vec<Resources>), DeviceError> {
    within(Activity::Compiler, || tuner::build::machine_code(source, name, target))
}

/// Compiles CUDA C++.
pub(crate) fn compile_cuda(source: &str, func: &Func, arch: &Arch) -> Result<nvrtc::Compiled, Diagnostic> {
    Ok(within(Activity::Compiler, || nvrtc::compile(source, &format!("{}.cu", func.name), arch, &[]))?)
}

/// Opens the machine that a target stands for.
pub(crate) fn open(target: &Target) -> Result<Box<dyn Machine>, Diagnostic> {
    let machine: Box<dyn Machine> = match target {
        Target::Cpu => Box::new(CpuMachine::open()?),
        Target::Cuda(_) => Box::new(CudaMachine::open(0)?),
    };
    Ok(Box::new(Watched(machine)))
}

/// The architecture of the GPU at hand, if there is one.
pub(crate) fn found_arch() -> Option<Arch> {
    Arch::parse(&cuda_arch(0).ok()?)
}

/// The architecture of a GPU; refuses the CPU.
pub(crate) fn expect_gpu(target: &Target) -> Result<&Arch, Diagnostic> {
    match target {
        Target::Cuda(arch) => Ok(arch),
        Target::Cpu => {
            Err(Diagnostic::usage(UsageError::Options, "only a GPU's program has PTX, SASS and resources"))
        }
    }
}
