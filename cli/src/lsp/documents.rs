//! The texts that an editor has open, and what is known of them.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use gen_lsp_types::Uri;
use schedule::{Document, procedure::Definitions, ron_text::parse, script::MAX_LENGTH};
use serde::de::IgnoredAny;

use super::{
    findings::{Finding, findings},
    outline::Outline,
    script::Script,
    text::{Encoding, Text},
};
use crate::{
    build::emitted,
    diagnostic::Diagnostic,
    script_text::find_library,
    source::{check_text, check_workload, workload_file},
    text_file::Unsaved,
};

/// The texts that an editor has open.
#[derive(Debug)]
pub(super) struct Documents {
    pub(super) encoding: Encoding,
    open: BTreeMap<PathBuf, Open>,
    pub(super) unsaved: Unsaved,
}

/// A text that an editor has open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: Text,
    pub(super) outline: Outline,
    kind: Kind,
    /// What was found out of a script; it may be about an older text.
    script: Option<Script>,
    /// The files that it uses, where they are known.
    uses: Option<Vec<PathBuf>>,
    /// Whether that, and what is wrong, has to be found out anew.
    is_stale: bool,
    /// Whether what is wrong has to be found out anew.
    is_unfound: bool,
    /// Whether what is wrong has to be told anew.
    is_untold: bool,
    /// What was told to be wrong.
    pub(super) findings: Vec<Finding>,
}

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Ron(Document),
    /// A program or kernels in the text form.
    Program,
    /// None of tilewright's.
    Other,
}

impl Documents {
    pub(super) fn new(encoding: Encoding) -> Documents {
        Documents { encoding, open: BTreeMap::new(), unsaved: Unsaved::default() }
    }

    /// Takes note of a text, or of what it is now.
    pub(super) fn set(&mut self, path: &Path, uri: Uri, version: i32, text: Text) {
        self.unsaved.set(path, Some(text.whole.clone()));
        let before = self.open.remove(path);
        let is_program = path.extension().is_some_and(|it| it == "tw");
        // Nothing of tilewright's in RON is longer.
        let sort = if text.whole.len() > MAX_LENGTH { None } else { Document::of(&text.whole) };
        let kind = match sort {
            _ if is_program => Kind::Program,
            Some(it) => Kind::Ron(it),
            None => Kind::Other,
        };
        let is_ron = matches!(kind, Kind::Ron(_));
        let read = || Outline::of(&text.whole, parse::<IgnoredAny>(&text.whole).is_ok());
        let outline = if is_ron { read() } else { Outline::default() };
        let script = before.and_then(|it| it.script);
        let (is_stale, is_unfound, is_untold) = (true, true, true);
        // Workloads and programs use no others, and libraries are read at once.
        let uses = if kind == Kind::Ron(Document::Library) { None } else { Some(vec![]) };
        let findings = vec![];
        let open = Open {
            uri,
            version,
            text,
            outline,
            kind,
            script,
            uses,
            is_stale,
            is_unfound,
            is_untold,
            findings,
        };
        self.stale(path);
        self.open.insert(path.to_owned(), open);
    }

    /// Forgets a text, which its file stands for again.
    pub(super) fn close(&mut self, path: &Path) -> Option<Open> {
        self.unsaved.set(path, None);
        self.stale(path);
        self.open.remove(path)
    }

    /// What uses a file has to be looked at anew: it is another now.
    pub(super) fn stale(&mut self, path: &Path) {
        let users = self.open.values_mut();
        for it in users.filter(|it| it.uses.as_ref().is_none_or(|it| it.iter().any(|it| it == path))) {
            (it.is_stale, it.is_unfound, it.is_untold) = (true, true, true);
        }
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Open> {
        self.open.get(path)
    }

    /// The texts of which is to be told what is wrong.
    pub(super) fn untold(&self) -> Vec<PathBuf> {
        self.open.iter().filter(|it| it.1.is_untold).map(|it| it.0.clone()).collect()
    }

    /// Takes note that what is wrong with a text was told.
    pub(super) fn told(&mut self, path: &Path) {
        if let Some(it) = self.open.get_mut(path) {
            it.is_untold = false;
        }
    }

    /// What is known of a script or a library; nothing of another text.
    pub(super) fn script(&mut self, path: &Path) -> Option<&Script> {
        let open = self.open.get_mut(path)?;
        if !open.is_stale && open.script.is_some() {
            return open.script.as_ref();
        }
        let before = open.script.take();
        let text = &open.text.whole;
        open.script = match open.kind {
            Kind::Ron(Document::Script) => {
                let script = Script::read(path, text, &self.unsaved, before);
                open.uses = script.uses(path);
                Some(script)
            }
            Kind::Ron(Document::Library) => {
                Some(Script::of_library(path, text, open.outline.clone(), &self.unsaved, before))
            }
            Kind::Ron(Document::Workload) | Kind::Program | Kind::Other => None,
        };
        open.is_stale = false;
        open.script.as_ref()
    }

    /// Finds out what is wrong with a text, unless that is known.
    pub(super) fn diagnose(&mut self, path: &Path) -> Option<&Open> {
        if !self.open.get(path)?.is_unfound {
            return self.open.get(path);
        }
        let open = self.open.get(path)?;
        let (kind, text) = (open.kind, open.text.whole.clone());
        let own = path.display().to_string();
        let start = first_word(&open.outline, &text);
        let of = |wrong: Result<(), Diagnostic>| {
            let wrong = wrong.err();
            wrong.map(|it| findings(&it, &own, &|_| start.clone())).unwrap_or_default()
        };
        let found = match kind {
            Kind::Ron(Document::Script) => {
                self.script(path).map(|it| of_script(it, &own)).unwrap_or_default()
            }
            Kind::Ron(Document::Workload) => of(check_workload(path, &text)),
            Kind::Ron(Document::Library) => {
                let find = |name: &str, user: &str| find_library(name, user, &self.unsaved);
                let read = Definitions::of_library(&own, &text, &find).map(drop);
                of(read.map_err(|err| Diagnostic::procedure(&err)))
            }
            Kind::Program => {
                let mut found = of(check_text(path, &text));
                for it in &mut found {
                    it.move_to(&text);
                }
                found
            }
            Kind::Other => vec![],
        };
        let open = self.open.get_mut(path)?;
        (open.findings, open.is_unfound) = (found, false);
        Some(open)
    }
}

impl Open {
    /// Whether `fmt` lays it out.
    pub(super) fn is_ron(&self) -> bool {
        matches!(self.kind, Kind::Ron(_))
    }
}

/// What is wrong with a script: in its text, in its steps, or in what they make of the program.
fn of_script(script: &Script, own: &str) -> Vec<Finding> {
    let elsewhere = |it: &Diagnostic| place_of(script, own, it);
    let mut out: Vec<Finding> = script.wrong.iter().flat_map(|it| findings(it, own, &elsewhere)).collect();
    if let (true, Some((func, plan))) = (out.is_empty(), script.scheduled())
        && let Err(err) = emitted(func, &plan.target(None, None))
    {
        out = findings(&err, own, &elsewhere);
    }
    out.sort_by_key(|it| it.span.start);
    out
}

/// The place in a script of what is wrong in a program: the step that made it, or the name of the workload.
fn place_of(script: &Script, own: &str, wrong: &Diagnostic) -> Range<usize> {
    let made = wrong.names().find_map(|name| Some((name, script.maker(name, usize::MAX)?)));
    if let Some((name, state)) = made {
        let word = format!("\"{name}\"");
        let at = script.text[state.span.clone()].find(&word).map(|it| state.span.start + it + 1);
        return at.map_or(state.span.clone(), |it| it..it + name.as_str().len());
    }
    // What is wrong in another file is shown where the script names that.
    let value = |field: &str| {
        let node = script.outline.top(&script.text, field)?.value?;
        Some(script.outline.nodes[node].span.clone())
    };
    let workload = value("workload");
    let name = workload.clone().map(|it| script.text[it].trim_matches('"'));
    let file = name.and_then(|it| workload_file(Path::new(own), it));
    let is_library = |it: &Path| it.is_absolute() && file.as_deref() != Some(it);
    let used = value("use").filter(|_| wrong.spots().any(|it| is_library(Path::new(it.source))));
    used.or(workload).unwrap_or_else(|| first_word(&script.outline, &script.text))
}

/// The word that a text begins with.
fn first_word(outline: &Outline, text: &str) -> Range<usize> {
    let word = outline.root.map(|it| outline.nodes[it].word.clone()).filter(|it| !it.is_empty());
    word.unwrap_or(0..text.chars().next().map_or(0, char::len_utf8))
}
