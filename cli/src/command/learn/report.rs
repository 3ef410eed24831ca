//! What the verbs of `learn` find.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    check::CheckResult,
    course::{Exercise, Goal, Lesson},
    show,
};
use crate::{
    constant::{False, True},
    diagnostic::{Diagnostic, ErrorReport},
    term::report::Report,
    term::{shell::Shell, wrap::wrapped},
};

/// An exercise that was checked.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "checked")]
pub(crate) struct Checked<'a> {
    /// Whether it is solved.
    ok: bool,
    /// Its name: cpu/03_tile
    exercise: &'a str,
    /// What it is about.
    title: &'a str,
    /// Each of its goals, if the schedule is not refused.
    goals: Vec<GoalReport>,
    /// Why the schedule is refused, or that it computes something else.
    refused: Option<ErrorReport>,
    /// What the first goal measures in the exercise as it was handed out, if it is solved and that is a program.
    start: Option<f64>,
    /// What was learnt, if it is solved.
    learnt: Option<&'a str>,
    #[serde(skip)]
    of: (&'a Exercise, &'a CheckResult),
}

/// A goal of an exercise.
#[derive(Debug, Serialize, JsonSchema)]
struct GoalReport {
    /// What is measured.
    what: String,
    /// The most that it may be.
    at_most: Option<f64>,
    /// The least that it may be.
    at_least: Option<f64>,
    /// What it is, if the program has what is asked about.
    value: Option<f64>,
    /// Whether the goal is met.
    ok: bool,
}

impl<'a> Checked<'a> {
    pub(super) fn of(exercise: &'a Exercise, result: &'a CheckResult, start: Option<f64>) -> Checked<'a> {
        let Lesson { goals, title, learnt, .. } = &exercise.lesson;
        let goals = goals.iter().zip(&result.results).map(|(goal, found)| {
            let Goal { what, at_most, at_least } = goal;
            let (at_most, at_least) = (*at_most, *at_least);
            GoalReport { what: what.words(), at_most, at_least, value: found.value, ok: found.holds }
        });
        Checked {
            ok: result.is_solved(),
            exercise: &exercise.name,
            title,
            goals: goals.collect(),
            refused: result.refused.as_ref().map(Diagnostic::report),
            start,
            learnt: result.is_solved().then_some(learnt),
            of: (exercise, result),
        }
    }
}

impl Report for Checked<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let (exercise, result) = self.of;
        Ok(show::result(exercise, result, self.start, shell)?)
    }
}

/// An exercise in the list of all.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "listed")]
pub(crate) struct Listed<'a> {
    /// Its name: cpu/03_tile
    pub(super) exercise: &'a str,
    /// What it is about.
    pub(super) title: &'a str,
    /// Whether it is solved.
    pub(super) solved: bool,
}

/// An exercise that nobody has touched yet.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "as it was handed out")]
pub(crate) struct AsHandedOut<'a> {
    ok: False,
    /// Its name: cpu/03_tile
    exercise: &'a str,
    /// That it is as it was handed out.
    untouched: True,
}

impl<'a> AsHandedOut<'a> {
    pub(super) fn of(exercise: &'a Exercise) -> AsHandedOut<'a> {
        AsHandedOut { ok: False, exercise: &exercise.name, untouched: True }
    }
}

/// How fast a solved exercise is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "measured")]
pub(crate) struct Speed<'a> {
    /// Its name: cpu/03_tile
    pub(super) exercise: &'a str,
    /// How many times as fast it is as what was handed out, in words.
    pub(super) speed: String,
}

impl Report for Speed<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(wrapped(&self.speed, "  ", "    ", shell.out)?)
    }
}

/// The last line: where the learner stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "the last line")]
pub(crate) struct Standing<'a> {
    ok: True,
    /// The first exercise that is not solved; null where all are.
    next: Option<&'a str>,
    /// How many are solved, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    solved: Option<usize>,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<usize>,
    /// The same in a sentence.
    #[serde(skip)]
    words: String,
}

impl<'a> Standing<'a> {
    pub(super) fn next(next: Option<&'a str>, words: String) -> Standing<'a> {
        Standing { ok: True, next, solved: None, of: None, words }
    }

    pub(super) fn count(next: Option<&'a str>, solved: usize, of: usize, words: String) -> Standing<'a> {
        Standing { ok: True, next, solved: Some(solved), of: Some(of), words }
    }
}

impl Report for Standing<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.say(&self.words)
    }
}

/// The hints of an exercise so far.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "hint")]
pub(crate) struct HintsSoFar<'a> {
    pub(super) ok: True,
    /// The name of the exercise: cpu/03_tile
    pub(super) exercise: &'a str,
    /// Those that were asked for, with the new one.
    pub(super) hints: &'a [String],
    /// How many there are.
    pub(super) of: usize,
    #[serde(skip)]
    pub(super) title: &'a str,
}

impl Report for HintsSoFar<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.say(&format!("{}: {}", self.exercise, self.title))?;
        for (n, hint) in self.hints.iter().enumerate() {
            wrapped(&format!("{}. {hint}", n + 1), "  ", "     ", shell.out)?;
        }
        if self.hints.len() < self.of {
            writeln!(shell.out, "  {} of {}; ask again for more", self.hints.len(), self.of)?;
        }
        Ok(())
    }
}

/// What somebody changed in an exercise.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "diff")]
pub(crate) struct OwnDiff<'a> {
    pub(super) ok: True,
    /// The name of the exercise: cpu/03_tile
    pub(super) exercise: &'a str,
    /// Whether anything is changed.
    pub(super) changed: bool,
    /// The difference; empty where there is none.
    pub(super) diff: String,
}

impl Report for OwnDiff<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if self.changed {
            write!(shell.out, "{}", self.diff)?;
        } else {
            writeln!(shell.out, "{} is as it was handed out", self.exercise)?;
        }
        Ok(())
    }
}

/// Our solution of an exercise.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "solution")]
pub(crate) struct OurSolution<'a> {
    pub(super) ok: True,
    /// The name of the exercise: cpu/03_tile
    pub(super) exercise: &'a str,
    /// The script.
    pub(super) solution: &'a str,
}

impl Report for OurSolution<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(write!(shell.out, "{}", self.solution)?)
    }
}

/// An exercise that was written anew.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "reset")]
pub(crate) struct Reset<'a> {
    pub(super) ok: True,
    /// The name of the exercise: cpu/03_tile
    pub(super) exercise: &'a str,
    /// The file that has what stood there, if that was something else.
    pub(super) kept: Option<PathBuf>,
}

impl Report for Reset<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        writeln!(shell.out, "{} is as it was handed out", self.exercise)?;
        match &self.kept {
            Some(kept) => shell.say(&format!("what stood there is in {}", kept.display())),
            None => Ok(()),
        }
    }
}

/// The exercises that were written.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "init")]
pub(crate) struct Init<'a> {
    pub(super) ok: True,
    /// The folder that they are in.
    pub(super) folder: &'a Path,
    /// Their names, in order.
    pub(super) exercises: Vec<&'a str>,
    /// The file of the first.
    #[serde(skip)]
    pub(super) first: PathBuf,
}

impl Report for Init<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.say(&format!("{} exercises are in {}", self.exercises.len(), self.folder.display()))?;
        shell.say(&format!("begin with {}: fill what `???` asks for", self.first.display()))?;
        shell.say("`tilewright learn` watches it, `tilewright learn hint` helps")
    }
}
