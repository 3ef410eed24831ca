//! What the virtual GPU finds: data, and the sentences for it.

use std::fmt;

use indexmap::IndexMap;
use ir::Name;
use serde::Serialize;

use super::RaceKind;

/// An access to memory, in a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
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
    /// An integer divided by zero.
    DivisionByZero { access: Access },
    /// An element of an output that no kernel has written at the end, the first of `count`.
    OutputUnwritten { buffer: Name, element: i64, count: i64 },
}

/// A finding and how often it was made: the same kind at the same lines counts as the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Found {
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
    pub(crate) found: IndexMap<Key, Found>,
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
        self.found.insert(key, Found { finding, times: 1 });
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
            Finding::DivisionByZero { .. } => "division by zero",
            Finding::OutputUnwritten { .. } => "output not written",
        }
    }

    /// The accesses that it is about, in the order of its fields.
    pub fn accesses(&self) -> Vec<&Access> {
        match self {
            Finding::DataRace { first, second, .. } => vec![first, second],
            Finding::MissingWait { copy, access, .. } | Finding::NeverLanded { copy, access, .. } => {
                vec![copy, access]
            }
            Finding::Uninitialised { access, .. }
            | Finding::OutOfBounds { access, .. }
            | Finding::DivisionByZero { access } => vec![access],
            Finding::DivergentBarrier { access, other } => vec![access, other],
            Finding::OutputUnwritten { .. } => vec![],
        }
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
        let ([x, y, z], [bx, by, bz]) = (self.thread, self.block);
        write!(
            f,
            "line {} `{}` in thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})",
            self.line, self.text
        )?;
        for (n, (name, value)) in self.at.iter().enumerate() {
            write!(f, "{}{name} = {value}", if n == 0 { " at " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
                let words = race.words();
                write!(f, "data race on {buffer}[{element}]: {words}, {between}. {first}; {second}")
            }
            Finding::MissingWait { buffer, element, copy, access } => write!(
                f,
                "missing wait: {buffer}[{element}] is touched while an asynchronous copy to it is under way. Copy: {copy}; touched: {access}"
            ),
            Finding::NeverLanded { buffer, element, copy, access } => write!(
                f,
                "missing wait: {buffer}[{element}] is touched though the asynchronous copy to it is never waited for. Copy: {copy}; touched: {access}"
            ),
            Finding::Uninitialised { buffer, element, access } => {
                write!(f, "uninitialised read: nothing has written {buffer}[{element}]. {access}")
            }
            Finding::OutOfBounds { buffer, element, len, access } => {
                write!(f, "out of bounds: {buffer}[{element}], and it has {len} elements. {access}")
            }
            Finding::DivergentBarrier { access, other } => write!(
                f,
                "divergent barrier: not all threads of a block come to the barriers inside. {access} goes on and {other} does not"
            ),
            Finding::DivisionByZero { access } => write!(f, "division of an integer by zero: {access}"),
            Finding::OutputUnwritten { buffer, element, count } => {
                write!(
                    f,
                    "output not written: {count} elements of {buffer}, the first is {buffer}[{element}]"
                )
            }
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.finding)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}
