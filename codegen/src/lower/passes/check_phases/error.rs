//! Why asynchronous work in a kernel is not proved to be in order.

use ir::{Index, Name};

/// What is not proved about the mbarriers of a kernel, or about what is in flight in it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum PhaseError {
    #[error(
        "phases of `{barrier}` are told to expect {expected} bytes, and boxes of {come} bytes come: {when}"
    )]
    Bytes { barrier: Name, expected: Index, come: Index, when: &'static str },
    #[error("a phase of `{barrier}` counts {arrivals} arrivals, and {come} come in each")]
    Arrivals { barrier: Name, arrivals: i64, come: i64 },
    #[error(
        "{what} number {number} at `{barrier}` is for slot {slot}{}, and not for that of this number: there are {slots} slots",
        phase.as_ref().map(|it| format!(", phase {it}")).unwrap_or_default()
    )]
    OutOfStep {
        barrier: Name,
        what: &'static str,
        number: Index,
        slot: Index,
        phase: Option<Index>,
        slots: i64,
    },
    #[error("a phase of `{barrier}` may be over twice before all who wait for it have seen it")]
    Ahead { barrier: Name },
    #[error("{awaited} phases of `{barrier}` are waited for, and {begun} are begun")]
    Unfinished { barrier: Name, awaited: Index, begun: Index },
    #[error("those who arrive at `{barrier}` may wait for a phase that comes after their arrival")]
    Stuck { barrier: Name },
    #[error("`{buffer}` is touched outside its phase of `{barrier}`: {why}")]
    Window { buffer: Name, barrier: Name, why: Outside },
    #[error("`{buffer}` is touched while {what} may still use it")]
    InFlight { buffer: Name, what: &'static str },
    #[error("{what} may still be under way when the kernel ends, and uses `{buffer}`")]
    Outstanding { buffer: Name, what: &'static str },
    #[error("no `fence {fence}` is between what threads did to `{buffer}` and {what}")]
    Unfenced { buffer: Name, fence: &'static str, what: &'static str },
    #[error("roles `{first}` and `{second}` both touch `{buffer}`, and no ring orders them")]
    Exchange { buffer: Name, first: Name, second: Name },
    #[error("blocks of a cluster meet at `{barrier}`: {why}")]
    Remote { barrier: Name, why: Remote },
    #[error("it is not known how often `{instr}` is done at `{barrier}`")]
    Uncounted { barrier: Name, instr: &'static str },
    #[error(
        "it is not proved when `{buffer}` may be touched: that takes looking back over more than {most} {what}"
    )]
    TooFar { buffer: Name, most: i64, what: &'static str },
}

/// In which way a touch of a slot is outside the phase that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Outside {
    /// No await says that it has come.
    #[error("nobody has waited for what is in the slot")]
    NotAwaited,
    /// It is touched later than the slot is given back.
    #[error("the slot has been given back before")]
    GivenBack,
    /// It may be touched still when the slot is given back.
    #[error("the slot is given back before that is over, for all who do it")]
    NotOver,
    /// It may be touched still when the slot is filled.
    #[error("the slot is filled again before that is over, for all who do it")]
    FilledAgain,
    /// The slot is filled without a wait for those who read it.
    #[error("the slot is filled without waiting for those who read it")]
    NotFree,
}

/// What blocks of a cluster may do wrong to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Remote {
    /// A box comes from another block, which has not been told.
    #[error("a box comes from another block to a slot of which that one does not know that it is free")]
    NotFree,
    /// How often something is done depends on which block of the cluster it is.
    #[error("not all of them do the same")]
    Differs,
    /// Of a pair, not those are told who wait: see `expect_told`.
    #[error("it is told in another block of the pair than the one in which it is waited for")]
    Elsewhere,
    /// Of a pair, the other block does not hear of what was done for both.
    #[error("what one thread did for both blocks of a pair, only one of them hears of")]
    Unheard,
}

ir::codes!(PhaseError {
    Bytes = 2501,
    Arrivals = 2502,
    OutOfStep = 2503,
    Ahead = 2504,
    Unfinished = 2505,
    Stuck = 2506,
    Window = 2507,
    InFlight = 2508,
    Outstanding = 2512,
    Unfenced = 2509,
    Exchange = 2510,
    Uncounted = 2511,
    TooFar = 2513,
    Remote = 2514,
});

impl PhaseError {
    /// What to do about it.
    pub(crate) const fn help(&self) -> &'static str {
        match self {
            PhaseError::TooFar { .. } => {
                "nothing is known to be wrong, but the proof has a limit: give the buffer fewer slots"
            }
            // Whoever wrote the script has made no mistake.
            _ => {
                "the passes that place waits, arrivals and fences have a bug: please report it with the script"
            }
        }
    }

    /// The names in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            PhaseError::Bytes { barrier, .. }
            | PhaseError::Arrivals { barrier, .. }
            | PhaseError::OutOfStep { barrier, .. }
            | PhaseError::Ahead { barrier }
            | PhaseError::Unfinished { barrier, .. }
            | PhaseError::Stuck { barrier }
            | PhaseError::Remote { barrier, .. }
            | PhaseError::Uncounted { barrier, .. } => vec![barrier],
            PhaseError::Window { buffer, barrier, .. } => vec![buffer, barrier],
            PhaseError::InFlight { buffer, .. }
            | PhaseError::Outstanding { buffer, .. }
            | PhaseError::Unfenced { buffer, .. }
            | PhaseError::TooFar { buffer, .. } => vec![buffer],
            PhaseError::Exchange { buffer, first, second } => vec![buffer, first, second],
        }
    }
}
