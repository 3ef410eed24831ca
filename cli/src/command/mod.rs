//! The command `tilewright`, one file or folder a subcommand.
//!
//! Data goes to standard output; errors, and progress if it is a terminal, to standard error. Exit code 0 says that
//! all went well, 1 that the thing asked about failed, 2 that the command could not do its work.

mod check;
mod climb;
mod dims;
mod doctor;
mod explain;
mod export;
mod inspect;
mod ladder;
mod log;
mod measure;
mod replay;
mod report;
mod run;
mod show;
mod space;
mod sweep;
mod timeline;
mod top;
mod tune;
mod tutorial;
mod worker;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use crate::{
    diagnostic::{Diagnostic, Fault},
    term::shell::Shell,
};

/// From a RON schedule to a verified, measured kernel
#[derive(Debug, Parser)]
#[command(name = "tilewright", version, infer_subcommands = true)]
struct Cli {
    /// Print data as JSON, one object a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tutorial(tutorial::Tutorial),
    Run(run::Run),
    Check(check::Check),
    Show(show::Show),
    Doctor(doctor::Doctor),
    Explain(explain::Explain),
    Export(export::Export),
    Tune(Box<tune::Tune>),
    Resume(tune::Resume),
    Replay(replay::Replay),
    Top(top::Top),
    Log(log::Log),
    Report(report::Report),
    #[command(hide = true)]
    Worker(worker::Worker),
}

/// Serves as a worker and ends the process, if it was started as one (`PROGRAM worker …`); else does nothing.
///
/// [`Tuner`](crate::Tuner) compiles and measures in processes that may crash. It starts them from the program that it runs in, so
/// that program's `main` begins with this.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|it| it == "worker") {
        let code = main();
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
}

/// What the binary does: reads the command line, does the work, renders what went wrong.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let stdout = io::stdout().lock();
    let mut out = io::BufWriter::new(stdout);
    let mut shell = Shell::new(&mut out, cli.json);
    let res = cli.command.run(&mut shell);
    shell.done();
    let res = res.and_then(|()| out.flush().map_err(Diagnostic::from));
    let Err(report) = res else { return ExitCode::SUCCESS };
    // What was printed before the error is still wanted; that it cannot be printed is not news.
    if cli.json && report.fault != Fault::Closed {
        let _ = writeln!(out, "{}", report.data());
    }
    let _ = out.flush();
    let code = match report.fault {
        Fault::Closed => return ExitCode::SUCCESS,
        Fault::Asked => 1,
        Fault::Usage => 2,
    };
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = writeln!(io::stderr(), "{}\n\n{}", report.render(colour), report.more_words());
    ExitCode::from(code)
}

impl Command {
    fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        match self {
            Command::Tutorial(it) => it.run(shell),
            Command::Run(it) => it.run(shell),
            Command::Check(it) => it.run(shell),
            Command::Show(it) => it.run(shell),
            Command::Doctor(it) => it.run(shell),
            Command::Explain(it) => it.run(shell),
            Command::Export(it) => it.run(shell),
            Command::Top(it) => it.run(shell),
            Command::Log(it) => it.run(shell),
            Command::Tune(it) => it.run(shell),
            Command::Resume(it) => it.run(shell),
            Command::Replay(it) => it.run(shell),
            Command::Report(it) => it.run(shell),
            Command::Worker(it) => it.run(),
        }
    }
}
