//! From a path or a name to a script, its workload and its target.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Target};
use schedule::{
    Choice, Decisions, ScriptError, Session, Step,
    script::{Script, ScriptTarget},
    workload::{self, Param},
};

use tuner::Space;

use crate::{diagnostic::Diagnostic, trouble::Trouble};

/// A script, read, with its workload at the wanted sizes.
///
/// All verbs take one: from a file by [`Plan::load`], or from a [`Schedule`](crate::Schedule) written in Rust.
#[derive(Clone, Debug)]
pub struct Plan {
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
    /// The steps, no knobs and no expressions left.
    pub(crate) steps: Vec<Step>,
    /// Where each of them stands in the script.
    spans: Vec<Range<usize>>,
    /// What the user decided for knobs.
    decisions: Decisions,
    /// Every parameter of the workload, the defaults included.
    pub(crate) all_params: IndexMap<String, Param>,
}

/// What `--target` asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// A machine.
    Machine(ScriptTarget),
    /// The virtual GPU, as a GPU of that architecture.
    Virtual(Option<Arch>),
}

/// A file that a user named.
pub(crate) fn read(path: &Path) -> Result<String, Diagnostic> {
    fs::read_to_string(path).map_err(|err| Diagnostic::io(path, &err))
}

impl Plan {
    /// A script from a file, with parameters and knobs of the script overridden.
    pub fn load(path: &Path, params: &[(String, Param)]) -> Result<Plan, Diagnostic> {
        let text = read(path)?;
        Plan::parse(path, &text, params)
    }

    /// A script from its text. Paths in it are relative to its own.
    pub fn parse(path: &Path, text: &str, given: &[(String, Param)]) -> Result<Plan, Diagnostic> {
        let refused =
            |err: ScriptError| Diagnostic::failed(&err, &err.message).at(path, text, err.span).help(err.help);
        let script = Script::parse(text).map_err(refused)?;
        let (file, workload_text) = find_workload(path, text, &script)?;
        let (params, decisions) = split_given(&script, given)?;
        let source = Source { path, text, script: &script, file: &file, workload: &workload_text };
        let (func, all_params) = if file.extension().is_some_and(|it| it == "tw") {
            (source.program()?, IndexMap::new())
        } else {
            source.instance(&params, given)?
        };
        script.axes(&all_params).map_err(refused)?;
        let steps = script.resolve(&all_params, &decisions).map_err(refused)?;
        let (steps, spans) = steps.into_iter().map(|it| (it.value, it.span)).unzip();
        let (path, text) = (path.to_owned(), text.to_owned());
        Ok(Plan {
            path,
            text,
            script,
            params,
            func,
            dims: IndexMap::new(),
            steps,
            spans,
            decisions,
            all_params,
        })
    }

    /// The space that the script spans, with the knobs fixed that the user has decided.
    pub(crate) fn space(&self) -> Result<Space, Diagnostic> {
        let space = Space::of(&self.script, &self.all_params).map_err(|err| self.wrong(err))?;
        let decided = self.decisions.iter().map(|(name, it)| (name.clone(), vec![it.clone()])).collect();
        space.with_choices(&decided).map_err(|err| Diagnostic::usage(&err, &err.message))
    }

    /// The target: what the user asks for, else what the script says, else the cpu. An architecture that neither
    /// names is `found`, else `sm_80`, the oldest that the emitted code is for.
    pub fn target(&self, asked: Option<&ScriptTarget>, found: Option<Arch>) -> Target {
        let target = asked.or(self.script.target.as_ref().map(|it| &it.value));
        match target {
            None | Some(ScriptTarget::Cpu) => Target::Cpu,
            Some(ScriptTarget::Cuda(Some(arch))) => Target::Cuda(arch.clone()),
            Some(ScriptTarget::Cuda(None)) => Target::Cuda(found.unwrap_or(Arch { sm: 80, suffix: None })),
        }
    }

    /// The target for the virtual GPU: that architecture, else the script's, else `sm_80`.
    pub(crate) fn virtual_target(&self, arch: Option<&Arch>) -> Target {
        let asked = match self.script.target.as_ref().map(|it| &it.value) {
            Some(ScriptTarget::Cuda(Some(found))) => Some(found),
            Some(ScriptTarget::Cuda(None) | ScriptTarget::Cpu) | None => None,
        };
        self.target(Some(&ScriptTarget::Cuda(arch.or(asked).cloned())), None)
    }

    /// Refuses to go on unless each symbolic dimension has a value, and nothing else has.
    pub(crate) fn expect_dims(&self) -> Result<(), Diagnostic> {
        if let Some(dim) = self.func.dims.iter().find(|it| !self.dims.contains_key(*it)) {
            let title = format!("the symbolic dimension `{dim}` has no value");
            return Err(
                Diagnostic::usage(Trouble::Dimension, title).help(format!("give one: `--dim {dim}=512`"))
            );
        }
        match self.dims.keys().find(|it| !self.func.dims.contains(it)) {
            Some(dim) => Err(Diagnostic::usage(
                Trouble::Dimension,
                format!("the workload has no symbolic dimension `{dim}`"),
            )),
            None => Ok(()),
        }
    }

    /// Applies the first steps, or all.
    pub fn schedule(&self, target: &Target, until: Option<usize>) -> Result<Session, Diagnostic> {
        let mut session = Session::new(self.func.clone(), Some(target.clone()));
        for (step, span) in self.steps.iter().zip(&self.spans).take(until.unwrap_or(usize::MAX)) {
            session.apply(step).map_err(|err| self.refused(span, step, session.func(), &err))?;
        }
        Ok(session)
    }

    /// What is wrong in the text of the script.
    fn wrong(&self, err: ScriptError) -> Diagnostic {
        Diagnostic::failed(&err, &err.message).at(&self.path, &self.text, err.span).help(err.help)
    }

    fn refused(
        &self,
        span: &Range<usize>,
        step: &Step,
        before: &Func,
        err: &schedule::ScheduleError,
    ) -> Diagnostic {
        Diagnostic::refused(&self.path, &self.text, span, step.name(), before, err)
    }

    /// The parameters on one line: `m=1024 n=1024 dtype=f32`.
    pub(crate) fn sizes(&self) -> String {
        let word = |(name, value): (&String, &Param)| match value {
            Param::Int(it) => format!("{name}={it}"),
            Param::Float(it) => format!("{name}={it}"),
            Param::Text(it) => format!("{name}={it}"),
        };
        self.params.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// What the user gave for parameters of the workload, with those of the script, and what for knobs.
fn split_given(
    script: &Script,
    given: &[(String, Param)],
) -> Result<(IndexMap<String, Param>, Decisions), Diagnostic> {
    let (mut params, mut decisions) = (script.params.value.clone(), Decisions::new());
    for (name, value) in given {
        if !script.knobs.contains_key(name.as_str()) {
            params.insert(name.clone(), value.clone());
            continue;
        }
        let choice = match value {
            Param::Int(it) => Some(Choice::Int(*it)),
            Param::Text(it) => Choice::parse(it),
            Param::Float(_) => None,
        };
        let wrong = || {
            let title = format!("the knob `{name}` is a whole number or a tile such as 8x4x2, not {value}");
            Diagnostic::usage(Trouble::KnobValue, title)
        };
        decisions.insert(Name::new(name.as_str()), choice.ok_or_else(wrong)?);
    }
    Ok((params, decisions))
}

/// A script and the file of its workload, to tell where an error stands.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
    script: &'a Script,
    file: &'a Path,
    workload: &'a str,
}

impl Source<'_> {
    /// A workload in RON at the values of its parameters, and all of these values.
    fn instance(
        &self,
        params: &IndexMap<String, Param>,
        given: &[(String, Param)],
    ) -> Result<(Func, IndexMap<String, Param>), Diagnostic> {
        let workload = workload::parse(self.workload)
            .map_err(|err| Diagnostic::workload(self.file, self.workload, &err))?;
        let made = workload.instantiate(params).and_then(|func| Ok((func, workload.complete(params)?)));
        made.map_err(|err| {
            let is_given = |name: &str| given.iter().any(|it| it.0 == name);
            let in_script = err.param().filter(|it| !is_given(it));
            match (in_script, err.span.is_some()) {
                (_, true) => Diagnostic::workload(self.file, self.workload, &err),
                (Some(name), false) => {
                    let span = param_place(self.text, self.script, name);
                    Diagnostic::failed(&err, err.to_string()).at(self.path, self.text, span).help(err.help())
                }
                (None, false) => Diagnostic::usage(&err, err.to_string()).help(err.help()),
            }
        })
    }

    /// A program in the text form, with its sizes as they stand there.
    fn program(&self) -> Result<Func, Diagnostic> {
        if let Some(name) = self.script.params.value.keys().next() {
            let span = param_place(self.text, self.script, name);
            return Err(Diagnostic::failed(
                Trouble::TextParams,
                "a program in the text form has no parameters",
            )
            .at(self.path, self.text, span));
        }
        let func = ir::text::parse(self.workload).map_err(|err| {
            let span = place(self.workload, err.line, err.column);
            Diagnostic::failed(&err.kind, err.kind.to_string()).at(self.file, self.workload, span)
        })?;
        if let Err(errors) = ir::verify(&func) {
            let name = self.file.display().to_string();
            return Err(Diagnostic::unsound(&name, &func, &errors).expect("a refused program breaks a rule"));
        }
        Ok(codegen::lower::without_marks(func))
    }
}

/// One character at a line and a column, both from 1, in bytes.
pub(crate) fn place(text: &str, line: usize, column: usize) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    let before: usize = rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    let width = rest[before..].chars().next().filter(|it| *it != '\n').map_or(0, char::len_utf8);
    start + before..start + before + width
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
fn find_workload(path: &Path, text: &str, script: &Script) -> Result<(PathBuf, String), Diagnostic> {
    let name = script.workload.value.as_str();
    let fail = |title: String| {
        Diagnostic::failed(Trouble::Workload, title).at(path, text, script.workload.span.clone())
    };
    if name.starts_with(['.', '/']) || Path::new(name).extension().is_some() {
        let file = path.parent().unwrap_or(Path::new("")).join(name);
        let text = fs::read_to_string(&file).map_err(|err| {
            fail(Diagnostic::io(&file, &err).into_title())
                .help("the path is relative to the script".to_owned())
        })?;
        return Ok((file, text));
    }
    if let Some(text) = workloads::find(name) {
        return Ok((PathBuf::from(format!("{name}.ron")), text.to_owned()));
    }
    let help = if let Some(near) = schedule::nearest(name, workloads::all().iter().map(|it| it.name)) {
        format!("did you mean `{near}`?")
    } else {
        let names: Vec<_> = workloads::all().iter().map(|it| format!("`{}`", it.name)).collect();
        format!("there is {}; a file of your own starts with `./`", names.join(", "))
    };
    Err(fail(format!("there is no workload `{name}`")).help(help))
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

/// `--target` where the virtual GPU will do: `vgpu`, `vgpu:sm_90a`, or a machine.
pub(crate) fn parse_asked(word: &str) -> Result<Asked, String> {
    match (word, word.strip_prefix("vgpu:").and_then(Arch::parse)) {
        ("vgpu", _) => Ok(Asked::Virtual(None)),
        (_, Some(arch)) => Ok(Asked::Virtual(Some(arch))),
        (_, None) => parse_target(word)
            .map(Asked::Machine)
            .map_err(|err| format!("{err}; `vgpu` and `vgpu:sm_90a` for the virtual GPU")),
    }
}

impl Asked {
    /// The machine, unless it is virtual.
    pub(crate) fn machine(&self) -> Option<&ScriptTarget> {
        match self {
            Asked::Machine(it) => Some(it),
            Asked::Virtual(_) => None,
        }
    }
}

/// `--arch`: `sm_80`.
pub(crate) fn parse_arch(word: &str) -> Result<Arch, String> {
    Arch::parse(word).ok_or_else(|| "an architecture is written `sm_80` or `sm_90a`".to_owned())
}

/// `--dim`: `n=512`.
pub(crate) fn parse_dim(word: &str) -> Result<(Name, i64), String> {
    let (name, value) = word.split_once('=').ok_or("a dimension is written `name=value`")?;
    let value = value.parse().ok().filter(|it| *it > 0).ok_or("its value is a whole number from 1")?;
    Ok((Name::new(name), value))
}

/// `--param`: `m=512` or `dtype=f16`.
pub(crate) fn parse_param(word: &str) -> Result<(String, Param), String> {
    let (name, text) = word.split_once('=').ok_or("a parameter is written `name=value`")?;
    let number = || text.parse().ok().filter(|it: &f64| it.is_finite()).map(Param::Float);
    let value = text.parse().ok().map(Param::Int).or_else(number);
    Ok((name.to_owned(), value.unwrap_or_else(|| Param::Text(text.to_owned()))))
}
