//! Courses as they ship: exercises, hints, goals; the text of an exercise and its solution out of one file.

use indexmap::IndexMap;
use schedule::{
    ron_text::{self, Unique},
    workload::Param,
};
use serde::Deserialize;

use super::measure::Metric;
use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// An exercise: a schedule with a hole, and what the hole is for.
#[derive(Debug)]
pub(super) struct Exercise {
    /// `cpu/03_tile`: its course and its file.
    pub(super) name: String,
    /// The schedule as it is handed out.
    pub(super) start: String,
    /// The schedule with our solution.
    pub(super) solution: String,
    pub(super) lesson: Lesson,
}

/// What an exercise teaches, and when it is solved.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename = "exercise")]
pub(super) struct Lesson {
    pub(super) title: String,
    /// From the idea to nearly the line.
    pub(super) hints: Vec<String>,
    /// What whoever solved it knows now.
    pub(super) learnt: String,
    /// The sizes at which the virtual GPU runs it.
    check: IndexMap<String, i64>,
    /// All have to hold; the first one is what the exercise is about.
    pub(super) goals: Vec<Goal>,
}

/// A bound of something measured. Any schedule within it will do.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename = "goal")]
pub(super) struct Goal {
    pub(super) what: Metric,
    #[serde(default)]
    pub(super) at_most: Option<f64>,
    #[serde(default)]
    pub(super) at_least: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "course")]
struct Raw {
    #[expect(dead_code, reason = "for whoever reads the file")]
    about: String,
    exercises: Unique<String, Lesson>,
}

impl Goal {
    pub(super) fn holds(&self, value: f64) -> bool {
        self.at_most.is_none_or(|it| value <= it) && self.at_least.is_none_or(|it| value >= it)
    }

    /// `at most 32,768`.
    pub(super) fn words(&self) -> String {
        let most = self.at_most.map(|it| format!("at most {}", super::show::number(it)));
        let least = self.at_least.map(|it| format!("at least {}", super::show::number(it)));
        [least, most].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

impl Lesson {
    /// The parameters that make a script small enough to run on the virtual GPU.
    pub(super) fn check(&self) -> Vec<(String, Param)> {
        self.check.iter().map(|(name, size)| (name.clone(), Param::Int(*size))).collect()
    }
}

/// Every exercise of every course, in the order in which they are learnt.
pub(super) fn exercises() -> Vec<Exercise> {
    workloads::courses().iter().flat_map(exercises_of).collect()
}

fn exercises_of(course: &workloads::Course) -> Vec<Exercise> {
    let raw: Raw = ron_text::parse(course.text).expect("a test reads every course");
    let Unique(mut lessons) = raw.exercises;
    let exercise = |shipped: &workloads::Shipped| {
        let lesson = lessons.shift_remove(shipped.name).expect("a test finds a lesson for every exercise");
        let (start, solution) = parts(shipped.text);
        Exercise { name: format!("{}/{}", course.name, shipped.name), start, solution, lesson }
    };
    let out = course.exercises.iter().map(exercise).collect();
    assert!(lessons.is_empty(), "a test finds an exercise for every lesson");
    out
}

/// The exercise and the solution of a shipped file.
fn parts(text: &str) -> (String, String) {
    let (mut start, mut solution) = (String::new(), String::new());
    for line in text.lines() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let line = |it: &str| format!("{indent}{it}\n");
        if let Some(rest) = rest.strip_prefix("//+ ") {
            solution += &line(rest);
        } else if let Some(rest) = rest.strip_prefix("//- ") {
            start += &line(rest);
        } else if rest.starts_with("// ???") {
            start += &line(rest);
        } else {
            start += &line(rest);
            solution += &line(rest);
        }
    }
    (start, solution)
}

/// The exercise that a user names: `cpu/03_tile`, `cpu/03`, `03_tile` or `tile`.
pub(super) fn find<'a>(all: &'a [Exercise], word: &str) -> Result<&'a Exercise, Diagnostic> {
    let word = word.strip_suffix(".ron").unwrap_or(word);
    let short = |it: &'a Exercise| it.name.split_once('/').map_or("", |it| it.1);
    let bare = |it: &'a Exercise| short(it).trim_start_matches(|it: char| it.is_ascii_digit() || it == '_');
    let numbered = format!("{word}_");
    let is_it = |it: &&'a Exercise| {
        let is_number = it.name.starts_with(&numbered) || short(it).starts_with(&numbered);
        it.name == word
            || short(it) == word
            || bare(it) == word
            || (is_number && word.ends_with(|it: char| it.is_ascii_digit()))
    };
    let found: Vec<_> = all.iter().filter(is_it).collect();
    let title = match found.as_slice() {
        [one] => return Ok(one),
        [] => format!("there is no exercise `{word}`"),
        [..] => format!("there are {} exercises `{word}`", found.len()),
    };
    let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
    let near = || schedule::nearest(word, all.iter().flat_map(|it| [it.name.as_str(), short(it), bare(it)]));
    let help = match (names.is_empty(), near()) {
        (false, _) => format!("say which: {}", names.join(", ")),
        (true, Some(near)) => format!("did you mean `{near}`?"),
        (true, None) => "`tilewright learn list` lists them".to_owned(),
    };
    Err(Diagnostic::usage(UsageError::Exercise, title).help(help))
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn a_file_is_an_exercise_and_its_solution() {
        let text = "a\n  // ??? Do it.\n  //- wrong\n  //+ right\n  // said by both\nb\n";
        let (start, solution) = parts(text);
        assert_eq!(start, "a\n  // ??? Do it.\n  wrong\n  // said by both\nb\n");
        assert_eq!(solution, "a\n  right\n  // said by both\nb\n");
    }
}
