//! A process that may crash in the place of this one: it has this one's streams, and goes with it.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::worker::IN_POOL;

/// How a guarded process came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// By itself, or by what it did.
    Ended(ExitStatus),
    /// It was killed because this process was asked to end, by that signal.
    Asked(i32),
}

/// What the threads of a guard share.
#[derive(Default)]
struct Shared {
    /// The signal that asked this process to end.
    asked: Option<i32>,
    /// Whether the group is gone, so that its number may be that of others.
    gone: bool,
}

/// Runs a command in a process group of its own until it ends. All that it started ends with it, and all of it when this
/// process is interrupted; [`prepare`](crate::worker::prepare), which the process calls, sees to it that it does not
/// outlive this one.
///
/// # Errors
/// Where it cannot be started.
pub fn guarded(command: &mut Command) -> io::Result<Left> {
    // Not SIGHUP: whoever started this process so that it outlives a terminal has it ignored.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    let mut child = command.process_group(0).env(IN_POOL, "1").spawn()?;
    let group = Pid::from_child(&child);
    let shared = Arc::new(Mutex::new(Shared::default()));
    let ours = Arc::clone(&shared);
    thread::spawn(move || {
        for signal in signals.forever() {
            let mut it = ours.lock().unwrap_or_else(PoisonError::into_inner);
            it.asked.get_or_insert(signal);
            if !it.gone {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    });
    // It stays a zombie until its group is killed, so that the group's number is not that of others by then.
    while waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .is_err_and(|err| err == rustix::io::Errno::INTR)
    {}
    let asked = {
        let mut it = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = kill_process_group(group, Signal::KILL);
        it.gone = true;
        it.asked
    };
    handle.close();
    let status = child.wait()?;
    Ok(asked.map_or(Left::Ended(status), Left::Asked))
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::process::ExitStatusExt};

    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn status(mut command: Command) -> ExitStatus {
        match guarded(&mut command).unwrap() {
            Left::Ended(status) => status,
            Left::Asked(signal) => panic!("nobody asked, but for signal {signal}"),
        }
    }

    #[test]
    fn its_end_is_told() {
        assert_eq!(status(sh("exit 3")).code(), Some(3));
        assert_eq!(status(sh("kill -SEGV $$")).signal(), Some(11));
        assert!(guarded(&mut Command::new("tilewright-no-such-program")).is_err());
    }

    #[test]
    fn what_it_started_goes_with_it() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = sh("echo before; sleep 1000 & kill -KILL $$");
        command.stdout(writer);
        assert_eq!(status(command).signal(), Some(9));
        // It ends once nobody is left that could write.
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "before\n");
    }
}
