//! Measuring on a machine: comparisons, screens and finals.
//!
//! A [`Bench`] has a case on a machine: inputs uploaded once, and what the outputs must be. Every way to measure
//! goes the same way: the outputs are poisoned, the program runs once, its numbers are verified; only then is it
//! timed; after the last sample the outputs are poisoned and verified once more.
//!
//! | | what | what for |
//! | --- | --- | --- |
//! | [`Bench::compare`] | some programs and the vendor's library in shuffled rounds | `run`, `tutorial` |
//! | [`screen`] | one program, as short as its figure allows | each candidate of a search |
//! | [`finals`] | the best programs and the vendor's best algorithm in shuffled rounds, with intervals | what is claimed |
//!
//! # Invariants
//!
//! * Inputs are uploaded once, and again only after wrong numbers: the program may have overwritten them.
//! * What a program takes, it gives back: memory and the program itself.
//! * After an error that the process does not outlive ([`TrialError::sticky`](crate::log::TrialError)) nothing on the
//!   machine is touched any more, not even to give memory back.

mod compare;
mod fault;
mod finals;
mod paired;
mod screen;
mod unfused;
mod vendor;
mod verdict;

use codegen::device::{BufferId, DeviceError, Machine, Program, ProgramId};
use indexmap::IndexMap;
use ir::{InterpError, Name};

pub use compare::{Candidate, Progress};
pub use fault::{error_of, wrong_numbers};
pub use finals::{FINAL_ROUNDS, finals};
pub use paired::{against, rank, tied};
pub use screen::screen;
pub use verdict::{MARGIN, NO_FLOOR, Verdict, is_not_slower, reach, verdict};

use crate::{Case, Expected, Failure, Oracle, Tensor, Verification, case::Param, verify::library_slack};

/// Why nothing can be measured at all.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum BenchError {
    /// The machine cannot hold the tensors.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The reference cannot tell what the outputs must be.
    #[error("the reference of the workload has no value: {0}")]
    Reference(#[from] InterpError),
}

/// A case on a machine: inputs uploaded, expectations computed. Gives the memory back when dropped.
pub struct Bench<'a> {
    machine: &'a mut dyn Machine,
    case: &'a Case,
    inputs: &'a IndexMap<Name, Tensor>,
    oracle: &'a mut dyn Oracle,
    kept: Kept,
}

/// What a [`Bench`] has on its machine and knows of its case, between [`Bench::keep`] and [`Bench::again`]. It belongs
/// to that machine and that case.
#[derive(Debug, Default)]
pub struct Kept {
    buffers: IndexMap<Name, BufferId>,
    outputs: Vec<Output>,
    /// Whether the machine is lost to this process.
    lost: bool,
}

/// An output and the memory for looking at it.
#[derive(Debug)]
struct Output {
    expected: Expected,
    poison: Tensor,
    seen: Tensor,
}

/// A loaded program with its memory.
struct Loaded {
    program: ProgramId,
    /// One for each of the program's buffers.
    buffers: Vec<BufferId>,
    /// Those of them that are its own.
    workspace: Vec<BufferId>,
    /// The programs that it runs, if it is a sequence of programs.
    parts: Vec<ProgramId>,
    /// What it may be wrong beyond a schedule of the workload, in parts of the largest magnitude of an output.
    slack: f64,
}

impl Loaded {
    /// A program over buffers that somebody else owns.
    fn plain(program: ProgramId, buffers: Vec<BufferId>) -> Loaded {
        Loaded { program, buffers, workspace: vec![], parts: vec![], slack: 0.0 }
    }

    /// A library's program, which may round tensors in between, and parts of sums, to the type of the output.
    fn library(case: &Case, program: ProgramId, buffers: Vec<BufferId>) -> Loaded {
        Loaded { slack: library_slack(case), ..Loaded::plain(program, buffers) }
    }
}

impl<'a> Bench<'a> {
    /// Uploads the inputs and computes what the outputs must be.
    pub fn new(
        machine: &'a mut dyn Machine,
        case: &'a Case,
        inputs: &'a IndexMap<Name, Tensor>,
        oracle: &'a mut dyn Oracle,
    ) -> Result<Bench<'a>, BenchError> {
        let outputs = Expected::of(case, oracle)?.into_iter().map(|expected| {
            let (dtype, shape) = (expected.dtype, &expected.shape);
            let poison = Tensor::poisoned(dtype, shape);
            Output { seen: Tensor::zeroed(dtype, shape), poison, expected }
        });
        let kept = Kept { outputs: outputs.collect(), ..Kept::default() };
        let mut bench = Bench { machine, case, inputs, oracle, kept };
        for (name, param) in case.params() {
            let buffer = bench.machine.alloc(param.bytes())?;
            bench.kept.buffers.insert(name.clone(), buffer);
        }
        bench.upload_inputs()?;
        Ok(bench)
    }

    /// Lets go of the machine, for somebody who has to store it, and leaves everything on it.
    pub fn keep(mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }

    /// A bench from what was kept of it. Machine, case and inputs must be those that it had.
    pub fn again(
        machine: &'a mut dyn Machine,
        case: &'a Case,
        inputs: &'a IndexMap<Name, Tensor>,
        oracle: &'a mut dyn Oracle,
        kept: Kept,
    ) -> Bench<'a> {
        Bench { machine, case, inputs, oracle, kept }
    }

    fn upload_inputs(&mut self) -> Result<(), DeviceError> {
        for (name, tensor) in self.inputs {
            if let Some(buffer) = self.kept.buffers.get(name) {
                self.machine.upload(*buffer, &tensor.bytes)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, program: &Program) -> Result<Loaded, Failure> {
        let sizes: Vec<usize> = self.case.params().values().map(Param::bytes).collect();
        let Some(own) = program.buffers.strip_prefix(sizes.as_slice()) else {
            let first = program.buffers.iter().take(sizes.len()).copied().collect();
            return Err(Failure::Buffers { program: first, case: sizes });
        };
        let buffers = self.kept.buffers.values().copied().collect();
        let mut loaded = Loaded::plain(self.machine.load(program)?, buffers);
        let mut own = (sizes.len()..).zip(own);
        let add = |(at, size): (usize, &usize)| {
            self.add_workspace(&mut loaded, *size, program.zeroed.contains(&at))
        };
        match own.try_for_each(add) {
            Ok(()) => Ok(loaded),
            Err(err) => {
                let failure = err.into();
                self.kept.lost |= fault::is_sticky(&failure);
                self.release(loaded);
                Err(failure)
            }
        }
    }

    fn add_workspace(
        &mut self,
        loaded: &mut Loaded,
        size: usize,
        is_zeroed: bool,
    ) -> Result<(), DeviceError> {
        let buffer = self.machine.alloc(size)?;
        loaded.workspace.push(buffer);
        loaded.buffers.push(buffer);
        // All ones are a NaN in every float type: a program that reads what it has not written shows.
        self.machine.upload(buffer, &vec![if is_zeroed { 0 } else { 0xff }; size])
    }

    /// Runs a program twice over poisoned outputs, so that what it leaves behind would show, and looks at the numbers.
    ///
    /// # Errors
    /// Where it does not load or does not run.
    pub fn verify(&mut self, program: &Program) -> Result<Verification, Failure> {
        let loaded = self.load(program)?;
        let res = self.verified_run(&loaded, 2);
        self.kept.lost |= res.as_ref().is_err_and(fault::is_sticky);
        self.release(loaded);
        Ok(res?.1)
    }

    /// Gives back what a program has taken.
    fn release(&mut self, loaded: Loaded) {
        if !self.kept.lost {
            loaded.workspace.into_iter().for_each(|it| self.machine.free(it));
            self.machine.unload(loaded.program);
            loaded.parts.into_iter().for_each(|it| self.machine.unload(it));
        }
    }

    /// Poisons the outputs, runs, and looks at them.
    fn verified_run(&mut self, loaded: &Loaded, calls: u32) -> Result<(f64, Verification), Failure> {
        for it in &self.kept.outputs {
            self.machine.upload(self.kept.buffers[&it.expected.buffer], &it.poison.bytes)?;
        }
        let seconds = self.machine.run(loaded.program, &loaded.buffers, calls)?;
        let mut outputs = Vec::new();
        for Output { expected, seen, .. } in &mut self.kept.outputs {
            self.machine.download(self.kept.buffers[&expected.buffer], &mut seen.bytes)?;
            outputs.push(expected.check_loosely(seen, loaded.slack, self.oracle));
        }
        let verdict = Verification { outputs };
        if !verdict.is_ok() {
            self.upload_inputs()?;
        }
        Ok((seconds / f64::from(calls), verdict))
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        if !self.kept.lost {
            self.kept.buffers.values().for_each(|it| self.machine.free(*it));
        }
    }
}
