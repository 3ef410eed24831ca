//! `tilewright completions`.

use clap_complete::Shell as Kind;

use crate::{diagnostic::Diagnostic, term::shell::Shell};

/// Print the completions of a shell: bash, zsh, fish, elvish, powershell
///
/// Put them where the shell looks for them, for bash ~/.local/share/bash-completion/completions/tilewright, for zsh
/// a file _tilewright in a folder of $fpath, for fish ~/.config/fish/completions/tilewright.fish.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Kind,
}

impl Completions {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut super::cli(), "tilewright", &mut text);
        if shell.json {
            let text = String::from_utf8_lossy(&text);
            return shell
                .json(&serde_json::json!({"ok": true, "shell": self.shell.to_string(), "text": text}));
        }
        shell.out.write_all(&text)?;
        Ok(())
    }
}
