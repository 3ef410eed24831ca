//! `--watch`: a command again whenever a file changes that it reads.
//!
//! Each run is a process of its own, with the same arguments but `--watch`: whatever a kernel breaks, the next change finds
//! somebody who watches.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use schedule::script::Script;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{
    diagnostic::Diagnostic,
    plan::read,
    script_text::ScriptText,
    source::workload_file,
    term::shell::{Shell, Style},
    text_file,
};

/// How often files, keys and processes are looked at.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// Files, and what was in them.
pub(super) struct Files {
    seen: Vec<(PathBuf, Option<String>)>,
    /// A file that says something else, and what it said at the last look.
    fresh: Option<(usize, String)>,
}

impl Files {
    /// Files as they were read.
    pub(super) fn new(seen: Vec<(PathBuf, Option<String>)>) -> Files {
        Files { seen, fresh: None }
    }

    /// What a user named, and the workload of each script among it.
    pub(super) fn named(paths: &[&Path]) -> Files {
        let mut all: Vec<PathBuf> = vec![];
        for path in paths {
            all.push((*path).to_owned());
            let Ok(text) = text_file::read(path) else { continue };
            let text = match ScriptText::expand(path, &text) {
                Ok(it) => it,
                // What is wrong may be in a library, and is mended there.
                Err(err) => {
                    let named = err.spots().map(|it| PathBuf::from(it.source));
                    all.extend(named.filter(|it| it.is_file() && it != *path));
                    continue;
                }
            };
            all.extend(text.libraries().filter(|it| it.is_file()).map(Path::to_owned));
            let script = Script::read(text.text()).ok();
            all.extend(script.and_then(|it| workload_file(path, &it.0.workload.value)));
        }
        Files::new(all.into_iter().map(|it| (it.clone(), text_file::read(&it).ok())).collect())
    }

    /// A file that says something else than it did. Two looks in a row have to find the same: an editor may take a file away for
    /// a moment, or write it in parts.
    pub(super) fn changed(&mut self) -> Option<&Path> {
        let found = self.seen.iter().enumerate().find_map(|(n, (path, old))| {
            let text = text_file::read(path).ok()?;
            (old.as_ref() != Some(&text)).then_some((n, text))
        });
        let settled = found.is_some() && found == self.fresh;
        self.fresh = found;
        let (n, _) = self.fresh.as_ref().filter(|_| settled)?;
        Some(&self.seen[*n].0)
    }

    /// Their names, as in `a.ron and b.ron`.
    fn words(&self) -> String {
        let names: Vec<String> = self.seen.iter().map(|it| it.0.display().to_string()).collect();
        names.join(" and ")
    }
}

/// Runs the command of this process again and again, until it is interrupted. `named` are the files that the user named.
pub(super) fn watch(named: &[&Path], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    // What is not there is a mistake, and nothing to wait for.
    named.iter().try_for_each(|it| read(it).map(drop))?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let is_stopped = || stop.load(Ordering::Relaxed);
    let exe = env::current_exe()?;
    let arguments = once(env::args_os().skip(1));
    loop {
        // Looked at before the run, so that what changes meanwhile is not missed.
        let mut files = Files::named(named);
        shell.out.flush()?;
        let child = Command::new(&exe).args(&arguments).spawn().map_err(|err| Diagnostic::io(&exe, &err))?;
        end(child, &is_stopped)?;
        if !is_stopped() {
            shell.note(&format!("waiting for {} to change; Ctrl-C ends", files.words()));
        }
        let changed = loop {
            if is_stopped() {
                return Ok(());
            }
            if let Some(it) = files.changed() {
                break it.display().to_string();
            }
            thread::sleep(POLL);
        };
        if !shell.json {
            let line = format!("── {changed} changed {}", "─".repeat(24));
            let line = shell.paint(Style::Strong, &line);
            writeln!(shell.out, "\n{line}")?;
        }
    }
}

/// Waits for the end of a run; an interrupt ends it.
fn end(mut child: Child, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
    while child.try_wait()?.is_none() {
        if is_stopped() {
            // It may have ended meanwhile, or have been interrupted by the terminal.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
            child.wait()?;
            return Ok(());
        }
        thread::sleep(POLL / 5);
    }
    Ok(())
}

/// The arguments of a single run.
fn once(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_option = true;
    arguments
        .filter(|it| {
            is_option &= it != "--";
            !(is_option && it == "--watch")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_run_is_the_same_command_without_watching() {
        let of = |it: &[&str]| once(it.iter().map(OsString::from));
        assert_eq!(of(&["check", "--watch", "a.ron"]), ["check", "a.ron"]);
        assert_eq!(of(&["check", "--watch", "--", "--watch"]), ["check", "--", "--watch"]);
    }

    #[test]
    fn a_file_has_changed_once_it_says_the_same_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ron");
        fs::write(&path, "old").unwrap();
        let mut files = Files::named(&[&path]);
        assert_eq!(files.changed(), None);
        fs::remove_file(&path).unwrap();
        assert_eq!(files.changed(), None, "it may come back");
        fs::write(&path, "").unwrap();
        assert_eq!(files.changed(), None, "it may be half written");
        fs::write(&path, "new").unwrap();
        assert_eq!(files.changed(), None, "it was something else a moment ago");
        assert_eq!(files.changed(), Some(path.as_path()));
    }

    #[test]
    fn a_library_that_is_broken_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.ron"), "schedule(use: [\"./l.ron\"], workload: \"matmul\", steps: [])").unwrap();
        fs::write(path("l.ron"), "library(procedures: {\"p\": ").unwrap();
        let mut files = Files::named(&[&path("a.ron")]);
        fs::write(path("l.ron"), "library(procedures: {})").unwrap();
        assert_eq!(files.changed(), None);
        assert_eq!(files.changed(), Some(path("l.ron").as_path()));
    }

    #[test]
    fn the_workload_of_a_script_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.ron"), "schedule(workload: \"./w.tw\", steps: [])").unwrap();
        fs::write(path("b.ron"), "schedule(workload: \"matmul\", steps: [])").unwrap();
        fs::write(path("c.ron"), "schedule(").unwrap();
        let of = |name: &str| {
            let files = Files::named(&[&path(name)]);
            files.seen.iter().map(|it| it.0.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("a.ron"), ["a.ron", "w.tw"]);
        assert_eq!(of("b.ron"), ["b.ron"]);
        assert_eq!(of("c.ron"), ["c.ron"]);
    }
}
