//! The folder with a learner's exercises and progress.
//!
//! Whether an exercise is solved is found out by checking it. A file in the folder remembers the result, by the digest of what
//! was checked, so that nothing is checked twice, and how many hints were shown; whoever deletes that file loses nothing else.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tuner::sha256;

use super::course::Exercise;
use crate::{diagnostic::Diagnostic, plan::read, usage_error::UsageError};

/// The folder that `learn init` makes unless told otherwise.
pub(super) const FOLDER: &str = "tilewright-exercises";
/// The file that remembers the progress.
const FILE: &str = ".tilewright-learn.json";
/// The version of the format that this program writes.
const VERSION: u32 = 1;

/// A folder of exercises.
#[derive(Debug)]
pub(super) struct ExerciseFolder {
    root: PathBuf,
    progress: Progress,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Progress {
    format_version: u32,
    #[serde(default)]
    exercises: BTreeMap<String, ExerciseProgress>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct ExerciseProgress {
    /// Of the checked text, the goals and the version of this program.
    #[serde(default)]
    sha256: String,
    #[serde(default)]
    solved: bool,
    /// How many hints were shown.
    #[serde(default)]
    hints: usize,
}

/// Only what all versions of the file have.
#[derive(Deserialize)]
struct VersionHead {
    format_version: u32,
}

impl ExerciseFolder {
    /// The folder that was named; else this one, if it holds exercises, or the usual one in it.
    pub(super) fn find(named: Option<&Path>) -> Result<ExerciseFolder, Diagnostic> {
        let usual = [Path::new("."), Path::new(FOLDER)];
        let roots: Vec<&Path> = named.map_or(usual.to_vec(), |it| vec![it]);
        let Some(root) = roots.iter().find(|it| it.join(FILE).is_file()) else {
            let at = named.map_or("here".to_owned(), |it| format!("in {}", it.display()));
            return Err(Diagnostic::usage(UsageError::NoExercises, format!("there are no exercises {at}"))
                .help("`tilewright learn init` writes them into a new folder".to_owned()));
        };
        Ok(ExerciseFolder { root: root.to_path_buf(), progress: progress(&root.join(FILE))? })
    }

    /// Writes all exercises into a new folder.
    pub(super) fn init(root: &Path, exercises: &[Exercise]) -> Result<ExerciseFolder, Diagnostic> {
        let is_empty = |it: &Path| fs::read_dir(it).is_ok_and(|mut it| it.next().is_none());
        if root.exists() && !is_empty(root) {
            let title = format!("{} is there already, and not an empty folder", root.display());
            return Err(Diagnostic::usage(UsageError::Target, title).help(
                "name another folder; `tilewright learn reset NAME` starts a single exercise anew".to_owned(),
            ));
        }
        let progress = Progress { format_version: VERSION, exercises: BTreeMap::new() };
        let folder = ExerciseFolder { root: root.to_path_buf(), progress };
        for exercise in exercises {
            let path = folder.path(exercise);
            let folder = path.parent().unwrap_or(root);
            fs::create_dir_all(folder).map_err(|err| Diagnostic::io(folder, &err))?;
            write(&path, &exercise.start)?;
        }
        folder.save()?;
        Ok(folder)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, exercise: &Exercise) -> PathBuf {
        let path = self.root.join(format!("{}.ron", exercise.name));
        path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path)
    }

    pub(super) fn text(&self, exercise: &Exercise) -> Result<String, Diagnostic> {
        read(&self.path(exercise))
            .map_err(|err| err.help(format!("`tilewright learn reset {}` writes it anew", exercise.name)))
    }

    /// Whether a text is known to be solved or not.
    pub(super) fn known(&self, exercise: &Exercise, text: &str) -> Option<bool> {
        let entry = self.progress.exercises.get(&exercise.name)?;
        (entry.sha256 == digest(exercise, text)).then_some(entry.solved)
    }

    /// Remembers whether a text is solved.
    pub(super) fn remember(
        &mut self,
        exercise: &Exercise,
        text: &str,
        solved: bool,
    ) -> Result<(), Diagnostic> {
        let entry = self.progress.exercises.entry(exercise.name.clone()).or_default();
        let new = ExerciseProgress { sha256: digest(exercise, text), solved, hints: entry.hints };
        if *entry == new {
            return Ok(());
        }
        *entry = new;
        self.save()
    }

    /// One hint more than last time, as long as there are more.
    pub(super) fn next_hint(&mut self, exercise: &Exercise) -> Result<usize, Diagnostic> {
        let entry = self.progress.exercises.entry(exercise.name.clone()).or_default();
        entry.hints = (entry.hints + 1).min(exercise.lesson.hints.len());
        let shown = entry.hints;
        self.save()?;
        Ok(shown)
    }

    /// Writes an exercise anew. The old text is kept beside it, under the name that is returned.
    pub(super) fn reset(&mut self, exercise: &Exercise) -> Result<Option<PathBuf>, Diagnostic> {
        let path = self.path(exercise);
        let old = fs::read_to_string(&path).ok().filter(|it| *it != exercise.start);
        let kept = old.map(|text| {
            let names =
                (1..).map(|n| path.with_extension(if n == 1 { "old".to_owned() } else { format!("old{n}") }));
            let kept = names.into_iter().find(|it| !it.exists()).expect("the numbers do not end");
            write(&kept, &text).map(|()| kept)
        });
        let kept = kept.transpose()?;
        write(&path, &exercise.start)?;
        self.progress.exercises.remove(&exercise.name);
        self.save()?;
        Ok(kept)
    }

    fn save(&self) -> Result<(), Diagnostic> {
        let text = serde_json::to_string_pretty(&self.progress).map_err(std::io::Error::from)?;
        write(&self.root.join(FILE), &(text + "\n"))
    }
}

/// What the file remembers. A damaged one is worth nothing, and nothing is lost with it.
fn progress(path: &Path) -> Result<Progress, Diagnostic> {
    let text = read(path)?;
    let empty = Progress { format_version: VERSION, exercises: BTreeMap::new() };
    match serde_json::from_str::<VersionHead>(&text) {
        Ok(it) if it.format_version > VERSION => {
            let title = format!(
                "{} is of format {}, and this program knows formats up to {VERSION}",
                path.display(),
                it.format_version
            );
            Err(Diagnostic::usage(UsageError::Progress, title).help(
                "a newer tilewright wrote it: use that one, or delete the file; what is solved is found out again"
                    .to_owned(),
            ))
        }
        Ok(_) => Ok(serde_json::from_str(&text).unwrap_or(empty)),
        Err(_) => Ok(empty),
    }
}

fn digest(exercise: &Exercise, text: &str) -> String {
    sha256(format!("{}\n{:?}\n{text}", env!("CARGO_PKG_VERSION"), exercise.lesson.goals))
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    fs::write(path, text).map_err(|err| Diagnostic::io(path, &err))
}
