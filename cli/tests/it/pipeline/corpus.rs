//! Every script in `cases`: situations that a pipeliner has to get right, each against what its comments say.

use std::{
    fs,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::{Func, Name, text};
use schedule::{Choice, Decisions, Script, Session, Step};

use super::{
    header::{Header, ScriptEnd},
    measure,
    oracle::input,
    run::{self, Expected, Lowered},
};

/// How many tests share the scripts, to run beside each other.
const PARTS: usize = 4;

/// A script, its program and what must happen.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) header: Header,
    pub(crate) script: Script,
    pub(crate) func: Func,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipeline/cases")
}

/// Every script; only those whose name contains `TILEWRIGHT_SCRIPT` where somebody looks for the cause of a failure.
pub(crate) fn cases() -> Vec<Result<Case, String>> {
    let wanted = std::env::var("TILEWRIGHT_SCRIPT").unwrap_or_default();
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "ron"));
    paths.retain(|it| it.to_string_lossy().contains(&wanted));
    paths.sort();
    paths.iter().map(|it| Case::load(it)).collect()
}

impl Case {
    fn load(path: &Path) -> Result<Case, String> {
        let script_text = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let script = Script::parse(&script_text).map_err(|err| format!("{name}: {err}"))?;
        let program = fs::read_to_string(path.parent().unwrap().join(&script.workload.value)).unwrap();
        let func = text::parse(&program).map_err(|err| format!("{name}: {err:?}"))?;
        ir::verify(&func).map_err(|err| format!("{name}: {}", err[0]))?;
        Ok(Case { header: Header::parse(&script_text), name, script, func })
    }

    /// Every choice for the knobs, each with its steps.
    pub(crate) fn choices(&self) -> Vec<(String, Vec<Step>)> {
        let params = &self.script.params.value;
        let mut out = vec![Decisions::new()];
        for (name, values) in self.script.axes(params).unwrap() {
            let with = |choice: &Decisions, value: &Choice| {
                let mut choice = choice.clone();
                choice.insert(name.clone(), value.clone());
                choice
            };
            out = out.iter().flat_map(|choice| values.iter().map(|it| with(choice, it))).collect();
        }
        let words = |choice: &Decisions| {
            choice.iter().map(|(name, it)| format!("{name}={it}")).collect::<Vec<_>>().join(" ")
        };
        let steps = |it| self.script.resolve(params, it).unwrap().into_iter().map(|it| it.value).collect();
        out.iter().map(|it| (words(it), steps(it))).collect()
    }

    fn check(&self) -> Result<(), String> {
        for (choice, steps) in self.choices() {
            let about = |err: String| format!("{} {choice}: {err}", self.name);
            let all = self.header.all_dims();
            let last = all.last().unwrap();
            self.forms(&self.func, &all, &steps, true).map_err(|err| about(format!("as it is: {err}")))?;
            for dims in all.iter().filter(|it| !it.is_empty()) {
                let func = run::with_constants(&self.func, dims);
                if ir::verify(&func).is_err() {
                    continue; // A loop that never runs is written for symbolic sizes only.
                }
                // What is refused may be fine where the loop is short.
                if self.header.verdict == ScriptEnd::Accepted || dims == last {
                    self.forms(&func, &[IndexMap::new()], &steps, dims == last)
                        .map_err(|err| about(format!("{dims:?} as constants: {err}")))?;
                }
            }
        }
        Ok(())
    }

    /// Schedules and lowers a program, and runs it in all its forms for each choice of sizes.
    fn forms(
        &self,
        before: &Func,
        all_dims: &[IndexMap<Name, i64>],
        steps: &[Step],
        measured: bool,
    ) -> Result<(), String> {
        let after = match schedule(before, steps) {
            Err(err) if self.header.verdict == ScriptEnd::Refused => return self.says(&err),
            Err(err) => return Err(format!("refused: {err}")),
            Ok(_) if self.header.verdict == ScriptEnd::Refused => return Err("accepted".to_owned()),
            Ok(it) => it,
        };
        let lowered = match run::lower(&after) {
            Err(err) if self.header.verdict == ScriptEnd::NotLowered => return self.says(&err.to_string()),
            Err(err) => return Err(format!("not lowered: {err}\n{}", run::text(&after))),
            Ok(_) if self.header.verdict == ScriptEnd::NotLowered => return Err("lowered".to_owned()),
            Ok(it) => it,
        };
        let about = |err| format!("{err}\n{}\n{}", run::text(&lowered.expanded), lowered.module);
        for dims in all_dims {
            values(before, &after, &lowered, dims).map_err(|err| about(format!("{dims:?}: {err}")))?;
        }
        if measured { measure::check(self, &after, &lowered).map_err(about) } else { Ok(()) }
    }

    fn says(&self, message: &str) -> Result<(), String> {
        match self.header.says.iter().find(|it| !message.contains(&***it)) {
            Some(words) => Err(format!("the refusal does not say `{words}`: {message}")),
            None => Ok(()),
        }
    }
}

/// Runs a program in all its forms.
fn values(before: &Func, after: &Func, lowered: &Lowered, dims: &IndexMap<Name, i64>) -> Result<(), String> {
    let element = |number: usize, _: &[usize], at: usize| {
        input(i64::try_from(number).unwrap(), i64::try_from(at % 997).unwrap())
    };
    let expected = Expected::new(before, dims, &element)?;
    expected.interpreter("after the steps", after)?;
    if lowered.is_for_interpreter() {
        expected.interpreter("after the expansion", &lowered.expanded)?;
    }
    expected.virtual_gpu(before, &lowered.module)
}

/// Applies the steps; a refusal with its help.
pub(crate) fn schedule(func: &Func, steps: &[Step]) -> Result<Func, String> {
    let mut session = Session::new(func.clone(), Some(run::target()));
    for step in steps {
        let message = |err: schedule::ScheduleError| {
            format!("{}: {err}; {}", step.name(), err.help().unwrap_or_default())
        };
        session.apply(step).map_err(message)?;
    }
    Ok(session.func().clone())
}

fn part(part: usize) {
    let results = cases().into_iter().skip(part).step_by(PARTS).map(|it| it.and_then(|it| it.check()));
    let errors: Vec<_> = results.filter_map(Result::err).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n\n"));
}

#[test]
fn part_0() {
    part(0);
}

#[test]
fn part_1() {
    part(1);
}

#[test]
fn part_2() {
    part(2);
}

#[test]
fn part_3() {
    part(3);
}
