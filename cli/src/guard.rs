//! Kernels and compilers at arm's length: a command that compiles or runs does so in a process of its own, which this one
//! starts from the same arguments and waits for.
//!
//! What a kernel breaks is then that process: it becomes an error with a code. A thread in it looks at the deadline of what
//! is under way. Its temporary files lie in a folder that this process made and takes away, however the other ended.

use std::{
    env, fs,
    io::{self, IsTerminal, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Command, ExitCode, ExitStatus},
    sync::{Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use codegen::device::{BufferId, DeviceError, Gemm, Machine, MachineInfo, Part, Program, ProgramId};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tuner::{
    pool::{Left, guarded, status_words},
    worker::{WorkerLimits, leave, prepare},
};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Says to a process that it is the one that does the work, and which folder it shares with the other; empty for none.
const GUARDED: &str = "TILEWRIGHT_GUARDED";

/// How long a compilation or a call of a program may take unless the user says otherwise.
pub(crate) const DEADLINE: Duration = Duration::from_mins(5);

/// How often the deadline is looked at: seldom enough to disturb no measurement.
const POLL: Duration = Duration::from_millis(250);

const KILL: i32 = 9;

/// The files in the shared folder: what was done last, and what took too long.
const DOING: &str = "doing";
const LATE: &str = "late";

/// Who does the work of a command.
pub(crate) enum Work {
    /// This process.
    Here,
    /// Another did, and this is what came of it.
    Done(Result<ExitCode, Diagnostic>),
}

/// What is under way in the process that works.
struct Watch {
    folder: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    deadline: Duration,
    /// What has to end, and when it is too late.
    until: Option<(Activity, Instant)>,
}

/// An activity that has a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Activity {
    /// A compiler.
    Compiler,
    /// A call of a program, or a burst of them.
    Call,
}

/// What took too long.
#[derive(Debug, Serialize, Deserialize)]
struct Late {
    what: Activity,
    seconds: f64,
}

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Lets another process do the work of a command, unless this is that process already. Where none can be started, the work is
/// done here.
pub(crate) fn work() -> Work {
    if let Some(folder) = env::var_os(GUARDED) {
        begin_watch(Some(PathBuf::from(folder)).filter(|it| !it.as_os_str().is_empty()));
        return Work::Here;
    }
    let Ok(exe) = env::current_exe() else { return Work::Here };
    let folder = tempfile::Builder::new().prefix("tilewright-").tempdir().ok();
    let mut command = Command::new(exe);
    command.args(env::args_os().skip(1)).env(GUARDED, "");
    if let Some(it) = &folder {
        command.env(GUARDED, it.path()).env("TMPDIR", it.path());
    }
    match guarded(&mut command) {
        Err(_) => Work::Here,
        Ok(Left::Asked(signal)) => {
            drop(folder);
            // As if nothing had been there to catch it; where that does not end this process, the code says it.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            Work::Done(Ok(exit_code(128 + signal)))
        }
        Ok(Left::Ended(status)) => Work::Done(ended(status, folder.as_ref())),
    }
}

fn exit_code(code: i32) -> ExitCode {
    match u8::try_from(code) {
        Ok(code) => ExitCode::from(code),
        // Where codes are longer than a byte, those that are tell of failures.
        Err(_) => ExitCode::FAILURE,
    }
}

/// What the end of the process means.
fn ended(status: ExitStatus, folder: Option<&TempDir>) -> Result<ExitCode, Diagnostic> {
    if let Some(code) = status.code() {
        return Ok(exit_code(code));
    }
    if io::stderr().is_terminal() {
        // Its last line of progress.
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let said = |name: &str| fs::read_to_string(folder?.path().join(name)).ok();
    let late = said(LATE).and_then(|it| serde_json::from_str::<Late>(&it).ok());
    let doing = said(DOING);
    let doing = doing.as_deref();
    Err(late.map_or_else(|| crashed(status, doing), |it| too_late(it.what, it.seconds, doing)))
}

/// What a process was at when it ended.
fn at(doing: Option<&str>) -> String {
    doing.map(|it| format!(", while at `{it}`")).unwrap_or_default()
}

/// The error of a process that was killed.
pub(crate) fn crashed(status: ExitStatus, doing: Option<&str>) -> Diagnostic {
    let title = format!("the process that compiles and runs kernels {}{}", status_words(status), at(doing));
    let help = match status.signal() {
        Some(KILL) => "smaller sizes take less memory",
        _ => "`run SCRIPT --target vgpu` looks for what a kernel does that it must not",
    };
    Diagnostic::failed(UsageError::Crash, title).help(help.to_owned())
}

/// The error of what did not end in time.
pub(crate) fn too_late(what: Activity, seconds: f64, doing: Option<&str>) -> Diagnostic {
    let (late, other) = match what {
        Activity::Compiler => {
            let title = format!("the compiler did not end within {seconds} s{}", at(doing));
            let other = "a program with fewer loops written out compiles faster";
            (Diagnostic::failed(UsageError::Compiler, title), other)
        }
        Activity::Call => {
            let hang = DeviceError::Hang { what: "a call of the program".to_owned(), seconds };
            (Diagnostic::failed(&hang, format!("{hang}{}", at(doing))), "smaller sizes take less time")
        }
    };
    late.help(format!("`run`, `tutorial` and `compare` wait longer with `--deadline 1h`; {other}"))
}

/// Makes this process the one that works.
fn begin_watch(folder: Option<PathBuf>) {
    prepare(WorkerLimits::Measure);
    let state = Mutex::new(State { deadline: DEADLINE, until: None });
    if WATCH.set(Watch { folder, state }).is_ok() {
        thread::spawn(|| {
            loop {
                thread::sleep(POLL);
                if let Some(watch) = WATCH.get() {
                    watch.look();
                }
            }
        });
    }
}

impl Watch {
    /// Ends this process if something is late, and there is a folder to say so in.
    fn look(&self) {
        let (late, deadline) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.until.filter(|it| it.1 <= Instant::now()), state.deadline)
        };
        let (Some((what, _)), Some(folder)) = (late, &self.folder) else { return };
        let text =
            serde_json::to_string(&Late { what, seconds: deadline.as_secs_f64() }).expect("it is plain data");
        let _ = fs::write(folder.join(LATE), text);
        leave();
    }

    fn set(&self, what: Option<Activity>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.until = what.and_then(|it| Some((it, Instant::now().checked_add(state.deadline)?)));
    }
}

/// Sets how long a compilation or a call may take from now on.
pub(crate) fn set_deadline(deadline: Duration) {
    if let Some(watch) = WATCH.get() {
        watch.state.lock().unwrap_or_else(PoisonError::into_inner).deadline = deadline;
    }
}

/// Remembers what is being done, for the words about a crash, and says whether that could come: what was printed before should
/// not go with it.
pub(crate) fn doing(text: &str) -> bool {
    let Some(watch) = WATCH.get() else { return false };
    if let Some(folder) = &watch.folder {
        let _ = fs::write(folder.join(DOING), text);
    }
    true
}

/// Does something that has to end in time.
pub(crate) fn within<T>(what: Activity, work: impl FnOnce() -> T) -> T {
    let Some(watch) = WATCH.get() else { return work() };
    watch.set(Some(what));
    let out = work();
    watch.set(None);
    out
}

/// A machine whose calls have to end in time.
pub(crate) struct Watched(pub(crate) Box<dyn Machine>);

impl Machine for Watched {
    /// The first call may compile a small program to measure the machine with.
    fn info(&self) -> &MachineInfo {
        within(Activity::Compiler, || self.0.info())
    }

    fn load(&mut self, program: &Program) -> Result<ProgramId, DeviceError> {
        self.0.load(program)
    }

    fn load_gemm(&mut self, gemm: &Gemm) -> Result<ProgramId, DeviceError> {
        self.0.load_gemm(gemm)
    }

    fn alloc(&mut self, bytes: usize) -> Result<BufferId, DeviceError> {
        self.0.alloc(bytes)
    }

    fn free(&mut self, buffer: BufferId) {
        self.0.free(buffer);
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.upload(buffer, bytes)
    }

    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.0.download(buffer, bytes)
    }

    fn run(&mut self, program: ProgramId, buffers: &[BufferId], calls: u32) -> Result<f64, DeviceError> {
        within(Activity::Call, || self.0.run(program, buffers, calls))
    }

    fn flush_cache(&mut self) -> Result<(), DeviceError> {
        self.0.flush_cache()
    }

    fn set_threads(&mut self, threads: usize) {
        self.0.set_threads(threads);
    }

    fn set_deadline(&mut self, seconds: Option<f64>) {
        self.0.set_deadline(seconds);
    }

    fn clock_mhz(&mut self) -> Option<f64> {
        self.0.clock_mhz()
    }

    fn load_gemm_choices(&mut self, gemm: &Gemm, most: usize) -> Result<Vec<ProgramId>, DeviceError> {
        self.0.load_gemm_choices(gemm, most)
    }

    fn load_sequence(&mut self, parts: &[Part], sizes: &[usize]) -> Result<ProgramId, DeviceError> {
        self.0.load_sequence(parts, sizes)
    }

    fn unload(&mut self, program: ProgramId) {
        self.0.unload(program);
    }
}
