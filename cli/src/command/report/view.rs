//! A run as the page sees it: what the log says, and what follows from it at once.

use std::cell::OnceCell;

use tuner::{
    Bound, Rate, Stats,
    log::{Event, Finalist, Finals, Measurement, Run, RunLog, StepResult, Trial, TrialError},
};

use super::cost::SearchCost;

/// A run, borrowed from its log.
pub(super) struct View<'a> {
    /// The name of the run.
    pub(super) name: &'a str,
    /// Its head; none if that line is damaged.
    pub(super) head: Option<&'a Run>,
    /// What speeds are told in.
    pub(super) rate: Rate,
    /// Its trials, in the order of their numbers.
    pub(super) trials: Vec<&'a Trial>,
    /// The winner step by step: of several winners, as of a run that was made longer, the last.
    pub(super) steps: Vec<&'a StepResult>,
    /// The last finals.
    pub(super) finals: Option<&'a Finals>,
    pub(super) events: &'a [Event],
    /// What the search cost, once it was asked for.
    pub(super) cost: OnceCell<Option<SearchCost>>,
}

/// What became of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate<'a> {
    /// It has a result.
    Timed(&'a Measurement),
    /// Its result is no result, and why.
    Doubtful(&'a Measurement, &'static str),
    /// It failed.
    Failed(Option<&'a TrialError>),
}

/// The result of a trial, for charts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point<'a> {
    pub(super) trial: &'a Trial,
    /// How fast it is, as [`View::rate`] tells.
    pub(super) speed: f64,
    /// Whether it was left after the screen.
    pub(super) screened: bool,
}

/// A greater speed than any machine has: not a number to draw.
const MAX_SPEED: f64 = 1e13;

fn is_sane(speed: f64) -> bool {
    speed > 0.0 && speed < MAX_SPEED
}

impl<'a> View<'a> {
    /// A run of a log.
    pub(super) fn of((name, it): (&'a str, &'a RunLog)) -> View<'a> {
        let of = it.steps.last().map(|it| it.n);
        View {
            name,
            head: it.head.as_ref(),
            rate: it.head.as_ref().map_or(Rate::Gflops, |it| Rate::of(&it.workload.work())),
            trials: it.trials.values().collect(),
            steps: it.steps.iter().filter(|it| Some(it.n) == of).collect(),
            finals: it.finals.last(),
            events: &it.events,
            cost: OnceCell::new(),
        }
    }

    /// What the search cost; none if no trial has a result. Where the log holds a whole space this takes a second.
    pub(super) fn cost(&self) -> Option<&SearchCost> {
        self.cost.get_or_init(|| SearchCost::of(self)).as_ref()
    }

    /// The unit of speeds.
    pub(super) fn unit(&self) -> &'static str {
        self.rate.unit()
    }

    /// The speed at a time of a call; what the log says in GFLOPS where what is computed is not known.
    fn speed_at(&self, seconds: f64, gflops: f64) -> f64 {
        self.head.map_or(gflops, |it| self.rate.speed(&it.workload.work(), seconds))
    }

    /// GFLOPS at a speed, for the roofline, which is drawn in them.
    pub(super) fn gflops(&self, speed: f64) -> f64 {
        match (self.rate, self.head) {
            (Rate::GigabytesPerSecond, Some(it)) => speed * it.workload.flops / it.workload.bytes,
            (Rate::GigabytesPerSecond | Rate::Gflops, _) => speed,
        }
    }

    /// The speed of a result.
    pub(super) fn speed_of(&self, it: &Measurement) -> f64 {
        self.speed_at(it.stats.median, it.gflops)
    }

    pub(super) fn fate<'t>(&self, trial: &'t Trial) -> Fate<'t> {
        let (Some(it), None) = (&trial.result, &trial.error) else {
            return Fate::Failed(trial.error.as_ref());
        };
        if it.suspicious {
            Fate::Doubtful(it, "faster than the machine can be")
        } else if !(it.before.is_ok() && it.after.is_ok()) {
            Fate::Doubtful(it, "its numbers are wrong, though it is logged as a result")
        } else if !is_sane(self.speed_of(it)) {
            Fate::Doubtful(it, "that speed is not to be believed")
        } else {
            Fate::Timed(it)
        }
    }

    /// The speed of a trial that has a result.
    pub(super) fn speed(&self, trial: &Trial) -> Option<f64> {
        match self.fate(trial) {
            Fate::Timed(it) => Some(self.speed_of(it)),
            Fate::Doubtful(..) | Fate::Failed(_) => None,
        }
    }

    /// The trials with results.
    pub(super) fn points(&self) -> Vec<Point<'a>> {
        let point = |trial: &&'a Trial| match self.fate(trial) {
            Fate::Timed(it) => Some(Point { trial, speed: self.speed_of(it), screened: it.screened }),
            Fate::Doubtful(..) | Fate::Failed(_) => None,
        };
        self.trials.iter().filter_map(point).collect()
    }

    /// The trials without, with their errors where they have one.
    pub(super) fn failed(&self) -> Vec<(&'a Trial, Option<&'a TrialError>)> {
        let failed = |trial: &&'a Trial| match self.fate(trial) {
            Fate::Failed(error) => Some((*trial, error)),
            Fate::Timed(_) | Fate::Doubtful(..) => None,
        };
        self.trials.iter().filter_map(failed).collect()
    }

    pub(super) fn doubtful(&self) -> Vec<(&'a Trial, &'a Measurement, &'static str)> {
        let doubtful = |trial: &&'a Trial| match self.fate(trial) {
            Fate::Doubtful(it, why) => Some((*trial, it, why)),
            Fate::Timed(_) | Fate::Failed(_) => None,
        };
        self.trials.iter().filter_map(doubtful).collect()
    }

    /// The results, the fastest first; of equals the earlier.
    pub(super) fn ranked(&self) -> Vec<Point<'a>> {
        let mut points = self.points();
        points.sort_by(|a, b| b.speed.total_cmp(&a.speed).then(a.trial.n.cmp(&b.trial.n)));
        points
    }

    /// The first of the finals, if it has a result there.
    pub(super) fn champion(&self) -> Option<&'a Finalist> {
        self.finals?.finalists.first().filter(|it| it.result.is_some())
    }

    /// The trial that won: by the finals, else by the search. None where an incumbent won or nothing has a result.
    pub(super) fn winner(&self) -> Option<&'a Trial> {
        match self.champion() {
            Some(it) => self.trial(it.n?),
            None => self.ranked().first().map(|it| it.trial),
        }
    }

    pub(super) fn trial(&self, n: u64) -> Option<&'a Trial> {
        self.trials.iter().find(|it| it.n == n).copied()
    }

    /// What the winner did: in the finals if there were some, else in the search.
    pub(super) fn best(&self) -> Option<&'a Measurement> {
        match self.champion() {
            Some(it) => it.result.as_ref(),
            None => self.ranked().first().and_then(|it| it.trial.result.as_ref()),
        }
    }

    /// The name of the vendor's library and its speed, if it took part.
    pub(super) fn library(&self) -> Option<(&'a str, f64)> {
        let it = self.finals?.baseline.as_ref()?;
        let speed = match self.rate {
            Rate::Gflops => it.gflops,
            Rate::GigabytesPerSecond => self.speed_at(Stats::of(&it.seconds)?.median, it.gflops),
        };
        is_sane(speed).then_some((&*it.name, speed))
    }

    /// What a finalist is called: its trial, or the incumbent by its name.
    pub(super) fn finalist_words(it: &Finalist) -> String {
        match (it.n, &it.name) {
            (Some(n), _) => format!("trial {n}"),
            (None, Some(name)) => name.clone(),
            (None, None) => "the incumbent".to_owned(),
        }
    }

    /// The speed at the least time that the machine allows, and the limit that sets it.
    pub(super) fn roof(&self) -> Option<(f64, Bound)> {
        let head = self.head?;
        let (seconds, bound) = head.roofline.seconds()?;
        let speed = self.rate.speed(&head.workload.work(), seconds);
        is_sane(speed).then_some((speed, bound))
    }

    /// Seconds from the head to the last line, where the times can be read.
    pub(super) fn wall(&self) -> Option<f64> {
        let start = instant(&self.head?.time)?;
        let trials = self.trials.iter().map(|it| &it.time);
        let others = self.events.iter().map(|it| &it.time).chain(self.steps.iter().map(|it| &it.time));
        let all = trials.chain(others).chain(self.finals.iter().map(|it| &it.time));
        let last = all.filter_map(|it| instant(it)).max()?;
        u32::try_from(last.checked_sub(start)?).ok().map(f64::from)
    }
}

/// Seconds of a time like `2026-11-21T10:00:00Z`, from a day far back; None for anything else.
fn instant(text: &str) -> Option<i64> {
    let number = |at: std::ops::Range<usize>| {
        text.get(at).filter(|it| it.bytes().all(|it| it.is_ascii_digit()))?.parse::<i64>().ok()
    };
    let signs = [(4, '-'), (7, '-'), (10, 'T'), (13, ':'), (16, ':')];
    if !text.ends_with('Z') || signs.iter().any(|(at, it)| text[..].chars().nth(*at) != Some(*it)) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    // Years begin in March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day;
    Some(((days * 24 + number(11..13)?) * 60 + number(14..16)?) * 60 + number(17..19)?)
}

#[cfg(test)]
mod tests {
    use super::instant;

    #[test]
    fn times_are_read() {
        let gap = |a: &str, b: &str| Some(instant(b)? - instant(a)?);
        assert_eq!(gap("2026-11-21T19:13:00Z", "2026-11-21T19:19:05Z"), Some(365));
        assert_eq!(gap("2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z"), Some(2 * 86_400));
        assert_eq!(gap("2026-12-31T23:59:59Z", "2027-01-01T00:00:00.250Z"), Some(1));
        for text in
            ["", "yesterday", "2026-11-21 19:13:00Z", "2026-11-21T19:13:00+01:00", "é026-11-21T19:13:00Z"]
        {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
