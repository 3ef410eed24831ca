//! The command `tilewright`; all of it is in the library's [`tilewright::command`].

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A compiler makes and drops tens of thousands of small nodes a script: a quarter of its time was the system's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    tilewright::command::main()
}
