//! `tilewright explain`.

use schedule::primitive;
use serde_json::json;

use crate::{report::Report, shell::Shell, table::Table};

/// Explain a primitive, or list all of them
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// The primitive; all are listed without it
    primitive: Option<String>,
}

impl Explain {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Report> {
        match &self.primitive {
            Some(name) => one(name, shell),
            None => all(shell),
        }
    }
}

fn one(name: &str, shell: &mut Shell<'_>) -> Result<(), Report> {
    let Some(text) = primitive::explain(name) else {
        let near = schedule::nearest(name, primitive::names().chain(["choose"]));
        let help = near.map(|it| format!("did you mean `{it}`?"));
        let all = "`tilewright explain` lists all of them".to_owned();
        return Err(Report::usage(format!("there is no primitive `{name}`")).help(help.unwrap_or(all)));
    };
    if shell.json {
        return shell.json(&json!({"ok": true, "primitive": name, "text": text}));
    }
    writeln!(shell.out, "{name}\n\n{text}")?;
    Ok(())
}

fn all(shell: &mut Shell<'_>) -> Result<(), Report> {
    // The first paragraph of a manual says in a sentence what the primitive does.
    let summary = |name: &str| {
        let text = primitive::explain(name).unwrap_or_default();
        let lines = text.lines().take_while(|it| !it.trim().is_empty());
        lines.collect::<Vec<_>>().join(" ")
    };
    let entries = primitive::names().chain(["choose"]).map(|it| (it, summary(it)));
    if shell.json {
        let entries = entries.map(|(name, summary)| json!({"primitive": name, "summary": summary}));
        return shell.json(&json!({"ok": true, "primitives": entries.collect::<Vec<_>>()}));
    }
    let mut table = Table::new(["primitive", "what it does"]);
    for (name, summary) in entries {
        table.row([name.to_owned(), summary]);
    }
    table.print(shell.out)?;
    Ok(())
}
