//! `tilewright explain`.

pub(crate) mod code;
pub(crate) mod intrinsic;
pub(crate) mod procedure;

use ir::{Code, intrin};
use schedule::{primitive, procedure::Definitions};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    script_text::shipped_libraries,
    term::report::Report,
    term::{markdown::shown, shell::Shell, table::Table},
    usage_error::UsageError,
};

/// Explain an error code, a primitive, a procedure, a library or a tensor intrinsic, or list all of them
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// What to explain: TW1002, split, mma_tile, std/mma, mma_m16n8k16_f16_f32. Without it all primitives, procedures and intrinsics
    /// are listed
    name: Option<String>,
    /// List all codes
    #[arg(long, conflicts_with = "name")]
    codes: bool,
}

impl Explain {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        match &self.name {
            Some(name) => one(name, shell),
            None if self.codes => codes(shell),
            None => all(shell),
        }
    }
}

fn codes(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let codes = code::headings().map(|(code, about)| CodeEntry { code, about });
    shell.report(&AllCodes { ok: True, codes: codes.collect() })
}

/// All codes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "all codes")]
pub(crate) struct AllCodes {
    ok: True,
    /// Each code, in their order.
    codes: Vec<CodeEntry>,
}

/// A code in the list of all.
#[derive(Debug, Serialize, JsonSchema)]
struct CodeEntry {
    /// The code: TW1002.
    code: &'static str,
    /// What is refused.
    about: &'static str,
}

impl Report for AllCodes {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut table = Table::new(["code", "what is refused"]);
        self.codes.iter().for_each(|it| table.row([it.code, it.about]));
        table.print_sentences(shell.out)?;
        Ok(())
    }
}

/// The manual of a primitive.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a primitive")]
pub(crate) struct PrimitiveManual<'a> {
    ok: True,
    /// Its name.
    primitive: &'a str,
    /// Its manual, as Markdown.
    text: String,
}

impl Report for PrimitiveManual<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(write!(shell.out, "{}\n\n{}", self.primitive, shown(&self.text))?)
    }
}

/// All primitives, procedures and intrinsics.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "all")]
pub(crate) struct All {
    ok: True,
    /// What a step of a script can be.
    primitives: Vec<PrimitiveEntry>,
    /// The procedures of libraries that ship.
    procedures: Vec<procedure::Entry>,
    /// What `tensorize` takes.
    intrinsics: Vec<IntrinsicEntry>,
}

/// A primitive in the list of all.
#[derive(Debug, Serialize, JsonSchema)]
struct PrimitiveEntry {
    /// Its name.
    primitive: &'static str,
    /// What it does, in a sentence or two.
    summary: String,
}

/// An intrinsic in the list of all.
#[derive(Debug, Serialize, JsonSchema)]
struct IntrinsicEntry {
    /// Its name.
    intrinsic: &'static str,
    /// What it does, in a sentence or two.
    summary: &'static str,
}

impl Report for All {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if !self.primitives.is_empty() {
            let mut table = Table::new(["primitive", "what it does"]);
            for it in &self.primitives {
                table.row([it.primitive, &it.summary]);
            }
            table.print_sentences(shell.out)?;
            writeln!(shell.out)?;
        }
        if !self.procedures.is_empty() {
            procedure::print(&self.procedures, shell)?;
            writeln!(shell.out)?;
        }
        let mut table = Table::new(["intrinsic", "what it does"]);
        for it in &self.intrinsics {
            table.row([it.intrinsic, it.summary]);
        }
        table.print_sentences(shell.out)?;
        Ok(())
    }
}

fn one(name: &str, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    if let Some(page) = Code::parse(name).and_then(code::Page::of) {
        return shell.report(&page);
    }
    if let Some(found) = intrin::find(name) {
        return shell.report(&intrinsic::Manual::of(found));
    }
    if intrin::families().contains(&name) {
        let members = intrin::ALL.iter().copied().filter(|it| it.family() == Some(name));
        let intrinsics = members.map(entry).collect();
        return shell.report(&All { ok: True, primitives: vec![], procedures: vec![], intrinsics });
    }
    if let Some(text) = primitive::explain(name) {
        return shell.report(&PrimitiveManual { ok: True, primitive: name, text });
    }
    let libraries: Vec<_> = shipped_libraries().collect::<Result<_, _>>()?;
    if let Some(library) = libraries.iter().find(|it| it.name() == name) {
        return shell.report(&procedure::LibraryManual::of(library));
    }
    let mut procedures = libraries.iter().flat_map(|library| library.own().map(move |it| (library, it)));
    match procedures.find(|it| *it.1.name == *name) {
        Some((library, it)) => shell.report(&procedure::ProcedureManual::of(library, it)),
        None => Err(nothing(name, &libraries)),
    }
}

/// There is nothing of a name.
fn nothing(name: &str, libraries: &[Definitions]) -> Diagnostic {
    let known = primitive::names().chain(primitive::forms()).chain(intrin::ALL.iter().map(|it| it.name));
    let known = known.chain(intrin::families());
    let known = known.chain(code::headings().map(|it| it.0));
    let procedures = libraries.iter().flat_map(Definitions::own).map(|it| &*it.name);
    let known =
        known.map(|it| -> &str { it }).chain(procedures).chain(libraries.iter().map(Definitions::name));
    let help = schedule::nearest(name, known).map(|it| format!("did you mean `{it}`?"));
    let all = "`tilewright explain` lists primitives, procedures and intrinsics, `tilewright explain --codes` all codes";
    let title = format!("there is no primitive, procedure, intrinsic or code `{name}`");
    Diagnostic::usage(UsageError::Topic, title).help(help.unwrap_or(all.to_owned()))
}

fn entry(it: &'static intrin::Intrinsic) -> IntrinsicEntry {
    IntrinsicEntry { intrinsic: it.name, summary: it.about }
}

fn all(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    // The first paragraph of a manual says in a sentence what the primitive does.
    let summary = |name: &str| {
        let text = primitive::explain(name).unwrap_or_default();
        let lines = text.lines().take_while(|it| !it.trim().is_empty());
        lines.collect::<Vec<_>>().join(" ")
    };
    let primitives = primitive::names().chain(primitive::forms());
    let primitives = primitives.map(|it| PrimitiveEntry { primitive: it, summary: summary(it) });
    let libraries: Vec<_> = shipped_libraries().collect::<Result<_, _>>()?;
    shell.report(&All {
        ok: True,
        primitives: primitives.collect(),
        procedures: libraries.iter().flat_map(procedure::entries).collect(),
        intrinsics: intrin::ALL.iter().copied().map(entry).collect(),
    })
}
