//! From a path or a name to a script, its workload and its target.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Target};
use schedule::{
    Session, Step,
    script::{Param, Script, ScriptTarget},
    workload::{Workload, WorkloadError},
};

use crate::report::Report;

/// A script, read, with its workload at the wanted sizes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
    /// What it says.
    pub(crate) script: Script,
    /// The parameters of the workload that were given, by the script or by the user.
    pub(crate) params: IndexMap<String, Param>,
    /// The unscheduled program.
    pub(crate) func: Func,
    /// The values of its symbolic dimensions.
    pub(crate) dims: IndexMap<Name, i64>,
    /// The steps, numbers in place of knobs.
    pub(crate) steps: Vec<Step>,
}

/// A file that a user named.
pub(crate) fn read(path: &Path) -> Result<String, Report> {
    fs::read_to_string(path).map_err(|err| Report::io(path, &err))
}

impl Plan {
    /// A script from a file, with parameters and knobs of the script overridden.
    pub(crate) fn load(path: &Path, params: &[(String, Param)]) -> Result<Plan, Report> {
        let text = read(path)?;
        Plan::parse(path, &text, params)
    }

    /// A script from its text. Paths in it are relative to its own.
    pub(crate) fn parse(path: &Path, text: &str, given: &[(String, Param)]) -> Result<Plan, Report> {
        let script = Script::parse(text)
            .map_err(|err| Report::failed(&err.message).at(path, text, err.span.clone()).help(err.help))?;
        let (file, workload_text) = find_workload(path, text, &script)?;
        let workload = Workload::parse(&workload_text)
            .map_err(|err| Report::workload(&file, &workload_text, &err))?;
        let mut params = script.params.value.clone();
        let mut choice = IndexMap::new();
        for (name, value) in given {
            match (script.knobs.contains_key(name.as_str()), value) {
                (true, Param::Int(value)) => {
                    choice.insert(Name::new(name.as_str()), *value);
                }
                (true, Param::Text(value)) => {
                    return Err(Report::usage(format!("the knob `{name}` is a number, not `{value}`")));
                }
                (false, _) => {
                    params.insert(name.clone(), value.clone());
                }
            }
        }
        let is_given = |name: &str| given.iter().any(|it| it.0 == name);
        let built = workload.instance(&params).map_err(|err| {
            let in_script = err.param().filter(|it| !is_given(it)).map(|it| param_place(text, &script, it));
            match (in_script, err.span.is_some()) {
                (_, true) => Report::workload(&file, &workload_text, &err),
                (Some(span), false) => {
                    Report::failed(err.to_string()).at(path, text, span).help(err.help())
                }
                (None, false) => Report::usage(err.to_string()).help(err.help()),
            }
        })?;
        let steps = script.resolve(&choice);
        let (path, text) = (path.to_owned(), text.to_owned());
        Ok(Plan { path, text, script, params, func: built.func, dims: built.dims, steps })
    }

    /// The target: what the user asks for, else what the script says, else the cpu. An architecture that neither
    /// names is `found`, else `sm_80`, the oldest that the emitted code is for.
    pub(crate) fn target(&self, asked: Option<&ScriptTarget>, found: Option<Arch>) -> Target {
        let target = asked.or(self.script.target.as_ref().map(|it| &it.value));
        match target {
            None | Some(ScriptTarget::Cpu) => Target::Cpu,
            Some(ScriptTarget::Cuda(Some(arch))) => Target::Cuda(arch.clone()),
            Some(ScriptTarget::Cuda(None)) => Target::Cuda(found.unwrap_or(Arch { sm: 80, suffix: None })),
        }
    }

    /// Applies the first steps, or all.
    pub(crate) fn schedule(&self, target: &Target, until: Option<usize>) -> Result<Session, Report> {
        let mut session = Session::new(self.func.clone(), Some(target.clone()));
        let places = self.script.steps.iter().map(|it| &it.span);
        for (step, span) in self.steps.iter().zip(places).take(until.unwrap_or(usize::MAX)) {
            session.apply(step).map_err(|err| self.refused(span, step, session.func(), &err))?;
        }
        Ok(session)
    }

    fn refused(&self, span: &Range<usize>, step: &Step, before: &Func, err: &schedule::ScheduleError) -> Report {
        Report::refused(&self.path, &self.text, span, step.name(), before, err)
    }

    /// The parameters on one line: `m=1024 n=1024 dtype=f32`.
    pub(crate) fn sizes(&self) -> String {
        let word = |(name, value): (&String, &Param)| match value {
            Param::Int(it) => format!("{name}={it}"),
            Param::Text(it) => format!("{name}={it}"),
        };
        self.params.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Where the script gives a parameter, or its whole list of them.
fn param_place(text: &str, script: &Script, name: &str) -> Range<usize> {
    let all = script.params.span.clone();
    let word = format!("\"{name}\"");
    let found = text.get(all.clone()).and_then(|it| it.find(&word));
    match found {
        Some(at) => all.start + at..all.start + at + word.len(),
        None if all.is_empty() => script.workload.span.clone(),
        None => all,
    }
}

/// The file and the text of the workload that a script names.
fn find_workload(path: &Path, text: &str, script: &Script) -> Result<(PathBuf, String), Report> {
    let name = script.workload.value.as_str();
    let fail = |title: String| Report::failed(title).at(path, text, script.workload.span.clone());
    if name.starts_with(['.', '/']) || name.ends_with(".ron") {
        let file = path.parent().unwrap_or(Path::new("")).join(name);
        let text = fs::read_to_string(&file).map_err(|err| {
            fail(Report::io(&file, &err).into_title()).help("the path is relative to the script".to_owned())
        })?;
        return Ok((file, text));
    }
    match workloads::find(name) {
        Some(text) => Ok((PathBuf::from(format!("{name}.ron")), text.to_owned())),
        None => {
            let help = match schedule::nearest(name, workloads::names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "there is {}; a file of your own starts with `./`",
                    workloads::names().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
                ),
            };
            Err(fail(format!("there is no workload `{name}`")).help(help))
        }
    }
}

/// `--target`: `cpu`, `cuda` or `cuda:sm_90a`.
pub(crate) fn parse_target(word: &str) -> Result<ScriptTarget, String> {
    match (word, word.strip_prefix("cuda:").and_then(Arch::parse)) {
        ("cpu", _) => Ok(ScriptTarget::Cpu),
        ("cuda", _) => Ok(ScriptTarget::Cuda(None)),
        (_, Some(arch)) => Ok(ScriptTarget::Cuda(Some(arch))),
        (_, None) => Err("there is `cpu`, `cuda`, and with an architecture `cuda:sm_90a`".to_owned()),
    }
}

/// `--arch`: `sm_80`.
pub(crate) fn parse_arch(word: &str) -> Result<Arch, String> {
    Arch::parse(word).ok_or_else(|| "an architecture is written `sm_80` or `sm_90a`".to_owned())
}

/// `--param`: `m=512` or `dtype=f16`.
pub(crate) fn parse_param(word: &str) -> Result<(String, Param), String> {
    let (name, value) = word.split_once('=').ok_or("a parameter is written `name=value`")?;
    let value = value.parse().map_or_else(|_| Param::Text(value.to_owned()), Param::Int);
    Ok((name.to_owned(), value))
}
