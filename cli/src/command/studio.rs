//! `tilewright studio`.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use ir::Name;
use schedule::{script::ScriptTarget, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    plan::{parse_dim, parse_param, parse_target},
    studio::{Address, Subject, asked_part, serve, work},
    term::report::Report,
    term::shell::Shell,
};

/// Show on a page beside the editor what a schedule makes of a program, anew on every save
///
/// The page has the script with what is wrong in it, the loop nest after each step, kernels, source, timelines, resources, what the virtual
/// GPU finds, and what the last save changed in each of them. It is served on this machine alone, and asks nobody for anything.
#[derive(Debug, clap::Args)]
pub(crate) struct Studio {
    /// The schedule script
    script: PathBuf,
    /// The target, instead of the script's: cpu, cuda, cuda:sm_90a
    #[arg(long, value_parser = parse_target)]
    target: Option<ScriptTarget>,
    /// The value of a symbolic dimension, for resources and the virtual GPU: n=512
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(Name, i64)>,
    /// A parameter of the workload or a knob, instead of the script's: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// The port of the page; 0 for any that is free
    #[arg(long, default_value_t = 7117)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

/// Where the page is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Serving<'a> {
    ok: True,
    /// Its address.
    url: String,
    /// The script.
    script: &'a Path,
}

impl Report for Serving<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(writeln!(shell.out, "{} is on {}; Ctrl-C ends", self.script.display(), self.url)?)
    }
}

impl Studio {
    /// Whether this is the process that works, and not the one that serves: what compilers break is then another process.
    pub(crate) fn works() -> bool {
        asked_part().is_some()
    }

    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let subject = Subject {
            script: self.script.clone(),
            target: self.target.clone(),
            params: self.params.clone(),
            dims: self.dims.clone(),
        };
        if let Some(part) = asked_part() {
            return work(&subject, part, shell.out);
        }
        serve(&subject, self.port, &mut |address| self.started(address, shell))
    }

    /// Says where the page is.
    fn started(&self, address: Address, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.report(&Serving { ok: True, url: address.to_string(), script: &self.script })?;
        shell.out.flush()?;
        if self.open
            && let Err(err) = open(&address.to_string())
        {
            shell.note(&format!("no browser could be started ({err}): open {address} in one"));
        }
        Ok(())
    }
}

/// Opens a page in the browser of the user, without waiting for it.
fn open(url: &str) -> io::Result<()> {
    let opener = if env::consts::OS == "macos" { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}
