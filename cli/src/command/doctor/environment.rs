//! The environment that checks look at: this host, or a fake one in tests.

use std::{
    cell::RefCell,
    env,
    ffi::OsStr,
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use tuner::pool::{Once, OnceError, once};

use super::probe::{Answer, Probe, Probed};
use crate::{diagnostic::Diagnostic, records::state_log, usage_error::UsageError};

/// The host as checks see it.
pub(super) trait HostEnvironment {
    /// What a process of its own finds.
    fn probe(&self, probe: Probe) -> Probed;
    /// What a program prints.
    fn run(&self, argv: &[&str]) -> Result<Once, OnceError>;
    /// A small text file, if it can be read.
    fn read(&self, path: &str) -> Option<String>;
    /// Whether a file can be made in a folder, which is made if it is not there; else why not.
    fn write(&self, folder: &Path) -> Result<(), String>;
    /// How many programs run at a time.
    fn cores(&self) -> usize;
    /// Where temporary files go.
    fn temporary(&self) -> PathBuf;
    /// Where the records of tutorials go, if the user has a home.
    fn state(&self) -> Option<PathBuf>;
}

/// The host that this process runs on.
pub(super) struct ThisHost {
    exe: PathBuf,
    /// What was asked before: the answer is the same, and one that hangs would hang again.
    asked: RefCell<Vec<(Probe, Probed)>>,
}

/// How long a program may take.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a file that are looked at.
const MAX_FILE_BYTES: u64 = 1 << 16;

impl ThisHost {
    pub(super) fn new() -> Result<ThisHost, Diagnostic> {
        let failed =
            |err| Diagnostic::usage(UsageError::Process, format!("tilewright itself is not found: {err}"));
        Ok(ThisHost { exe: env::current_exe().map_err(failed)?, asked: RefCell::new(vec![]) })
    }
}

impl ThisHost {
    fn ask(&self, probe: Probe) -> Probed {
        let word = probe.word();
        let arguments = ["doctor", "--probe", &word].map(OsStr::new);
        let limit = probe.timeout();
        match once(self.exe.as_os_str(), &arguments, limit) {
            Ok(it) => match serde_json::from_str::<Answer>(it.stdout.trim()) {
                Ok(Answer::Found(facts)) => Probed::Found(facts),
                Ok(Answer::Refused { error, help }) => Probed::Refused { error, help },
                Err(_) => Probed::Died(it.status),
            },
            Err(OnceError::Slow(_)) => Probed::Hung(limit),
            Err(OnceError::Start(err)) => Probed::Died(err.to_string()),
        }
    }
}

impl HostEnvironment for ThisHost {
    fn probe(&self, probe: Probe) -> Probed {
        let before = self.asked.borrow().iter().find(|it| it.0 == probe).map(|it| it.1.clone());
        before.unwrap_or_else(|| {
            let probed = self.ask(probe);
            self.asked.borrow_mut().push((probe, probed.clone()));
            probed
        })
    }

    fn run(&self, argv: &[&str]) -> Result<Once, OnceError> {
        let (program, arguments) = argv.split_first().unwrap_or((&"", &[]));
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        once(OsStr::new(program), &arguments, PROGRAM_TIMEOUT)
    }

    fn read(&self, path: &str) -> Option<String> {
        let mut text = String::new();
        fs::File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn write(&self, folder: &Path) -> Result<(), String> {
        let name = format!("tilewright-doctor-{}", std::process::id());
        let path = folder.join(name);
        let made = fs::create_dir_all(folder).and_then(|()| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
            let written = file.write_all(b"tilewright");
            fs::remove_file(&path)?;
            written
        });
        made.map_err(|err| err.to_string())
    }

    fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn temporary(&self) -> PathBuf {
        env::temp_dir()
    }

    fn state(&self) -> Option<PathBuf> {
        Some(state_log()?.parent()?.to_owned())
    }
}
