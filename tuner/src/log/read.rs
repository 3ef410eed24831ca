//! A log as a whole, in memory.

use std::{collections::BTreeMap, ops::ControlFlow, path::Path, path::PathBuf};

use indexmap::IndexMap;

use super::{
    Damage, Entry, Event, Finals, LineLocation, LogError, LogLine, Raw, Reason, Run, StepResult, Torn, Trial,
    names::segment_name, scan,
};

/// A log as read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Log {
    /// Its runs by name, in the order of their segments.
    pub runs: IndexMap<String, RunLog>,
    /// Lines that are not what was written. None of them costs another record.
    pub damage: Vec<Damage>,
    /// Last lines that do not end, as of runs that were killed.
    pub torn: Vec<Torn>,
    /// How many records of kinds that this version does not know.
    pub unknown: u64,
}

/// What is known of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunLog {
    /// The file that it was found in first.
    pub segment: PathBuf,
    /// Its head. None if that line is damaged.
    pub head: Option<Run>,
    /// Its trials by number. Of two with one number, as in two copies of a segment, the first counts.
    pub trials: BTreeMap<u64, Trial>,
    /// The winner step by step, in the order of the file.
    pub steps: Vec<StepResult>,
    /// The finals, in the order of the file.
    pub finals: Vec<Finals>,
    /// What happened, in the order of the file.
    pub events: Vec<Event>,
}

/// Reads a log, a folder or one segment, compressed or not.
///
/// # Errors
/// Where there is no log, or the one segment that was asked for cannot be read. Damage is no error: the rest of the log is
/// there.
pub fn read(path: &Path) -> Result<Log, LogError> {
    let mut log = Log::default();
    scan(path, &mut |line| {
        match line {
            LogLine::Record { location, raw } => log.record(location, raw),
            LogLine::Damage(damage) => log.damage.push(damage),
            LogLine::Torn(torn) => log.torn.push(torn),
        }
        ControlFlow::Continue(())
    })?;
    Ok(log)
}

impl Log {
    /// The error of whoever looks for a run and does not find it: where its segment is not read, or no segment is, that is
    /// why.
    pub fn unread(&self, run: Option<&str>) -> Option<LogError> {
        let name = run.and_then(|it| segment_name(it).ok());
        let is_of_run = |it: &&Damage| {
            let file = it.segment.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            self.runs.is_empty()
                || name.as_ref().is_some_and(|name| file.strip_suffix(".gz").unwrap_or(file) == name)
        };
        self.damage.iter().filter(is_of_run).find_map(Damage::unread)
    }

    fn record(&mut self, location: LineLocation<'_>, raw: Raw<'_>) {
        match raw.entry() {
            Ok(Entry::Run(head)) => {
                let run = self.run(&head.run, location);
                run.head.get_or_insert(head);
            }
            Ok(Entry::Trial(trial)) => {
                let run = self.run(&trial.run, location);
                run.trials.entry(trial.n).or_insert(trial);
            }
            Ok(Entry::Step(step)) => push(&mut self.run(&step.run, location).steps, step),
            Ok(Entry::Finals(finals)) => push(&mut self.run(&finals.run, location).finals, finals),
            Ok(Entry::Event(event)) => push(&mut self.run(&event.run, location).events, event),
            Ok(Entry::Unknown) => self.unknown += 1,
            Err(reason) => self.damage.push(location.damage(Reason::Entry(reason))),
        }
    }

    fn run(&mut self, name: &str, location: LineLocation<'_>) -> &mut RunLog {
        self.runs.entry(name.to_owned()).or_insert_with(|| RunLog::empty(location.segment))
    }
}

/// Adds an entry unless it is there already, as where a log has two copies of a segment.
fn push<T: PartialEq>(entries: &mut Vec<T>, entry: T) {
    if !entries.contains(&entry) {
        entries.push(entry);
    }
}

impl RunLog {
    /// Of a segment of which nothing is known yet.
    pub fn empty(segment: &Path) -> RunLog {
        RunLog {
            segment: segment.to_owned(),
            head: None,
            trials: BTreeMap::new(),
            steps: vec![],
            finals: vec![],
            events: vec![],
        }
    }

    /// The head of the run.
    ///
    /// # Errors
    /// [`LogError::NoHead`] where it is damaged.
    pub fn head(&self) -> Result<&Run, LogError> {
        self.head.as_ref().ok_or_else(|| LogError::NoHead(self.segment.clone()))
    }
}
