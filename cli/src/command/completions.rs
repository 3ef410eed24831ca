//! `tilewright completions`.

use clap_complete::Shell as Kind;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{constant::True, diagnostic::Diagnostic, term::report::Report, term::shell::Shell};

/// Print the completions of a shell: bash, zsh, fish, elvish, powershell
///
/// Put them where the shell looks for them, for bash ~/.local/share/bash-completion/completions/tilewright, for zsh
/// a file _tilewright in a folder of $fpath, for fish ~/.config/fish/completions/tilewright.fish.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Kind,
}

/// The script for a shell.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Script {
    ok: True,
    /// The shell.
    shell: String,
    /// What to put where the shell looks for completions.
    text: String,
}

impl Report for Script {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(shell.out.write_all(self.text.as_bytes())?)
    }
}

impl Completions {
    pub(crate) fn run(&self, mut command: clap::Command, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, "tilewright", &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        shell.report(&Script { ok: True, shell: self.shell.to_string(), text })
    }
}
