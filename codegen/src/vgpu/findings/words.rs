//! The sentences for what was found.

use std::fmt;

use ir::Name;

use super::{Access, CountedFinding, Finding, Waiting, WaitingTurn};
use crate::vgpu::RaceKind;

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
            Finding::Deadlock { .. } | Finding::Stuck { .. } => "deadlock",
            Finding::TurnsLeft { .. } => "turns not over",
            Finding::OutputUnwritten { .. } => "output not written",
            Finding::PhaseAhead { .. } => "wrong phase",
            Finding::PhaseBytes { .. } => "bytes of a phase",
            Finding::PhaseUnfinished { .. } => "phase not over",
            Finding::Arrivals { .. } => "too many arrivals",
            Finding::InFlightRegister { .. } => "registers in flight",
            Finding::MissingWgmmaFence { .. } => "missing wgmma fence",
            Finding::MissingProxyFence { .. } => "missing proxy fence",
            Finding::PartialGroup { .. } => "part of a warpgroup",
            Finding::Outstanding { .. } => "still under way",
            Finding::OutOfTurn { .. } => "out of turn",
            Finding::BlockEnded { .. } | Finding::MemoryGone { has_begun: true, .. } => "block has ended",
            Finding::MemoryGone { has_begun: false, .. } => "block has not begun",
            Finding::ClaimedAgain { .. } => "claim behind the last",
        }
    }

    /// What is wrong, without who did it where.
    pub fn sentence(&self) -> String {
        self.of_asynchronous().unwrap_or_else(|| self.of_threads())
    }

    /// The same of what threads do themselves.
    fn of_threads(&self) -> String {
        let title = self.title();
        match self {
            Finding::DataRace { buffer, element, race, first, second } => {
                let between = match race {
                    RaceKind::SourceInFlight => "without a wait between them",
                    RaceKind::ReadAfterWrite | RaceKind::WriteAfterRead | RaceKind::WriteAfterWrite => {
                        if first.block_in_grid() == second.block_in_grid() {
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
                format!("{title}: not all of the lanes come to {intrinsic}, which they execute together")
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
            _ => title.to_owned(),
        }
    }

    /// The same of mbarriers, and of those who work for threads.
    fn of_asynchronous(&self) -> Option<String> {
        let title = self.title();
        Some(match self {
            Finding::Stuck { waits, turns, .. } => {
                let phases = waits.iter().map(Waiting::words);
                let all: Vec<_> = phases.chain(turns.iter().map(WaitingTurn::words)).collect();
                format!("{title}: {}", all.join("; "))
            }
            Finding::ClaimedAgain { .. } => {
                format!("{title}: a block that has been told that none is left for it asks for another one")
            }
            Finding::PhaseAhead { barrier, slot, phase, under_way, .. } => {
                let is = if under_way < phase { "not yet" } else { "no longer" };
                format!(
                    "{title}: phase {phase} of {barrier}[{slot}] is waited for while phase {under_way} is under way, so \
                     that its parity is {is} a sign of it"
                )
            }
            Finding::PhaseBytes { barrier, slot, phase, expected, got, .. } => {
                format!("{title}: {barrier}[{slot}] expects {expected} in phase {phase}, and {got} come")
            }
            Finding::PhaseUnfinished { barrier, slot, phase, came, arrivals, .. } => {
                format!(
                    "{title}: {barrier}[{slot}] has {came} of {arrivals} arrivals in phase {phase} at the end"
                )
            }
            Finding::Arrivals { barrier, slot, phase, arrivals, .. } => {
                format!("{title}: all {arrivals} have arrived at {barrier}[{slot}] in phase {phase} already")
            }
            Finding::InFlightRegister { buffer, .. } => {
                format!("{title}: {buffer} is touched while a product that uses it is in flight")
            }
            Finding::MissingWgmmaFence { buffer, .. } => {
                format!("{title}: no fence is between the last access to {buffer} and a product that uses it")
            }
            Finding::MissingProxyFence { buffer, element, .. } => {
                format!(
                    "{title}: {buffer}[{element}] is touched by a thread, and then by the asynchronous proxy, without a \
                     fence between them"
                )
            }
            Finding::PartialGroup { intrinsic, .. } => {
                format!("{title}: not all four warps come to {intrinsic}, which they execute together")
            }
            Finding::OutOfTurn { of, turn, began, .. } => {
                let is =
                    began.map_or_else(|| "none is its own".to_owned(), |it| format!("its own is turn {it}"));
                format!("{title}: turn {turn} in {of} is ended by a warp that has not begun it: {is}")
            }
            Finding::Outstanding { .. } => {
                format!("{title}: the block ends before anybody has waited for it")
            }
            _ => return self.of_clusters(),
        })
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
            Finding::OutOfBounds { access, .. }
            | Finding::Misaligned { access, .. }
            | Finding::MemoryGone { access, .. } => vec![("accesses it", access)],
            Finding::PartialWarp { access, .. } | Finding::PartialGroup { access, .. } => {
                vec![("is missing", access)]
            }
            Finding::DivisionByZero { access } => vec![("divides", access)],
            Finding::Deadlock { access, .. }
            | Finding::Stuck { access, .. }
            | Finding::PhaseAhead { access, .. } => vec![("waits", access)],
            Finding::DivergentBarrier { access, other } => vec![("goes on", access), ("does not", other)],
            Finding::TurnsLeft { .. } | Finding::OutputUnwritten { .. } => vec![],
            Finding::PhaseBytes { access, .. } => vec![("is the last to count", access)],
            Finding::PhaseUnfinished { access, .. }
            | Finding::Arrivals { access, .. }
            | Finding::BlockEnded { access, .. } => vec![("arrives", access)],
            Finding::InFlightRegister { product, access, .. } => {
                vec![("starts the product", product), ("touches them", access)]
            }
            Finding::MissingWgmmaFence { access, .. } => vec![("multiplies", access)],
            Finding::MissingProxyFence { first, second, .. } => {
                vec![("touches it", first), ("has it touched", second)]
            }
            Finding::Outstanding { access } => vec![("starts it", access)],
            Finding::ClaimedAgain { access } => vec![("claims", access)],
            Finding::OutOfTurn { access, .. } => vec![("ends it", access)],
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        self.help_of_asynchronous().unwrap_or_else(|| self.help_of_threads())
    }

    /// The same of what threads do themselves.
    fn help_of_threads(&self) -> &'static str {
        match self {
            Finding::DataRace { race: RaceKind::SourceInFlight, .. } => {
                "wait for the copy before its source is written"
            }
            Finding::DataRace { first, second, .. } if first.block_in_grid() != second.block_in_grid() => {
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
            _ => "",
        }
    }
    /// The same of mbarriers, and of those who work for threads.
    const fn help_of_asynchronous(&self) -> Option<&'static str> {
        Some(match self {
            Finding::Stuck { .. } => {
                "each phase needs all its arrivals and bytes, from those who do not wait for a later one"
            }
            Finding::PhaseAhead { .. } => {
                "wait for each phase in its turn: the hardware tells a phase from the next one and from no other"
            }
            Finding::PhaseBytes { .. } => {
                "expect the bytes of all boxes of the phase, whole boxes even where they are partly outside"
            }
            Finding::PhaseUnfinished { .. } => {
                "let as many arrive in each phase as the mbarriers are declared with, in all or none"
            }
            Finding::Arrivals { .. } => "declare the mbarriers with as many arrivals as a phase has",
            Finding::InFlightRegister { .. } => {
                "commit the product and wait for its group before: a wait counts committed groups from the youngest"
            }
            Finding::MissingWgmmaFence { .. } => {
                "`fence wgmma` before the first product, and again after registers of its operands were touched"
            }
            Finding::MissingProxyFence { .. } => {
                "`fence async` by the thread that touched it, before what orders the two"
            }
            Finding::PartialGroup { .. } => {
                "let the conditions around it be the same for all of the warpgroup"
            }
            Finding::OutOfTurn { .. } => {
                "each turn is begun and ended once, by the same warpgroup and with the same number"
            }
            Finding::MemoryGone { has_begun: false, .. } => {
                "let the blocks of the cluster wait for each other before that: `barrier cluster`"
            }
            Finding::BlockEnded { .. } | Finding::MemoryGone { .. } => {
                "let each block of a cluster wait for all that others do in its shared memory, before it ends"
            }
            Finding::ClaimedAgain { .. } => {
                "claim once for each block that is stood for: an answer that names none is the last"
            }
            Finding::Outstanding { .. } => {
                "wait for it, for what a copy reads at least: shared memory goes with its block"
            }
            _ => return None,
        })
    }
}

impl Waiting {
    /// Whether it is the same that is waited for, by the same role.
    pub(crate) fn is_same(&self, other: &Waiting) -> bool {
        self.role == other.role
            && (&self.barrier, self.slot, self.phase) == (&other.barrier, other.slot, other.phase)
    }

    /// `compute warp 5 waits for ko_full[2] phase 3: 1 of 1 arrivals, 32768 of 49152 bytes`.
    fn words(&self) -> String {
        let Waiting { barrier, slot, phase, under_way, came, arrivals, got, expected, .. } = self;
        let who = who_waits(self.role.as_ref(), &self.warps);
        let other = if under_way == phase { String::new() } else { format!(" phase {under_way} has") };
        let bytes =
            if *expected == 0 && *got == 0 { String::new() } else { format!(", {got} of {expected} bytes") };
        format!("{who} for {barrier}[{slot}] phase {phase}:{other} {came} of {arrivals} arrivals{bytes}")
    }
}

impl WaitingTurn {
    /// Whether it is the same that is waited for, by the same role.
    pub(crate) fn is_same(&self, other: &WaitingTurn) -> bool {
        (&self.role, &self.of, self.turn) == (&other.role, &other.of, other.turn)
    }

    /// `compute warp 4 and 3 others wait for turn 1 in ko, and it is turn 0`.
    fn words(&self) -> String {
        let WaitingTurn { of, turn, under_way, .. } = self;
        let who = who_waits(self.role.as_ref(), &self.warps);
        format!("{who} for turn {turn} in {of}, and it is turn {under_way}")
    }
}

/// `compute warp 5 waits`, or several.
fn who_waits(role: Option<&Name>, warps: &[i64]) -> String {
    let role = role.map(|it| format!("{it} ")).unwrap_or_default();
    let (first, more) = (warps.first().copied().unwrap_or(0), warps.len() - 1);
    match more {
        0 => format!("{role}warp {first} waits"),
        1 => format!("{role}warp {first} and another wait"),
        _ => format!("{role}warp {first} and {more} others wait"),
    }
}

impl Access {
    /// Which of all blocks it is.
    const fn block_in_grid(&self) -> ([i64; 3], Option<[i64; 3]>) {
        (self.block, self.in_cluster)
    }

    /// `thread (1, 0, 0) of block (0, 0, 0) at ko = 3, ki = 1`.
    pub fn who(&self) -> String {
        let ([x, y, z], [bx, by, bz]) = (self.thread, self.block);
        let role = self.role.as_ref().map(|it| format!("{it} ")).unwrap_or_default();
        let of = match self.in_cluster {
            None => format!("block ({bx}, {by}, {bz})"),
            Some([x, y, z]) => format!("block ({x}, {y}, {z}) of cluster ({bx}, {by}, {bz})"),
        };
        let mut out = format!("{role}thread ({x}, {y}, {z}) of {of}");
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
