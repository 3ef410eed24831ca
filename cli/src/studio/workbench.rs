//! The process that works on a save: this command once more, told by the environment what it is to find out.

use std::{
    env,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::Sender,
    thread,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    session::News,
    told::Told,
    work::{PART, Part},
};

/// Starts processes that work.
#[derive(Debug)]
pub(super) struct Workbench {
    exe: PathBuf,
    arguments: Vec<OsString>,
    news: Sender<News>,
    /// The processes under way, each with its number.
    jobs: Vec<(u64, Child)>,
    count: u64,
}

impl Workbench {
    /// For this command.
    pub(super) fn new(news: Sender<News>) -> io::Result<Workbench> {
        let (exe, arguments) = (env::current_exe()?, env::args_os().skip(1).collect());
        Ok(Workbench { exe, arguments, news, jobs: vec![], count: 0 })
    }

    /// Starts a process. What it tells comes as news with its number.
    pub(super) fn start(&mut self, part: Part) -> io::Result<()> {
        self.count += 1;
        let (job, news) = (self.count, self.news.clone());
        let mut command = Command::new(&self.exe);
        command.args(&self.arguments).env(PART, part.word());
        // What it says of a crash is shown on the page.
        command.env("NO_COLOR", "1").env_remove("FORCE_COLOR").env_remove("CLICOLOR_FORCE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        self.jobs.push((job, child));
        let Some((out, mut err)) = pipes else { return Ok(()) };
        let errors = thread::spawn(move || {
            let mut bytes = vec![];
            // What cannot be read any more is not worth an error of its own.
            let _ = err.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // It may have been killed in the middle of a line.
                let Ok(told) = serde_json::from_str::<Told>(&line) else { continue };
                if news.send(News::Told(job, told)).is_err() {
                    return;
                }
            }
            let errors = errors.join().unwrap_or_default();
            // The session has ended, if nobody wants to know.
            let _ = news.send(News::Ended(job, errors));
        });
        Ok(())
    }

    /// Whether a process is still at work: one that was ended may have said something before.
    pub(super) fn is_current(&self, job: u64) -> bool {
        self.jobs.iter().any(|it| it.0 == job)
    }

    /// Whether none is at work.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes a process away that has closed its streams, and says how it ended.
    pub(super) fn take(&mut self, job: u64) -> Option<io::Result<ExitStatus>> {
        let at = self.jobs.iter().position(|it| it.0 == job)?;
        Some(self.jobs.swap_remove(at).1.wait())
    }

    /// Ends all processes and what they have started.
    pub(super) fn clear(&mut self) {
        for (_, mut child) in self.jobs.drain(..) {
            // It may have ended already; then it waits to be asked how.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
            let _ = child.wait();
        }
    }
}

impl Drop for Workbench {
    fn drop(&mut self) {
        self.clear();
    }
}
