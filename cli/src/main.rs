//! The command `tilewright`; all of it is in the library's [`tilewright::command`].

use std::process::ExitCode;

fn main() -> ExitCode {
    tilewright::command::main()
}
