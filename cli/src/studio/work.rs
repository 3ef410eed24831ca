//! The process that works: it reads the script once, and tells all there is to tell of it, the quick first.

use std::{env, io::Write};

use ir::Target;

use super::{
    Subject, machine,
    panels::{self, Program, Steps},
    script_lines::{Finding, lines},
    told::{Panel, ScriptTold, Told},
};
use crate::{
    diagnostic::Diagnostic,
    plan::{Plan, read},
    term::{
        table::{counted, grouped},
        wrap::error_width,
    },
    virtual_gpu,
};

/// Says to a process that it is the one that works, and for what.
pub(super) const PART: &str = "TILEWRIGHT_STUDIO";

/// What a process is to find out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// All that does not have to be asked for.
    All,
    /// What the virtual GPU says, however long that takes.
    VirtualGpu,
}

impl Part {
    /// The word for it in the environment.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Part::All => "all",
            Part::VirtualGpu => "virtual-gpu",
        }
    }
}

/// What this process is to find out, if it is one that works.
pub(crate) fn asked_part() -> Option<Part> {
    let word = env::var_os(PART)?;
    [Part::All, Part::VirtualGpu].into_iter().find(|it| word == it.word())
}

/// The one who is told.
pub(super) type Tell<'a> = &'a mut dyn FnMut(&Told) -> Result<(), Diagnostic>;

/// Does the work, and tells it line by line.
pub(crate) fn work(subject: &Subject, part: Part, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let mut tell = |told: &Told| {
        let line = serde_json::to_string(told).map_err(std::io::Error::from)?;
        writeln!(out, "{line}")?;
        Ok(out.flush()?)
    };
    let done = match part {
        Part::All => all(subject, &mut tell),
        Part::VirtualGpu => on_virtual_gpu(subject, &mut tell),
    };
    done.or_else(|err| tell(&Told::Failed(rendered(&err))))
}

/// An error as `check` prints it.
pub(super) fn rendered(err: &Diagnostic) -> String {
    [err.render(false, error_width()), err.more_words()].join("\n\n")
}

fn all(subject: &Subject, tell: Tell<'_>) -> Result<(), Diagnostic> {
    let text = read(&subject.script)?;
    let own = subject.script.display().to_string();
    let plan = match plan(subject, &text) {
        Ok(it) => it,
        Err(err) => return tell(&refused(&own, &text, &err, &|_| None)),
    };
    let target = plan.target(subject.target.as_ref(), None);
    let mut steps = Steps::new(&plan);
    let scheduled = plan.walk(&target, None, &mut |step, session| steps.add(step, session));
    let session = match scheduled {
        Ok(it) => it,
        Err(err) => {
            // The steps before it are legal, and the last of them made what the refused one was applied to.
            tell(&refused(&own, &text, &err, &|it| steps.culprit(it)))?;
            return tell(&steps.told());
        }
    };
    let program = match Program::of(session.func(), &target) {
        Ok(it) => it,
        Err(err) => {
            tell(&refused(&own, &text, &err, &|it| steps.culprit(it)))?;
            tell(&steps.told())?;
            return tell(&panels::not_lowered(session.func()));
        }
    };
    let (html, summary) = (lines(&text, &[]), summary(&plan, &program, &target));
    tell(&Told::Script(ScriptTold { text, html, wrong: 0, summary }))?;
    tell(&steps.told())?;
    program.tell(tell)?;
    machine::tell(&plan, &program, &target, tell)?;
    virtual_gpu_if_quick(&plan, &program, &target, tell)
}

fn plan(subject: &Subject, text: &str) -> Result<Plan, Diagnostic> {
    let mut plan = Plan::parse(&subject.script, text, &subject.params)?;
    plan.dims = subject.dims.iter().cloned().collect();
    if !plan.dims.is_empty() {
        plan.expect_dims()?;
    }
    Ok(plan)
}

/// A script with what is wrong with it. `elsewhere` knows where to show what has no place in the script.
fn refused(
    own: &str,
    text: &str,
    err: &Diagnostic,
    elsewhere: &dyn Fn(&Diagnostic) -> Option<usize>,
) -> Told {
    let each = err.each();
    let findings: Vec<Finding> = each
        .iter()
        .map(|it| Finding {
            at: it.place_in(own).map(|it| it.start).or_else(|| elsewhere(it)),
            words: it.render_alone(error_width()),
            code: it.code().to_string(),
        })
        .collect();
    let summary = match each.len() {
        1 => err.message().to_owned(),
        n => format!("{} (and {} more)", err.message(), n - 1),
    };
    let html = lines(text, &findings);
    Told::Script(ScriptTold { text: text.to_owned(), html, wrong: each.len(), summary })
}

/// What `check` says of a script that is legal.
fn summary(plan: &Plan, program: &Program, target: &Target) -> String {
    let kernels: Vec<_> = program.lowered.module.kernels.iter().map(|it| it.name.as_str()).collect();
    let (steps, word) = (counted(plan.steps.len(), "step"), if plan.steps.len() == 1 { "is" } else { "are" });
    format!(
        "{steps} {word} legal; {} lowers to {} for {}",
        plan.headline(),
        kernels.join(", "),
        tuner::build::target_word(target)
    )
}

/// The most assignments that the virtual GPU makes without being asked: they take half a second or so.
const QUICK: u64 = 50_000_000;

fn virtual_gpu_if_quick(
    plan: &Plan,
    program: &Program,
    target: &Target,
    tell: Tell<'_>,
) -> Result<(), Diagnostic> {
    let panel = Panel::VirtualGpu;
    if *target == Target::Cpu {
        let why =
            "The script is for the processor. The virtual GPU runs it if it can be lowered for a GPU, too.";
        return tell(&Told::OnDemand { panel, why: why.to_owned() });
    }
    if let Err(err) = plan.expect_dims() {
        return tell(&panels::refusal(panel, &err));
    }
    let count = virtual_gpu::assignments(plan, &program.lowered.module);
    if count > QUICK {
        let why = format!(
            "That takes about {} assignments of single threads, and a hundred million take a second or more. `--param` makes \
             smaller programs.",
            grouped(count)
        );
        return tell(&Told::OnDemand { panel, why });
    }
    machine::run_virtually(plan, target, tell)
}

/// What the virtual GPU says when somebody asks.
fn on_virtual_gpu(subject: &Subject, tell: Tell<'_>) -> Result<(), Diagnostic> {
    let text = read(&subject.script)?;
    let plan = plan(subject, &text).and_then(|it| it.expect_dims().map(|()| it));
    match plan {
        Ok(it) => machine::run_virtually(&it, &it.target(subject.target.as_ref(), None), tell),
        Err(err) => tell(&panels::refusal(Panel::VirtualGpu, &err)),
    }
}
