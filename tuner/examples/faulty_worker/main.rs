//! A worker that spoils the programs of chosen screens, for trying out what a tuner does about real faults:
//!
//! ```text
//! tilewright tune SCRIPT --worker-cmd 'faulty_worker --device 0 --state /tmp/count --fault oob@5 --fault loop@9'
//! ```
//!
//! `--fault KIND@N` spoils the N-th screen, counted from 1 over all processes that share the file of `--state` (which
//! must not be there at first). The kinds are
//!
//! | kind | the program that runs instead |
//! | --- | --- |
//! | `oob` | writes far away from its memory |
//! | `loop` | never ends |
//! | `trap` | stops itself (`abort` on a CPU) |
//! | `misaligned` | writes an int to an odd address (a GPU refuses that, most CPUs do not) |
//! | `wrong` | writes wrong numbers |
//! | `nothing` | writes nothing at all |
//! | `panic` | none: the worker panics |
//! | `exit` | none: the worker ends |
//!
//! Everything else is done as by `tilewright worker`, whose `--device N|cpu` and `--compile-only` it has.

mod handler;

use std::{env, io, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match handler::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            let _ = io::Write::write_all(&mut io::stderr(), format!("error: {words}\n").as_bytes());
            ExitCode::from(2)
        }
    }
}
