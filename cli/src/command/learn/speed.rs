//! `tilewright learn check --speed`: how many times as fast a solved exercise is as the one that was handed out.
//!
//! For information only: no exercise is solved or not by a time.

use std::path::Path;

use ir::{Arch, Target};
use tuner::{Bench, Settings};

use super::course::Exercise;
use crate::{
    build::{Built, build, open},
    diagnostic::Diagnostic,
    figures::{failure_words, ratio_words},
    ladder::report::versus,
    measuring::{bench_error, case},
    plan::Plan,
    progress::compare,
    term::shell::Shell,
};

/// A sentence about the speed of a text beside the exercise as it was handed out.
pub(super) fn speed(exercise: &Exercise, text: &str, shell: &mut Shell<'_>) -> Result<String, Diagnostic> {
    let path = format!("{}.ron", exercise.name);
    let yours = Plan::parse(Path::new(&path), text, &[])?;
    let mut machine = open(&yours.target(None, None))?;
    let info = machine.info().clone();
    let target = yours.target(None, Arch::parse(&info.arch));
    let Ok(start) = Plan::parse(Path::new(&path), &exercise.start, &[]).and_then(|it| made(&it, &target))
    else {
        return Ok("no speed-up: what was handed out is no program yet".to_owned());
    };
    let yours_built = made(&yours, &target)?;
    let case = case(&yours, 1, true)?;
    let inputs = case.inputs();
    let mut reference = case.reference_on(&info, &inputs).map_err(|err| bench_error(err.into()))?;
    let mut bench = Bench::new(machine.as_mut(), &case, &inputs, &mut reference).map_err(bench_error)?;
    let settings = Settings { baseline: false, ..Settings::new(tuner::Regime::Cool, info.arch != "cpu") };
    let both = [("yours", &yours_built), ("handed out", &start)];
    let found = compare(&mut bench, &both, &settings, &exercise.name, shell);
    shell.done();
    if let Some(words) = found.candidates.iter().find_map(failure_words) {
        return Ok(format!("no speed-up: {words}"));
    }
    Ok(match versus(&found.candidates[0], &found.candidates[1]) {
        Some(it) => {
            format!("speed: {}, on {}", ratio_words(&it, "as fast as what was handed out"), info.name)
        }
        None => "no speed-up: there are no rounds with both".to_owned(),
    })
}

fn made(plan: &Plan, target: &Target) -> Result<Built, Diagnostic> {
    build(plan.schedule(target, None)?.func(), target, &plan.dims)
}
