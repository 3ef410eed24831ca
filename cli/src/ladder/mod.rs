//! Ladders: the rungs of a tutorial, from those that ship or from a folder.

mod needs;
pub(crate) mod report;
pub(crate) mod rung_view;

use std::{
    fs,
    path::{Path, PathBuf},
};

use schedule::{script::Script, workload::Param};

use crate::{
    diagnostic::Diagnostic,
    plan::{Plan, read},
    script_text::ScriptText,
    usage_error::UsageError,
};

/// A ladder: scripts, each of which improves on the one before.
#[derive(Debug)]
pub(crate) struct Ladder {
    /// Its name or folder.
    pub(crate) name: String,
    /// From the lowest.
    pub(crate) rungs: Vec<Rung>,
}

/// A script of a ladder.
#[derive(Debug)]
pub(crate) struct Rung {
    /// The file: `02_loop_order.ron`.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
}

impl Ladder {
    /// A ladder that ships, or a folder of scripts named `NN_name.ron`.
    pub(crate) fn find(name: &str) -> Result<Ladder, Diagnostic> {
        if let Some(ladder) = workloads::find_ladder(name) {
            let rung = |it: &workloads::Shipped| Rung {
                path: Path::new(ladder.name).join(format!("{}.ron", it.name)),
                text: it.text.to_owned(),
            };
            return Ok(Ladder { name: name.to_owned(), rungs: ladder.rungs.iter().map(rung).collect() });
        }
        let folder = Path::new(name);
        if folder.is_dir() {
            return Ladder::folder(folder);
        }
        let names = workloads::ladders().iter().map(|it| it.name);
        let help = if let Some(near) = schedule::nearest(name, names.clone()) {
            format!("did you mean `{near}`?")
        } else {
            let names: Vec<_> = names.map(|it| format!("`{it}`")).collect();
            format!("there is {}, and a folder of scripts will do, too", names.join(", "))
        };
        Err(Diagnostic::usage(UsageError::Ladder, format!("there is no ladder `{name}`")).help(help))
    }

    /// The place of a rung, from 0, that a user names by its number, `4`, or its name, `vectorize` or `loop order`.
    pub(crate) fn position(&self, word: &str) -> Result<usize, Diagnostic> {
        if let Ok(number) = word.parse::<usize>() {
            let at = number.checked_sub(1).filter(|it| *it < self.rungs.len());
            return at.ok_or_else(|| {
                let title = format!("there is no rung {number} in {}", self.name);
                let last = self.rungs.len();
                Diagnostic::usage(UsageError::Rungs, title).help(format!("its rungs are 1 to {last}"))
            });
        }
        let plain = word.trim_end_matches(".ron").replace('_', " ");
        let plain = plain.trim_start_matches(|it: char| it.is_ascii_digit()).trim_start().to_owned();
        let titles: Vec<String> = self.rungs.iter().map(Rung::title).collect();
        titles.iter().position(|it| *it == plain).ok_or_else(|| {
            let title = format!("there is no rung `{word}` in {}", self.name);
            let help = match schedule::nearest(&plain, titles.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there is {}", titles.join(", ")),
            };
            Diagnostic::usage(UsageError::Rungs, title).help(help)
        })
    }

    fn folder(folder: &Path) -> Result<Ladder, Diagnostic> {
        let fail = |err: &std::io::Error| Diagnostic::io(folder, err);
        let mut paths = vec![];
        for entry in fs::read_dir(folder).map_err(|err| fail(&err))? {
            let path = entry.map_err(|err| fail(&err))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_script = path.extension().is_some_and(|it| it == "ron");
            if is_script && name.starts_with(|it: char| it.is_ascii_digit()) {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            let title = format!("{}: there are no rungs in this folder", folder.display());
            return Err(Diagnostic::usage(UsageError::Rungs, title)
                .help("name them `01_first.ron`, `02_second.ron`".to_owned()));
        }
        let rung = |path: PathBuf| Ok(Rung { text: read(&path)?, path });
        let rungs: Result<_, Diagnostic> = paths.into_iter().map(rung).collect();
        Ok(Ladder { name: folder.display().to_string(), rungs: rungs? })
    }
}

impl Rung {
    /// The script, with plain steps in place of calls of procedures.
    pub(crate) fn script(&self) -> Result<Script, Diagnostic> {
        let text = ScriptText::expand(&self.path, &self.text)?;
        Script::parse(text.text()).map_err(|err| Diagnostic::script(&text, err))
    }

    /// What the file's name says: `loop order` for `02_loop_order.ron`.
    pub(crate) fn title(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem.trim_start_matches(|it: char| it.is_ascii_digit()).trim_start_matches('_').replace('_', " ")
    }

    /// The script with these parameters instead of its own.
    pub(crate) fn plan(&self, params: &[(String, Param)]) -> Result<Plan, Diagnostic> {
        Plan::parse(&self.path, &self.text, params)
    }
}

/// The size in one word, and the parameters that make it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    /// `512` or `512x256x128`.
    pub(crate) word: String,
    values: Vec<i64>,
}

impl Size {
    /// `512` for all sizes of a workload, or one number for each: `512x256x128`.
    pub(crate) fn parse(word: &str) -> Result<Size, String> {
        let values: Result<Vec<i64>, _> = word.split('x').map(str::parse).collect();
        match values {
            Ok(values) if values.iter().all(|it| *it > 0) => Ok(Size { word: word.to_owned(), values }),
            Ok(_) | Err(_) => Err("a size is `512`, or `512x256x128` for one number each".to_owned()),
        }
    }

    /// The parameters that this sets in a script: those that are numbers there.
    pub(crate) fn params(&self, script: &Script, rung: &Rung) -> Result<Vec<(String, Param)>, Diagnostic> {
        let numbers: Vec<&String> = script
            .params
            .value
            .iter()
            .filter_map(|(name, it)| matches!(it, Param::Int(_)).then_some(name))
            .collect();
        let values: Vec<i64> = match self.values.as_slice() {
            [value] => numbers.iter().map(|_| *value).collect(),
            values if values.len() == numbers.len() => values.to_vec(),
            values => {
                let names: Vec<_> = numbers.iter().map(|it| it.as_str()).collect();
                let title = format!(
                    "the size {} has {} numbers, and {} has the sizes {}",
                    self.word,
                    values.len(),
                    rung.path.display(),
                    names.join(", ")
                );
                return Err(Diagnostic::usage(UsageError::Size, title).help(format!(
                    "one number such as `512` is for all of them, or give {}: `{}`",
                    names.len(),
                    ["512", "256", "128", "64"]
                        .iter()
                        .cycle()
                        .take(names.len())
                        .copied()
                        .collect::<Vec<_>>()
                        .join("x")
                )));
            }
        };
        Ok(numbers.into_iter().cloned().zip(values.into_iter().map(Param::Int)).collect())
    }
}
