//! Definitions of procedures: those of a script or a library, and of the libraries that it uses.

use std::{ops::Range, sync::Arc};

use indexmap::IndexMap;
use ron::value::RawValue;
use serde::Deserialize;

use super::{
    MAX_LIBRARIES,
    already_read::{self, Library},
    origin::{ProcedureError, Site, SourceText, frames},
};
use crate::{
    placed::quoted_text,
    primitive,
    ron_letters::dedented,
    ron_text::{RonError, Unique, parse, parse_raw, range_of},
    script_error::{ScriptError, ScriptProblem},
};

/// How libraries are found: from the name that `use` has and the name of the text that uses it to the library's own name and
/// text, or to what to try instead.
pub type FindLibrary<'a> = dyn Fn(&str, &str) -> Result<(String, String), String> + 'a;

/// A named list of steps with parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Procedure {
    /// Its name.
    pub name: Arc<str>,
    /// What it does.
    pub about: String,
    /// Its parameters in order.
    pub params: Vec<String>,
    /// What parameters are if a call does not give them, as text in RON.
    pub defaults: IndexMap<String, String>,
    /// A whole script that calls it, as text in RON.
    pub example: Option<String>,
    /// Where each step stands in the text that defines it.
    pub(super) steps: Vec<Range<usize>>,
    /// Where its name stands in that text, quotes included.
    pub(super) place: Range<usize>,
    /// Which text defines it.
    pub(super) source: usize,
}

/// The procedures of a script or a library and of all libraries that it uses.
#[derive(Clone, PartialEq, Debug)]
pub struct Definitions {
    /// What the library says about itself; nothing of a script.
    pub about: String,
    pub(super) sources: Vec<SourceText>,
    pub(super) procedures: Vec<Procedure>,
    /// For each text the procedures that it may call.
    pub(super) scopes: Vec<IndexMap<Arc<str>, usize>>,
}

/// What of a script is about procedures.
#[derive(Deserialize)]
#[serde(rename = "schedule")]
pub(super) struct RawScript<'a> {
    #[serde(borrow, default, rename = "use")]
    pub uses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub define: Option<&'a RawValue>,
    #[serde(borrow)]
    pub steps: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "library")]
struct RawLibrary<'a> {
    #[serde(default)]
    about: String,
    #[serde(borrow, default, rename = "use")]
    uses: Option<&'a RawValue>,
    #[serde(borrow)]
    define: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "procedure")]
struct RawProcedure<'a> {
    #[serde(default)]
    about: String,
    #[serde(default)]
    params: Vec<String>,
    #[serde(borrow, default)]
    defaults: Unique<String, &'a RawValue>,
    #[serde(borrow, default)]
    example: Option<&'a RawValue>,
    #[serde(borrow)]
    steps: Vec<&'a RawValue>,
}

/// The libraries that a text names, with the places of the names.
pub(super) type Uses = Vec<(String, Range<usize>)>;

impl Definitions {
    /// The procedures of a library and of those that it uses.
    pub fn of_library(name: &str, text: &str, find: &FindLibrary<'_>) -> Result<Definitions, ProcedureError> {
        let mut out = Definitions::new(name, text);
        let uses = out.read_library(0)?;
        out.link(uses, find)
    }

    /// The procedures of a script and of the libraries that it uses; none of a text that is no script.
    ///
    /// # Errors
    ///
    /// Libraries that are not found, and definitions that are wrong.
    pub fn of_text(
        name: &str,
        text: &str,
        find: &FindLibrary<'_>,
    ) -> Result<Option<Definitions>, ProcedureError> {
        if crate::script::check_size(text).is_err() {
            return Ok(None);
        }
        let raw = parse::<RawScript<'_>>(text).ok();
        raw.map(|it| Definitions::of_script(name, text, &it, find)).transpose()
    }

    /// The procedures that the text may call: its own, and those of the libraries that it uses.
    pub fn callable(&self) -> impl Iterator<Item = &Procedure> {
        self.scopes.iter().take(1).flat_map(|it| it.values()).map(|it| &self.procedures[*it])
    }

    /// The name and the text of what defines a procedure, and where it does.
    pub fn place_of(&self, procedure: &Procedure) -> (&str, &str, Range<usize>) {
        let source = &self.sources[procedure.source];
        (&source.name, &source.text, procedure.place.clone())
    }

    /// The procedures that the text itself defines.
    pub fn own(&self) -> impl Iterator<Item = &Procedure> {
        self.procedures.iter().filter(|it| it.source == 0)
    }

    /// The steps of a procedure as its definition has them, with what stands between them.
    pub fn steps_of(&self, procedure: &Procedure) -> String {
        let ends = procedure.steps.first().zip(procedure.steps.last());
        let text = &self.sources[procedure.source].text;
        ends.map(|(first, last)| dedented(text, &(first.start..last.end))).unwrap_or_default()
    }

    /// The library's name, or the path of the script.
    pub fn name(&self) -> &str {
        &self.sources[0].name
    }

    /// The libraries that were read for it, in order.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().skip(1).map(|it| &*it.name)
    }

    /// The procedures of a script and of the libraries that it uses.
    pub(super) fn of_script(
        name: &str,
        text: &str,
        raw: &RawScript<'_>,
        find: &FindLibrary<'_>,
    ) -> Result<Definitions, ProcedureError> {
        let mut out = Definitions::new(name, text);
        let uses = raw.uses.map(|it| out.read_uses(0, text, it)).transpose()?.unwrap_or_default();
        if let Some(define) = raw.define {
            out.procedures = out.read_procedures(0, text, define)?;
        }
        out.link(uses, find)
    }

    fn new(name: &str, text: &str) -> Definitions {
        let source = SourceText { name: name.into(), text: text.into() };
        Definitions { about: String::new(), sources: vec![source], procedures: vec![], scopes: vec![] }
    }

    /// An error at a place in one of the texts.
    fn wrong(&self, source: usize, error: impl Into<ScriptError>) -> ProcedureError {
        let error = error.into();
        let site = Site { source, span: error.span.clone(), call: None };
        ProcedureError { frames: frames(&self.sources, &[], &site), error }
    }

    /// Reads the libraries that are used, those that they use and so on, each once, and says what each text may call.
    fn link(mut self, uses: Uses, find: &FindLibrary<'_>) -> Result<Definitions, ProcedureError> {
        let mut all = vec![uses];
        let mut seen: IndexMap<String, usize> = IndexMap::new();
        let mut links: Vec<Vec<(usize, Range<usize>)>> = vec![];
        while let Some(uses) = all.get(links.len()).cloned() {
            let from = links.len();
            let mut linked = vec![];
            for (wanted, place) in uses {
                let found = find(&wanted, &self.sources[from].name);
                let (name, text) = found.map_err(|help| {
                    let message = format!("there is no library `{wanted}`");
                    let err = ScriptError::new(ScriptProblem::Library, message, place.clone());
                    self.wrong(from, if help.is_empty() { err } else { err.help(help) })
                })?;
                let source = match seen.get(&name) {
                    Some(source) => *source,
                    None if seen.len() == MAX_LIBRARIES => {
                        let message =
                            format!("`{wanted}` is one library too many: there may be {MAX_LIBRARIES}");
                        let err = ScriptError::new(ScriptProblem::Library, message, place);
                        return Err(self.wrong(from, err));
                    }
                    None => {
                        let source = self.sources.len();
                        self.sources.push(SourceText { name: name.as_str().into(), text: text.into() });
                        all.push(self.read_library(source)?);
                        seen.insert(name, source);
                        source
                    }
                };
                linked.push((source, place));
            }
            links.push(linked);
        }
        self.scopes = links.iter().enumerate().map(|(n, it)| self.scope(n, it)).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// What a text may call: the procedures of the libraries that it uses, and its own, which come before those.
    fn scope(
        &self,
        source: usize,
        links: &[(usize, Range<usize>)],
    ) -> Result<IndexMap<Arc<str>, usize>, ProcedureError> {
        let of = |source: usize| self.procedures.iter().enumerate().filter(move |it| it.1.source == source);
        let own: IndexMap<_, _> = of(source).map(|(n, it)| (it.name.clone(), n)).collect();
        let mut out = own.clone();
        for (library, place) in links {
            for (n, it) in of(*library) {
                let other = out.insert(it.name.clone(), n).filter(|it| *it != n);
                let Some(other) = other else { continue };
                if let Some(own) = own.get(&it.name) {
                    out.insert(it.name.clone(), *own);
                    continue;
                }
                let first = &self.sources[self.procedures[other].source].name;
                let message =
                    format!("`{first}` and `{}` both define `{}`", self.sources[*library].name, it.name);
                let err = ScriptError::new(ScriptProblem::Procedure, message, place.clone());
                return Err(self.wrong(source, err));
            }
        }
        Ok(out)
    }

    /// Takes over the definitions of a library, and says which others it uses.
    fn read_library(&mut self, source: usize) -> Result<Uses, ProcedureError> {
        let text = self.sources[source].text.clone();
        let library = match already_read::find(&text) {
            Some(it) => it,
            None => already_read::keep(self.parsed_library(source, text)?),
        };
        self.procedures.extend(library.procedures.iter().map(|it| Procedure { source, ..it.clone() }));
        if source == 0 {
            self.about.clone_from(&library.about);
        }
        Ok(library.uses.clone())
    }

    /// What the text of a library says; `source` is the text for errors.
    fn parsed_library(&self, source: usize, text: Arc<str>) -> Result<Library, ProcedureError> {
        crate::script::check_size(&text).map_err(|it| self.wrong(source, it))?;
        let raw: RawLibrary<'_> = parse(&text).map_err(|it| self.wrong(source, it))?;
        let uses = raw.uses.map(|it| self.read_uses(source, &text, it)).transpose()?.unwrap_or_default();
        let procedures = self.read_procedures(source, &text, raw.define)?;
        Ok(Library { about: raw.about, uses, procedures, text })
    }

    /// The names of libraries; `text` is what the value was borrowed from.
    fn read_uses(&self, source: usize, text: &str, raw: &RawValue) -> Result<Uses, ProcedureError> {
        let names: Vec<&RawValue> = self.read(source, parse_raw(text, raw))?;
        let one = |it: &&RawValue| -> Result<(String, Range<usize>), ProcedureError> {
            Ok((self.read(source, parse_raw(text, it))?, range_of(text, it)))
        };
        names.iter().map(one).collect()
    }

    fn read<T>(&self, source: usize, res: Result<T, RonError>) -> Result<T, ProcedureError> {
        res.map_err(|it| self.wrong(source, it))
    }

    /// Definitions; `text` is what the value was borrowed from.
    fn read_procedures(
        &self,
        source: usize,
        text: &str,
        raw: &RawValue,
    ) -> Result<Vec<Procedure>, ProcedureError> {
        let mut out = vec![];
        let all: Unique<String, &RawValue> = self.read(source, parse_raw(text, raw))?;
        let within = range_of(text, raw);
        for (name, raw) in all.0 {
            let place = quoted_text(text, &within, &name).unwrap_or_else(|| within.clone());
            let it: RawProcedure<'_> = self.read(source, parse_raw(text, raw))?;
            self.expect_sound(source, &name, &it, place.clone())?;
            let slice = |it: &RawValue| dedented(text, &range_of(text, it));
            out.push(Procedure {
                name: name.into(),
                about: it.about,
                params: it.params,
                defaults: it.defaults.0.into_iter().map(|(name, it)| (name, slice(it))).collect(),
                example: it.example.map(slice),
                steps: it.steps.iter().map(|it| range_of(text, it)).collect(),
                place,
                source,
            });
        }
        Ok(out)
    }

    /// Refuses names that cannot be called, parameters that stand twice, and defaults of none.
    fn expect_sound(
        &self,
        source: usize,
        name: &str,
        it: &RawProcedure<'_>,
        place: Range<usize>,
    ) -> Result<(), ProcedureError> {
        let known = |param: &str| it.params.iter().filter(|it| *it == param).count();
        let (problem, message) = if !is_word(name) {
            (
                ScriptProblem::BadName,
                format!("`{name}` is no name: a procedure is a word of letters, digits and `_`"),
            )
        } else if primitive::names().chain(primitive::forms()).any(|it| it == name) {
            (
                ScriptProblem::Procedure,
                format!("`{name}` is a step already, and no procedure can have its name"),
            )
        } else if let Some(param) = it.params.iter().find(|it| !is_word(it)) {
            let message =
                format!("the parameter `{param}` of `{name}` is no word of letters, digits and `_`");
            (ScriptProblem::BadName, message)
        } else if let Some(param) = it.params.iter().find(|it| known(it) > 1) {
            (ScriptProblem::Twice, format!("the parameter `{param}` of `{name}` stands twice"))
        } else if let Some(param) = it.defaults.0.keys().find(|it| known(it) == 0) {
            (
                ScriptProblem::Procedure,
                format!("`{name}` has a default for `{param}`, which is no parameter of it"),
            )
        } else {
            return Ok(());
        };
        Err(self.wrong(source, ScriptError::new(problem, message, place)))
    }
}

/// Whether it can stand in braces, and before a bracket.
pub(super) fn is_word(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && letters.all(|it| it.is_ascii_alphanumeric() || it == '_')
}
