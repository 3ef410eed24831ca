//! `tilewright schema`.

use serde_json::{Value, json};

use crate::{diagnostic::Diagnostic, term::shell::Shell, term::table::Table, usage_error::UsageError};

/// Print the JSON Schema of what a command prints with --json, or list all
///
/// Every line that a command prints with `--json` is of its schema or, where the command fails, of that of errors. They are
/// written in JSON Schema 2020-12 and refer to each other by names such as `record.json`.
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    /// The command, or `error`, or `record` for the lines of `run --log`; all are listed without it
    name: Option<String>,
}

macro_rules! schemas {
    ($($name:literal),* $(,)?) => {
        /// What is printed, by name, and its schema.
        const SCHEMAS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../schemas/", $name, ".json")))),*];
    };
}

schemas!(
    "check",
    "compare",
    "completions",
    "doctor",
    "error",
    "explain",
    "export",
    "learn",
    "log",
    "man",
    "record",
    "replay",
    "report",
    "resume",
    "run",
    "schema",
    "show",
    "top",
    "tune",
    "tutorial",
);

impl Schema {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let Some(name) = &self.name else { return all(shell) };
        let names = || SCHEMAS.iter().map(|it| it.0);
        let found = SCHEMAS.iter().find(|it| it.0 == name);
        let (name, text) = found.ok_or_else(|| {
            Diagnostic::usage(UsageError::Topic, format!("there is no schema `{name}`"))
                .help(schedule::suggestion(name, names()))
        })?;
        if shell.json {
            return shell.json(&json!({"ok": true, "name": name, "schema": parsed(text)}));
        }
        write!(shell.out, "{text}")?;
        Ok(())
    }
}

fn all(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let schemas = SCHEMAS.iter().map(|(name, text)| (*name, parsed(text)));
    if shell.json {
        return shell.json(&json!({"ok": true, "schemas": schemas.map(|it| (it.0.to_owned(), it.1)).collect::<serde_json::Map<_, _>>()}));
    }
    let mut table = Table::new(["schema", "of"]);
    for (name, schema) in schemas {
        table.row([name, schema["description"].as_str().unwrap_or_default()]);
    }
    table.print(shell.out)?;
    Ok(())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("a test reads every schema")
}

#[cfg(test)]
mod tests {
    use super::{SCHEMAS, parsed};
    use crate::command::cli;

    #[test]
    fn every_subcommand_has_a_schema() {
        for it in cli().get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
            let name = it.get_name();
            assert!(SCHEMAS.iter().any(|it| it.0 == name), "`{name}` has no schema");
        }
        for (name, text) in SCHEMAS {
            assert_eq!(parsed(text)["$id"], format!("{name}.json"));
        }
    }
}
