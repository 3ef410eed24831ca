//! First schedules without search, for workloads by name.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use ir::Target;
use schedule::workload::Param;
use tuner::{
    auto::{self, Draft, Request},
    build::{Problem, generate, target_word},
    filter::{Limits, before_compiling},
};

use crate::{diagnostic::Diagnostic, plan::Plan};

/// A schedule that was made without search, as a script that says why each choice was made.
#[derive(Clone, Debug)]
pub struct Automatic {
    /// The rule that knew the program: `wgmma`, `mma`, `simt`, `elementwise`, or `anything`.
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
/// There is no such workload, or it has other parameters.
pub fn auto(
    workload: &str,
    params: &IndexMap<String, Param>,
    target: &Target,
    units: Option<i64>,
) -> Result<Automatic, Diagnostic> {
    let path = PathBuf::from("auto.ron");
    let given: Vec<_> = params.iter().map(|(name, it)| format!("{name:?}: {it}")).collect();
    let empty = format!(
        "schedule(workload: {workload:?}, target: {:?}, params: {{{}}}, steps: [])",
        target_word(target),
        given.join(", ")
    );
    let plan = Plan::parse(&path, &empty, &[])?;
    let request = Request { func: &plan.func, workload, params, target, units };
    let mut refused = vec![];
    let draft = auto::draft(&request, |it| {
        let err = expect_legal(&path, it, &request).err();
        refused.extend(err.iter().map(|err| format!("{}: {} {err}", it.rule, it.about)));
        err.is_none()
    });
    let reasons = draft.reasons().map(str::to_owned).collect();
    Ok(Automatic { rule: draft.rule, script: draft.script(&request), reasons, refused })
}

/// Refuses what the compiler refuses, and what no multiprocessor holds a block of.
fn expect_legal(path: &Path, draft: &Draft, request: &Request<'_>) -> Result<(), String> {
    let plan = Plan::parse(path, &draft.script(request), &[]).map_err(|it| it.message().to_owned())?;
    let dims = request.func.dims.iter().map(|it| (it.clone(), 1)).collect();
    let problem = Problem::new(request.func.clone(), dims, 1, request.target.clone());
    let generated =
        generate(&problem.map_err(|it| it.to_string())?, &plan.steps).map_err(|it| it.to_string())?;
    before_compiling(&generated, request.target, &Limits::default()).map_err(|it| it.to_string())
}
