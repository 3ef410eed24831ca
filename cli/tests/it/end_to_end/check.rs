//! A script at given sizes, and the ways in which its result is checked.

use std::{collections::BTreeMap, sync::Mutex};

use codegen::vgpu::{self, Settings, ThreadOrder};
use indexmap::IndexMap;
use ir::{Arch, Buffer, Func, Module, Name, Role, Target, Tensor, interp};
use schedule::{
    Decisions, Placed, Session, Step,
    script::{Script, ScriptTarget},
    workload::{self, Param},
};

use super::{cpu, gpu};

use crate::common::expanded;

/// A script at given sizes.
pub(crate) struct Case {
    /// What it is called in messages.
    pub(crate) what: String,
    /// What the script stands in.
    pub(crate) text: String,
    /// Parameters in place of the script's.
    pub(crate) params: Vec<(String, Param)>,
    /// The values of symbolic dimensions.
    pub(crate) dims: IndexMap<Name, i64>,
    /// How far each element may be off, relative to its size or to one if that is more.
    pub(crate) tolerance: f64,
}

/// A script that was applied.
pub(crate) struct Scheduled {
    /// The program before the first step.
    pub(crate) before: Func,
    /// The program after the last.
    pub(crate) after: Func,
    /// What it is for.
    pub(crate) target: Target,
}

/// Inputs and what they give.
pub(crate) struct Expected {
    pub(crate) dims: IndexMap<Name, i64>,
    pub(crate) inputs: IndexMap<Name, Tensor>,
    pub(crate) outputs: IndexMap<Name, Tensor>,
    tolerance: f64,
}

/// What programs have computed, by their texts and sizes: the rungs of a ladder begin with the same.
static COMPUTED: Mutex<BTreeMap<String, IndexMap<Name, Tensor>>> = Mutex::new(BTreeMap::new());

impl Case {
    /// The script, the program before its first step, and its steps.
    fn load(&self) -> (Script, Func, Vec<Placed<Step>>) {
        let script =
            Script::parse(&expanded(&self.text)).unwrap_or_else(|err| panic!("{}: {err}", self.what));
        // What does not ship is a file of the tests.
        let source = |name: &str| match workloads::find(name) {
            Some(text) => text.to_owned(),
            None => std::fs::read_to_string(name).unwrap(),
        };
        let workload = workload::parse(&source(&script.workload.value)).unwrap();
        let mut params = script.params.value.clone();
        params.extend(self.params.iter().cloned());
        let before = workload.instantiate(&params).unwrap();
        let steps = script.resolve(&workload.complete(&params).unwrap(), &Decisions::new()).unwrap();
        (script, before, steps)
    }

    /// Its steps.
    pub(crate) fn steps(&self) -> Vec<Placed<Step>> {
        self.load().2
    }

    /// Applies the steps, and demands that all are accepted.
    pub(crate) fn schedule(&self) -> Scheduled {
        self.schedule_steps(self.steps().into_iter().map(|it| it.value).collect())
    }

    /// Applies its steps in that order, and demands that all are accepted.
    pub(crate) fn schedule_steps(&self, steps: Vec<Step>) -> Scheduled {
        let (script, before, _) = self.load();
        let target = match script.target.as_ref().map(|it| it.value.clone()) {
            None | Some(ScriptTarget::Cpu) => Target::Cpu,
            Some(ScriptTarget::Cuda(arch)) => Target::Cuda(arch.unwrap_or(Arch { sm: 80, suffix: None })),
        };
        let mut session = Session::new(before.clone(), Some(target.clone()));
        for step in steps {
            // A refused step leaves nothing behind.
            if let Err(err) = session.apply(&step) {
                let before: Vec<_> = session.trace().map(Step::to_ron).collect();
                let (program, before) = (text(session.func()), before.join("\n"));
                panic!("{}: {}: {err}, after\n{before}\n{program}", self.what, step.to_ron());
            }
        }
        Scheduled { before, after: session.func().clone(), target }
    }

    /// Interprets, lowers, compiles and runs the script on its target.
    pub(crate) fn check(&self) {
        let Scheduled { after, target, .. } = self.check_values();
        if matches!(target, Target::Cuda(_)) {
            gpu::compile(&self.what, &after, &target);
        }
    }

    /// Interprets, lowers and runs the script: on the virtual GPU what is for GPUs, without a compiler.
    pub(crate) fn check_values(&self) -> Scheduled {
        self.check_scheduled(self.schedule())
    }

    /// The same of other steps than its own.
    pub(crate) fn check_scheduled(&self, scheduled: Scheduled) -> Scheduled {
        let expected = self.expected(&scheduled);
        self.interpret(&scheduled, &expected);
        self.check_kernels(&scheduled, &expected);
        scheduled
    }

    /// What the program before its first step computes.
    pub(crate) fn expected(&self, scheduled: &Scheduled) -> Expected {
        Expected::new(&scheduled.before, &self.dims, self.tolerance)
    }

    /// Interprets what steps made.
    pub(crate) fn interpret(&self, Scheduled { after, .. }: &Scheduled, expected: &Expected) {
        expected.interpreter(after).unwrap_or_else(|err| panic!("{}: {err}\n{}", self.what, text(after)));
    }

    /// Lowers and runs what steps made, without interpreting it, which takes longer than all the rest. Gives the kernels.
    pub(crate) fn check_kernels(
        &self,
        Scheduled { after, target, .. }: &Scheduled,
        expected: &Expected,
    ) -> Module {
        let module = self.lower(after, target);
        let result = match target {
            Target::Cpu => cpu::run(&module, expected),
            Target::Cuda(_) => expected.virtual_gpu(&module),
        };
        result.unwrap_or_else(|err| panic!("{}: {err}\n{}\n{module}", self.what, text(after)));
        module
    }

    /// The program as kernels.
    pub(crate) fn lower(&self, func: &Func, target: &Target) -> Module {
        codegen::compile_module(func, target)
            .unwrap_or_else(|err| panic!("{}: {err}\n{}", self.what, text(func)))
    }
}

impl Expected {
    /// What a program computes from small whole numbers, whose sums and products every type here has exactly.
    pub(crate) fn new(func: &Func, dims: &IndexMap<Name, i64>, tolerance: f64) -> Expected {
        let of_role = |role| func.buffers.iter().filter(move |(_, it)| it.role == role);
        let input = |(salt, (name, buffer)): (usize, (&Name, &Buffer))| {
            let shape: Vec<_> = buffer.shape.iter().map(|it| size(it, dims)).collect();
            let count: usize = shape.iter().product();
            let number = |at: usize| ((at * 7 + at / 11 + salt * 5) % 9) as f64 - 4.0;
            // What reads go through holds what its elements are below.
            let below = buffer.below.as_ref().map(|it| size(it, dims) as f64);
            let number =
                |at: usize| below.map_or(number(at), |it| (number(at) * 5.0 + at as f64).rem_euclid(it));
            (name.clone(), Tensor::new(buffer.dtype, &shape, (0..count).map(number)))
        };
        let inputs: IndexMap<_, _> = of_role(Role::Input).enumerate().map(input).collect();
        let key = format!("{dims:?}\n{func}");
        let known = COMPUTED.lock().unwrap().get(&key).cloned();
        let outputs = known.unwrap_or_else(|| {
            let tensors: Vec<_> = inputs.values().cloned().collect();
            let outputs = interp::run(func, dims, &tensors).unwrap();
            let outputs: IndexMap<_, _> =
                of_role(Role::Output).map(|(name, _)| name.clone()).zip(outputs).collect();
            COMPUTED.lock().unwrap().insert(key, outputs.clone());
            outputs
        });
        Expected { dims: dims.clone(), inputs, outputs, tolerance }
    }

    /// What the scheduled program means.
    pub(crate) fn interpreter(&self, func: &Func) -> Result<(), String> {
        let tensors: Vec<_> = self.inputs.values().cloned().collect();
        let outputs = interp::run(func, &self.dims, &tensors).map_err(|err| err.to_string())?;
        let mut both = self.outputs.keys().zip(outputs);
        both.try_for_each(|(name, got)| self.compare("the interpreter", name, &got.data))
    }

    /// What the kernels do, in several orders of threads, and that nothing is wrong with how they do it.
    pub(crate) fn virtual_gpu(&self, module: &Module) -> Result<(), String> {
        let orders = [ThreadOrder::Reversed, ThreadOrder::Shuffled];
        self.on(module, &orders.map(|order| Settings { order, ..Settings::default() }))
    }

    /// The same with such settings.
    pub(crate) fn on(&self, module: &Module, all: &[Settings]) -> Result<(), String> {
        all.iter().try_for_each(|settings| {
            let mut memory = self.inputs.iter().map(|(name, it)| (name.clone(), it.data.clone())).collect();
            let report =
                vgpu::run(module, &self.dims, &mut memory, settings).map_err(|err| err.to_string())?;
            if let Some(found) = report.findings.first() {
                return Err(format!("{found} ({})", settings.words()));
            }
            let where_ = format!("the virtual GPU, {},", settings.words());
            self.outputs.keys().try_for_each(|name| self.compare(&where_, name, &memory[name]))
        })
    }

    /// Whether a result is what it should be.
    pub(crate) fn compare(&self, who: &str, name: &Name, got: &[f64]) -> Result<(), String> {
        let wanted = &self.outputs[name].data;
        // A NaN is never near anything.
        let near = |x: f64, y: f64| (x - y).abs() <= self.tolerance * y.abs().max(1.0);
        let wrong = |(x, y): (&f64, &f64)| !near(*x, *y);
        match got.iter().zip(wanted).position(wrong) {
            _ if got.len() != wanted.len() => Err(format!("{who} gives `{name}` another size")),
            None => Ok(()),
            Some(at) => Err(format!("{who} gives {name}[{at}] = {}, not {}", got[at], wanted[at])),
        }
    }
}

/// The value of an extent.
pub(crate) fn size(index: &ir::Index, dims: &IndexMap<Name, i64>) -> usize {
    usize::try_from(index.eval(&|name| dims.get(name).copied()).unwrap()).unwrap()
}

/// The listing of a program, for messages.
pub(crate) fn text(func: &Func) -> String {
    ir::text::print(func).text
}
