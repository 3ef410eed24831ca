//! From the workload that a script names to a program at its sizes, with the places of what is wrong on the way.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::Func;
use schedule::{
    script::Script,
    workload::{self, Param},
};

use crate::{
    diagnostic::Diagnostic,
    script_text::ScriptText,
    text_file::{self, Unsaved},
    usage_error::UsageError,
};

/// A script and the file of its workload, to tell where an error stands.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a ScriptText,
    pub(crate) script: &'a Script,
    pub(crate) file: &'a Path,
    pub(crate) workload: &'a str,
}

impl Source<'_> {
    /// The program that the workload stands for, with the values of its parameters.
    pub(crate) fn made(
        &self,
        params: &IndexMap<String, Param>,
        given: &[(String, Param)],
    ) -> Result<(Func, IndexMap<String, Param>), Diagnostic> {
        if text_file::is_program(self.file) {
            return Ok((self.program()?, IndexMap::new()));
        }
        self.instance(params, given)
    }

    /// A workload in RON at the values of its parameters, and all of these values.
    fn instance(
        &self,
        params: &IndexMap<String, Param>,
        given: &[(String, Param)],
    ) -> Result<(Func, IndexMap<String, Param>), Diagnostic> {
        let workload = workload::parse(self.workload)
            .map_err(|err| Diagnostic::workload(self.file, self.workload, &err))?;
        let made = workload.instantiate(params).and_then(|func| Ok((func, workload.complete(params)?)));
        let made = made.map_err(|err| {
            let is_given = |name: &str| given.iter().any(|it| it.0 == name);
            let in_script = err.param().filter(|it| !is_given(it));
            match (in_script, err.span.is_some()) {
                (_, true) => Diagnostic::workload(self.file, self.workload, &err),
                (Some(name), false) => {
                    let span = param_place(self.text, self.script, name);
                    Diagnostic::failed(&err, err.to_string()).at_script(self.text, &span).help(err.help())
                }
                (None, false) if err.param().is_none() && given.is_empty() => {
                    let all = &self.script.params.span;
                    let span = if all.is_empty() { &self.script.workload.span } else { all };
                    Diagnostic::failed(&err, err.to_string()).at_script(self.text, span).help(err.help())
                }
                (None, false) => {
                    // What is no parameter may have been meant for a knob.
                    let knobs = || self.script.knobs.keys().map(ir::Name::as_str);
                    let near = err.param().and_then(|it| schedule::nearest(it, knobs()));
                    let help = near.map(|it| format!("did you mean the knob `{it}`?")).or_else(|| err.help());
                    Diagnostic::usage(&err, err.to_string()).help(help)
                }
            }
        })?;
        // What is not refused in the workload's own words, such as a subscript that leaves a symbolic dimension.
        Source::sound(&made.0, &format!("the program of {}", self.file.display()))?;
        Ok(made)
    }

    /// A program that breaks no rule.
    fn sound(func: &Func, name: &str) -> Result<(), Diagnostic> {
        let errors = ir::verify(func).err().unwrap_or_default();
        Diagnostic::unsound(name, func, &errors).map_or(Ok(()), Err)
    }

    /// A program, with its sizes as they stand there.
    fn program(&self) -> Result<Func, Diagnostic> {
        if let Some(name) = self.script.params.value.keys().next() {
            let span = param_place(self.text, self.script, name);
            return Err(Diagnostic::failed(UsageError::TextParams, "a program has no parameters")
                .at_script(self.text, &span));
        }
        program_of(self.file, self.workload)
    }
}

/// What is wrong with a workload by itself, at the defaults of its parameters; those without a default are for scripts to give.
pub(crate) fn check_workload(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let refused = |err| Diagnostic::workload(path, text, &err);
    let workload = workload::parse(text).map_err(refused)?;
    match workload.instantiate(&IndexMap::new()) {
        Ok(func) => Source::sound(&func, &format!("the program of {}", path.display())),
        Err(err) if err.span.is_some() => Err(refused(err)),
        Err(_) => Ok(()),
    }
}

/// What is wrong with a text in the text form: a program, or kernels.
pub(crate) fn check_text(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let is_module = text.lines().map(str::trim).any(|it| it.starts_with("module "));
    if !is_module {
        return program_of(path, text).map(drop);
    }
    ir::text::parse_module(text).map(drop).map_err(|err| {
        let span = place(text, err.line, err.column);
        Diagnostic::failed(&err.kind, err.kind.to_string()).at(path, text, span)
    })
}

/// A program from its text: in the text form or, by the name of its file, in TVMScript.
pub(crate) fn program_of(path: &Path, text: &str) -> Result<Func, Diagnostic> {
    #[cfg(feature = "cli")]
    if path.extension().is_some_and(|it| it == "py") {
        return Ok(crate::tvm::import(path, text, None)?.func);
    }
    let func = ir::text::parse(text).map_err(|err| {
        let span = place(text, err.line, err.column);
        Diagnostic::failed(&err.kind, err.kind.to_string()).at(path, text, span)
    })?;
    Source::sound(&func, &path.display().to_string())?;
    schedule::check_serpentine(&func).map_err(|err| {
        let name = err.names().first().map(|it| format!("for {it} ")).unwrap_or_default();
        let at = text.find(&name).unwrap_or_default();
        Diagnostic::failed(&err, err.to_string()).at(path, text, at..at + name.trim_end().len())
    })?;
    Ok(codegen::lower::without_findings(func))
}

/// One character at a line and a column, both from 1, in bytes.
pub(crate) fn place(text: &str, line: usize, column: usize) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    let before: usize = rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    let width = rest[before..].chars().next().filter(|it| *it != '\n').map_or(0, char::len_utf8);
    start + before..start + before + width
}

/// Where the script gives a parameter, or its whole list of them.
fn param_place(text: &ScriptText, script: &Script, name: &str) -> Range<usize> {
    let all = script.params.span.clone();
    let word = format!("\"{name}\"");
    let found = text.text().get(all.clone()).and_then(|it| it.find(&word));
    match found {
        Some(at) => all.start + at..all.start + at + word.len(),
        None if all.is_empty() => script.workload.span.clone(),
        None => all,
    }
}

/// The file that a script means by the name of its workload; none if it is one that ships.
pub(crate) fn workload_file(script: &Path, name: &str) -> Option<PathBuf> {
    let is_file = name.starts_with(['.', '/']) || Path::new(name).extension().is_some();
    is_file.then(|| script.parent().unwrap_or(Path::new("")).join(name))
}

/// The file and the text of the workload that a script names.
pub(crate) fn find_workload(
    script_text: &ScriptText,
    script: &Script,
    unsaved: &Unsaved,
) -> Result<(PathBuf, String), Diagnostic> {
    let name = script.workload.value.as_str();
    let fail = |title: String| {
        Diagnostic::failed(UsageError::Workload, title).at_script(script_text, &script.workload.span)
    };
    if let Some(file) = workload_file(&script_text.path, name) {
        if !text_file::is_workload(&file) {
            let title = format!("the workload `{name}` is no file that ends with .ron, .tw or .py");
            return Err(fail(title).help(
                "a workload is written in RON, or a program in the text form or in TVMScript".to_owned(),
            ));
        }
        let text = unsaved.read(&file).map_err(|err| {
            fail(Diagnostic::io(&file, &err).into_title())
                .help("a path in a script is relative to the script".to_owned())
        })?;
        return Ok((file, text));
    }
    if let Some(text) = workloads::find(name) {
        return Ok((PathBuf::from(format!("{name}.ron")), text.to_owned()));
    }
    let help = if let Some(near) = schedule::nearest(name, workloads::all().iter().map(|it| it.name)) {
        format!("did you mean `{near}`?")
    } else {
        let names: Vec<_> = workloads::all().iter().map(|it| format!("`{}`", it.name)).collect();
        format!("there is {}; a file of your own starts with `./`", names.join(", "))
    };
    Err(fail(format!("there is no workload `{name}`")).help(help))
}
