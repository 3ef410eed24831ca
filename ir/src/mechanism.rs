//! Mechanisms: how a component of a pipeline moves its data.

use std::fmt;

use crate::Group;

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
    /// Products that the tensor core computes for one thread, in groups that are waited for.
    Tcgen05,
    /// Loads into registers early, stores to shared memory late.
    RegisterStaged,
    /// Asked to be asynchronous, and done in its place all the same.
    Synchronous,
}

impl Mechanism {
    /// Those that a script can ask for, best first.
    pub const ASKABLE: [Mechanism; 4] =
        [Mechanism::Tma, Mechanism::CpAsync, Mechanism::RegisterStaged, Mechanism::Synchronous];

    /// Whether it is products that nobody waits for at once.
    pub const fn is_product(self) -> bool {
        matches!(self, Mechanism::Wgmma | Mechanism::Tcgen05)
    }

    /// The groups that its work is waited for with, if it is.
    pub const fn group(self) -> Option<Group> {
        match self {
            Mechanism::CpAsync => Some(Group::CpAsync),
            Mechanism::Wgmma => Some(Group::Wgmma),
            Mechanism::Tcgen05 => Some(Group::Tcgen05),
            Mechanism::Plain | Mechanism::Tma | Mechanism::RegisterStaged | Mechanism::Synchronous => None,
        }
    }

    /// The word in scripts and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mechanism::Plain => "plain",
            Mechanism::Tma => "tma",
            Mechanism::CpAsync => "cp_async",
            Mechanism::Wgmma => "wgmma",
            Mechanism::Tcgen05 => "tcgen05",
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
        let chosen = [Mechanism::Wgmma, Mechanism::Tcgen05].into_iter().find(|it| it.as_str() == text);
        chosen.or_else(|| Mechanism::parse(text))
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
