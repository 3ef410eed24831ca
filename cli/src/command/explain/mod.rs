//! `tilewright explain`.

mod code;
mod intrinsic;

use ir::{Code, intrin};
use schedule::primitive;
use serde_json::json;

use crate::{
    diagnostic::Diagnostic,
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
    if shell.json {
        let all = code::headings().map(|(code, about)| json!({"code": code, "about": about}));
        return shell.json(&json!({"ok": true, "codes": all.collect::<Vec<_>>()}));
    }
    let mut table = Table::new(["code", "what is refused"]);
    code::headings().for_each(|(code, about)| table.row([code, about]));
    table.print_sentences(shell.out)?;
    Ok(())
}

fn one(name: &str, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    if let Some(code) = Code::parse(name)
        && let Some(page) = code::page(code)
    {
        if shell.json {
            return shell.json(&code::data(code, page));
        }
        write!(shell.out, "{}", shown(page))?;
        return Ok(());
    }
    if let Some(found) = intrin::find(name) {
        if shell.json {
            return shell.json(&intrinsic::data(found));
        }
        write!(shell.out, "{}", intrinsic::manual(found))?;
        return Ok(());
    }
    let Some(text) = primitive::explain(name) else {
        let known = primitive::names().chain(["choose"]).chain(intrin::ALL.iter().map(|it| it.name));
        let known = known.chain(code::headings().map(|it| it.0));
        let help = schedule::nearest(name, known).map(|it| format!("did you mean `{it}`?"));
        let all =
            "`tilewright explain` lists primitives and intrinsics, `tilewright explain --codes` all codes"
                .to_owned();
        let title = format!("there is no primitive, intrinsic or code `{name}`");
        return Err(Diagnostic::usage(UsageError::Topic, title).help(help.unwrap_or(all)));
    };
    if shell.json {
        return shell.json(&json!({"ok": true, "primitive": name, "text": text}));
    }
    write!(shell.out, "{name}\n\n{}", shown(&text))?;
    Ok(())
}

fn all(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    // The first paragraph of a manual says in a sentence what the primitive does.
    let summary = |name: &str| {
        let text = primitive::explain(name).unwrap_or_default();
        let lines = text.lines().take_while(|it| !it.trim().is_empty());
        lines.collect::<Vec<_>>().join(" ")
    };
    let entries = primitive::names().chain(["choose"]).map(|it| (it, summary(it)));
    let intrinsics = intrin::ALL.iter().map(|it| (it.name, it.about));
    if shell.json {
        let entries = entries.map(|(name, summary)| json!({"primitive": name, "summary": summary}));
        let intrinsics = intrinsics.map(|(name, about)| json!({"intrinsic": name, "summary": about}));
        return shell.json(&json!({
            "ok": true,
            "primitives": entries.collect::<Vec<_>>(),
            "intrinsics": intrinsics.collect::<Vec<_>>(),
        }));
    }
    let mut table = Table::new(["primitive", "what it does"]);
    for (name, summary) in entries {
        table.row([name.to_owned(), summary]);
    }
    table.print_sentences(shell.out)?;
    writeln!(shell.out)?;
    let mut table = Table::new(["intrinsic", "what it does"]);
    for (name, about) in intrinsics {
        table.row([name.to_owned(), about.to_owned()]);
    }
    table.print_sentences(shell.out)?;
    Ok(())
}
