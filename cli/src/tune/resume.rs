//! `tilewright resume`.

use std::path::PathBuf;

use schedule::{script::Script, workload::Param};
use tuner::{
    Space,
    build::parse_target_word,
    log::{Entry, Event, Happening, RunLog, Writer},
    protocol::ProblemText,
};

use super::{
    now,
    start::{Start, Workers, log_error},
};
use crate::{report::Report, shell::Shell};

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
    workers: Workers,
}

impl Resume {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Report> {
        let mut log = self.pick()?;
        if let Some(trials) = self.trials {
            log.head.plan.trials = trials;
            // More trials make other finals.
            if trials > log.trials.len() as u64 {
                log.finals.clear();
            }
        }
        let name = log.head.run.clone();
        let damaged = |what: String| Report::failed(format!("run {name}: {what}"));
        let target = parse_target_word(&log.head.target)
            .ok_or_else(|| damaged(format!("there is no target `{}`", log.head.target)))?;
        let workload = &log.head.workload;
        let text = ProblemText {
            program: workload.program.clone(),
            dims: workload.dims.clone(),
            seed: log.head.seed,
            target: log.head.target.clone(),
        };
        let problem = text.problem().map_err(|err| damaged(err.to_string()))?;
        let space = space_of(&log).map_err(damaged)?;
        shell.progress("starting workers");
        let pool = self.workers.start(&target)?;
        let (then, here) = (&log.head.machine, pool.machine());
        if let Some(here) = here.filter(|it| (&it.name, &it.arch) != (&then.name, &then.arch)) {
            let title = format!("the run was on {} ({}), and this is {}", then.name, then.arch, here.name);
            let help = "results of different machines do not mix: start a run of its own".to_owned();
            return Err(Report::failed(title).help(help));
        }
        let segment = tuner::log::segment_of(&self.log, &name);
        let (mut writer, recovered) = Writer::reopen(&segment).map_err(|err| log_error(&segment, &err))?;
        if recovered.cut > 0 {
            shell.note(&format!("{} bytes of a line that was never finished were cut off", recovered.cut));
        }
        let detail = format!("after {} trials", log.trials.len());
        let event = Event {
            run: name,
            what: Happening::Resumed,
            detail,
            rejected: indexmap::IndexMap::new(),
            time: now(),
            other: indexmap::IndexMap::new(),
        };
        writer.append(&Entry::Event(event)).map_err(|err| log_error(&segment, &err))?;
        Start { problem, space, folder: self.log.clone(), writer, log, pool }.run(shell)
    }

    /// The run to go on with.
    fn pick(&self) -> Result<RunLog, Report> {
        let all = tuner::log::read(&self.log).map_err(|err| log_error(&self.log, &err))?;
        let names: Vec<_> = all.runs.keys().cloned().collect();
        let is_open = |it: &&RunLog| it.events.last().is_none_or(|it| it.what != Happening::Finished);
        let found = match &self.run {
            Some(name) => all.runs.get(name),
            None => all.runs.values().rev().find(is_open).or(all.runs.values().next_back()),
        };
        found.cloned().ok_or_else(|| {
            let title = match &self.run {
                Some(name) => format!("{} has no run `{name}`", self.log.display()),
                None => format!("{} has no run", self.log.display()),
            };
            Report::usage(title).help((!names.is_empty()).then(|| format!("there is {}", names.join(", "))))
        })
    }
}

/// The space of a run as it was: that of its script, with the choices that its head names.
pub(crate) fn space_of(log: &RunLog) -> Result<Space, String> {
    let script = Script::parse(&log.head.script.text).map_err(|err| err.to_string())?;
    let params = log.head.script.params.iter();
    let params = params.map(|(name, it)| {
        let value: Param = serde_json::from_value(it.clone()).map_err(|err| format!("`{name}`: {err}"))?;
        Ok((name.clone(), value))
    });
    let params = params.collect::<Result<_, String>>()?;
    let space = Space::of(&script, &params).map_err(|err| err.to_string())?;
    space.with_choices(&log.head.script.knobs).map_err(|err| err.to_string())
}
