//! The system's C compiler: the one that Rust links with anyway.

use std::{
    env, fs,
    process::{Command, Stdio},
    sync::OnceLock,
};

use super::DeviceError;

/// A C compiler that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiler {
    /// The command: a program and perhaps arguments of its own (`ccache gcc`).
    pub command: Vec<String>,
    /// The first line of what it says about itself.
    pub version: String,
}

/// How emitted C is compiled. Products and sums may be fused, as CUDA does; nothing else about floating-point
/// numbers is relaxed: no reassociation, and infinities and NaNs are what they are.
pub const OPTIONS: &[&str] =
    &["-std=gnu11", "-O3", NATIVE, "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fPIC"];

/// For the processor at hand: Apple's compiler spells it differently on ARM.
const NATIVE: &str =
    if cfg!(all(target_os = "macos", target_arch = "aarch64")) { "-mcpu=native" } else { "-march=native" };

/// Finds a C compiler, once in a process: the environment's `CC`, then `cc`, `gcc`, `clang`. When `CC` is set,
/// nothing else is tried.
///
/// # Errors
/// [`DeviceError::Missing`] with what to install, [`DeviceError::Broken`] for one that is there and fails.
pub fn find() -> Result<Compiler, DeviceError> {
    static FOUND: OnceLock<Result<Compiler, DeviceError>> = OnceLock::new();
    FOUND.get_or_init(|| choose(env::var("CC").ok().as_deref())).clone()
}

fn choose(cc: Option<&str>) -> Result<Compiler, DeviceError> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    if let Some(command) = cc.map(words).filter(|it| !it.is_empty()) {
        let help = "unset CC, or let it name a C compiler such as gcc or clang";
        return ask(&command)
            .map_err(|it| it.error(format!("the C compiler that CC names (`{}`)", command.join(" ")), help));
    }
    let mut fault = Fault::Absent;
    for name in ["cc", "gcc", "clang"] {
        match ask(&[name.to_owned()]) {
            Ok(it) => return Ok(it),
            // One that is there and fails says more than the absence of others.
            Err(it @ Fault::Failed(_)) if fault == Fault::Absent => fault = it,
            Err(Fault::Absent | Fault::Failed(_)) => {}
        }
    }
    let help = "`apt-get install gcc` (Debian, Ubuntu), `dnf install gcc` (Fedora), `apk add gcc musl-dev` \
               (Alpine), `xcode-select --install` (macOS), or let CC name one";
    Err(fault.error("a C compiler (cc, gcc or clang)".to_owned(), help))
}

/// Why a command is no compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Fault {
    /// It cannot be started.
    Absent,
    /// It ended so when it was asked for its version.
    Failed(String),
}

impl Fault {
    fn error(self, what: String, help: &str) -> DeviceError {
        let help = help.to_owned();
        match self {
            Fault::Absent => DeviceError::Missing { what, help },
            Fault::Failed(status) => DeviceError::Broken { what, status, help },
        }
    }
}

/// The compiler of a command, if it runs.
fn ask(command: &[String]) -> Result<Compiler, Fault> {
    let (program, arguments) = command.split_first().ok_or(Fault::Absent)?;
    let mut asked = Command::new(program);
    asked.args(arguments).arg("--version").stdin(Stdio::null());
    let out = asked.output().map_err(|_| Fault::Absent)?;
    let first = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().map(|it| it.trim().to_owned());
    if !out.status.success() {
        let said = first(&out.stderr).map_or_else(String::new, |it| format!(" ({it})"));
        return Err(Fault::Failed(format!("{}{said}", out.status)));
    }
    let silent = || Fault::Failed("it does not tell its version".to_owned());
    let version = first(&out.stdout).ok_or_else(silent)?;
    Ok(Compiler { command: command.to_vec(), version })
}

impl Compiler {
    /// Compiles C to a shared library and gives its bytes. Messages call the file `kernel.c`.
    ///
    /// # Errors
    /// [`DeviceError::Compile`] with the compiler's words.
    pub fn compile(&self, source: &str) -> Result<Vec<u8>, DeviceError> {
        self.make(source, &["-shared"], "kernel.so", &["-lm"])
    }

    /// Compiles C to assembly in the same way, with the line of `kernel.c` that each instruction comes from.
    ///
    /// # Errors
    /// [`DeviceError::Compile`] with the compiler's words.
    pub fn assembly(&self, source: &str) -> Result<String, DeviceError> {
        let bytes = self.make(source, &["-S", "-g1"], "kernel.s", &[])?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What the compiler makes of a source with these options, of which some come after the source.
    fn make(
        &self,
        source: &str,
        options: &[&str],
        made: &str,
        after: &[&str],
    ) -> Result<Vec<u8>, DeviceError> {
        let failed = |call: &str, err: &dyn std::fmt::Display| DeviceError::Call {
            call: call.into(),
            reason: err.to_string(),
        };
        let dir = tempfile::tempdir().map_err(|err| failed("making a temporary folder", &err))?;
        fs::write(dir.path().join("kernel.c"), source).map_err(|err| failed("writing kernel.c", &err))?;
        let (program, arguments) =
            self.command.split_first().ok_or_else(|| failed("the compiler", &"no command"))?;
        let out = Command::new(program)
            .args(arguments)
            .args(OPTIONS)
            .args(options)
            .args(["-o", made, "kernel.c"])
            .args(after)
            // Relative names, so that messages are the same wherever the temporary folder is.
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|err| failed(&format!("starting {program}"), &err))?;
        if !out.status.success() {
            let log = String::from_utf8_lossy(&out.stderr).trim_end().to_owned();
            let log = if log.is_empty() { out.status.to_string() } else { log };
            return Err(DeviceError::Compile { compiler: self.command.join(" "), log });
        }
        fs::read(dir.path().join(made)).map_err(|err| failed(&format!("reading {made}"), &err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_choice_is_missing() {
        let err = choose(Some("tilewright-no-such-compiler --flag")).unwrap_err();
        let words = "the C compiler that CC names (`tilewright-no-such-compiler --flag`) was not found";
        assert_eq!(err.to_string(), words);
        assert!(err.help().unwrap().contains("unset CC"));
    }

    #[test]
    fn one_that_fails_is_not_missing() {
        let err = choose(Some("false")).unwrap_err();
        let words = "the C compiler that CC names (`false`) ran and failed: exit status: 1";
        assert_eq!(err.to_string(), words);
        assert!(err.help().unwrap().contains("unset CC"));
    }

    #[test]
    fn no_folder_leaks_into_messages() {
        let err = choose(None).unwrap().compile("int f(void) { return nothing; }").unwrap_err();
        let DeviceError::Compile { log, .. } = err else { panic!("{err:?}") };
        assert!(log.starts_with("kernel.c:"), "{log}");
        assert!(log.contains("nothing"), "{log}");
    }
}
