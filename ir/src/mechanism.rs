//! Mechanisms: how a component of a pipeline moves its data.

use std::fmt;

/// How a component of a pipelined loop does its work beside that of other iterations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mechanism {
    /// Nothing was asked for: the component runs in its place.
    Plain,
    /// Copies from global to shared memory by `cp.async`, in groups that are waited for.
    CpAsync,
    /// Loads into registers early, stores to shared memory late.
    RegisterStaged,
    /// Asked to be asynchronous, and done in its place all the same.
    Synchronous,
}

impl Mechanism {
    /// Those that a script can ask for, best first.
    pub const ASKABLE: [Mechanism; 3] =
        [Mechanism::CpAsync, Mechanism::RegisterStaged, Mechanism::Synchronous];

    /// The word in scripts and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mechanism::Plain => "plain",
            Mechanism::CpAsync => "cp_async",
            Mechanism::RegisterStaged => "register_staged",
            Mechanism::Synchronous => "synchronous",
        }
    }

    /// The mechanism that a script asks for by a word.
    pub fn parse(text: &str) -> Option<Mechanism> {
        Mechanism::ASKABLE.into_iter().find(|it| it.as_str() == text)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
