//! A kernel that a program calls on its own arrays.

mod call_error;
mod parameter;
pub(crate) mod refusals;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use codegen::device::{CpuCallable, CudaCallable, Program, Resources, Stream, cuda_arch};
use ir::{Arch, Func, Module, Name, Target};

pub use call_error::CallError;
pub use parameter::{Parameter, Place, Tensor};

use crate::{
    build::{compiled, found_arch, program},
    diagnostic::Diagnostic,
    plan::{Plan, no_value},
};

/// How many sizes are remembered with what a launch needs at them.
const MOST_PLANS: usize = 1024;

/// A schedule, compiled and ready to be called on arrays of the caller's, whose extents give its symbolic dimensions their values.
///
/// On a GPU a call returns before its work has ended: it is started on a stream of the caller's.
pub struct Kernel {
    func: Func,
    module: Module,
    target: Target,
    script: String,
    source: String,
    resources: Vec<Resources>,
    notes: Vec<String>,
    parameters: Vec<Parameter>,
    code: Code,
    /// What a launch needs, by the values of the symbolic dimensions.
    plans: Mutex<HashMap<Vec<i64>, Arc<Program>>>,
}

/// Machine code.
enum Code {
    /// Compiled; loaded at once.
    Cpu(CpuCallable),
    /// Compiled for an architecture; loaded where it is called. With the GPUs that it is known to run on.
    Gpu(CudaCallable, Arch, Mutex<Vec<u32>>),
}

impl Kernel {
    /// Compiles a schedule for its target. `threads` is on how many a CPU runs it, 0 for one a core.
    pub fn compile(plan: &Plan, target: &Target, threads: usize) -> Result<Kernel, Diagnostic> {
        let func = plan.schedule(target, None)?.func().clone();
        let (lowered, source, binary, resources) = compiled(&func, target)?;
        let module = lowered.module;
        let code = match target {
            Target::Cpu => {
                let functions: Vec<_> =
                    module.kernels.iter().map(|it| codegen::emit::symbol(&it.name).into_owned()).collect();
                Code::Cpu(CpuCallable::load(&binary, &functions, threads)?)
            }
            Target::Cuda(arch) => Code::Gpu(CudaCallable::new(binary), arch.clone(), Mutex::default()),
        };
        Ok(Kernel {
            parameters: Parameter::all(&func, &module, target),
            notes: codegen::lower::no_effect(&func, &lowered.pipelines),
            script: plan.plain_script(target, None),
            plans: Mutex::default(),
            target: target.clone(),
            func,
            module,
            source,
            resources,
            code,
        })
    }

    /// The name of the workload's program.
    pub fn name(&self) -> &Name {
        &self.func.name
    }

    /// What it is compiled for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The schedule as a script of plain steps, which compiles to this kernel.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// The scheduled program.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The lowered program.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The emitted C or CUDA C++.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What each kernel needs of a multiprocessor, where the compiler tells.
    pub fn resources(&self) -> &[Resources] {
        &self.resources
    }

    /// What the schedule asks for in vain.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The arrays that it takes: inputs, then outputs, in the order of the workload.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The symbolic dimensions.
    pub fn dims(&self) -> &[Name] {
        &self.module.dims
    }

    /// The values of the symbolic dimensions, in their order: those that are given, and those that follow from the extents of arrays,
    /// each with the number of its parameter.
    ///
    /// # Errors
    ///
    /// There is no such dimension, or one has no value. That the arrays fit these is for [`Kernel::call`] to say.
    pub fn sizes<'a>(
        &self,
        arrays: impl IntoIterator<Item = (usize, &'a [i64])>,
        given: &[(Name, i64)],
    ) -> Result<Vec<i64>, Diagnostic> {
        let names = self.dims();
        let mut sizes = vec![None; names.len()];
        for (name, size) in given {
            let at = names.iter().position(|it| it == name);
            let at = at.ok_or_else(|| crate::plan::unknown_dim(name, &names.iter().collect::<Vec<_>>()))?;
            sizes[at] = Some(*size);
        }
        for (at, shape) in arrays {
            self.parameters[at].bind(shape, &mut sizes);
        }
        sizes.iter().zip(names).map(|(it, name)| it.ok_or_else(|| no_value(name))).collect()
    }

    /// The extents of a parameter at values of the symbolic dimensions; none past 64 bits.
    pub fn shape(&self, parameter: usize, sizes: &[i64]) -> Option<Vec<i64>> {
        self.parameters[parameter].at(self.dims(), sizes)
    }

    /// Runs it on arrays, one for each parameter, at values of the symbolic dimensions: on a CPU to the end, on a GPU by starting it on a
    /// stream.
    ///
    /// # Errors
    ///
    /// An array is not what its parameter asks for, or the device refuses; nothing was written then.
    pub fn call(&self, tensors: &[Tensor], sizes: &[i64], stream: Stream) -> Result<(), Diagnostic> {
        if tensors.len() != self.parameters.len() {
            let title = format!("the kernel takes {} arrays, not {}", self.parameters.len(), tensors.len());
            return Err(Diagnostic::failed(CallError::Arguments, title));
        }
        for (parameter, it) in self.parameters.iter().zip(tensors) {
            parameter.check(it, self.dims(), sizes)?;
        }
        let place = self.place(tensors)?;
        self.expect_apart(tensors)?;
        let plan = self.plan(sizes)?;
        let memory: Vec<_> = tensors.iter().map(|it| it.memory).collect();
        match (&self.code, place) {
            (Code::Cpu(code), _) => code.call(&plan, &memory)?,
            (Code::Gpu(code, ..), Place::Gpu(at)) => code.start(&plan, &memory, at, stream)?,
            (Code::Gpu(..), Place::Cpu) => unreachable!("the place was checked"),
        }
        Ok(())
    }

    /// Where all of the arrays are, which is where the kernel runs.
    fn place(&self, tensors: &[Tensor]) -> Result<Place, Diagnostic> {
        let first = tensors.first().map_or(Place::Cpu, |it| it.place);
        let wrong = self.parameters.iter().zip(tensors).find(|(_, it)| {
            it.place != first || matches!(it.place, Place::Cpu) != matches!(self.code, Code::Cpu(_))
        });
        if let Some((parameter, it)) = wrong {
            let name = &parameter.name;
            return Err(if it.place == first {
                refusals::other_target(name, first, &tuner::build::target_word(&self.target))
            } else {
                refusals::apart(name, it.place, first)
            });
        }
        if let (Code::Gpu(_, arch, known), Place::Gpu(at)) = (&self.code, first) {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.contains(&at) {
                expect_runs_on(arch, at)?;
                known.push(at);
            }
        }
        Ok(first)
    }

    /// Refuses results in memory that another array has, too.
    fn expect_apart(&self, tensors: &[Tensor]) -> Result<(), Diagnostic> {
        for (n, written) in self.parameters.iter().enumerate().filter(|it| it.1.is_output) {
            let others = self.parameters.iter().zip(tensors).enumerate().filter(|it| it.0 != n);
            let meets = |it: &&Tensor| tensors[n].memory.overlaps(it.memory);
            if let Some((_, (other, _))) = others.into_iter().find(|it| meets(&it.1.1)) {
                return Err(refusals::shared(&written.name, &other.name));
            }
        }
        Ok(())
    }

    /// What a launch needs at these sizes.
    fn plan(&self, sizes: &[i64]) -> Result<Arc<Program>, Diagnostic> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(sizes) {
            return Ok(Arc::clone(plan));
        }
        let dims = self.dims().iter().cloned().zip(sizes.iter().copied()).collect();
        let plan = Arc::new(program(&self.func, &self.module, &dims, vec![])?);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(sizes.to_vec(), Arc::clone(&plan));
        Ok(plan)
    }
}

impl Plan {
    /// The target that a kernel is compiled for: what is asked for, else what the script says, with the architecture of the first GPU where
    /// none is named.
    pub fn target_here(&self, asked: Option<&schedule::script::ScriptTarget>) -> Target {
        // A GPU is looked for only where it matters.
        match self.target(asked, None) {
            Target::Cpu => Target::Cpu,
            Target::Cuda(_) => self.target(asked, found_arch()),
        }
    }
}

/// Refuses a GPU that code for an architecture does not run on: of another generation, older, or any other where it uses what only one
/// architecture has.
fn expect_runs_on(arch: &Arch, ordinal: u32) -> Result<(), Diagnostic> {
    let word = cuda_arch(ordinal)?;
    let here = Arch::parse(&word).map_or(0, |it| it.sm);
    let runs = match arch.suffix {
        Some('a') => here == arch.sm,
        Some(_) | None => here / 10 == arch.sm / 10 && here >= arch.sm,
    };
    if runs {
        return Ok(());
    }
    let title = format!("the kernel was compiled for {arch}, and GPU {ordinal} is {word}");
    let help = format!("compile it for the target `cuda:{word}`");
    Err(Diagnostic::failed(CallError::Device, title).help(help))
}
