//! First schedules without search, for workloads by name.

use std::path::Path;

use indexmap::IndexMap;
use ir::Target;
use schedule::{Step, script::ScriptTarget, workload::Param};
use tuner::{
    auto::{self, Draft, Form, Request},
    build::{Problem, generate, target_word},
    filter::{Limits, before_compiling},
};

#[cfg(feature = "cli")]
use crate::source::workload_file;

use crate::{
    build::{found_arch, lower, source},
    diagnostic::Diagnostic,
    plan::Plan,
};

/// A schedule that was made without search, as a script that says why each choice was made, or a space around it.
#[derive(Clone, Debug)]
pub struct Automatic {
    /// The rule that knew the program: `wgmma`, `tcgen05`, `mma`, `simt`, `elementwise`, or `anything`.
    pub rule: &'static str,
    /// The script.
    pub script: String,
    /// Why its steps are what they are.
    pub reasons: Vec<String>,
    /// What ranked higher and was refused, each with the reason.
    pub refused: Vec<String>,
}

/// A first schedule for a workload, the name of one that ships or the path of a file that begins with `./` or `/`, at these
/// parameters. `units` is the number of multiprocessors, where it is known; a first guess at it is made of the architecture.
///
/// Choices are ranked by how many waves of tiles they have, and those left out that the compiler refuses or that need more
/// threads or memory than there is. So the script is legal at its sizes.
///
/// # Errors
///
/// There is no such workload, it has other parameters, or nothing of it can be given to threads of a GPU.
pub fn auto(
    workload: &str,
    params: &IndexMap<String, Param>,
    target: &Target,
    units: Option<i64>,
) -> Result<Automatic, Diagnostic> {
    auto_at(Path::new("auto.ron"), workload, params, target, units, Form::Script)
}

/// A space for `tune` around the schedule of [`auto()`], which is its first point: what was chosen there stands first in each knob.
///
/// # Errors
///
/// As [`auto()`].
pub fn auto_space(
    workload: &str,
    params: &IndexMap<String, Param>,
    target: &Target,
    units: Option<i64>,
) -> Result<Automatic, Diagnostic> {
    auto_at(Path::new("auto.ron"), workload, params, target, units, Form::Space)
}

/// The same for a script that is to stand at that path, to which a path of a workload is relative.
pub(crate) fn auto_at(
    path: &Path,
    workload: &str,
    params: &IndexMap<String, Param>,
    target: &Target,
    units: Option<i64>,
    form: Form,
) -> Result<Automatic, Diagnostic> {
    let given: Vec<_> = params.iter().map(|(name, it)| format!("{name:?}: {it}")).collect();
    let empty = format!(
        "schedule(workload: {workload:?}, target: {:?}, params: {{{}}}, steps: [])",
        target_word(target),
        given.join(", ")
    );
    let nobody_wrote = |it: Diagnostic| it.without(path);
    let plan = Plan::parse(path, &empty, &[]).map_err(nobody_wrote)?;
    let known = &plan.all_params;
    let request = Request { func: &plan.func, workload, params, known, target, units, form };
    let mut refused = vec![];
    let draft = auto::draft(&request, &mut |part, it| match expect_legal(path, it, part) {
        Ok(steps) => Some(steps),
        Err(err) => {
            // What parts of the program are tried with is not what was asked for.
            let is_whole = std::ptr::eq(part.func, request.func);
            refused.extend(is_whole.then(|| format!("{}: {} {err}", it.rule, it.about)));
            None
        }
    });
    let script = draft.script(&request);
    if draft.is_last() {
        expect_lowers(&Plan::parse(path, &script, &[])?, target)?;
    }
    let reasons = draft.reasons().map(str::to_owned).collect();
    Ok(Automatic { rule: draft.rule, script, reasons, refused })
}

/// The target that is asked for; else the GPU at hand, or the CPU where there is none.
pub fn target_here(asked: Option<&ScriptTarget>) -> Target {
    let oldest = || ir::Arch { sm: 80, suffix: None };
    match asked {
        Some(ScriptTarget::Cpu) => Target::Cpu,
        Some(ScriptTarget::Cuda(Some(arch))) => Target::Cuda(arch.clone()),
        Some(ScriptTarget::Cuda(None)) => Target::Cuda(found_arch().unwrap_or_else(oldest)),
        None => found_arch().map_or(Target::Cpu, Target::Cuda),
    }
}

/// Whether that is a workload rather than a script: the name of one that ships where there is no such file, a program in the text
/// form, or a file that holds a workload.
pub fn is_workload(path: &Path) -> bool {
    let ships = || path.to_str().is_some_and(|it| workloads::find(it).is_some());
    match crate::text_file::read(path) {
        Ok(text) => {
            let is_code = |it: &&str| !it.trim().is_empty() && !it.trim_start().starts_with("//");
            crate::text_file::is_program(path)
                || text.lines().find(is_code).is_some_and(|it| it.trim_start().starts_with("workload("))
        }
        Err(_) => ships(),
    }
}

/// The space around the schedule of [`auto()`] as all verbs take it. What is given and no parameter of the workload decides a knob.
pub fn space(workload: &str, given: &[(String, Param)], target: &Target) -> Result<Plan, Diagnostic> {
    let path = Path::new("auto.ron");
    let empty = format!("schedule(workload: {workload:?}, steps: [])");
    let known = Plan::parse(path, &empty, &[]).map_err(|it| it.without(path))?.all_params;
    let (params, decisions): (Vec<_>, Vec<_>) =
        given.iter().cloned().partition(|(name, _)| known.contains_key(name.as_str()));
    let made = auto_space(workload, &params.into_iter().collect(), target, None)?;
    Plan::parse(path, &made.script, &decisions)
}

/// A path of a workload as a script in that folder has to name it; none if it may stay as it is.
#[cfg(feature = "cli")]
pub(crate) fn seen_from(folder: &Path, workload: &str) -> Option<String> {
    let file = workload_file(Path::new(""), workload).filter(|it| it.is_relative())?;
    let (file, folder) = (file.canonicalize().ok()?, folder.canonicalize().ok()?);
    let common = folder.ancestors().find(|it| file.starts_with(it))?;
    let up = folder.strip_prefix(common).ok()?.components().count();
    let start = if up == 0 { "./".to_owned() } else { "../".repeat(up) };
    Some(format!("{start}{}", file.strip_prefix(common).ok()?.to_str()?))
}

/// Refuses a script that stands for no kernel, in the words of `check`.
fn expect_lowers(plan: &Plan, target: &Target) -> Result<(), Diagnostic> {
    let session = plan.schedule(target, None)?;
    let (module, _) = lower(session.func(), target)?;
    source(session.func(), &module, target).map(drop)
}

/// The plain steps of a draft; refuses what the compiler refuses, and what no multiprocessor holds a block of.
fn expect_legal(path: &Path, draft: &Draft, request: &Request<'_>) -> Result<Vec<Step>, String> {
    let plan = Plan::parse(path, &draft.script(request), &[]).map_err(|it| it.message().to_owned())?;
    let dims = request.func.dims.iter().map(|it| (it.clone(), 1)).collect();
    let problem = Problem::new(request.func.clone(), dims, 1, request.target.clone());
    let generated =
        generate(&problem.map_err(|it| it.to_string())?, &plan.steps).map_err(|it| it.to_string())?;
    before_compiling(&generated, request.target, &Limits::default()).map_err(|it| it.to_string())?;
    Ok(plan.steps)
}
