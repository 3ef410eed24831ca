//! Calls of procedures from Rust.

use std::fmt;

use super::Schedule;
use crate::{diagnostic::Diagnostic, plan::Plan, script_text::script_that_calls};

/// What a parameter of a procedure may be: what a script has in its place.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// A whole number.
    Int(i64),
    /// `true` or `false`.
    Flag(bool),
    /// A name, or an expression over the parameters of the workload.
    Text(String),
    /// Several in order.
    List(Vec<Argument>),
    /// By name.
    Map(Vec<(String, Argument)>),
}

/// The arguments of a call, by the names of the procedure's parameters.
///
/// ```
/// use tilewright::Arguments;
///
/// let arguments = Arguments::new().with("block", "C").with("inline", ["C_unpad"]).with("m", 32);
/// assert_eq!(arguments.to_string(), r#"block: "C", inline: ["C_unpad"], m: 32"#);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arguments(Vec<(String, Argument)>);

impl Arguments {
    /// No arguments yet.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Argument>) -> Arguments {
        self.0.push((name.to_owned(), value.into()));
        self
    }
}

impl Schedule {
    /// Lets [`Schedule::call`] call the procedures of a library: one that ships, as `std/mma`, or a file whose path begins with `./`
    /// or `/`.
    ///
    /// # Errors
    /// A library that is not there or cannot be read, or that defines what another one does.
    pub fn use_library(&mut self, name: &str) -> Result<&mut Schedule, Diagnostic> {
        let mut next = self.clone();
        next.libraries.push(name.to_owned());
        Plan::parse("schedule.ron".as_ref(), &next.text(None), &[])?;
        self.libraries = next.libraries;
        Ok(self)
    }

    /// Applies the steps of a procedure. If one of them is refused, none is applied. [`Schedule::script`] has the steps in place of
    /// the call.
    ///
    /// # Errors
    /// A procedure that no library in use has, arguments that it does not take, and what its steps are refused for, with the step in
    /// the library and the call.
    ///
    /// ```
    /// # fn main() -> Result<(), tilewright::Diagnostic> {
    /// use tilewright::{Arguments, Schedule, Target};
    ///
    /// let mut schedule = Schedule::new("matmul", [("m", 32), ("n", 64), ("k", 20)], Target::Cpu)?;
    /// schedule.cache_write("C", "local")?.use_library("std/cpu")?;
    /// let tile = Arguments::new().with("block", "C").with("out", "C_local").with("rows", 8);
    /// schedule.call("cpu_tile", &tile.clone().with("columns", 16))?;
    /// assert_eq!(schedule.steps().count(), 12, "one step was there, and eleven are those of the procedure");
    ///
    /// let err = schedule.call("cpu_tile", &tile.with("colums", 16)).unwrap_err();
    /// assert!(err.to_string().contains("did you mean `columns`?"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call(&mut self, procedure: &str, arguments: &Arguments) -> Result<&mut Schedule, Diagnostic> {
        let call = format!("{procedure}({arguments})");
        let plan = Plan::parse("schedule.ron".as_ref(), &self.text(Some(&call)), &[])?;
        let mut session = self.session.clone();
        if let Some(refused) = Diagnostic::all(plan.go_on(&mut session, None, &mut |_, _, _| ())) {
            return Err(refused);
        }
        self.session = session;
        Ok(self)
    }

    /// The schedule as a script that uses its libraries, with a call behind its steps.
    fn text(&self, call: Option<&str>) -> String {
        let steps = self.session.trace().map(|it| (None, it)).collect::<Vec<_>>();
        script_that_calls(&self.libraries, &self.workload, &self.params, &self.target, &steps, call)
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}: {value}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |all: Vec<String>| all.join(", ");
        match self {
            Argument::Int(it) => write!(f, "{it}"),
            Argument::Flag(it) => write!(f, "{it}"),
            Argument::Text(it) => write!(f, "{it:?}"),
            Argument::List(all) => write!(f, "[{}]", joined(all.iter().map(ToString::to_string).collect())),
            Argument::Map(all) => {
                let pairs = all.iter().map(|(name, it)| format!("{name:?}: {it}"));
                write!(f, "{{{}}}", joined(pairs.collect()))
            }
        }
    }
}

/// What becomes an argument, by which variant.
macro_rules! from {
    ($($from:ty => |$it:ident| $value:expr;)*) => {
        $(impl From<$from> for Argument {
            fn from($it: $from) -> Argument {
                $value
            }
        })*
    };
}

from! {
    i64 => |it| Argument::Int(it);
    i32 => |it| Argument::Int(it.into());
    u32 => |it| Argument::Int(it.into());
    bool => |it| Argument::Flag(it);
    &str => |it| Argument::Text(it.to_owned());
    String => |it| Argument::Text(it);
    ir::Name => |it| Argument::Text(it.to_string());
}

impl<T: Into<Argument>> From<Vec<T>> for Argument {
    fn from(all: Vec<T>) -> Argument {
        Argument::List(all.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Argument>, const N: usize> From<[T; N]> for Argument {
    fn from(all: [T; N]) -> Argument {
        Vec::from(all).into()
    }
}
