//! `tilewright resume`.

use std::path::PathBuf;

use tuner::{
    log::{Entry, Event, Happening, Log, Run, RunLog, Writer},
    pool::Pool,
    replay::HeadError,
};

use super::ended;
use crate::{
    clock::now, diagnostic::Diagnostic, log_notes::Noted, options::workers::WorkerArgs, term::shell::Shell,
    tuning::Tuner, usage_error::UsageError,
};

/// Go on with a run that was stopped: no trial is repeated, and the stream of candidates is the same
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The folder of the log
    log: PathBuf,
    /// Which run, if the folder has several; by default the latest that is not finished
    #[arg(long)]
    run: Option<String>,
    /// How many trials there are to be in all, instead of what was asked for then
    #[arg(long)]
    trials: Option<u64>,
    #[command(flatten)]
    workers: WorkerArgs,
}

impl Resume {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let (name, segment) = self.pick()?;
        // From here on the segment is ours, so what it holds is read after this.
        let (mut writer, recovered) =
            Writer::reopen(&segment, &now()).map_err(|err| Diagnostic::log(&err))?;
        if recovered.cut > 0 {
            shell.note(&format!("{} bytes of a line that was never finished were cut off", recovered.cut));
        }
        let mut read = self.read()?;
        Noted::of(&read).tell(&self.log, shell);
        let log = read.runs.swap_remove(&name);
        let mut log = log.ok_or_else(|| Diagnostic::no_run(&read, &self.log, Some(&name)))?;
        let mut head = log.head().map_err(|err| Diagnostic::log(&err))?.clone();
        if let Some(trials) = self.trials {
            head.plan.trials = trials;
            // More trials make other finals.
            if trials > log.trials.len() as u64 {
                log.finals.clear();
            }
        }
        let damaged = |err: HeadError| Diagnostic::failed(&err, format!("run {name}: {err}"));
        let problem = head.problem().map_err(damaged)?;
        let space = head.space().map_err(damaged)?;
        shell.progress("starting workers");
        let pool = self.workers.workers().start(&problem.target)?;
        same_machine(&head, &pool)?;
        let detail = format!("after {} trials", log.trials.len());
        let event = Event {
            device: None,
            run: name,
            what: Happening::Resumed,
            detail,
            rejected: indexmap::IndexMap::new(),
            time: now(),
            other: indexmap::IndexMap::new(),
        };
        writer.append(&Entry::Event(event)).map_err(|err| Diagnostic::log(&err))?;
        ended(Tuner { problem, space, head, writer, log, pool }, &self.log, shell)
    }

    fn read(&self) -> Result<Log, Diagnostic> {
        tuner::log::read(&self.log).map_err(|err| Diagnostic::log(&err))
    }

    /// The run to go on with: its name and its segment.
    fn pick(&self) -> Result<(String, PathBuf), Diagnostic> {
        let log = self.read()?;
        let runs = &log.runs;
        let is_finished =
            |it: &RunLog| it.events.iter().rev().find_map(|it| it.what.completes()) == Some(true);
        // Where one has lost its head another may go on.
        let whole = || runs.iter().rev().filter(|it| it.1.head.is_some());
        let found = match &self.run {
            Some(name) => runs.get_key_value(name),
            None => whole().find(|it| !is_finished(it.1)).or(whole().next()).or(runs.iter().next_back()),
        };
        found
            .map(|(name, it)| (name.clone(), it.segment.clone()))
            .ok_or_else(|| Diagnostic::no_run(&log, &self.log, self.run.as_deref()))
    }
}

/// Refuses to mix the results of two machines.
fn same_machine(head: &Run, pool: &Pool) -> Result<(), Diagnostic> {
    let then = &head.machine;
    match pool.machine() {
        Some(here) if (&here.name, &here.arch) != (&then.name, &then.arch) => {
            let title = format!("the run was on {} ({}), and this is {}", then.name, then.arch, here.name);
            let help = "results of different machines do not mix: start a run of its own".to_owned();
            Err(Diagnostic::failed(UsageError::Machine, title).help(help))
        }
        Some(_) | None => Ok(()),
    }
}
