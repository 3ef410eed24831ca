//! `tilewright check`.

use std::path::{Path, PathBuf};

use schedule::{script::ScriptTarget, workload::Param};
use serde_json::json;
use tuner::build::target_word;

use crate::{
    build::{lower, source},
    diagnostic::Diagnostic,
    plan::{Plan, parse_param, parse_target},
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
        let (module, notes) = lower(session.func(), &target)?;
        // What is lowered may still ask for what the language of the target has no words for.
        source(session.func(), &module, &target)?;
        let kernels: Vec<_> = module.kernels.iter().map(|it| it.name.to_string()).collect();
        if shell.json {
            let (target, steps) = (target_word(&target), plan.steps.len());
            return shell.json(
                &json!({"ok": true, "target": target, "steps": steps, "kernels": kernels, "notes": notes}),
            );
        }
        shell.end();
        let steps = match plan.steps.len() {
            1 => "1 step is".to_owned(),
            n => format!("{n} steps are"),
        };
        let legal = shell.paint(Style::Good, "legal");
        writeln!(
            shell.out,
            "{}: {steps} {legal}; {} lowers to {} for {}",
            self.script.display(),
            plan.script.workload.value,
            kernels.join(", "),
            target.as_str()
        )?;
        for it in &notes {
            writeln!(shell.out, "note: {it}")?;
        }
        Ok(())
    }
}
