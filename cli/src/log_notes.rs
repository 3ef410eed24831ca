//! What a command tells of a log beside what it prints of it.

use std::path::Path;

use tuner::log::{Damage, Log, LogError, LogLine};

use crate::{escape::visible, term::shell::Shell};

/// What a reader of a log passes over: segments that are not read and torn ends one by one, damaged lines in one line.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    damaged: u64,
    first: Option<String>,
    others: Vec<String>,
    unread: Option<LogError>,
}

/// How many segments are named that are not read, or have torn ends.
const NAMED: usize = 8;

impl Noted {
    /// Of a log that was read as a whole.
    pub(crate) fn of(log: &Log) -> Noted {
        let mut it = Noted::default();
        log.damage.iter().for_each(|damage| it.damage(damage));
        log.torn.iter().for_each(|torn| it.others.push(torn.to_string()));
        it
    }

    /// Takes note of a line that is no record.
    pub(crate) fn line(&mut self, line: &LogLine<'_>) {
        match line {
            LogLine::Record { .. } => {}
            LogLine::Damage(it) => self.damage(it),
            LogLine::Torn(it) => self.others.push(it.to_string()),
        }
    }

    fn damage(&mut self, it: &Damage) {
        if let Some(err) = it.unread() {
            self.others.push(it.to_string());
            self.unread.get_or_insert(err);
        } else {
            self.damaged += 1;
            self.first.get_or_insert_with(|| it.to_string());
        }
    }

    /// Says so. Comes back with why a segment is not read, if there is one.
    pub(crate) fn tell(self, log: &Path, shell: &mut Shell<'_>) -> Option<LogError> {
        let rest = self.others.len().saturating_sub(NAMED);
        self.others.into_iter().take(NAMED).for_each(|it| shell.note(&visible(it)));
        let all = format!("`tilewright log verify {}` tells all", log.display());
        if rest > 0 {
            shell.note(&visible(format!("and {rest} more; {all}")));
        }
        if let Some(first) = self.first {
            let more =
                if self.damaged > 1 { format!(" ({} such lines)", self.damaged) } else { String::new() };
            shell.note(&visible(format!("{first}{more}; {all}")));
        }
        self.unread
    }
}
