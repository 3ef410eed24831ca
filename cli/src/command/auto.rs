//! `tilewright auto`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use ir::Target;
use schedule::{script::ScriptTarget, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{auto::Form, build::target_word};

use crate::{
    automatic::{Automatic, auto_at, seen_from, target_here},
    constant::True,
    diagnostic::Diagnostic,
    new_file,
    plan::{parse_param, parse_target},
    term::{code::Lang, report::Report, shell::Shell},
};

/// Write a first schedule of a workload, without search: a script whose comments say why
#[derive(Debug, clap::Args)]
pub(crate) struct Auto {
    /// The name of a workload that ships, or the path of one, which begins with `./` or `/`
    workload: String,
    /// For what: cpu, cuda, cuda:sm_90a [default: the GPU at hand, else the cpu]
    #[arg(long, value_parser = parse_target)]
    target: Option<ScriptTarget>,
    /// A parameter of the workload: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// How many multiprocessors the GPU has [default: what is usual for the architecture]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(1..=4096))]
    units: Option<i64>,
    /// Write the script into this file instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file of `--out`
    #[arg(long, requires = "out")]
    force: bool,
    /// Write a space for `tune` instead, whose first point is that schedule
    #[arg(long)]
    space: bool,
    /// Say only why
    #[arg(long, conflicts_with = "out")]
    explain: bool,
}

/// A first schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FirstSchedule<'a> {
    ok: True,
    /// The rule that knew the program: wgmma, tcgen05, mma, simt, elementwise, anything.
    rule: &'static str,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: String,
    /// The script.
    script: &'a str,
    /// Why its steps are what they are.
    reasons: &'a [String],
    /// What ranked higher and was refused.
    refused: &'a [String],
    /// The file that it was written to.
    file: Option<String>,
    #[serde(skip)]
    explain: bool,
    #[serde(skip)]
    space: bool,
}

impl Report for FirstSchedule<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if let Some(file) = &self.file {
            return shell.say(&format!(
                "{file}: a {} by the rule `{}`; `tilewright {} {file}` measures it",
                if self.space { "space" } else { "schedule" },
                self.rule,
                if self.space { "tune" } else { "run" }
            ));
        }
        if !self.explain {
            return shell.code(self.script, Lang::Ron);
        }
        writeln!(shell.out, "by the rule `{}` for {}", self.rule, self.target)?;
        for reason in self.reasons {
            writeln!(shell.out, "- {reason}")?;
        }
        for it in self.refused {
            writeln!(shell.out, "not taken: {it}")?;
        }
        Ok(())
    }
}

impl Auto {
    /// The script; one that goes to another folder names a workload in a file as that folder sees it.
    fn made(&self, params: &IndexMap<String, Param>, target: &Target) -> Result<Automatic, Diagnostic> {
        let form = if self.space { Form::Space } else { Form::Script };
        let folder = self.out.as_ref().and_then(|it| it.parent()).filter(|it| *it != Path::new(""));
        if let (Some(folder), Some(out)) = (folder, &self.out)
            && let Some(name) = seen_from(folder, &self.workload)
        {
            return auto_at(out, &name, params, target, self.units, form);
        }
        auto_at(Path::new("auto.ron"), &self.workload, params, target, self.units, form)
    }

    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let target = target_here(self.target.as_ref());
        let params = self.params.iter().cloned().collect();
        let made = self.made(&params, &target)?;
        if let Some(out) = &self.out {
            new_file::write(out, made.script.as_bytes(), self.force)?;
        }
        shell.report(&FirstSchedule {
            ok: True,
            rule: made.rule,
            target: target_word(&target),
            script: &made.script,
            reasons: &made.reasons,
            refused: &made.refused,
            file: self.out.as_ref().map(|it| it.display().to_string()),
            explain: self.explain,
            space: self.space,
        })
    }
}
