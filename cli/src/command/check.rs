//! `tilewright check`.

use std::path::{Path, PathBuf};

use schedule::{script::ScriptTarget, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::build::target_word;

use crate::{
    build::{Emitted, emitted},
    constant::True,
    diagnostic::Diagnostic,
    plan::{Plan, parse_param, parse_target},
    term::report::Report,
    term::shell::{Shell, Style},
};

/// Check that every step of a schedule is legal and that the result can be lowered
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The schedule script
    script: PathBuf,
    /// The target, instead of the script's: cpu, cuda, cuda:sm_90a
    #[arg(long, value_parser = parse_target)]
    target: Option<ScriptTarget>,
    /// A parameter of the workload or a knob, instead of the script's: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// Run again whenever the script or its workload changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

/// A schedule whose steps are legal and whose result can be lowered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked<'a> {
    ok: True,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: String,
    /// How many steps the script has.
    steps: usize,
    /// The kernels that it is lowered to, in the order in which they run.
    kernels: Vec<String>,
    /// What the script asks for in vain.
    notes: Vec<String>,
    #[serde(skip)]
    script: &'a Path,
    #[serde(skip)]
    plan: &'a Plan,
    /// The target without its architecture.
    #[serde(skip)]
    family: &'static str,
}

impl Report for Checked<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let steps = match self.steps {
            1 => "1 step is".to_owned(),
            n => format!("{n} steps are"),
        };
        let legal = shell.paint(Style::Good, "legal");
        writeln!(
            shell.out,
            "{}: {steps} {legal}; {} lowers to {} for {}",
            self.script.display(),
            self.plan.script.workload.value,
            self.kernels.join(", "),
            self.family
        )?;
        for it in &self.notes {
            writeln!(shell.out, "note: {it}")?;
        }
        Ok(())
    }
}

impl Check {
    /// The files to watch, if that is wanted.
    pub(crate) fn watched(&self) -> Option<Vec<&Path>> {
        self.watch.then(|| vec![self.script.as_path()])
    }

    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.phase("reading the script");
        let plan = Plan::load(&self.script, &self.params)?;
        let target = plan.target(self.target.as_ref(), None);
        shell.phase("applying the steps");
        let session = plan.schedule(&target, None)?;
        shell.phase("lowering");
        let Emitted { module, notes, .. } = emitted(session.func(), &target)?;
        shell.end();
        shell.report(&Checked {
            ok: True,
            target: target_word(&target),
            steps: plan.steps.len(),
            kernels: module.kernels.iter().map(|it| it.name.to_string()).collect(),
            notes,
            script: &self.script,
            plan: &plan,
            family: target.as_str(),
        })
    }
}
