//! Whether a log says only what can be true: checksums, structure, and figures that follow from each other.

use std::{ops::ControlFlow, path::Path, path::PathBuf};

use schedule::Decisions;

use super::{
    Damage, Entry, Finals, LineLocation, LogError, LogLine, Measurement, Origin, Raw, Reason, Run,
    StepResult, Torn, Trial, numbers::Numbers, scan,
};
use crate::{Space, Stats, sha256};

/// What a log holds that was looked at line by line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Verified {
    /// How many segments.
    pub segments: u64,
    /// How many whole records.
    pub records: u64,
    /// How many of them are trials.
    pub trials: u64,
    /// How many are of kinds that this version does not know.
    pub unknown: u64,
    /// How many complaints there were about lines.
    pub damaged: u64,
    /// How many segments are not read, or not to their ends.
    pub unread: u64,
    /// Last lines that do not end, as of runs that were killed or go on. No damage.
    pub torn: Vec<Torn>,
}

/// Looks at every line of a log, and tells what is wrong with it.
pub fn verify(log: &Path, found: &mut dyn FnMut(Damage)) -> Result<Verified, LogError> {
    let mut check = Check { sum: Verified::default(), segment: None, found };
    scan(log, &mut |line| {
        match line {
            LogLine::Record { location, raw } => check.record(location, raw),
            LogLine::Damage(damage) => {
                check.enter(LineLocation { segment: &damage.segment.clone(), line: damage.line });
                check.damaged();
                check.tell(damage);
            }
            LogLine::Torn(torn) => check.sum.torn.push(torn),
        }
        ControlFlow::Continue(())
    })?;
    check.leave();
    Ok(check.sum)
}

struct Check<'a> {
    sum: Verified,
    segment: Option<Segment>,
    found: &'a mut dyn FnMut(Damage),
}

/// What is known of the segment that is read.
struct Segment {
    path: PathBuf,
    head: Option<Run>,
    /// What the script of the head spans, if this build can tell.
    space: Option<Space>,
    seen: Numbers,
    /// The last line looked at.
    line: u64,
    records: u64,
    finished: bool,
    /// Whether lines of it are lost; what is missing may have been there.
    damaged: bool,
}

impl Check<'_> {
    fn tell(&mut self, damage: Damage) {
        match damage.unread() {
            Some(_) => self.sum.unread += 1,
            None => self.sum.damaged += 1,
        }
        (self.found)(damage);
    }

    fn enter(&mut self, location: LineLocation<'_>) -> &mut Segment {
        if self.segment.as_ref().is_none_or(|it| it.path != location.segment) {
            self.leave();
            self.sum.segments += 1;
            self.segment = Some(Segment {
                path: location.segment.to_owned(),
                head: None,
                space: None,
                seen: Numbers::default(),
                line: 0,
                records: 0,
                finished: false,
                damaged: false,
            });
        }
        let segment = self.segment.as_mut().expect("it was made above if there was none");
        segment.line = location.line;
        segment
    }

    fn damaged(&mut self) {
        if let Some(segment) = &mut self.segment {
            segment.damaged = true;
        }
    }

    /// What only the end of a segment shows.
    fn leave(&mut self) {
        let Some(segment) = self.segment.take() else { return };
        let gaps = segment.seen.gaps();
        if !segment.finished || segment.damaged || gaps.is_empty() {
            return;
        }
        let words = gaps.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a} to {b}") });
        let words = words.take(10).collect::<Vec<_>>().join(", ");
        let reason = Reason::Wrong(format!("the run is finished, and there is no trial {words}"));
        self.tell(Damage { segment: segment.path, line: segment.line, reason });
    }

    fn record(&mut self, location: LineLocation<'_>, raw: Raw<'_>) {
        self.sum.records += 1;
        let entry = raw.entry();
        let segment = self.enter(location);
        segment.records += 1;
        let res = match entry {
            Ok(entry) => segment.entry(&entry).map(|()| entry).map_err(Reason::Wrong),
            Err(reason) => Err(Reason::Entry(reason)),
        };
        match res {
            Ok(Entry::Trial(_)) => self.sum.trials += 1,
            Ok(Entry::Unknown) => self.sum.unknown += 1,
            Ok(Entry::Run(_) | Entry::Step(_) | Entry::Finals(_) | Entry::Event(_)) => {}
            Err(reason) => {
                if raw.kind() == "trial" {
                    self.sum.trials += 1;
                }
                self.tell(location.damage(reason));
            }
        }
    }
}

impl Segment {
    fn entry(&mut self, entry: &Entry) -> Result<(), String> {
        if let Entry::Run(head) = entry {
            return self.head(head);
        }
        let run = match entry {
            Entry::Trial(it) => &it.run,
            Entry::Step(it) => &it.run,
            Entry::Finals(it) => &it.run,
            Entry::Event(it) => &it.run,
            Entry::Run(_) | Entry::Unknown => return Ok(()),
        };
        match &self.head {
            Some(head) if head.run != *run => {
                return Err(format!("it is of the run `{run}`, and the segment of `{}`", head.run));
            }
            // That there is no head is told once, or its line is damaged.
            None if self.records == 1 && !self.damaged => {
                self.damaged = true;
                return Err("the segment does not begin with the head of its run".to_owned());
            }
            Some(_) | None => {}
        }
        match entry {
            Entry::Trial(it) => self.trial(it),
            Entry::Step(it) => self.step(it),
            Entry::Finals(it) => self.finals(it),
            Entry::Event(it) => {
                self.finished = it.what.completes().unwrap_or(self.finished);
                Ok(())
            }
            Entry::Run(_) | Entry::Unknown => Ok(()),
        }
    }

    fn head(&mut self, head: &Run) -> Result<(), String> {
        if self.records > 1 {
            return Err("the head of a run stands where none should be".to_owned());
        }
        self.head = Some(head.clone());
        self.space = head.space().ok();
        let id = sha256(&head.workload.program);
        if id != head.workload.id {
            return Err(format!("the program of the workload has SHA-256 {id}, and not the one named"));
        }
        if !(head.workload.flops.is_finite() && head.workload.flops >= 0.0) {
            return Err(format!("the workload has {} operations", head.workload.flops));
        }
        Ok(())
    }

    fn trial(&mut self, trial: &Trial) -> Result<(), String> {
        if !self.seen.insert(trial.n) {
            return Err(format!("there is a trial {} already", trial.n));
        }
        let hashes = [Some(&trial.id), Some(&trial.src), trial.bin.as_ref()];
        if let Some(bad) = hashes.into_iter().flatten().find(|it| !is_hash(it)) {
            return Err(format!("`{bad}` is no SHA-256"));
        }
        let parents: &[u64] = match &trial.origin {
            Origin::Random | Origin::Rule | Origin::Default => &[],
            Origin::Mutation { of } => &[*of],
            Origin::Crossover { of } => of,
        };
        if let Some(parent) = parents.iter().find(|it| **it >= trial.n) {
            return Err(format!("trial {} is made of trial {parent}, which comes later", trial.n));
        }
        self.decisions(&trial.decisions)?;
        match (&trial.result, &trial.error) {
            (Some(result), None) => self.measurement(result),
            (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) => Err("it has a result and an error".to_owned()),
            (None, None) => Err("it has neither a result nor an error".to_owned()),
        }
    }

    /// Whether these are the decisions of a point of the space: a choice for each knob that its steps use, and no other.
    fn decisions(&self, decisions: &Decisions) -> Result<(), String> {
        let Some(head) = &self.head else { return Ok(()) };
        for (knob, choice) in decisions {
            if !head.script.knobs.get(knob).is_some_and(|it| it.contains(choice)) {
                return Err(format!("the script has no knob `{knob}` with the choice {choice}"));
            }
        }
        let Some(space) = &self.space else { return Ok(()) };
        let Some(index) = space.index_of(decisions) else { return Ok(()) };
        let used = space.decisions(index);
        if let Some(knob) = used.keys().find(|it| !decisions.contains_key(*it)) {
            return Err(format!("it has no choice for the knob `{knob}`"));
        }
        if let Some(knob) = decisions.keys().find(|it| !used.contains_key(*it)) {
            return Err(format!("it has a choice for the knob `{knob}`, which decides nothing there"));
        }
        space.admits(index).map_err(|it| space.words(&it))
    }

    fn step(&self, step: &StepResult) -> Result<(), String> {
        match (&step.result, &step.error) {
            (Some(_), Some(_)) => Err("it has a result and an error".to_owned()),
            (Some(result), None) => self.measurement(result),
            (None, _) => Ok(()),
        }
    }

    fn finals(&self, finals: &Finals) -> Result<(), String> {
        for finalist in &finals.finalists {
            if let Some(n) = finalist.n
                && !self.damaged
                && !self.seen.contains(n)
            {
                return Err(format!("trial {n} is a finalist and not in the log"));
            }
            match (&finalist.result, &finalist.error) {
                (Some(result), None) => self.measurement(result)?,
                (Some(_), Some(_)) => return Err("a finalist has a result and an error".to_owned()),
                (None, _) => {}
            }
            for it in [finalist.versus_winner, finalist.versus_baseline].into_iter().flatten() {
                if !(it.low <= it.median && it.median <= it.high) {
                    return Err(format!("{} is not between {} and {}", it.median, it.low, it.high));
                }
            }
        }
        let baseline = finals.baseline.as_ref();
        if let Some((baseline, head)) = baseline.zip(self.head.as_ref())
            && let Some(stats) = Stats::of(&baseline.seconds)
        {
            same(
                "the GFLOPS of the baseline are",
                baseline.gflops,
                head.workload.flops / stats.median / 1e9,
            )?;
        }
        Ok(())
    }

    fn measurement(&self, it: &Measurement) -> Result<(), String> {
        if let Some(bad) = it.seconds.iter().find(|it| !(it.is_finite() && **it > 0.0)) {
            return Err(format!("a sample took {bad} s"));
        }
        let stats = Stats::of(&it.seconds).ok_or_else(|| "there is no sample".to_owned())?;
        same("the median is", it.stats.median, stats.median)?;
        same("the least time is", it.stats.min, stats.min)?;
        same("the greatest time is", it.stats.max, stats.max)?;
        if let Some(head) = &self.head {
            same("the GFLOPS are", it.gflops, head.workload.flops / stats.median / 1e9)?;
        }
        match (it.before.is_ok(), it.after.is_ok()) {
            (true, true) => Ok(()),
            (false, _) => Err("there is a result although the numbers were wrong".to_owned()),
            (true, false) => Err("there is a result although the numbers were wrong after timing".to_owned()),
        }
    }
}

/// Figures that were computed from each other differ by roundings only.
fn same(what: &str, stated: f64, follows: f64) -> Result<(), String> {
    let close = (stated - follows).abs() <= 1e-9 * stated.abs().max(follows.abs());
    if close { Ok(()) } else { Err(format!("{what} {stated}, and {follows} follows from the samples")) }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}
