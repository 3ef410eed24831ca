//! The text of a script: as it was written, and with plain steps in place of calls of procedures.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::Target;
use schedule::{
    ScriptProblem, Step,
    procedure::{self, Definitions, Expanded, Frame},
    workload::Param,
};
use tuner::build::target_word;

use crate::{diagnostic::Diagnostic, text_file::Unsaved};

/// A script, expanded, and the file that it comes from.
#[derive(Clone, Debug)]
pub(crate) struct ScriptText {
    /// The file, or what else the text is.
    pub(crate) path: PathBuf,
    expanded: Expanded,
}

impl ScriptText {
    /// Expands a script. Libraries are those that ship, or files; their paths are relative to the text that uses them.
    pub(crate) fn expand(path: &Path, text: &str) -> Result<ScriptText, Diagnostic> {
        ScriptText::expand_with(path, text, &Unsaved::default())
    }

    /// The same where an editor has not saved some of the libraries.
    pub(crate) fn expand_with(path: &Path, text: &str, unsaved: &Unsaved) -> Result<ScriptText, Diagnostic> {
        let find = |name: &str, user: &str| find_library(name, user, unsaved);
        let expanded = procedure::expand(&path.display().to_string(), text, &find)
            .map_err(|err| Diagnostic::procedure(&err))?;
        Ok(ScriptText { path: path.to_owned(), expanded })
    }

    /// A text without procedures.
    pub(crate) fn plain(name: &str, text: &str) -> ScriptText {
        ScriptText { path: name.into(), expanded: Expanded::plain(name, text) }
    }

    /// The script with plain steps in place of calls: what is read, applied and kept in records.
    pub(crate) fn text(&self) -> &str {
        self.expanded.text()
    }

    /// The script as it was written.
    pub(crate) fn original(&self) -> &str {
        self.expanded.original()
    }

    /// The libraries that it uses, those that ship by their names.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Path> {
        self.expanded.libraries().map(Path::new)
    }

    /// The call in the script that a place was expanded from, and where it stands.
    pub(crate) fn call(&self, span: &Range<usize>) -> Option<(usize, String)> {
        let outermost = self.frames(span).into_iter().skip(1).next_back()?;
        let words: Vec<_> = outermost.text[outermost.span.clone()].split_whitespace().collect();
        Some((outermost.span.start, words.join(" ")))
    }

    /// Where a place in the expansion stands in the script: itself, or the call that it was expanded from.
    pub(crate) fn written(&self, span: &Range<usize>) -> Range<usize> {
        self.frames(span).pop().map_or_else(|| span.clone(), |it| it.span)
    }

    /// Where a place in the expansion was written, and the calls around it.
    pub(crate) fn frames(&self, span: &Range<usize>) -> Vec<Frame> {
        self.expanded.frames(span)
    }
}

/// A script with plain steps in place of calls of procedures: what is read, applied and kept in logs. Libraries are those that ship,
/// or files, named relative to `path`.
///
/// # Errors
///
/// What [`schedule::procedure::expand`] refuses, with its places.
pub fn expand(path: &Path, text: &str) -> Result<String, Diagnostic> {
    Ok(ScriptText::expand(path, text)?.text().to_owned())
}

/// The libraries that ship, read, in the order of their names.
pub(crate) fn shipped_libraries() -> impl Iterator<Item = Result<Definitions, Diagnostic>> {
    workloads::libraries().iter().map(|it| {
        let find = |name: &str, user: &str| find_library(name, user, &Unsaved::default());
        Definitions::of_library(it.name, it.text, &find).map_err(|err| Diagnostic::procedure(&err))
    })
}

/// What to try instead of a step that begins with an unknown word, if that is a procedure of a library that ships.
pub(crate) fn missing_use(problem: ScriptProblem, word: Option<&str>) -> Option<String> {
    let word = word.filter(|_| problem == ScriptProblem::UnknownPrimitive)?;
    let library = shipped_libraries().flatten().find(|it| it.own().any(|it| *it.name == *word))?;
    let name = library.name();
    Some(format!("it is a procedure of `{name}`: add `use: [\"{name}\"]`"))
}

/// The library of a name: one that ships, as `std/copy`, or a file, as `./mine.ron`.
pub(crate) fn find_library(name: &str, user: &str, unsaved: &Unsaved) -> Result<(String, String), String> {
    if name.starts_with(['.', '/']) {
        let path = Path::new(user).parent().unwrap_or(Path::new("")).join(name);
        let text = unsaved.read(&path).map_err(|err| Diagnostic::io(&path, &err).into_title())?;
        return Ok((path.display().to_string(), text));
    }
    if let Some(library) = workloads::find_library(name) {
        return Ok((library.name.to_owned(), library.text.to_owned()));
    }
    let known = || workloads::libraries().iter().map(|it| it.name);
    Err(schedule::nearest(name, known()).map_or_else(
        || {
            let known: Vec<_> = known().map(|it| format!("`{it}`")).collect();
            format!("there is {}; a file of your own starts with `./`", known.join(", "))
        },
        |near| format!("did you mean `{near}`?"),
    ))
}

/// The text of a script of plain steps, some with a comment before them.
pub(crate) fn script(
    workload: &str,
    params: &IndexMap<String, Param>,
    target: &Target,
    steps: &[(Option<String>, &Step)],
) -> String {
    script_that_calls(&[], workload, params, target, steps, None)
}

/// The same with libraries that it uses, and the call of a procedure behind the steps.
pub(crate) fn script_that_calls(
    libraries: &[String],
    workload: &str,
    params: &IndexMap<String, Param>,
    target: &Target,
    steps: &[(Option<String>, &Step)],
    call: Option<&str>,
) -> String {
    let params: Vec<_> = params.iter().map(|(name, it)| format!("{name:?}: {it}")).collect();
    let line = |(comment, step): &(Option<String>, &Step)| {
        let comment = comment.as_ref().map(|it| format!("        // {it}\n")).unwrap_or_default();
        format!("{comment}        {},\n", step.to_ron())
    };
    let steps: String = steps.iter().map(line).chain(call.map(|it| format!("        {it},\n"))).collect();
    let uses = if libraries.is_empty() { String::new() } else { format!("    use: {libraries:?},\n") };
    format!(
        "schedule(\n{uses}    workload: {workload:?},\n    target: {:?},\n    params: {{{}}},\n    steps: [\n{steps}    ],\n)\n",
        target_word(target),
        params.join(", ")
    )
}
