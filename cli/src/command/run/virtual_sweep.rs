//! One lowered program on the virtual GPU at many values of its symbolic dimensions.

use indexmap::IndexMap;
use ir::{Arch, Name};

use super::sweep::Summary;
use crate::{
    diagnostic::Diagnostic,
    options::dims,
    options::measure::Measure,
    plan::Plan,
    term::shell::Shell,
    virtual_gpu::{arch_word, checked, lowered, refuse_log},
};

/// `run SCRIPT --target vgpu --dim m=1..300`: every value in every order, up to the first value with findings.
pub(crate) fn sweep(
    mut plan: Plan,
    all: &[IndexMap<Name, i64>],
    name: &str,
    arch: Option<&Arch>,
    measure: &Measure,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    refuse_log(measure)?;
    let module = lowered(&plan, arch, shell)?;
    let machine = format!("virtual GPU as {}", arch_word(&plan, arch));
    if !shell.json {
        writeln!(shell.out, "workload   {}", plan.headline())?;
        writeln!(shell.out, "machine    {machine}; it has no clock, so no GFLOPS")?;
    }
    let mut summary = Summary::default();
    for values in all {
        plan.dims.clone_from(values);
        let at = dims::words(values);
        let here = format!("{name} at {at}");
        let it = checked(&plan, &here, module.clone(), measure.seed, shell)?;
        shell.line(&it.report(name, &machine).at(values))?;
        match it.verdict(&here) {
            Some(report) => {
                summary.wrong(report);
                // The others would most likely tell the same again, at length.
                break;
            }
            None => it.verified.iter().for_each(|verdict| summary.right(&at, verdict)),
        }
    }
    summary.end(all.len(), shell)
}
