//! `tilewright import`.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use ir::Target;
use schedule::script::ScriptTarget;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    automatic::seen_from,
    constant::True,
    diagnostic::Diagnostic,
    new_file,
    plan::{Plan, parse_target, read},
    script_text::script,
    term::{code::Lang, report::Report, shell::Shell},
    tvm,
    usage_error::UsageError,
};

/// Read a program of TVM's as one in the text form, or a record of MetaSchedule's as a script
///
/// What programs and steps here cannot say is refused, with its place; nothing is written then. Nothing in the file is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// A Python file with TVMScript, as `mod.script()` writes it; or a JSON file of tuning records or with one trace
    #[arg(value_name = "FILE.py|FILE.json")]
    file: PathBuf,
    /// The function, if there are several
    #[arg(long, value_name = "NAME")]
    func: Option<String>,
    /// With records: the program that they are of, a file in TVMScript or in the text form
    #[arg(long, value_name = "FILE", conflicts_with = "func")]
    program: Option<PathBuf>,
    /// With records: which one, from 1 [default: the fastest]
    #[arg(long, value_name = "NUMBER", requires = "program")]
    record: Option<usize>,
    /// With records: the target of the script
    #[arg(long, value_parser = parse_target, requires = "program")]
    target: Option<ScriptTarget>,
    /// Write what was read into this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file of `--out`
    #[arg(long, requires = "out")]
    force: bool,
}

/// A program or a script that was read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportedText<'a> {
    ok: True,
    /// program or script.
    kind: &'static str,
    /// What the program is called.
    func: &'a str,
    /// The program in the text form, or the script.
    text: &'a str,
    /// Names that could not be kept.
    renamed: Vec<Renamed<'a>>,
    /// What was left out, since it changes nothing.
    notes: Vec<String>,
    /// The file that it was written to.
    file: Option<String>,
}

/// A name that could not be kept: it is none here, or something else has it.
#[derive(Debug, Serialize, JsonSchema)]
struct Renamed<'a> {
    /// In the file.
    from: &'a str,
    /// In the program.
    to: &'a str,
}

impl Report for ImportedText<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        for Renamed { from, to } in &self.renamed {
            shell.note(&format!("`{from}` is called `{to}`"));
        }
        self.notes.iter().for_each(|it| shell.note(it));
        let is_script = self.kind == "script";
        match &self.file {
            Some(file) if is_script => shell
                .say(&format!("{file}: a script for `{}`; `tilewright check {file}` reads it", self.func)),
            Some(file) => {
                shell.say(&format!("{file}: the program `{}`; a script names it as its workload", self.func))
            }
            None => shell.code(self.text, if is_script { Lang::Ron } else { Lang::Ir }),
        }
    }
}

impl Import {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let text = read(&self.file)?;
        let is_record = self.file.extension().is_some_and(|it| it == "json");
        match (&self.program, is_record) {
            (Some(program), true) => self.record(&text, program, shell),
            (None, false) => self.program(&text, shell),
            (Some(_), false) => Err(Diagnostic::usage(
                UsageError::Options,
                "a program is not read on another one: `--program` is for records",
            )),
            (None, true) => Err(Diagnostic::usage(
                UsageError::Options,
                "records are of a program, which they do not have in a form that is read",
            )
            .help("name it: `--program module.py`, where `print(mod.script())` was written to".to_owned())),
        }
    }

    fn program(&self, text: &str, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let made = tvm::import(&self.file, text, self.func.as_deref())?;
        let renamed = made.renamed.iter().map(|(from, to)| Renamed { from, to: to.as_str() }).collect();
        let program = ir::text::print(&made.func).text;
        let file = self.write(&program)?;
        let (func, notes) = (made.func.name.as_str(), vec![]);
        shell.report(&ImportedText { ok: True, kind: "program", func, text: &program, renamed, notes, file })
    }

    fn record(&self, text: &str, program: &Path, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let plan = Plan::load_any(program, &[])?;
        let target = self.target.as_ref().map_or(Target::Cpu, |it| plan.target(Some(it), None));
        let replayed = tvm::replay(text, self.record, plan.func.clone(), target.clone())?;
        let steps: Vec<_> = replayed.steps.iter().map(|it| (None, it)).collect();
        let script = script(&self.workload(program), &IndexMap::new(), &target, &steps);
        let file = self.write(&script)?;
        let (func, notes) = (plan.func.name.as_str(), replayed.notes);
        shell.report(&ImportedText {
            ok: True,
            kind: "script",
            func,
            text: &script,
            renamed: vec![],
            notes,
            file,
        })
    }

    /// The program as the script names it: relative to its own folder.
    fn workload(&self, program: &Path) -> String {
        let folder = self.out.as_ref().and_then(|it| it.parent()).filter(|it| *it != Path::new(""));
        let word = program.display().to_string();
        folder.and_then(|it| seen_from(it, &word)).unwrap_or(word)
    }

    /// Writes the file, if one is asked for; what it is called.
    fn write(&self, text: &str) -> Result<Option<String>, Diagnostic> {
        let Some(out) = &self.out else { return Ok(None) };
        new_file::write(out, text.as_bytes(), self.force)?;
        Ok(Some(out.display().to_string()))
    }
}
