//! What a procedure of a library stands for, and what a library has.

use schedule::procedure::{Definitions, Procedure};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::report::Report,
    term::{markdown::shown, shell::Shell, table::Table},
};

/// The manual of a procedure.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a procedure")]
pub(crate) struct ProcedureManual {
    ok: True,
    /// Its name.
    procedure: String,
    /// The library that defines it, as `use` names it.
    library: String,
    /// What it does.
    about: String,
    /// What it takes, in order.
    params: Vec<ProcedureParam>,
    /// The steps that it stands for, in RON, with parameters in braces.
    steps: String,
    /// A script that calls it, in RON.
    example: Option<String>,
    #[serde(skip)]
    text: String,
}

/// A parameter of a procedure.
#[derive(Debug, Serialize, JsonSchema)]
struct ProcedureParam {
    /// Its name.
    param: String,
    /// What it is if a call does not give it, in RON.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

/// What a library has.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a library")]
pub(crate) struct LibraryManual {
    ok: True,
    /// Its name.
    library: String,
    /// What it says about itself.
    about: String,
    /// The other libraries that it uses.
    uses: Vec<String>,
    /// Its procedures, in the order of its text.
    procedures: Vec<Entry>,
    #[serde(skip)]
    text: String,
}

/// A procedure in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProcedureEntry")]
pub(super) struct Entry {
    /// Its name.
    procedure: String,
    /// The library that defines it.
    library: String,
    /// What it does, in a sentence.
    summary: String,
}

impl ProcedureManual {
    pub(super) fn of(library: &Definitions, it: &Procedure) -> ProcedureManual {
        let param =
            |name: &String| ProcedureParam { param: name.clone(), default: it.defaults.get(name).cloned() };
        ProcedureManual {
            ok: True,
            procedure: it.name.to_string(),
            library: library.name().to_owned(),
            about: it.about.clone(),
            params: it.params.iter().map(param).collect(),
            steps: library.steps_of(it),
            example: it.example.clone(),
            text: library.manual(it),
        }
    }
}

impl Report for ProcedureManual {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let ProcedureManual { procedure, library, text, .. } = self;
        Ok(write!(shell.out, "{procedure}, a procedure of {library}\n\n{}", shown(text))?)
    }
}

impl LibraryManual {
    pub(super) fn of(library: &Definitions) -> LibraryManual {
        LibraryManual {
            ok: True,
            library: library.name().to_owned(),
            about: library.about.clone(),
            uses: library.libraries().map(str::to_owned).collect(),
            procedures: entries(library),
            text: library.overview(),
        }
    }
}

impl Report for LibraryManual {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        write!(shell.out, "{}\n\n{}\n", self.library, shown(&self.text))?;
        print(&self.procedures, shell)
    }
}

/// The procedures that a library itself defines.
pub(super) fn entries(library: &Definitions) -> Vec<Entry> {
    let entry = |it: &Procedure| Entry {
        procedure: it.name.to_string(),
        library: library.name().to_owned(),
        summary: it.summary().to_owned(),
    };
    library.own().map(entry).collect()
}

/// Prints a list of procedures as a table.
pub(super) fn print(all: &[Entry], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut table = Table::new(["procedure", "what it does"]);
    for it in all {
        table.row([it.procedure.as_str(), &format!("{} ({})", it.summary, it.library)]);
    }
    table.print_sentences(shell.out)?;
    Ok(())
}
