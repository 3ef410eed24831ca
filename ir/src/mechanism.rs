//! Mechanisms: how a component of a pipeline moves its data.

use std::fmt;

/// How a component of a pipelined loop does its work beside that of other iterations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mechanism {
    /// Nothing was asked for: the component runs in its place.
    Plain,
    /// Boxes that the tensor memory accelerator copies, counted by mbarriers.
    Tma,
    /// Copies from global to shared memory by `cp.async`, in groups that are waited for.
    CpAsync,
    /// Products that a warpgroup computes while it goes on, in groups that are waited for.
    Wgmma,
    /// Loads into registers early, stores to shared memory late.
    RegisterStaged,
    /// Asked to be asynchronous, and done in its place all the same.
    Synchronous,
}

impl Mechanism {
    /// Those that a script can ask for, best first.
    pub const ASKABLE: [Mechanism; 4] =
        [Mechanism::Tma, Mechanism::CpAsync, Mechanism::RegisterStaged, Mechanism::Synchronous];

    /// The word in scripts and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mechanism::Plain => "plain",
            Mechanism::Tma => "tma",
            Mechanism::CpAsync => "cp_async",
            Mechanism::Wgmma => "wgmma",
            Mechanism::RegisterStaged => "register_staged",
            Mechanism::Synchronous => "synchronous",
        }
    }

    /// The mechanism that a script asks for by a word.
    pub fn parse(text: &str) -> Option<Mechanism> {
        Mechanism::ASKABLE.into_iter().find(|it| it.as_str() == text)
    }

    /// The mechanism of a word, those among them that only lowering chooses.
    pub fn of_word(text: &str) -> Option<Mechanism> {
        if text == Mechanism::Wgmma.as_str() { Some(Mechanism::Wgmma) } else { Mechanism::parse(text) }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
