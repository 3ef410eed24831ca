//! `tilewright lsp`.

use crate::{diagnostic::Diagnostic, lsp, term::shell::Shell};

/// Serve an editor: errors as one types, manuals, completion, quick fixes (Language Server Protocol on the standard streams)
///
/// An editor starts it and talks with it; nobody types this. `editors/` in the repository has what VS Code, Neovim and Helix need.
#[derive(Debug, clap::Args)]
pub(crate) struct Lsp {
    /// Talk on the standard streams, as always: some editors say so
    #[arg(long)]
    stdio: bool,
}

impl Lsp {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.detail(|| {
            format!(
                "serving an editor on the standard streams{}",
                if self.stdio { ", as it says" } else { "" }
            )
        });
        lsp::serve(shell.out)
    }
}
