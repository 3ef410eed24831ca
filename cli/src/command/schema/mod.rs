//! `tilewright schema`.

mod derive;
mod documents;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::report::Report,
    term::{shell::Shell, table::Table},
    usage_error::UsageError,
};

/// Print the JSON Schema of what a command prints with --json, or list all
///
/// Every line that a command prints with `--json` is of its schema or, where the command fails, of that of errors. They are
/// written in JSON Schema 2020-12 and refer to each other by names such as `record.json`.
#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    /// The command, or `error`, or `record` for the lines of `run --log`; all are listed without it
    name: Option<String>,
}

impl Schema {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut schemas = derive::all();
        let Some(name) = &self.name else { return shell.report(&All { ok: True, schemas }) };
        let Some(schema) = schemas.remove(name) else {
            return Err(Diagnostic::usage(UsageError::Topic, format!("there is no schema `{name}`"))
                .help(schedule::suggestion(name, schemas.keys().map(String::as_str))));
        };
        shell.report(&One { ok: True, name, schema: as_object(schema) })
    }
}

fn as_object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(it) => it,
        other => unreachable!("a document is an object, and this is {other}"),
    }
}

/// One schema.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct One<'a> {
    ok: True,
    /// Its name.
    name: &'a str,
    /// The schema.
    schema: Map<String, Value>,
}

impl Report for One<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let text = serde_json::to_string_pretty(&self.schema).expect("it is plain data");
        Ok(writeln!(shell.out, "{text}")?)
    }
}

/// All schemas.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct All {
    ok: True,
    /// Each schema, by its name.
    #[schemars(with = "std::collections::BTreeMap<String, Map<String, Value>>")]
    schemas: Map<String, Value>,
}

impl Report for All {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut table = Table::new(["schema", "of"]);
        for (name, schema) in &self.schemas {
            table.row([name, schema["description"].as_str().unwrap_or_default()]);
        }
        table.print(shell.out)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::derive;
    use crate::command::cli;

    #[test]
    fn every_subcommand_has_a_schema() {
        let schemas = derive::all();
        for it in cli().get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
            let name = it.get_name();
            assert!(schemas.contains_key(name), "`{name}` has no schema");
        }
        for (name, schema) in schemas {
            assert_eq!(schema["$id"], format!("{name}.json"));
        }
    }
}
