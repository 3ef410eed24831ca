//! One case: a script on its way from text to source, and what became of it.

use codegen::{compile_module, emit::emit};
use ir::{Arch, Target};
use schedule::{Decisions, Script, Session, script::ScriptTarget, workload};

/// How far a script came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Came {
    /// Refused as a text.
    Text,
    /// It names no workload that ships, or not its parameters.
    Workload,
    /// Knobs and expressions do not give steps.
    Space,
    /// A step is refused.
    Step,
    /// The scheduled program cannot be lowered.
    Lower,
    /// The lowered program cannot be printed.
    Emit,
    /// It is a kernel.
    Source,
}

/// All of them, in order.
pub(crate) const ALL: [Came; 7] =
    [Came::Text, Came::Workload, Came::Space, Came::Step, Came::Lower, Came::Emit, Came::Source];

/// Does everything with a script that needs no compiler and no machine, for its own target and for another.
///
/// # Panics
/// Where there is a bug: that is what is looked for.
pub(crate) fn run(text: &str) -> Came {
    let Ok(text) = tilewright::expand("fuzzed.ron".as_ref(), text) else { return Came::Text };
    let Ok(script) = Script::parse(&text) else { return Came::Text };
    let params = &script.params.value;
    let Some(found) = workloads::find(&script.workload.value) else { return Came::Workload };
    let workload = workload::parse(found).expect("the workloads that ship are right");
    let made = workload.instantiate(params).and_then(|func| Ok((func, workload.complete(params)?)));
    let Ok((func, all)) = made else { return Came::Workload };
    if script.axes(&all).is_err() {
        return Came::Space;
    }
    let Ok(steps) = script.resolve(&all, &Decisions::new()) else { return Came::Space };
    let target = match script.target.as_ref().map(|it| &it.value) {
        None | Some(ScriptTarget::Cpu) => Target::Cpu,
        Some(ScriptTarget::Cuda(arch)) => Target::Cuda(arch.clone().unwrap_or(Arch { sm: 80, suffix: None })),
    };
    let mut session = Session::new(func, Some(target.clone()));
    for step in &steps {
        if session.apply(&step.value).is_err() {
            return Came::Step;
        }
    }
    let text = ir::text::print(session.func()).text;
    assert!(!text.is_empty(), "a program has a text");
    let other = if target == Target::Cpu { Target::Cuda(Arch { sm: 80, suffix: None }) } else { Target::Cpu };
    let came = lower(&session, &target);
    lower(&session, &other);
    came
}

fn lower(session: &Session, target: &Target) -> Came {
    let Ok(module) = compile_module(session.func(), target) else { return Came::Lower };
    if emit(&module, target).is_ok() { Came::Source } else { Came::Emit }
}

/// A log of records, of which any bytes are read or refused.
///
/// # Panics
/// Where there is a bug.
pub(crate) fn read_log(bytes: &[u8]) {
    let _ = tuner::parse_log(bytes);
}
