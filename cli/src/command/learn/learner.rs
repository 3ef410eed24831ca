//! Somebody at work on the exercises: what each verb does with the folder.

use super::{
    check::{check, start_value},
    course::{Exercise, find},
    exercise_folder::ExerciseFolder,
    report::{AsHandedOut, Checked, HintsSoFar, Listed, OurSolution, OwnDiff, Reset, Speed, Standing},
    speed,
};
use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::{shell::Shell, table::Table},
    usage_error::UsageError,
};

/// Somebody's exercises.
pub(super) struct Learner {
    pub(super) folder: ExerciseFolder,
}

impl Learner {
    pub(super) fn new(folder: ExerciseFolder) -> Learner {
        Learner { folder }
    }

    /// Whether the text of an exercise is solved, checked only if that is not known.
    fn is_solved(&mut self, exercise: &Exercise, shell: &mut Shell<'_>) -> Result<bool, Diagnostic> {
        let text = self.folder.text(exercise)?;
        if let Some(known) = self.folder.known(exercise, &text) {
            return Ok(known);
        }
        // What was not touched is not solved: a test holds the exercises to that.
        let solved = text != exercise.start && {
            shell.progress(&exercise.name);
            let solved = check(exercise, &self.folder.path(exercise), &text, shell).is_solved();
            shell.done();
            solved
        };
        self.folder.remember(exercise, &text, solved)?;
        Ok(solved)
    }

    /// The first exercise that is not solved.
    pub(super) fn next<'a>(
        &mut self,
        all: &'a [Exercise],
        shell: &mut Shell<'_>,
    ) -> Result<Option<&'a Exercise>, Diagnostic> {
        Ok(self.next_from(0, all, shell)?.map(|it| &all[it]))
    }

    /// The first exercise that is not solved, of those from one on and then of those before it.
    pub(super) fn next_from(
        &mut self,
        from: usize,
        all: &[Exercise],
        shell: &mut Shell<'_>,
    ) -> Result<Option<usize>, Diagnostic> {
        for at in (from..all.len()).chain(0..from) {
            if !self.is_solved(&all[at], shell)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The exercise of a name, else the current one.
    pub(super) fn named<'a>(
        &mut self,
        name: Option<&str>,
        all: &'a [Exercise],
        shell: &mut Shell<'_>,
    ) -> Result<Option<&'a Exercise>, Diagnostic> {
        match name {
            Some(name) => find(all, name).map(Some),
            None => self.next(all, shell),
        }
    }

    /// How many are known to be solved.
    pub(super) fn solved(&self, all: &[Exercise]) -> Result<usize, Diagnostic> {
        let mut count = 0;
        for it in all {
            count += usize::from(self.folder.known(it, &self.folder.text(it)?) == Some(true));
        }
        Ok(count)
    }

    /// Checks a text, tells, and remembers.
    pub(super) fn check_and_tell(
        &mut self,
        exercise: &Exercise,
        text: &str,
        shell: &mut Shell<'_>,
    ) -> Result<bool, Diagnostic> {
        shell.progress(&exercise.name);
        let result = check(exercise, &self.folder.path(exercise), text, shell);
        let start = if result.is_solved() { start_value(exercise, shell) } else { None };
        shell.done();
        shell.report(&Checked::of(exercise, &result, start))?;
        self.folder.remember(exercise, text, result.is_solved())?;
        Ok(result.is_solved())
    }

    pub(super) fn check_one(
        &mut self,
        exercise: &Exercise,
        all: &[Exercise],
        speed: bool,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let text = self.folder.text(exercise)?;
        if !self.check_and_tell(exercise, &text, shell)? {
            let title = format!("{} is not solved", exercise.name);
            return Err(Diagnostic::failed(UsageError::Unsolved, title)
                .help(format!("`tilewright learn hint {}`", exercise.name)));
        }
        if speed {
            tell_speed(exercise, &text, shell)?;
        }
        let next = self.next(all, shell)?.map(|it| it.name.as_str());
        let words = format!("next: {}", next.unwrap_or("nothing, all are solved"));
        shell.report(&Standing::next(next, words))
    }

    /// Checks all anew, whatever is remembered.
    pub(super) fn check_all(
        &mut self,
        all: &[Exercise],
        speed: bool,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let mut open = vec![];
        for exercise in all {
            let text = self.folder.text(exercise)?;
            if text == exercise.start {
                shell.line(&AsHandedOut::of(exercise))?;
                self.folder.remember(exercise, &text, false)?;
                open.push(exercise.name.as_str());
            } else if !self.check_and_tell(exercise, &text, shell)? {
                open.push(exercise.name.as_str());
            } else if speed {
                tell_speed(exercise, &text, shell)?;
            }
        }
        let solved = all.len() - open.len();
        let Some(next) = open.first() else {
            let words = format!("all {} exercises are solved", all.len());
            return shell.report(&Standing::count(None, solved, all.len(), words));
        };
        let title = format!("{solved} of {} exercises are solved; the next one is {next}", all.len());
        Err(Diagnostic::failed(UsageError::Unsolved, title).help(format!("`tilewright learn hint {next}`")))
    }

    pub(super) fn list(&mut self, all: &[Exercise], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut table = Table::new(["", "exercise", "title"]);
        let (mut solved, mut next) = (0, None);
        for it in all {
            let done = self.is_solved(it, shell)?;
            solved += usize::from(done);
            if !done && next.is_none() {
                next = Some(it.name.as_str());
            }
            shell.line(&Listed { exercise: &it.name, title: &it.lesson.title, solved: done })?;
            let mark = match (done, next == Some(it.name.as_str())) {
                (true, _) => "✓",
                (false, true) => "→",
                (false, false) => "·",
            };
            table.row([mark, &it.name, &it.lesson.title]);
        }
        if !shell.json {
            table.print(shell.out)?;
            writeln!(shell.out)?;
        }
        let words = format!("{solved} of {} solved", all.len());
        shell.report(&Standing::count(next, solved, all.len(), words))
    }

    pub(super) fn hint(&mut self, exercise: &Exercise, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let shown = self.folder.next_hint(exercise)?;
        let (hints, title) = (&exercise.lesson.hints, &exercise.lesson.title);
        let of = hints.len();
        shell.report(&HintsSoFar { ok: True, exercise: &exercise.name, hints: &hints[..shown], of, title })
    }

    pub(super) fn diff(&self, exercise: &Exercise, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let text = self.folder.text(exercise)?;
        let changed = text != exercise.start;
        let diff = if changed { schedule::diff_text(&exercise.start, &text, 2) } else { String::new() };
        shell.report(&OwnDiff { ok: True, exercise: &exercise.name, changed, diff })
    }

    pub(super) fn solution(
        &mut self,
        name: Option<&str>,
        force: bool,
        all: &[Exercise],
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let exercise = if let Some(name) = name {
            find(all, name)?
        } else {
            // The one before the first that is not solved.
            let next = self.next(all, shell)?.map(|it| it.name.clone());
            let done = all.iter().take_while(|it| Some(&it.name) != next.as_ref());
            done.last().ok_or_else(|| {
                Diagnostic::failed(UsageError::Unsolved, "nothing is solved yet")
                    .help("name an exercise, and add `--force`".to_owned())
            })?
        };
        if !force && !self.is_solved(exercise, shell)? {
            let title = format!("{} is not solved yet", exercise.name);
            let help =
                format!("`tilewright learn hint {}` helps; `--force` shows it all the same", exercise.name);
            return Err(Diagnostic::failed(UsageError::Unsolved, title).help(help));
        }
        shell.report(&OurSolution { ok: True, exercise: &exercise.name, solution: &exercise.solution })
    }

    pub(super) fn reset(&mut self, exercise: &Exercise, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let kept = self.folder.reset(exercise)?;
        shell.report(&Reset { ok: True, exercise: &exercise.name, kept })
    }
}

fn tell_speed(exercise: &Exercise, text: &str, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    // A machine that is not there is no reason to fail: the exercise is solved.
    let words =
        speed::speed(exercise, text, shell).unwrap_or_else(|err| format!("no speed-up: {}", err.message()));
    shell.report(&Speed { exercise: &exercise.name, speed: words })
}
