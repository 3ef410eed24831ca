//! From a path or a name to a script, its workload and its target.

mod text_form;

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Target};
use schedule::{
    Choice, Decisions, ScriptError, Session, Step,
    script::{Script, ScriptTarget},
    workload::Param,
};

use tuner::Space;

use crate::{
    diagnostic::Diagnostic,
    error_cascade::ErrorCascade,
    script_text::{ScriptText, script},
    source::{Source, find_workload},
    text_file::Unsaved,
    usage_error::UsageError,
};

/// A script, read, with its workload at the wanted sizes.
///
/// All verbs take one: from a file by [`Plan::load`], or from a [`Schedule`](crate::Schedule) written in Rust.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its text, and what is left of it without procedures.
    pub(crate) text: ScriptText,
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
    crate::text_file::read(path).map_err(|err| Diagnostic::io(path, &err))
}

impl Plan {
    /// A script from a file, with parameters and knobs of the script overridden.
    pub fn load(path: &Path, params: &[(String, Param)]) -> Result<Plan, Diagnostic> {
        let text = read(path)?;
        Plan::parse(path, &text, params)
    }

    /// A script from its text. Paths in it are relative to its own.
    pub fn parse(path: &Path, text: &str, given: &[(String, Param)]) -> Result<Plan, Diagnostic> {
        Plan::parse_with(path, text, given, &Unsaved::default())
    }

    /// The same where an editor has not saved some of the files that it names.
    pub(crate) fn parse_with(
        path: &Path,
        text: &str,
        given: &[(String, Param)],
        unsaved: &Unsaved,
    ) -> Result<Plan, Diagnostic> {
        let text = ScriptText::expand_with(path, text, unsaved)?;
        let refused = |err: ScriptError| Diagnostic::script(&text, err);
        let (script, wrong) = Script::read(text.text()).map_err(refused)?;
        let (params, decisions) = split_given(&script, given)?;
        let made = find_workload(&text, &script, unsaved).and_then(|(file, workload)| {
            let source = Source { text: &text, script: &script, file: &file, workload: &workload };
            source.made(&params, given)
        });
        let (func, all_params) = match (made, wrong) {
            (Ok(made), None) => made,
            (Err(report), None) => return Err(report),
            // What was given may have been meant for a knob that could not be read, and a parameter, too.
            (Err(report), Some(wrong)) if given.is_empty() && !wrong.is_in(&script.params.span) => {
                return Err(report.and(refused(wrong)));
            }
            (Ok(_) | Err(_), Some(wrong)) => return Err(refused(wrong)),
        };
        script.axes(&all_params).map_err(refused)?;
        let steps = script.resolve(&all_params, &decisions).map_err(refused)?;
        let (steps, spans) = steps.into_iter().map(|it| (it.value, it.span)).unzip();
        let path = path.to_owned();
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
        let missing: Vec<_> = self.func.dims.iter().filter(|it| !self.dims.contains_key(*it)).collect();
        if let Some(dim) = self.dims.keys().find(|it| !self.func.dims.contains(it)) {
            // One that was given by a wrong name is missing; only where none is, all are known to the user.
            let known = if missing.is_empty() { self.func.dims.iter().collect() } else { missing };
            return Err(unknown_dim(dim, &known));
        }
        missing.first().map_or(Ok(()), |it| Err(no_value(it)))
    }

    /// Applies the first steps, or all. After a refused one the later ones are tried on the program as it is, to tell of
    /// those that would be refused all the same.
    pub fn schedule(&self, target: &Target, until: Option<usize>) -> Result<Session, Diagnostic> {
        self.walk(target, until, &mut |_, _| ())
    }

    /// The same, and calls `seen` with each step after it was applied, up to the first refusal.
    pub(crate) fn walk(
        &self,
        target: &Target,
        until: Option<usize>,
        seen: &mut dyn FnMut(&Step, &Session),
    ) -> Result<Session, Diagnostic> {
        let mut session = Session::new(self.func.clone(), Some(target.clone()));
        let mut is_refused = false;
        let reports = self.go_on(&mut session, until, &mut |step, session, refused| {
            is_refused |= refused;
            if !is_refused {
                seen(step, session);
            }
        });
        match Diagnostic::all(reports) {
            Some(report) => Err(report),
            None => Ok(session),
        }
    }

    /// Applies the steps behind those that a session has applied, and calls `seen` after each, with whether it was refused. Tells
    /// what is wrong and does not follow from something else that is.
    pub(crate) fn go_on(
        &self,
        session: &mut Session,
        until: Option<usize>,
        seen: &mut dyn FnMut(&Step, &Session, bool),
    ) -> Vec<Diagnostic> {
        let (mut cascade, mut reports) = (ErrorCascade::default(), vec![]);
        let done = session.trace().count();
        let steps = self.steps.iter().zip(&self.spans).take(until.unwrap_or(usize::MAX)).skip(done);
        for (step, span) in steps {
            let err = session.apply(step).err();
            if err.is_some() || !reports.is_empty() {
                let is_reported = cascade.record(step, session.func(), err.as_ref());
                let told = err.as_ref().filter(|_| is_reported);
                reports.extend(told.map(|it| self.refused(span, step, session.func(), it)));
            }
            seen(step, session, err.is_some());
        }
        reports
    }

    /// The script without procedures, with its knobs if it has some.
    pub fn text(&self) -> &str {
        self.text.text()
    }

    /// Gives symbolic dimensions their values, for verbs that measure.
    #[must_use]
    pub fn with_dims(self, dims: impl IntoIterator<Item = (Name, i64)>) -> Plan {
        Plan { dims: dims.into_iter().collect(), ..self }
    }

    /// Where each step stands in the text without procedures.
    pub(crate) fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }

    /// The first steps, or all, as a script without procedures, knobs and expressions. A comment says which call
    /// steps come from.
    pub fn plain_script(&self, target: &Target, until: Option<usize>) -> String {
        let mut last = None;
        let mut steps = vec![];
        for (step, span) in self.steps.iter().zip(&self.spans).take(until.unwrap_or(usize::MAX)) {
            let call = self.text.call(span);
            let comment = call.clone().filter(|it| Some(it.0) != last).map(|it| it.1);
            last = call.map(|it| it.0);
            steps.push((comment, step));
        }
        script(&self.script.workload.value, &self.params, target, &steps)
    }

    /// What is wrong in the text of the script.
    fn wrong(&self, err: ScriptError) -> Diagnostic {
        Diagnostic::script(&self.text, err)
    }

    fn refused(
        &self,
        span: &Range<usize>,
        step: &Step,
        before: &Func,
        err: &schedule::ScheduleError,
    ) -> Diagnostic {
        Diagnostic::refused(&self.text, span, step.name(), before, err)
    }

    /// The parameters that were given on one line: `m=1024 n=1024 dtype=f32`.
    pub(crate) fn sizes(&self) -> String {
        self.params.iter().map(param_words).collect::<Vec<_>>().join(" ")
    }

    /// The workload with all its parameters, those that were given first: `matmul m=1024 n=1024 k=512 dtype=f32`.
    pub(crate) fn headline(&self) -> String {
        let defaults = self.all_params.iter().filter(|it| !self.params.contains_key(it.0));
        let params = self.params.iter().chain(defaults).map(param_words);
        [self.script.workload.value.clone()].into_iter().chain(params).collect::<Vec<_>>().join(" ")
    }
}

fn param_words((name, value): (&String, &Param)) -> String {
    match value {
        Param::Int(it) => format!("{name}={it}"),
        Param::Float(it) => format!("{name}={it}"),
        Param::Text(it) => format!("{name}={it}"),
    }
}

/// A symbolic dimension that nobody gave a value.
pub(crate) fn no_value(dim: &Name) -> Diagnostic {
    let title = format!("the symbolic dimension `{dim}` has no value");
    Diagnostic::usage(UsageError::Dimension, title).help(format!("give one: `--dim {dim}=512`"))
}

/// A value for a dimension that is not there; `known` are those that may have been meant.
pub(crate) fn unknown_dim(dim: &Name, known: &[&Name]) -> Diagnostic {
    let near = schedule::nearest(dim.as_str(), known.iter().map(|it| it.as_str()));
    let help = match (near, known) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "its sizes are parameters: `--param`".to_owned(),
        (None, known) => {
            let known: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
            format!("there is {}", known.join(", "))
        }
    };
    let title = format!("the workload has no symbolic dimension `{dim}`");
    Diagnostic::usage(UsageError::Dimension, title).help(help)
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
            Diagnostic::usage(UsageError::KnobValue, title)
        };
        decisions.insert(Name::new(name.as_str()), choice.ok_or_else(wrong)?);
    }
    Ok((params, decisions))
}

/// A target from its word: `cpu`, `cuda` or `cuda:sm_90a`.
///
/// # Errors
///
/// What may have been meant, in words.
pub fn parse_target(word: &str) -> Result<ScriptTarget, String> {
    match (word, word.strip_prefix("cuda:").and_then(Arch::parse)) {
        ("cpu", _) => Ok(ScriptTarget::Cpu),
        ("cuda", _) => Ok(ScriptTarget::Cuda(None)),
        (_, Some(arch)) => Ok(ScriptTarget::Cuda(Some(arch))),
        (_, None) => Err(match schedule::nearest(word, ["cpu", "cuda"]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "there is `cpu`, `cuda`, and with an architecture `cuda:sm_90a`".to_owned(),
        }),
    }
}

/// `--target` where the virtual GPU will do: `vgpu`, `vgpu:sm_90a`, or a machine.
pub(crate) fn parse_asked(word: &str) -> Result<Asked, String> {
    match (word, word.strip_prefix("vgpu:").and_then(Arch::parse)) {
        ("vgpu", _) => Ok(Asked::Virtual(None)),
        (_, Some(arch)) => Ok(Asked::Virtual(Some(arch))),
        (_, None) => parse_target(word).map(Asked::Machine).map_err(|err| {
            match schedule::nearest(word, ["cpu", "cuda", "vgpu"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("{err}; `vgpu` and `vgpu:sm_90a` for the virtual GPU"),
            }
        }),
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
