//! `tilewright explain`.

pub(crate) mod code;
pub(crate) mod intrinsic;

use ir::{Code, intrin};
use schedule::primitive;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::report::Report,
    term::{markdown::shown, shell::Shell, table::Table},
    usage_error::UsageError,
};

/// Explain an error code, a primitive or a tensor intrinsic, or list all of them
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The code, the primitive or the intrinsic: TW1002, split, mma_m16n8k16_f16_f32. Without it all primitives and intrinsics are
    /// listed
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

/// All primitives and intrinsics.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "all")]
pub(crate) struct All {
    ok: True,
    /// What a step of a script can be.
    primitives: Vec<PrimitiveEntry>,
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
        return shell.report(&All { ok: True, primitives: vec![], intrinsics: members.map(entry).collect() });
    }
    let Some(text) = primitive::explain(name) else {
        let known = primitive::names().chain(["choose"]).chain(intrin::ALL.iter().map(|it| it.name));
        let known = known.chain(intrin::families());
        let known = known.chain(code::headings().map(|it| it.0));
        let help = schedule::nearest(name, known).map(|it| format!("did you mean `{it}`?"));
        let all =
            "`tilewright explain` lists primitives and intrinsics, `tilewright explain --codes` all codes"
                .to_owned();
        let title = format!("there is no primitive, intrinsic or code `{name}`");
        return Err(Diagnostic::usage(UsageError::Topic, title).help(help.unwrap_or(all)));
    };
    shell.report(&PrimitiveManual { ok: True, primitive: name, text })
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
    let primitives = primitive::names().chain(["choose"]);
    let primitives = primitives.map(|it| PrimitiveEntry { primitive: it, summary: summary(it) });
    let intrinsics = intrin::ALL.iter().copied().map(entry);
    shell.report(&All { ok: True, primitives: primitives.collect(), intrinsics: intrinsics.collect() })
}
