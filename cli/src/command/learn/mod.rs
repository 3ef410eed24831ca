//! `tilewright learn`: exercises in the manner of rustlings. Each is a schedule with a hole; what fills it is up to the
//! learner, as long as the numbers are right and the goals are met.
//!
//! `course.rs` reads what ships, `check.rs` decides, `measure.rs` has what goals are about, `exercise_folder.rs` is the learner's
//! folder.

mod check;
mod course;
mod exercise_folder;
mod kernel;
mod learner;
mod measure;
mod nest;
pub(crate) mod report;
mod show;
mod speed;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use check::{check, start_value};
use course::{Exercise, exercises, find};
use exercise_folder::{ExerciseFolder, FOLDER};
use learner::Learner;
use report::{Checked, Init, Standing};

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::{keys::Keys, shell::Shell},
    usage_error::UsageError,
};

/// Learn by exercises: fill the holes in schedules. Without a verb, watch the current one and check it when it changes
#[derive(Debug, clap::Args)]
pub(crate) struct Learn {
    /// The folder with the exercises, instead of this one or ./tilewright-exercises
    #[arg(long, global = true, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Write the exercises into a new folder
    Init {
        /// The folder
        #[arg(default_value = FOLDER)]
        folder: PathBuf,
    },
    /// List the exercises, and which are solved
    List,
    /// Check the current exercise, one by name, or all
    Check {
        /// The exercise: cpu/03_tile, 03_tile or tile
        name: Option<String>,
        /// Check every exercise; the exit code is 1 unless all are solved
        #[arg(long, conflicts_with = "name")]
        all: bool,
        /// Check the solutions that ship, in place of yours
        #[arg(long)]
        solutions: bool,
        /// Tell how many times as fast a solved exercise is as what was handed out, measured on this machine
        #[arg(long)]
        speed: bool,
    },
    /// Give a hint: the idea first, then the primitive, then nearly the line
    Hint {
        /// The exercise, else the current one
        name: Option<String>,
    },
    /// Show what you changed in an exercise
    Diff {
        /// The exercise, else the current one
        name: Option<String>,
    },
    /// Show our solution of a solved exercise
    Solution {
        /// The exercise, else the one that was solved last
        name: Option<String>,
        /// Even if it is not solved
        #[arg(long)]
        force: bool,
    },
    /// Write an exercise anew; what stood there is kept beside it
    Reset {
        /// The exercise
        name: String,
    },
}

impl Learn {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let all = exercises();
        let learner = || Ok::<_, Diagnostic>(Learner::new(ExerciseFolder::find(self.dir.as_deref())?));
        match &self.verb {
            None => watched(&mut learner()?, &all, shell),
            Some(Verb::Init { folder }) => init(self.dir.as_ref().unwrap_or(folder), &all, shell),
            Some(Verb::List) => learner()?.list(&all, shell),
            Some(Verb::Check { name, all: false, solutions: true, .. }) => {
                let Some(name) = name else {
                    let title = "`--solutions` is for `--all`, or for an exercise by name";
                    return Err(Diagnostic::usage(UsageError::Options, title));
                };
                solutions(std::slice::from_ref(find(&all, name)?), shell)
            }
            Some(Verb::Check { all: true, solutions: true, .. }) => solutions(&all, shell),
            Some(Verb::Check { all: true, speed, .. }) => learner()?.check_all(&all, *speed, shell),
            Some(Verb::Check { name, speed, .. }) => {
                let mut learner = learner()?;
                let Some(it) = learner.named(name.as_deref(), &all, shell)? else {
                    return nothing_left(shell);
                };
                learner.check_one(it, &all, *speed, shell)
            }
            Some(Verb::Hint { name }) => {
                let mut learner = learner()?;
                let Some(it) = learner.named(name.as_deref(), &all, shell)? else {
                    return nothing_left(shell);
                };
                learner.hint(it, shell)
            }
            Some(Verb::Diff { name }) => {
                let mut learner = learner()?;
                let Some(it) = learner.named(name.as_deref(), &all, shell)? else {
                    return nothing_left(shell);
                };
                learner.diff(it, shell)
            }
            Some(Verb::Solution { name, force }) => learner()?.solution(name.as_deref(), *force, &all, shell),
            Some(Verb::Reset { name }) => learner()?.reset(find(&all, name)?, shell),
        }
    }
}

fn watched(learner: &mut Learner, all: &[Exercise], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    if shell.json || !io::stdout().is_terminal() {
        let title = "the exercises are watched on a terminal only";
        return Err(Diagnostic::usage(UsageError::Terminal, title)
            .help("`tilewright learn check` checks the current one once".to_owned()));
    }
    let keys = Keys::new()?;
    let mut wait = |path: &Path, text: &str| watch::poll(keys.as_ref(), path, text);
    watch::watch(learner, all, keys.is_some(), &mut wait, shell)
}

fn init(folder: &Path, all: &[Exercise], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let folder = ExerciseFolder::init(folder, all)?;
    let Some(first) = all.first() else { return Ok(()) };
    let (exercises, first) = (all.iter().map(|it| it.name.as_str()).collect(), folder.path(first));
    shell.report(&Init { ok: True, folder: folder.root(), exercises, first })
}

/// Checks what ships, without a folder.
fn solutions(all: &[Exercise], shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut wrong = vec![];
    for exercise in all {
        shell.progress(&exercise.name);
        let path = PathBuf::from(format!("{}.ron", exercise.name));
        let result = check(exercise, &path, &exercise.solution, shell);
        let start = start_value(exercise, shell);
        shell.done();
        shell.report(&Checked::of(exercise, &result, start))?;
        wrong.extend((!result.is_solved()).then_some(exercise.name.as_str()));
    }
    if let Some(first) = wrong.first() {
        let title = format!("{} of {} solutions do not pass: {first}", wrong.len(), all.len());
        return Err(Diagnostic::failed(UsageError::Unsolved, title));
    }
    let words = match all {
        [one] => format!("the solution of {} passes", one.name),
        all => format!("all {} solutions pass", all.len()),
    };
    shell.report(&Standing::count(None, all.len(), all.len(), words))
}

fn nothing_left(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let words = "all exercises are solved; name one to look at it again".to_owned();
    shell.report(&Standing::next(None, words))
}
