//! The command `tilewright`, one file or folder a subcommand.
//!
//! Data goes to standard output; errors, and progress if it is a terminal, to standard error. Exit code 0 says that
//! all went well, 1 that the thing asked about failed, 2 that the command could not do its work, 3 that what was asked cannot be
//! told from what was measured.

mod auto;
mod calibrate;
mod check;
mod compare;
mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
mod fmt;
mod help;
mod import;
mod learn;
mod log;
mod lsp;
mod man;
mod replay;
mod report;
mod run;
mod schema;
pub(crate) mod show;
mod studio;
mod top;
mod tune;
mod tutorial;
mod worker;

use std::{
    env,
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use crate::{
    diagnostic::{Diagnostic, Fault},
    guard::{self, Work},
    term::globals::{EarlyArguments, Globals},
    term::shell::Shell,
    term::wrap::{error_width, folded, look, width},
    watch,
};

/// From a RON schedule to a verified, measured kernel
#[derive(Debug, Parser)]
#[command(name = "tilewright", version, infer_subcommands = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tutorial(Box<tutorial::Tutorial>),
    Learn(learn::Learn),
    Run(run::Run),
    Auto(auto::Auto),
    Calibrate(calibrate::Calibrate),
    Check(check::Check),
    Fmt(fmt::Fmt),
    Show(show::Show),
    Studio(studio::Studio),
    Doctor(doctor::Doctor),
    Explain(explain::Explain),
    Export(export::Export),
    Import(import::Import),
    Tune(Box<tune::Tune>),
    Resume(tune::Resume),
    Replay(replay::Replay),
    Top(top::Top),
    Compare(Box<compare::Compare>),
    Log(log::Log),
    Report(report::Report),
    Completions(completions::Completions),
    Lsp(lsp::Lsp),
    Man(man::Man),
    Schema(schema::Schema),
    #[command(hide = true)]
    Worker(worker::Worker),
}

/// The command line with its help: what completions and manual pages are made of, too.
fn cli() -> clap::Command {
    cli_in(width())
}

/// The same with its help in so many columns.
fn cli_in(columns: usize) -> clap::Command {
    let command = help::with_negative_numbers(Cli::command().term_width(columns));
    help::with_groups(help::with_examples(command, columns), columns)
}

/// What the binary does: reads the command line, does the work, renders what went wrong.
pub fn main() -> ExitCode {
    look();
    let early = EarlyArguments::of(env::args_os().skip(1));
    let parsed = cli().color(early.color).try_get_matches();
    let cli = match parsed.and_then(|it| Cli::from_arg_matches(&it)) {
        Ok(it) => it,
        Err(err) => return refused(&help::in_other_words(err), &early),
    };
    let stdout = io::stdout().lock();
    let mut out = io::BufWriter::new(stdout);
    let mut shell = Shell::new(&mut out, &cli.globals);
    let watched = cli.command.watched();
    let work = if cli.command.is_risky() && watched.is_none() { guard::work() } else { Work::Here };
    if let Work::Here = work {
        shell.detail(|| {
            format!("tilewright {} on {} {}", env!("CARGO_PKG_VERSION"), env::consts::OS, env::consts::ARCH)
        });
    }
    let res = match (work, watched) {
        (Work::Here, None) => cli.command.run(&mut shell),
        (Work::Here, Some(files)) => watch::watch(&files, &mut shell),
        (Work::Done(Ok(code)), _) => return code,
        (Work::Done(Err(report)), _) => Err(report),
    };
    shell.end();
    let res = res.and_then(|()| out.flush().map_err(Diagnostic::from));
    let Err(report) = res else { return ExitCode::SUCCESS };
    // What was printed before the error is still wanted; that it cannot be printed is not news.
    if cli.globals.json && report.fault != Fault::Closed {
        let _ = writeln!(out, "{}", report.data());
    }
    let _ = out.flush();
    let code = match report.fault {
        Fault::Closed => return ExitCode::SUCCESS,
        Fault::Asked => 1,
        Fault::Usage => 2,
        Fault::Unsure => 3,
    };
    let colour = cli.globals.colour(io::stderr().is_terminal());
    let text = format!("{}\n\n{}", report.render(colour, error_width()), report.more_words());
    let _ = writeln!(io::stderr(), "{}", folded(&text, error_width()));
    ExitCode::from(code)
}

/// What is said instead of doing something: help, the version, or what is wrong with the arguments.
fn refused(err: &clap::Error, early: &EarlyArguments) -> ExitCode {
    let is_asked = matches!(err.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_asked || err.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = err.print();
        return if is_asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    let report = Diagnostic::arguments(&help::plainly(&err.render().to_string()));
    if early.json {
        let _ = writeln!(io::stdout(), "{}", report.data());
    }
    // Its own words are better than ours: they have the usage and the choices, and colours of their own.
    let text = err.render();
    let colour = Globals { color: early.color, ..Globals::default() }.colour(io::stderr().is_terminal());
    let text = if colour { text.ansi().to_string() } else { text.to_string() };
    let text = help::plainly(&text).replacen("error:", &format!("error[{}]:", report.code()), 1);
    let _ = write!(io::stderr(), "{}", folded(&text, error_width()));
    ExitCode::from(2)
}

impl Command {
    /// Whether it calls a compiler or runs a kernel, either of which may break or never end. What `tune` runs, its workers
    /// do, and `learn` talks with the terminal.
    fn is_risky(&self) -> bool {
        match self {
            Command::Tutorial(_) | Command::Calibrate(_) | Command::Compare(_) | Command::Export(_) => true,
            Command::Run(it) => it.is_measured(),
            Command::Show(it) => it.is_compiled(),
            Command::Studio(_) => studio::Studio::works(),
            Command::Learn(_)
            | Command::Auto(_)
            | Command::Check(_)
            | Command::Fmt(_)
            | Command::Doctor(_)
            | Command::Explain(_)
            | Command::Import(_)
            | Command::Tune(_)
            | Command::Resume(_)
            | Command::Replay(_)
            | Command::Top(_)
            | Command::Log(_)
            | Command::Report(_)
            | Command::Completions(_)
            | Command::Lsp(_)
            | Command::Man(_)
            | Command::Schema(_)
            | Command::Worker(_) => false,
        }
    }

    /// The files that the user named, if the command is to run again whenever they change.
    fn watched(&self) -> Option<Vec<&Path>> {
        match self {
            Command::Run(it) => it.watched(),
            Command::Check(it) => it.watched(),
            Command::Show(it) => it.watched(),
            Command::Tutorial(_)
            | Command::Learn(_)
            | Command::Auto(_)
            | Command::Calibrate(_)
            | Command::Fmt(_)
            | Command::Studio(_)
            | Command::Doctor(_)
            | Command::Explain(_)
            | Command::Export(_)
            | Command::Import(_)
            | Command::Tune(_)
            | Command::Resume(_)
            | Command::Replay(_)
            | Command::Top(_)
            | Command::Compare(_)
            | Command::Log(_)
            | Command::Report(_)
            | Command::Completions(_)
            | Command::Lsp(_)
            | Command::Man(_)
            | Command::Schema(_)
            | Command::Worker(_) => None,
        }
    }

    fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        match self {
            Command::Tutorial(it) => it.run(shell),
            Command::Learn(it) => it.run(shell),
            Command::Run(it) => it.run(shell),
            Command::Auto(it) => it.run(shell),
            Command::Calibrate(it) => it.run(shell),
            Command::Check(it) => it.run(shell),
            Command::Fmt(it) => it.run(shell),
            Command::Show(it) => it.run(shell),
            Command::Studio(it) => it.run(shell),
            Command::Doctor(it) => it.run(shell),
            Command::Explain(it) => it.run(shell),
            Command::Export(it) => it.run(shell),
            Command::Import(it) => it.run(shell),
            Command::Top(it) => it.run(shell),
            Command::Compare(it) => it.run(shell),
            Command::Log(it) => it.run(shell),
            Command::Tune(it) => it.run(shell),
            Command::Resume(it) => it.run(shell),
            Command::Replay(it) => it.run(shell),
            Command::Report(it) => it.run(shell),
            Command::Completions(it) => it.run(cli(), shell),
            Command::Lsp(it) => it.run(shell),
            Command::Man(it) => it.run(cli(), shell),
            Command::Schema(it) => it.run(shell),
            Command::Worker(it) => it.run(),
        }
    }
}
