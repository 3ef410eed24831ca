//! What watches files: `--watch`, and `learn` without a verb. Nothing here sleeps: each test waits for words.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use crate::common::tilewright;

/// Longer than anything here takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(4);

/// A process that goes on, and what it has printed.
struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    parts: Receiver<Vec<u8>>,
    text: String,
    /// How far the text has been waited for.
    at: usize,
}

impl Session {
    fn start(mut command: Command) -> Session {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).env("TILEWRIGHT_NVRTC_DIR", "no-such-folder");
        let mut child = command.spawn().unwrap();
        let (mut out, stdin) = (child.stdout.take().unwrap(), child.stdin.take());
        let (send, parts) = channel();
        thread::spawn(move || {
            let mut part = vec![0; 1 << 12];
            while let Ok(n @ 1..) = out.read(&mut part) {
                if send.send(part[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Session { child, stdin, parts, text: String::new(), at: 0 }
    }

    /// The tool with its two streams in one.
    fn tool(folder: &Path, arguments: &[&str]) -> Session {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>&1", env!("CARGO_BIN_EXE_tilewright")]).args(arguments);
        command.current_dir(folder);
        Session::start(command)
    }

    /// A line of the shell on a terminal of its own.
    fn terminal(folder: &Path, line: &str) -> Session {
        let mut command = Command::new("script");
        command.args(["-qec", line, "/dev/null"]).current_dir(folder).env("SHELL", "/bin/sh");
        Session::start(command)
    }

    /// Waits for words behind those that were waited for before, and gives what stood between.
    fn until(&mut self, words: &str) -> String {
        loop {
            if let Some(n) = self.text[self.at..].find(words) {
                let between = self.text[self.at..self.at + n].to_owned();
                self.at += n + words.len();
                return between;
            }
            match self.parts.recv_timeout(TIMEOUT) {
                Ok(part) => self.text += &String::from_utf8_lossy(&part),
                Err(err) => panic!("`{words}` does not come after {:?}: {err}", self.text),
            }
        }
    }

    fn press(&mut self, key: &str) {
        self.stdin.as_mut().unwrap().write_all(key.as_bytes()).unwrap();
    }

    fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    fn code(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

const SCRIPT: &str = "schedule(workload: \"./w.tw\", target: \"cuda\", \
                      steps: [bind(loop: \"i\", axis: \"threadIdx.x\")])";
const PROGRAM: &str = "func mine\n  in A: f32[8]\n  out B: f32[8]\n\n  for i in 0..8\n    block B(v: 8 = i)\n      \
                       B[v] = A[v] + A[v]\n";

#[test]
fn a_command_runs_again_when_its_script_or_its_workload_changes() {
    let requests: [&[&str]; 3] = [
        &["check", "a.ron", "--watch"],
        &["show", "--watch", "a.ron", "--emit", "kernel"],
        &["run", "a.ron", "--target", "vgpu", "--watch"],
    ];
    for request in requests {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.ron", SCRIPT);
        write("w.tw", PROGRAM);
        let mut session = Session::tool(folder.path(), request);
        let first = session.until("Ctrl-C ends\n");
        assert!(!first.contains("error["), "{first}");
        write("a.ron", &SCRIPT.replace("\"i\"", "\"j\""));
        session.until("── a.ron changed ─");
        assert!(session.until("Ctrl-C ends\n").contains("error[TW1002]"), "{}", session.text);
        write("a.ron", SCRIPT);
        session.until("── a.ron changed ─");
        let again = session.until("Ctrl-C ends\n");
        assert!(again.ends_with(&first), "{again:?} is not {first:?}");
        write("w.tw", &PROGRAM.replace("for i", "for j"));
        session.until("w.tw changed ─");
        assert!(session.until("Ctrl-C ends\n").contains("error[TW0404]"), "{}", session.text);
        session.interrupt();
        assert_eq!(session.code(), Some(0), "{request:?}");
    }
}

#[test]
fn what_is_not_there_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(tilewright(folder.path(), &["check", "a.ron", "--watch"]));
}

#[test]
fn keys_work_on_a_terminal_and_leave_it_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    tilewright(folder.path(), &["learn", "init"]);
    let tool = env!("CARGO_BIN_EXE_tilewright");
    // The shell goes on where Ctrl-C ends the tool.
    let line = format!("trap : INT; stty -g; '{tool}' learn; echo \"code $?\"; stty -g; echo end");
    let end = |session: &mut Session, before: &str| {
        session.until("code 0");
        let after = session.until("end");
        assert_eq!(after.trim(), before.trim(), "{}", session.text);
    };

    let mut session = Session::terminal(folder.path(), &line);
    let before = session.until("\n");
    session.until("01_loop_order.ron");
    session.until("q: quit");
    session.press("h");
    session.until("1 of 3");
    session.until("q: quit");
    session.press("n");
    session.until("02_zero_once.ron");
    session.until("q: quit");
    session.press("xq");
    end(&mut session, &before);

    let mut session = Session::terminal(folder.path(), &line);
    let before = session.until("\n");
    session.until("q: quit");
    session.press("\u{3}");
    end(&mut session, &before);
}
