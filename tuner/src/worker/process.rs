//! What a worker tells the system about itself.

use std::{
    env,
    fs::{self, File, OpenOptions, TryLockError},
    io, thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{
        Resource, Rlimit, Signal, getpid, getrlimit, kill_current_process_group, kill_process, setrlimit,
    },
    time::{ClockId, clock_gettime},
};
use signal_hook::{consts::SIGTERM, iterator::Signals};

use crate::regular;

/// The variable that says to a worker that its process group is that of its pool's making, and holds nobody else.
pub const IN_POOL: &str = "TILEWRIGHT_IN_POOL";

/// What a worker may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerLimits {
    /// Of a worker that measures: nothing is limited but core dumps. A GPU's driver maps more memory than there is.
    Measure,
    /// Of a worker that only compiles: 8 GiB of memory, and two minutes of processor time for each job.
    Compile,
}

/// The memory of a worker that only compiles.
const MEMORY: u64 = 8 << 30;

/// The processor time that a job of it may take, in seconds.
const JOB_SECONDS: u64 = 120;

/// Makes this process a worker: it leaves no core dumps, stays within limits, and ends with its parent and all that it
/// started. What the system refuses is not worth an error.
pub fn prepare(limits: WorkerLimits) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    if limits == WorkerLimits::Compile {
        let most = getrlimit(Resource::As).maximum.map_or(MEMORY, |it| it.min(MEMORY));
        let _ = setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) });
    }
    // A handler instead of death on the spot: compilers that this process started have to go as well.
    if let Ok(mut signals) = Signals::new([SIGTERM]) {
        // Without it the process ends with its input, which is as good as ever.
        let _ = thread::Builder::new().spawn(move || signals.forever().next().map(|_| leave()));
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    }
}

/// Allows the time of one more job.
pub(super) fn allow_job() {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).expect("it counts from 0");
    let hard = getrlimit(Resource::Cpu).maximum;
    let soft = hard.unwrap_or(u64::MAX).min(used + JOB_SECONDS);
    let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(soft), maximum: hard });
}

/// Takes standard output for answers alone: whatever else this process prints goes to standard error.
pub fn claim_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    let ours = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(ours))
}

/// Ends this process now, with all that it started. No destructor runs: one could wait for a device for ever.
pub fn leave() -> ! {
    if env::var_os(IN_POOL).is_some() {
        let _ = kill_current_process_group(Signal::KILL);
    }
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// How long a process that was killed may take to leave its device: a driver has to end what runs there first.
const LEAVING: Duration = Duration::from_secs(2);

/// A lock on a device among all users of this machine, as long as it lives. It is advice: an error says that another
/// process has it, or that something else stands in its place; `None` that locks do not work here.
pub(super) fn lock_device(word: &str) -> Result<Option<File>, String> {
    let path = env::temp_dir().join(format!("tilewright-device-{word}.lock"));
    // Reading is enough for a lock, and another user's file cannot be written.
    let file = regular::open(&path).or_else(|err| match err.kind() {
        io::ErrorKind::NotFound => OpenOptions::new().read(true).append(true).create(true).open(&path),
        _ => Err(err),
    });
    let file = match file {
        Ok(file) => file,
        Err(err) if fs::metadata(&path).is_ok_and(|it| !it.is_file()) => {
            return Err(format!(
                "{}: {err}; whether another tilewright measures on the same device ({word}) cannot be told",
                path.display()
            ));
        }
        Err(_) => return Ok(None),
    };
    let until = Instant::now() + LEAVING;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LEAVING / 40),
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "another tilewright measures on the same device ({word}): times disturb each other"
                ));
            }
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}
