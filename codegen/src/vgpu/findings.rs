//! What the virtual GPU finds: data, and the sentences for it.

use std::fmt;

use indexmap::IndexMap;
use ir::Name;
use serde::Serialize;

use super::RaceKind;

/// An access to memory, in a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Access {
    /// The kernel.
    pub kernel: Name,
    /// The line of the kernel's text form, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// The block, by its `blockIdx`.
    pub block: [i64; 3],
    /// The thread, by its `threadIdx`.
    pub thread: [i64; 3],
    /// The loops around the statement, outermost first, and their values.
    pub at: Vec<(Name, i64)>,
}

/// Something wrong with a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the sentence about each variant names its fields")]
pub enum Finding {
    /// Two accesses to one element of which one is a write, by different threads, that nothing orders.
    DataRace { buffer: Name, element: i64, race: RaceKind, first: Access, second: Access },
    /// An access to the destination of an asynchronous copy that the copying thread waits for only afterwards.
    MissingWait { buffer: Name, element: i64, copy: Access, access: Access },
    /// An access to the destination of an asynchronous copy that is never waited for.
    NeverLanded { buffer: Name, element: i64, copy: Access, access: Access },
    /// A read of an element that nothing has written.
    Uninitialised { buffer: Name, element: i64, access: Access },
    /// An access outside a buffer.
    OutOfBounds { buffer: Name, element: i64, len: i64, access: Access },
    /// Threads of a block that do not all come to the barriers under a loop or a condition; the run ends there.
    DivergentBarrier { access: Access, other: Access },
    /// An instruction of a whole warp that not all of its lanes come to.
    PartialWarp { intrinsic: &'static str, access: Access },
    /// An access to `element` and those behind it that begins at a byte, counted from the start of the buffer or of the
    /// block's shared memory, that is no multiple of `align`.
    Misaligned { buffer: Name, element: i64, byte: i64, shared: bool, align: i64, access: Access },
    /// An integer divided by zero.
    DivisionByZero { access: Access },
    /// A block waits for a turn that no other block gives it; the run ends there.
    Deadlock { buffer: Name, element: i64, turn: i64, counter: i64, access: Access },
    /// A counter of turns that is not zero at the end, so that the next run would begin with another turn.
    TurnsLeft { buffer: Name, element: i64, counter: i64 },
    /// An element of an output that no kernel has written at the end, the first of `count`.
    OutputUnwritten { buffer: Name, element: i64, count: i64 },
}

ir::codes!(Finding {
    DataRace = 2401,
    MissingWait = 2402,
    NeverLanded = 2403,
    Uninitialised = 2404,
    OutOfBounds = 2405,
    DivergentBarrier = 2406,
    PartialWarp = 2407,
    DivisionByZero = 2408,
    Deadlock = 2409,
    TurnsLeft = 2410,
    OutputUnwritten = 2411,
    Misaligned = 2412,
});

/// A finding and how often it was made: the same kind at the same lines counts as the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedFinding {
    /// The first of its sort.
    pub finding: Finding,
    /// How many there were.
    pub times: u64,
}

/// What makes two findings the same: the kind, the kernel and the statements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) kind: u8,
    pub(crate) kernel: usize,
    pub(crate) sites: [u32; 2],
}

/// Keeps the first findings of each sort.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) found: IndexMap<Key, CountedFinding>,
    /// How many sorts were not kept.
    pub(crate) dropped: u64,
    pub(crate) limit: usize,
}

impl Sink {
    /// Counts a finding; `false` if it is the first of its sort and should be kept.
    pub(crate) fn count(&mut self, key: Key) -> bool {
        if let Some(found) = self.found.get_mut(&key) {
            found.times += 1;
            return true;
        }
        let full = self.found.len() >= self.limit;
        self.dropped += u64::from(full);
        full
    }

    /// Keeps the first finding of a sort.
    pub(crate) fn keep(&mut self, key: Key, finding: Finding) {
        self.found.insert(key, CountedFinding { finding, times: 1 });
    }
}

impl Finding {
    /// The kind in a word or two.
    pub const fn title(&self) -> &'static str {
        match self {
            Finding::DataRace { .. } => "data race",
            Finding::MissingWait { .. } => "missing wait",
            Finding::NeverLanded { .. } => "copy never waited for",
            Finding::Uninitialised { .. } => "uninitialised read",
            Finding::OutOfBounds { .. } => "out of bounds",
            Finding::DivergentBarrier { .. } => "divergent barrier",
            Finding::PartialWarp { .. } => "part of a warp",
            Finding::Misaligned { .. } => "misaligned access",
            Finding::DivisionByZero { .. } => "division by zero",
            Finding::Deadlock { .. } => "deadlock",
            Finding::TurnsLeft { .. } => "turns not over",
            Finding::OutputUnwritten { .. } => "output not written",
        }
    }

    /// What is wrong, without who did it where.
    pub fn sentence(&self) -> String {
        let title = self.title();
        match self {
            Finding::DataRace { buffer, element, race, first, second } => {
                let between = match race {
                    RaceKind::SourceInFlight => "without a wait between them",
                    RaceKind::ReadAfterWrite | RaceKind::WriteAfterRead | RaceKind::WriteAfterWrite => {
                        if first.block == second.block {
                            "without a barrier between them"
                        } else {
                            "in different blocks"
                        }
                    }
                };
                format!("{title} on {buffer}[{element}]: {}, {between}", race.words())
            }
            Finding::MissingWait { buffer, element, .. } => {
                format!(
                    "{title}: {buffer}[{element}] is touched while an asynchronous copy to it is under way"
                )
            }
            Finding::NeverLanded { buffer, element, .. } => {
                format!(
                    "{title}: {buffer}[{element}] is touched after an asynchronous copy to it was started"
                )
            }
            Finding::Uninitialised { buffer, element, .. } => {
                format!("{title}: nothing has written {buffer}[{element}]")
            }
            Finding::OutOfBounds { buffer, element, len, .. } => {
                format!("{title}: {buffer}[{element}], and it has {len} elements")
            }
            Finding::DivergentBarrier { .. } => {
                format!("{title}: not all threads of a block come to the barriers inside")
            }
            Finding::PartialWarp { intrinsic, .. } => {
                format!("{title}: not all 32 lanes come to {intrinsic}, which they execute together")
            }
            Finding::Misaligned { buffer, element, byte, shared, align, .. } => {
                let of = if *shared { "shared memory".to_owned() } else { buffer.to_string() };
                format!(
                    "{title}: it begins at {buffer}[{element}], byte {byte} of {of}, and not at a multiple of {align}"
                )
            }
            Finding::DivisionByZero { .. } => "division of an integer by zero".to_owned(),
            Finding::Deadlock { buffer, element, turn, counter, .. } => {
                format!("{title}: a block waits until {buffer}[{element}] is {turn}, and it stays {counter}")
            }
            Finding::TurnsLeft { buffer, element, counter } => {
                format!("{title}: {buffer}[{element}] is {counter} at the end")
            }
            Finding::OutputUnwritten { buffer, element, count } => {
                let plural = if *count == 1 { "" } else { "s" };
                format!("{title}: {count} element{plural} of {buffer}, the first is {buffer}[{element}]")
            }
        }
    }

    /// The accesses that it is about, and what each does.
    pub fn told(&self) -> Vec<(&'static str, &Access)> {
        match self {
            Finding::DataRace { race, first, second, .. } => {
                let verbs = match race {
                    RaceKind::ReadAfterWrite => ["writes it", "reads it"],
                    RaceKind::WriteAfterRead => ["reads it", "writes it"],
                    RaceKind::WriteAfterWrite => ["writes it", "writes it, too"],
                    RaceKind::SourceInFlight => ["copies from it", "writes it"],
                };
                verbs.into_iter().zip([first, second]).collect()
            }
            Finding::MissingWait { copy, access, .. } | Finding::NeverLanded { copy, access, .. } => {
                vec![("starts the copy", copy), ("touches it", access)]
            }
            Finding::Uninitialised { access, .. } => vec![("reads it", access)],
            Finding::OutOfBounds { access, .. } | Finding::Misaligned { access, .. } => {
                vec![("accesses it", access)]
            }
            Finding::PartialWarp { access, .. } => vec![("is missing", access)],
            Finding::DivisionByZero { access } => vec![("divides", access)],
            Finding::Deadlock { access, .. } => vec![("waits", access)],
            Finding::DivergentBarrier { access, other } => vec![("goes on", access), ("does not", other)],
            Finding::TurnsLeft { .. } | Finding::OutputUnwritten { .. } => vec![],
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Finding::DataRace { race: RaceKind::SourceInFlight, .. } => {
                "wait for the copy before its source is written"
            }
            Finding::DataRace { first, second, .. } if first.block != second.block => {
                "blocks run in any order: give each elements of its own, let them take turns, or make two kernels of it"
            }
            Finding::DataRace { .. } => "a barrier between the two orders them, whichever comes first",
            Finding::MissingWait { .. } => {
                "wait before it is touched, and let fewer groups be in flight: a wait counts committed groups from the youngest"
            }
            Finding::NeverLanded { .. } => "commit the copy and wait for its group before it is touched",
            Finding::Uninitialised { .. } => {
                "write it first, on every path and in every thread that reads it"
            }
            Finding::PartialWarp { .. } => "let the conditions around it be the same for all lanes",
            Finding::OutOfBounds { .. } => "a condition around the access keeps the last threads out",
            Finding::DivergentBarrier { .. } => {
                "a barrier is for all threads of a block: let them all decide alike, or move it outside"
            }
            Finding::Misaligned { .. } => {
                "begin it at a multiple of its size, with padding where rows are odd, or access fewer elements at once"
            }
            Finding::DivisionByZero { .. } => {
                "keep zero out: by `max(…, 1i32)` from a value of memory, by a condition from one of loops and threads"
            }
            Finding::TurnsLeft { .. } => "there have to be as many turns as blocks that take one",
            Finding::Deadlock { .. } => {
                "each block has to end its turn, and the turns have to run from zero without a gap"
            }
            Finding::OutputUnwritten { .. } => "each element of an output has to be written by some thread",
        }
    }
}

impl Access {
    /// `thread (1, 0, 0) of block (0, 0, 0) at ko = 3, ki = 1`.
    pub fn who(&self) -> String {
        let ([x, y, z], [bx, by, bz]) = (self.thread, self.block);
        let mut out = format!("thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})");
        for (n, (name, value)) in self.at.iter().enumerate() {
            let comma = if n == 0 { " at " } else { ", " };
            out.extend([comma, name.as_str(), " = ", &value.to_string()]);
        }
        out
    }
}

impl RaceKind {
    /// What the two accesses do.
    const fn words(self) -> &'static str {
        match self {
            RaceKind::ReadAfterWrite => "one thread writes it and another reads it",
            RaceKind::WriteAfterRead => "one thread reads it and another writes it",
            RaceKind::WriteAfterWrite => "two threads write different numbers to it",
            RaceKind::SourceInFlight => "it is written while an asynchronous copy may still read it",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} `{}` by {}", self.line, self.text, self.who())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())?;
        for (n, (verb, access)) in self.told().into_iter().enumerate() {
            write!(f, "{} {verb}: {access}", if n == 0 { "." } else { ";" })?;
        }
        Ok(())
    }
}

impl fmt::Display for CountedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.finding)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}
