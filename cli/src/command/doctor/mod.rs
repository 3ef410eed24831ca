//! `tilewright doctor`: what this machine has, and what to do about what it lacks.
//!
//! A check is a function from a [`HostEnvironment`] to lines: OK, WARN, FAIL or skip, what was found, and one command that mends
//! it. FAIL is kept for what makes measuring on the CPU impossible, and for a driver that hangs; a machine without a GPU
//! is fine. What loads a library or runs a compiler happens in a process of its own that may not take longer than its
//! time ([`probe`]), so that nothing that hangs or crashes takes `doctor` with it.

mod check;
mod environment;
mod folders;
mod gpu;
mod host;
mod probe;
mod smi;
#[cfg(test)]
mod tests;
mod tools;

use schemars::JsonSchema;
use serde::Serialize;

use self::{
    check::{Check, State},
    environment::{HostEnvironment, ThisHost},
    probe::Probe,
};
use crate::{diagnostic::Diagnostic, term::report::Report, term::shell::Shell, usage_error::UsageError};

/// Tell what this machine has, and how to get the rest
///
/// Each line is a check: OK, WARN, FAIL or skip, what was found, and what to type to mend it. The exit code is 1 if a
/// check fails; a machine without a GPU has warnings, for everything but measuring on a GPU works there.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Answer one question, as data: what `doctor` starts itself for
    #[arg(long, hide = true, value_parser = Probe::parse)]
    probe: Option<Probe>,
}

/// All checks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checks {
    /// Whether no check fails.
    ok: bool,
    /// One for each thing that was looked at.
    checks: Vec<Check>,
}

impl Report for Checks {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(self.checks.iter().try_for_each(|it| it.print(shell.out))?)
    }
}

impl Doctor {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if let Some(probe) = &self.probe {
            return shell.json(&probe.answer());
        }
        let checks = all(&ThisHost::new()?, &mut |what| shell.progress(&format!("looking at {what}")));
        shell.done();
        let ok = checks.iter().all(|it| it.state != State::Fail);
        let report = Checks { ok, checks };
        shell.report(&report)?;
        let failed = report.checks.iter().filter(|it| it.state == State::Fail);
        match failed.map(|it| it.name.as_str()).collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            names => Err(unfit(names)),
        }
    }
}

/// The checks of these names failed.
pub(crate) fn unfit(names: &[&str]) -> Diagnostic {
    let title = format!("this machine lacks what is needed: {}", names.join(", "));
    Diagnostic::failed(UsageError::Unfit, title)
        .help("the line of each check has what to do, after `fix:`".to_owned())
}

/// Checks of one sort, with what they look at.
type Group = (&'static str, fn(&dyn HostEnvironment) -> Vec<Check>);

/// All checks, in the order in which they are told.
fn all(environment: &dyn HostEnvironment, seen: &mut dyn FnMut(&str)) -> Vec<Check> {
    let mut out = vec![];
    let groups: [Group; 5] = [
        ("the C compiler", |environment| vec![host::compiler(environment)]),
        ("the processor", |environment| {
            vec![
                host::processor(environment),
                host::governor(environment),
                host::load(environment),
                host::memory(environment),
            ]
        }),
        ("GPUs", gpu::checks),
        ("libraries", |environment| {
            vec![tools::nvrtc(environment), tools::cublas(environment), tools::disassembler(environment)]
        }),
        ("folders", |environment| {
            vec![folders::state(environment), folders::temporary(environment), folders::current(environment)]
        }),
    ];
    for (what, group) in groups {
        seen(what);
        out.extend(group(environment));
    }
    out
}
