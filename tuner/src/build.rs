//! From the steps of a candidate to a program that a machine can load, in the two halves that different processes
//! do: [`generate`] schedules, lowers and prints, [`Generated::compile`] calls the compiler.

use std::time::Instant;

use codegen::{
    LaunchError,
    device::{DeviceError, Program, Resources, cc, nvrtc},
    emit::{EmitError, emit},
    lower::LowerError,
};
use indexmap::IndexMap;
use ir::{Func, Module, Name, Target};
use schedule::{ScheduleError, Session, Step};

use crate::{
    Case, CaseError,
    log::{ErrorKind, Stage, TrialError},
    sha256,
};

/// What is tuned: a workload with its sizes, and a target. All candidates of a run share one.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The workload with its sizes and the seed of its inputs.
    pub case: Case,
    /// What it is compiled for, its architecture known.
    pub target: Target,
}

/// A scheduled, lowered and printed candidate.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The scheduled program.
    pub func: Func,
    /// The lowered program.
    pub module: Module,
    /// The emitted source.
    pub source: String,
    /// How it is launched; its binary is still empty.
    pub program: Program,
    /// How long it took, in milliseconds.
    pub milliseconds: f64,
}

/// A compiled candidate.
#[derive(Clone, Debug)]
pub struct Made {
    /// What a machine loads.
    pub program: Program,
    /// What each kernel needs, where the compiler tells.
    pub resources: Vec<Resources>,
}

/// Why steps do not make a program.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BuildError {
    /// A step is refused.
    #[error("step {}, {}: {error}", at + 1, step)]
    Schedule {
        /// Which step, from 0.
        at: usize,
        /// The primitive.
        step: &'static str,
        /// Why.
        error: ScheduleError,
    },
    /// The scheduled program cannot be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The lowered program cannot be printed.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// It cannot be launched at these sizes.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The compiler refused, or is not there.
    #[error(transparent)]
    Compile(#[from] DeviceError),
}

impl BuildError {
    /// The error as a log has it.
    pub fn trial_error(&self) -> TrialError {
        let (stage, kind) = match self {
            BuildError::Schedule { .. } => (Stage::Generate, ErrorKind::Schedule),
            BuildError::Lower(_) | BuildError::Emit(_) | BuildError::Launch(_) => {
                (Stage::Generate, ErrorKind::Codegen)
            }
            BuildError::Compile(_) => (Stage::Compile, ErrorKind::Compile),
        };
        TrialError::new(stage, kind, &self.to_string())
    }
}

impl Problem {
    /// A workload at its sizes for a target.
    pub fn new(
        func: Func,
        dims: IndexMap<Name, i64>,
        seed: u64,
        target: Target,
    ) -> Result<Problem, CaseError> {
        Ok(Problem { case: Case::new(func, dims, seed)?, target })
    }

    /// SHA-256 of the unscheduled program in its text form.
    pub fn workload_id(&self) -> String {
        sha256(&ir::text::print(&self.case.func).text)
    }

    /// The name of a candidate: SHA-256 of workload, target and steps. Equal candidates have equal names anywhere.
    pub fn candidate_id(&self, workload_id: &str, steps: &[Step]) -> String {
        let mut text = format!("{workload_id}\n{}\n", target_word(&self.target));
        text.extend(self.case.dims.iter().map(|(name, value)| format!("{name}={value}\n")));
        text.extend(steps.iter().map(|it| it.to_ron() + "\n"));
        sha256(&text)
    }
}

/// A target as on the command line: `cpu`, `cuda:sm_90a`.
pub fn target_word(target: &Target) -> String {
    match target {
        Target::Cpu => "cpu".to_owned(),
        Target::Cuda(arch) => format!("cuda:{arch}"),
    }
}

/// What [`target_word`] writes, read.
pub fn parse_target_word(word: &str) -> Option<Target> {
    match word.strip_prefix("cuda:") {
        Some(arch) => ir::Arch::parse(arch).map(Target::Cuda),
        None => (word == "cpu").then_some(Target::Cpu),
    }
}

/// Applies steps to an unscheduled program.
pub fn schedule(func: &Func, target: &Target, steps: &[Step]) -> Result<Session, BuildError> {
    let mut session = Session::new(func.clone(), Some(target.clone()));
    for (at, step) in steps.iter().enumerate() {
        session.apply(step).map_err(|error| BuildError::Schedule { at, step: step.name(), error })?;
    }
    Ok(session)
}

/// Schedules, lowers and prints. Needs neither compiler nor device, and gives the same source everywhere (for a CPU:
/// wherever vectors are as wide).
pub fn generate(problem: &Problem, steps: &[Step]) -> Result<Generated, BuildError> {
    let start = Instant::now();
    let func = schedule(&problem.case.func, &problem.target, steps)?.func().clone();
    let module = codegen::compile_module(&func, &problem.target)?;
    let source = emit(&module, &problem.target)?;
    let program = codegen::program(&module, &problem.case.dims, vec![])?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    Ok(Generated { func, module, source, program, milliseconds })
}

impl Generated {
    /// Calls the compiler.
    pub fn compile(&self, target: &Target) -> Result<Made, BuildError> {
        let (binary, resources) = machine_code(&self.source, &self.func.name, target)?;
        Ok(Made { program: Program { binary, ..self.program.clone() }, resources })
    }
}

/// Compiles an emitted source: machine code, and what each kernel needs where the compiler tells.
pub fn machine_code(
    source: &str,
    name: &Name,
    target: &Target,
) -> Result<(Vec<u8>, Vec<Resources>), DeviceError> {
    match target {
        Target::Cpu => Ok((cc::find()?.compile(source)?, vec![])),
        Target::Cuda(arch) => {
            let compiled = nvrtc::compile(source, &format!("{name}.cu"), arch, &[])?;
            Ok((compiled.cubin, compiled.resources))
        }
    }
}
