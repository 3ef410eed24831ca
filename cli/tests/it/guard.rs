//! Kernels that break and compilers that never end cost an error with a code, and nothing stays behind.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// A folder with a script, a ladder of it, a C compiler that does as it is told, and a folder for temporary files.
struct Sandbox(TempDir);

const SCRIPT: &str = r#"schedule(workload: "elementwise", params: {"n": 64}, target: "cpu", steps: [])"#;

impl Sandbox {
    /// With a compiler that runs this, in a folder with `kernel.c`, in place of compiling. `$HERE` is the folder.
    fn new(instead: &str) -> Sandbox {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("script.ron"), SCRIPT).unwrap();
        fs::create_dir(at("tmp")).unwrap();
        fs::create_dir(at("ladder")).unwrap();
        fs::write(at("ladder/01_first.ron"), SCRIPT).unwrap();
        let here = folder.path().display();
        let text =
            format!("#!/bin/sh\nHERE={here}\n[ \"$1\" = --version ] && echo 'cc 1' && exit\n{instead}\n");
        fs::write(at("compiler"), text).unwrap();
        fs::set_permissions(at("compiler"), fs::Permissions::from_mode(0o755)).unwrap();
        Sandbox(folder)
    }

    /// With a kernel of this body in C.
    fn with_kernel(body: &str) -> Sandbox {
        let sandbox = Sandbox::new("cp $HERE/broken.so kernel.so");
        let path = |name: &str| sandbox.0.path().join(name);
        fs::write(path("broken.c"), format!("void elementwise(void) {{ {body} }}\n")).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O0", "-o"]).arg(path("broken.so")).arg(path("broken.c"));
        assert!(cc.status().unwrap().success());
        sandbox
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let (compiler, tmp) = (self.path().join("compiler"), self.path().join("tmp"));
        let environment = [("CC", compiler.to_str().unwrap()), ("TMPDIR", tmp.to_str().unwrap())];
        crate::common::run(self.path(), arguments, &environment)
    }

    /// What is left of temporary files.
    fn left(&self) -> usize {
        fs::read_dir(self.path().join("tmp")).unwrap().count()
    }
}

#[test]
fn a_kernel_that_crashes_is_an_error() {
    let sandbox = Sandbox::with_kernel("*(volatile int *)8 = 1;");
    let told = "the process that compiles and runs kernels was killed by SIGSEGV (it touched memory that is not its \
                own), while at `run: verifying script.ron`";
    let out = sandbox.run(&["run", "script.ron"]);
    assert!(out.contains(&format!("error[TW5030]: {told}")) && out.ends_with("exit code 1"), "{out}");
    let out = sandbox.run(&["run", "script.ron", "--json"]);
    assert!(out.contains("\"code\":\"TW5030\"") && out.ends_with("exit code 1"), "{out}");
    for arguments in
        [["tutorial", "ladder"].as_slice(), &["compare", "script.ron", "script.ron", "--measure"]]
    {
        let out = sandbox.run(arguments);
        assert!(out.contains("error[TW5030]") && out.ends_with("exit code 1"), "{out}");
    }
    assert_eq!(sandbox.left(), 0);
}

#[test]
fn a_kernel_that_traps_is_told_by_its_signal() {
    let sandbox = Sandbox::with_kernel("__builtin_trap();");
    let out = sandbox.run(&["run", "script.ron"]);
    assert!(
        out.contains("error[TW5030]: the process that compiles and runs kernels was killed by SIG"),
        "{out}"
    );
}

#[test]
fn what_does_not_end_in_time_is_ended() {
    let sandbox = Sandbox::with_kernel("for (;;) { __asm__ volatile(\"\"); }");
    let out = sandbox.run(&["run", "script.ron", "--deadline", "2s"]);
    let told =
        "error[TW3005]: a call of the program did not end within 2 s, while at `run: verifying script.ron`";
    assert!(out.contains(told) && out.ends_with("exit code 1"), "{out}");
    assert_eq!(sandbox.left(), 0);

    let sandbox = Sandbox::new("sleep 1000");
    let out = sandbox.run(&["run", "script.ron", "--deadline", "0.2s"]);
    let told = "error[TW5029]: the compiler did not end within 0.2 s, while at `compiling`";
    assert!(out.contains(told) && out.ends_with("exit code 1"), "{out}");
    assert_eq!(sandbox.left(), 0);

    let out = sandbox.run(&["run", "script.ron", "--deadline", "1e30h"]);
    assert!(out.contains("a clock counts to 2^64 s") && out.ends_with("exit code 2"), "{out}");
}

/// The compiler says through a pipe that it is at work, and is then interrupted with everything else.
#[test]
fn an_interrupt_leaves_nothing_behind() {
    let sandbox = Sandbox::new("echo begun > $HERE/pipe; sleep 1000");
    let pipe = sandbox.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for arguments in [["run", "script.ron"], ["tutorial", "ladder"]] {
        for (name, number) in [("INT", 2), ("TERM", 15)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
            command.args(arguments).current_dir(sandbox.path());
            command.env("CC", sandbox.path().join("compiler")).env("TMPDIR", sandbox.path().join("tmp"));
            command.env("TILEWRIGHT_NVRTC_DIR", "no-such-folder");
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            assert_eq!(fs::read_to_string(&pipe).unwrap(), "begun\n");
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
            assert_eq!(child.wait().unwrap().signal(), Some(number), "{arguments:?}");
            assert_eq!(sandbox.left(), 0, "{arguments:?}");
        }
    }
}

#[test]
fn as_many_threads_as_nobody_has_are_refused() {
    let sandbox = Sandbox::with_kernel("");
    for arguments in [["run", "script.ron"], ["tutorial", "ladder"], ["tune", "script.ron"]] {
        let out = sandbox.run(&[arguments[0], arguments[1], "--threads", "20000"]);
        assert!(out.contains("error[TW5024]") && out.contains("at most 1024 threads"), "{out}");
    }
}

#[test]
fn a_compiler_that_fails_is_not_missing() {
    let sandbox = Sandbox::with_kernel("");
    let out = crate::common::run(sandbox.path(), &["run", "script.ron"], &[("CC", "false")]);
    let told = "error[TW3007]: the C compiler that CC names (`false`) ran and failed: exit status: 1";
    assert!(out.contains(told) && out.ends_with("exit code 2"), "{out}");
}
