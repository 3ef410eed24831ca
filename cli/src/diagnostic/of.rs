//! Refusals as diagnostics: what each kind of error becomes, and the places that it points at.

use std::{io, ops::Range, path::Path};

use codegen::{LaunchError, device::DeviceError, emit::EmitError, lower::LowerError};
use ir::{Coded, Func, Name, VerifyError};
use schedule::{
    ScheduleError, ScriptError,
    procedure::{Frame, ProcedureError},
    workload::WorkloadError,
};
use tuner::log::{Log, LogError};

use super::{Diagnostic, Fault, Mark, MarkedText};
use crate::{
    blame::{blamed_span, did_you_mean, longest_bound},
    escape::visible,
    script_text::{ScriptText, missing_use},
    usage_error::UsageError,
};

impl Diagnostic {
    /// Arguments that cannot be read, in the words of their reader, which begin with `error: ` and may go on with tips.
    pub(crate) fn arguments(words: &str) -> Diagnostic {
        let mut parts = words.trim_start_matches("error: ").split("\n\n").map(str::trim);
        let lines = |it: &str| it.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let title = parts.next().map(lines).unwrap_or_default();
        let tips = parts.flat_map(str::lines).map(|it| it.trim().trim_start_matches("tip: "));
        let tips: Vec<_> = tips.filter(|it| !it.starts_with("For more information")).collect();
        let help = (!tips.is_empty()).then(|| tips.join("\n"));
        Diagnostic::usage(UsageError::Arguments, title).help(help)
    }

    /// What is wrong in the text of a script.
    pub(crate) fn script(text: &ScriptText, err: ScriptError) -> Diagnostic {
        let more = err.more.into_iter().map(|it| Diagnostic::script(text, it)).collect();
        let help = missing_use(err.problem, text.text().get(err.span.clone())).or(err.help);
        let report = Diagnostic::failed(err.problem, err.message).help(help);
        Diagnostic { more, ..report.at_script(text, &err.span) }
    }

    /// Procedures that cannot be expanded.
    pub(crate) fn procedure(err: &ProcedureError) -> Diagnostic {
        let word = err.frames.first().and_then(|it| it.text.get(it.span.clone()));
        let help = missing_use(err.error.problem, word).or_else(|| err.error.help.clone());
        let report = Diagnostic::failed(err.error.problem, &err.error.message).help(help);
        report.within(&err.frames)
    }

    /// A file that cannot be read or written.
    pub(crate) fn io(path: &Path, err: &io::Error) -> Diagnostic {
        let reason = match err.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
            io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => err.to_string(),
        };
        Diagnostic::usage(UsageError::File, format!("{}: {reason}", path.display()))
    }

    /// A tuning log that cannot be read or written.
    pub fn log(err: &LogError) -> Diagnostic {
        let report = match err {
            LogError::Io { path, source } => Diagnostic { code: err.code(), ..Diagnostic::io(path, source) },
            LogError::Different { .. } => Diagnostic::failed(err, err.to_string()),
            LogError::Write { .. }
            | LogError::Entry(_)
            | LogError::Locked(_)
            | LogError::Exists(_)
            | LogError::Name(_)
            | LogError::Newer { .. }
            | LogError::NoHead(_)
            | LogError::Packed(_)
            | LogError::Empty(_)
            | LogError::Foreign(_)
            | LogError::Lost { .. } => Diagnostic::usage(err, err.to_string()),
        };
        report.help(err.help())
    }

    /// A run that was asked for and that a log does not have.
    pub(crate) fn no_run(log: &Log, path: &Path, wanted: Option<&str>) -> Diagnostic {
        if let Some(err) = log.unread(wanted) {
            return Diagnostic::log(&err);
        }
        let known: Vec<_> = log.runs.keys().map(|it| visible(it.clone())).collect();
        let help = wanted.and_then(|it| schedule::suggestion(it, known.iter().map(String::as_str)));
        let damaged =
            || format!("lines of it are damaged: `tilewright log verify {}` tells which", path.display());
        let help = help.or_else(|| (known.is_empty() && !log.damage.is_empty()).then(damaged));
        let what = wanted.map_or("no run".to_owned(), |it| format!("no run `{}`", visible(it.to_owned())));
        Diagnostic::usage(UsageError::NoRun, format!("{} has {what}", path.display())).help(help)
    }

    /// A workload file that is refused.
    pub(crate) fn workload(path: &Path, text: &str, err: &WorkloadError) -> Diagnostic {
        let report = Diagnostic::failed(err, err.to_string()).help(err.help());
        match &err.span {
            Some(span) => report.at(path, text, span.clone()),
            None => report,
        }
    }

    /// A step that was refused: the step in the script and the line of the program that it is about.
    pub(crate) fn refused(
        text: &ScriptText,
        step: &Range<usize>,
        word: &str,
        before: &Func,
        err: &ScheduleError,
    ) -> Diagnostic {
        let message = err.to_string();
        let title = if message.starts_with(word) { message } else { format!("{word}: {message}") };
        let mut report = Diagnostic::failed(err, title).help(err.help());
        report.step(text, step, blamed_span(text.text(), step, err));
        report.program("the program before it", before, &err.names(), err.buffer());
        report
    }

    /// A program that breaks rules: each with the line that introduces what breaks it.
    pub(crate) fn unsound(name: &str, func: &Func, errors: &[VerifyError]) -> Option<Diagnostic> {
        Diagnostic::all(errors.iter().map(|err| {
            let help = did_you_mean(func, err).or_else(|| err.kind.help());
            let mut report = Diagnostic::failed(&err.kind, err.to_string()).help(help);
            report.program(name, func, &[&err.at], Some(&err.at).filter(|_| err.is_of_buffer()));
            report
        }))
    }

    /// A scheduled program that cannot be lowered.
    pub(crate) fn lower(func: &Func, err: &LowerError) -> Diagnostic {
        let mut report = Diagnostic::failed(err, err.to_string()).help(err.help());
        let mut names = err.names();
        names.extend(longest_bound(func, err.axes()));
        report.program("the scheduled program", func, &names, err.buffer());
        report
    }

    /// A program that TVMScript has no words for.
    #[cfg(feature = "cli")]
    pub(crate) fn unwritable(func: &Func, err: &crate::tvm::Unwritable) -> Diagnostic {
        let title = format!("TVMScript cannot say this: {}", err.message);
        let mut report = Diagnostic::failed(err, title);
        report.program("the scheduled program", func, &[&err.at], Some(&err.at));
        report
    }

    /// A record of TVM's, or a step, that has no counterpart on the other side.
    #[cfg(feature = "cli")]
    pub(crate) fn trace(err: &crate::tvm::TraceError) -> Diagnostic {
        use crate::tvm::TraceError;

        match err {
            TraceError::Record { message } => Diagnostic::failed(err, message),
            TraceError::Unknown { message, help } => {
                Diagnostic::failed(err, message).help((*help).to_owned())
            }
            TraceError::Refused { instruction, before, err } => {
                let mut report = Diagnostic::failed(&**err, format!("{instruction}: {err}")).help(err.help());
                report.program("the program before it", before, &err.names(), err.buffer());
                report
            }
        }
    }

    /// A lowered program that its target has no words for.
    pub(crate) fn emit(func: &Func, err: &EmitError) -> Diagnostic {
        let mut report = Diagnostic::failed(err, err.to_string()).help(err.help());
        report.program("the scheduled program", func, &[], err.buffer());
        report
    }

    /// A program that cannot be launched at the sizes asked for.
    pub(crate) fn launch(func: &Func, err: &LaunchError) -> Diagnostic {
        let mut report = Diagnostic::failed(err, err.to_string()).help(err.help());
        let name = longest_bound(func, err.axis().as_slice());
        report.program("the scheduled program", func, name.as_slice(), err.buffer());
        report
    }

    /// What a device or a compiler said.
    pub(crate) fn device(err: &DeviceError) -> Diagnostic {
        let fault = match err {
            DeviceError::Missing { .. } | DeviceError::Broken { .. } | DeviceError::Unsupported(_) => {
                Fault::Usage
            }
            DeviceError::Compile { .. }
            | DeviceError::Call { .. }
            | DeviceError::Lost { .. }
            | DeviceError::Hang { .. } => Fault::Asked,
        };
        Diagnostic::new(fault, err, err.to_string()).help(err.help())
    }

    /// Points at what is to blame within a step, or at the whole step.
    fn step(&mut self, text: &ScriptText, step: &Range<usize>, blamed: Option<Range<usize>>) {
        let whole =
            |span, primary| Mark { span, label: Some("in this step".to_owned()), primary, is_call: false };
        let (frames, calls) = split_frames(text.frames(blamed.as_ref().unwrap_or(step)));
        let step_frame = split_frames(text.frames(step)).0;
        let marks = match (&blamed, &step_frame) {
            (Some(_), Some(step)) => {
                let exact = frames.iter().map(|it| Mark {
                    span: it.span.clone(),
                    label: None,
                    primary: true,
                    is_call: false,
                });
                exact.chain([whole(step.span.clone(), false)]).collect()
            }
            _ => frames.iter().map(|it| whole(it.span.clone(), true)).collect(),
        };
        self.texts.extend(frames.map(|it| MarkedText {
            name: it.source.to_string(),
            text: it.text.to_string(),
            marks,
            names: vec![],
        }));
        if !calls.is_empty() {
            // What a definition says with parameters is easier read with what they stand for.
            let inner = blamed.map_or(0..step.len(), |it| it.start - step.start..it.end - step.start);
            let marks = vec![Mark { span: inner, label: None, primary: false, is_call: false }];
            let text = text.text()[step.clone()].to_owned();
            self.texts.push(MarkedText {
                name: "the step that it stands for".to_owned(),
                text,
                marks,
                names: vec![],
            });
        }
        self.calls(calls);
    }

    /// Points at a place in a script and at the calls around it.
    pub(crate) fn at_script(self, text: &ScriptText, span: &Range<usize>) -> Diagnostic {
        self.within(&text.frames(span))
    }

    /// Points at a place and at the calls around it.
    fn within(mut self, frames: &[Frame]) -> Diagnostic {
        let (first, calls) = split_frames(frames.to_vec());
        self.texts.extend(first.map(|it| MarkedText {
            name: it.source.to_string(),
            text: it.text.to_string(),
            marks: vec![Mark { span: it.span, label: None, primary: true, is_call: false }],
            names: vec![],
        }));
        self.calls(calls);
        self
    }

    /// Points at calls, the innermost first.
    fn calls(&mut self, calls: Vec<Frame>) {
        self.texts.extend(calls.into_iter().map(|it| {
            let label = it.calls.map(|name| format!("in this call of {name}"));
            MarkedText {
                name: it.source.to_string(),
                text: it.text.to_string(),
                marks: vec![Mark { span: it.span, label, primary: false, is_call: true }],
                names: vec![],
            }
        }));
    }

    /// Points at the line of the program that introduces what is to blame.
    fn program(&mut self, name: &str, func: &Func, names: &[&Name], buffer: Option<&Name>) {
        let listing = ir::text::print(func);
        let declared = buffer.and_then(|it| listing.buffers.get(it));
        let head = || names.iter().find_map(|it| listing.heads.get(*it));
        let Some(span) = declared.or_else(head) else { return };
        let marks = vec![Mark { span: span.clone(), label: None, primary: false, is_call: false }];
        let names = names.iter().map(|it| (*it).clone()).collect();
        self.texts.push(MarkedText { name: name.to_owned(), text: listing.text, marks, names });
    }
}

/// The place itself, and the calls around it.
fn split_frames(frames: Vec<Frame>) -> (Option<Frame>, Vec<Frame>) {
    let mut frames = frames.into_iter();
    (frames.next(), frames.collect())
}

impl From<io::Error> for Diagnostic {
    /// Of writing to standard output.
    fn from(err: io::Error) -> Diagnostic {
        let fault = if err.kind() == io::ErrorKind::BrokenPipe { Fault::Closed } else { Fault::Usage };
        Diagnostic::new(fault, UsageError::Output, format!("the output cannot be written: {err}"))
    }
}

impl From<LogError> for Diagnostic {
    fn from(err: LogError) -> Diagnostic {
        Diagnostic::log(&err)
    }
}

impl From<DeviceError> for Diagnostic {
    fn from(err: DeviceError) -> Diagnostic {
        Diagnostic::device(&err)
    }
}
