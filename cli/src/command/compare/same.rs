//! What entrants must have in common.

use ir::Target;
use schedule::{script::ScriptTarget, workload::Param};

use super::entrant::{Entrant, Recorded};
use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Refuses entrants that do not compute the same.
pub(super) fn workload(all: &[Entrant]) -> Result<(), Diagnostic> {
    let Some((a, others)) = all.split_first() else { return Ok(()) };
    for b in others {
        if let Some(what) = differs(a, b) {
            let title = format!("{} and {} cannot be compared: {what}", a.name, b.name);
            let help = "`--param m=512` sets a parameter of all scripts".to_owned();
            let report = Diagnostic::usage(UsageError::Incumbent, title);
            return Err(if a.script.workload == b.script.workload { report.help(help) } else { report });
        }
    }
    Ok(())
}

/// What is computed otherwise, in words.
fn differs(a: &Entrant, b: &Entrant) -> Option<String> {
    if a.script.workload != b.script.workload && a.func.name != b.func.name {
        return Some(format!(
            "the workload is {} in the first and {} in the second",
            a.script.workload, b.script.workload
        ));
    }
    let words = |it: Option<&Param>| it.map_or("not given".to_owned(), param_words);
    let names = a.params.keys().chain(b.params.keys().filter(|it| !a.params.contains_key(*it)));
    let different = names.filter(|it| a.params.get(*it) != b.params.get(*it));
    let list = |it: &String| {
        format!(
            "{it} is {} in the first and {} in the second",
            words(a.params.get(it)),
            words(b.params.get(it))
        )
    };
    let list: Vec<String> = different.map(list).collect();
    let dims: Vec<String> = a
        .dims
        .iter()
        .filter(|(name, value)| b.dims.get(*name) != Some(value))
        .map(|(name, value)| match b.dims.get(name) {
            Some(other) => format!("{name} is {value} in the first and {other} in the second"),
            None => format!("{name} is {value} in the first and fixed in the second"),
        })
        .collect();
    let program = |it: &Entrant| ir::text::print(&it.func).text;
    let same = program(a) == program(b);
    match (same, list.is_empty() && dims.is_empty()) {
        (true, _) if dims.is_empty() => None,
        (_, false) => Some(list.into_iter().chain(dims).collect::<Vec<_>>().join(", ")),
        (_, true) => Some("their programs differ, though the workload has one name".to_owned()),
    }
}

/// The value of a parameter, without quotes.
pub(super) fn param_words(it: &Param) -> String {
    match it {
        Param::Int(it) => it.to_string(),
        Param::Float(it) => it.to_string(),
        Param::Text(it) => it.clone(),
    }
}

/// The target that all are for, or the one that was asked for. None of an architecture that nobody names.
pub(super) fn target(all: &[Entrant], asked: Option<&ScriptTarget>) -> Result<ScriptTarget, Diagnostic> {
    if let Some(asked) = asked {
        return Ok(asked.clone());
    }
    let of = |it: &Entrant| it.target.clone().unwrap_or(ScriptTarget::Cpu);
    let mut found: Option<(ScriptTarget, &str)> = None;
    for it in all {
        let next = of(it);
        found = match (found, next) {
            (None, next) => Some((next, it.name.as_str())),
            (Some((ScriptTarget::Cuda(None), _)), next @ ScriptTarget::Cuda(_)) => {
                Some((next, it.name.as_str()))
            }
            (Some((old @ ScriptTarget::Cuda(_), name)), ScriptTarget::Cuda(None)) => Some((old, name)),
            (Some((old, name)), next) if old == next => Some((old, name)),
            (Some((old, name)), next) => {
                let title = format!("{name} is for {old} and {} for {next}", it.name);
                return Err(Diagnostic::usage(UsageError::Incumbent, title)
                    .help("`--target` says what to build all of them for".to_owned()));
            }
        };
    }
    Ok(found.map_or(ScriptTarget::Cpu, |it| it.0))
}

/// As a concrete target, once the architecture is known.
pub(super) fn concrete(target: &ScriptTarget, found: impl FnOnce() -> Option<ir::Arch>) -> Target {
    match target {
        ScriptTarget::Cpu => Target::Cpu,
        ScriptTarget::Cuda(Some(arch)) => Target::Cuda(arch.clone()),
        ScriptTarget::Cuda(None) => Target::Cuda(found().unwrap_or(ir::Arch { sm: 80, suffix: None })),
    }
}

/// How the circumstances of two measurements differ, in words; nothing if figures may be compared.
pub(super) fn circumstances(a: &Recorded, b: &Recorded) -> Vec<String> {
    let mut out = vec![];
    let mut check = |what: &str, a: String, b: String| {
        if a != b {
            out.push(format!("{what}: {a} in the first and {b} in the second"));
        }
    };
    check("machine", a.machine.name.clone(), b.machine.name.clone());
    check("architecture", a.machine.arch.clone(), b.machine.arch.clone());
    check("units", a.machine.units.to_string(), b.machine.units.to_string());
    let versions = |it: &Recorded| {
        // A machine learns the versions of libraries when it first uses them: they make no kernel.
        let ours = |it: &&(String, String)| !it.0.starts_with("cuBLAS");
        let words: Vec<String> = it
            .machine
            .versions
            .iter()
            .filter(ours)
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        words.join(", ")
    };
    check("versions", versions(a), versions(b));
    check("tilewright", a.tool.clone(), b.tool.clone());
    check("regime", a.regime.as_str().to_owned(), b.regime.as_str().to_owned());
    check("threads", a.threads.to_string(), b.threads.to_string());
    out
}
