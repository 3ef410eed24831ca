//! Schedules written in Rust.

use indexmap::IndexMap;
use ir::{Func, Target};
use schedule::{Session, Step, workload::Param};

use crate::{
    build::{Built, build},
    diagnostic::Diagnostic,
    plan::Plan,
    script_text::{ScriptText, script},
};

/// A schedule under construction: steps applied one at a time to the program of a workload, each checked, each undoable.
///
/// Steps are those of scripts, in the same words; what is refused changes nothing. [`Schedule::plan`] makes of it what
/// [`run`](crate::run), [`tune`](crate::Tuner) and all other verbs take.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tilewright::{Schedule, Target};
///
/// let mut schedule = Schedule::new("matmul", [("m", 64), ("n", 64), ("k", 64)], Target::Cpu)?;
/// for (name, tile) in [("i", 8), ("j", 16)] {
///     schedule.step(&format!(r#"split(loop: "{name}", into: {{"{name}o": None, "{name}i": {tile}}})"#))?;
/// }
/// schedule.step(r#"reorder(order: ["io", "jo", "k", "ii", "ji"])"#)?;
/// schedule.step(r#"vectorize(loop: "ji")"#)?;
///
/// let err = schedule.step(r#"parallel(loop: "k")"#).unwrap_err();
/// assert_eq!(err.code().to_string(), "TW1022");
/// println!("{err}"); // with the step and the line of the program, as the command line prints it
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
        Ok(Schedule { workload: workload.to_owned(), params, target, session })
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

    /// Applies a step that a program made.
    pub fn apply(&mut self, step: &Step) -> Result<&mut Schedule, Diagnostic> {
        self.step(&step.to_ron())
    }

    /// Takes the last step back, and returns it.
    pub fn undo(&mut self) -> Option<Step> {
        self.session.undo()
    }

    /// The program as it is.
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
