//! Schedules written in Rust.

mod call;
mod inspect;

use std::fmt;

use indexmap::IndexMap;
use ir::{Func, Target};
use schedule::{ScheduleError, Session, Step, workload::Param};

pub use call::{Argument, Arguments};
pub use inspect::{BlockInfo, BufferInfo, LoopInfo};

use crate::{
    build::{Built, build},
    diagnostic::Diagnostic,
    plan::Plan,
    script_text::{ScriptText, script},
};

/// A schedule under construction: steps applied one at a time to the program of a workload, each checked, each undoable.
///
/// Each primitive is a method that takes what its step needs; what a step may leave out is said by the builder of its type in
/// [`schedule::primitive`], and applied. [`Schedule::call`] applies a procedure, [`Schedule::step`] a step as scripts have it. What is
/// refused changes nothing. [`Schedule::plan`] makes of it what [`run`](crate::run), [`tune`](crate::Tuner) and all other verbs take.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tilewright::{Schedule, Target, schedule::primitive::Unroll};
///
/// let mut schedule = Schedule::new("matmul", [("m", 64), ("n", 64), ("k", 64)], Target::Cpu)?;
/// for (name, tile) in [("i", 8), ("j", 16)] {
///     schedule.split(name, [(format!("{name}o"), None), (format!("{name}i"), Some(tile))])?;
/// }
/// schedule.reorder(["io", "jo", "k", "ii", "ji"])?.vectorize("ji")?;
/// schedule.apply(Unroll::new("ii").with_serpentine("k"))?; // backwards in each second iteration of `k`
/// schedule.step(r#"annotate(loop: "io", key: "note", value: "rows")"#)?;
///
/// let err = schedule.parallel("k").unwrap_err();
/// assert_eq!(err.code().to_string(), "TW1022");
/// assert!(err.to_string().contains(r#"parallel(loop: "k")"#)); // the step, and the line of the program
///
/// let built = schedule.compile()?;
/// assert!(built.source().contains("vector"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    workload: String,
    params: IndexMap<String, Param>,
    target: Target,
    session: Session,
    /// The libraries whose procedures can be called.
    libraries: Vec<String>,
}

impl Schedule {
    /// The unscheduled program of a workload at these sizes: the name of one that ships, or the path of a file that begins
    /// with `./` or `/`.
    pub fn new<'a>(
        workload: &str,
        sizes: impl IntoIterator<Item = (&'a str, i64)>,
        target: Target,
    ) -> Result<Schedule, Diagnostic> {
        let params = sizes.into_iter().map(|(name, size)| (name.to_owned(), Param::Int(size)));
        Schedule::with_params(workload, params.collect(), target)
    }

    /// The same with parameters that need not be numbers, such as `dtype`.
    pub fn with_params(
        workload: &str,
        params: IndexMap<String, Param>,
        target: Target,
    ) -> Result<Schedule, Diagnostic> {
        let plan = Plan::parse("schedule.ron".as_ref(), &script(workload, &params, &target, &[]), &[])?;
        let session = plan.schedule(&target, None)?;
        let (workload, libraries) = (workload.to_owned(), vec![]);
        Ok(Schedule { workload, params, target, session, libraries })
    }

    /// Applies a step, written as in a script: `split(loop: "i", into: {"io": None, "ii": 8})`.
    pub fn step(&mut self, text: &str) -> Result<&mut Schedule, Diagnostic> {
        let step = Step::from_ron(text).map_err(|err| {
            Diagnostic::failed(&err, &err.message).at("step".as_ref(), text, err.span).help(err.help)
        })?;
        let res = self.session.apply(&step);
        res.map_err(|err| {
            Diagnostic::refused(
                &ScriptText::plain("step", text),
                &(0..text.len()),
                step.name(),
                self.session.func(),
                &err,
            )
        })?;
        Ok(self)
    }

    /// Applies a step that a program made: a [`Step`], or one of the types in [`schedule::primitive`].
    pub fn apply(&mut self, step: impl Into<Step>) -> Result<&mut Schedule, Diagnostic> {
        self.step(&step.into().to_ron())
    }

    /// Applies a step that a method made, if it could be made.
    fn add(&mut self, word: &str, step: Result<Step, ScheduleError>) -> Result<&mut Schedule, Diagnostic> {
        let step = step.map_err(|err| Diagnostic::failed(&err, format!("{word}: {err}")).help(err.help()))?;
        self.apply(step)
    }

    /// Takes the last step back, and returns it.
    pub fn undo(&mut self) -> Option<Step> {
        self.session.undo()
    }

    /// The steps so far.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.session.trace()
    }

    /// The program as it is; as a text it is what the schedule displays.
    pub fn func(&self) -> &Func {
        self.session.func()
    }

    /// What the last step changed, with that many unchanged lines around each change.
    pub fn last_diff(&self, context: usize) -> String {
        self.session.last_diff(context)
    }

    /// The schedule as a script, which `tilewright run` takes.
    pub fn script(&self) -> String {
        let steps = self.session.trace().map(|it| (None, it)).collect::<Vec<_>>();
        script(&self.workload, &self.params, &self.target, &steps)
    }

    /// The schedule as all verbs take it.
    pub fn plan(&self) -> Result<Plan, Diagnostic> {
        Plan::parse("schedule.ron".as_ref(), &self.script(), &[])
    }

    /// Lowers, emits and compiles it.
    pub fn compile(&self) -> Result<Built, Diagnostic> {
        build(self.func(), &self.target, &IndexMap::new())
    }
}

impl Schedule {
    schedule::step_methods! { Diagnostic }
}

/// The loop nest, with its buffers.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ir::text::print(self.func()).text)
    }
}
