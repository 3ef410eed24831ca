//! The folders that are written to.

use std::path::Path;

use super::{check::Check, environment::HostEnvironment};

/// What the emitted programs and the compiler's files take at most, in MiB, with room to spare.
const TEMPORARY_MIB: u64 = 64;
/// What logs take, in MiB.
const LOGS_MIB: u64 = 256;

pub(super) fn state(environment: &dyn HostEnvironment) -> Check {
    let name = "state-folder";
    let Some(folder) = environment.state() else {
        let fix = "export XDG_STATE_HOME=/some/folder  (or `tutorial --log FILE`)";
        return Check::warn(name, "this user has no home: tutorials keep no records", fix);
    };
    let shown = folder.display();
    match environment.write(&folder) {
        Ok(()) => Check::ok(name, format!("{shown}: tutorials keep their records there")),
        Err(err) => {
            let fix = "export XDG_STATE_HOME=/some/folder  (one that can be written)";
            Check::warn(name, format!("{shown}: {err}; tutorials keep no records"), fix)
        }
    }
}

pub(super) fn temporary(environment: &dyn HostEnvironment) -> Check {
    let name = "temp-folder";
    let folder = environment.temporary();
    let shown = folder.display();
    if let Err(err) = environment.write(&folder) {
        let fix = "export TMPDIR=$HOME/tmp && mkdir -p $TMPDIR";
        return Check::fail(name, format!("{shown}: {err}; compiled programs lie there"), fix);
    }
    match free(environment, &folder) {
        Some(free) if free < TEMPORARY_MIB => {
            let fix = "export TMPDIR=$HOME/tmp && mkdir -p $TMPDIR  (or make room there)";
            let found = format!("{shown}: {free} MiB free, and compiled programs need up to {TEMPORARY_MIB}");
            if free == 0 { Check::fail(name, found, fix) } else { Check::warn(name, found, fix) }
        }
        Some(free) => Check::ok(name, format!("{shown}: writable, {free} MiB free")),
        None => Check::ok(name, format!("{shown}: writable")),
    }
}

pub(super) fn current(environment: &dyn HostEnvironment) -> Check {
    let name = "current-folder";
    let folder = Path::new(".");
    if let Err(err) = environment.write(folder) {
        let fix = "cd to a folder of yours, or name one: `tune --log FOLDER`, `run --log FILE`";
        return Check::warn(name, format!("it cannot be written: {err}; logs go there"), fix);
    }
    match free(environment, folder) {
        Some(free) if free < LOGS_MIB => {
            let fix = "df -h .  (logs of long searches take hundreds of MiB; `--log` puts them elsewhere)";
            Check::warn(name, format!("writable, {free} MiB free"), fix)
        }
        Some(free) => Check::ok(name, format!("writable, {free} MiB free for logs")),
        None => Check::ok(name, "writable"),
    }
}

/// The free space of a folder in MiB. `df` is asked because it can be given up on: a network that is gone holds up
/// whoever asks.
fn free(environment: &dyn HostEnvironment, folder: &Path) -> Option<u64> {
    let said = environment.run(&["df", "-Pk", folder.to_str()?]).ok()?;
    let line = said.stdout.lines().nth(1)?;
    // The name of the file system may have blanks; the numbers come before the percent.
    let words: Vec<&str> = line.split_whitespace().collect();
    let percent = words.iter().rposition(|it| it.ends_with('%'))?;
    let kib: u64 = words.get(percent.checked_sub(1)?)?.parse().ok()?;
    Some(kib / 1024)
}
