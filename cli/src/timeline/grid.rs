//! The grid of a timeline: a row for each statement and slot, a column for each step.

use std::{
    io::{self, Write},
    ops::Range,
};

use codegen::timeline::{Column, Held, Part, Ring, Sync, Timeline, in_groups};
use ir::{Fence, Group};

use crate::term::wrap::WIDTH;

/// A row of the grid: a label and a cell for each step.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: RowKind,
    pub(super) label: String,
    pub(super) cells: Vec<String>,
}

/// What a row shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowKind {
    /// The name of a role, over what it does.
    Lane(usize),
    /// What stands before a statement.
    Syncs(usize),
    /// The iteration of a statement.
    Statement(usize),
    /// What stands behind the last statement of a lane.
    Ends(usize),
    /// What a slot of a ring holds.
    Slot(usize, usize),
    /// How many groups of a kind are under way.
    Groups(usize),
}

impl RowKind {
    /// Whether it says what memory holds, and not what runs.
    pub(super) const fn is_memory(self) -> bool {
        match self {
            RowKind::Lane(_) | RowKind::Syncs(_) | RowKind::Statement(_) | RowKind::Ends(_) => false,
            RowKind::Slot(..) | RowKind::Groups(_) => true,
        }
    }

    /// Whether its empty cells are left empty: there is nothing that could run.
    const fn is_sparse(self) -> bool {
        match self {
            RowKind::Lane(_) | RowKind::Syncs(_) | RowKind::Ends(_) => true,
            RowKind::Statement(_) | RowKind::Slot(..) | RowKind::Groups(_) => false,
        }
    }
}

/// The rows of the grid, top to bottom.
pub(super) fn rows(it: &Timeline) -> Vec<Row> {
    let cells = |f: &dyn Fn(&Column) -> String| it.columns.iter().map(f).collect::<Vec<_>>();
    let mut out = Vec::new();
    for (at, lane) in it.lanes.iter().enumerate() {
        if let Some(role) = &lane.role {
            let (label, cells) = (format!("{role}:"), cells(&|_| String::new()));
            out.push(Row { kind: RowKind::Lane(at), label, cells });
        }
        for (rank, statement) in it.statements.iter().enumerate().filter(|(_, it)| it.role == lane.role) {
            let syncs = cells(&|column| syncs(&column.syncs[rank]));
            out.extend(unless_empty(RowKind::Syncs(rank), syncs));
            let cells = cells(&|column| column.runs[rank].map_or_else(String::new, |it| it.to_string()));
            out.push(Row { kind: RowKind::Statement(rank), label: statement.name.to_string(), cells });
        }
        let ends = cells(&|column| syncs(&column.ends[at]));
        out.extend(unless_empty(RowKind::Ends(at), ends));
    }
    for (at, ring) in it.rings.iter().enumerate() {
        if !is_shown(ring) {
            continue;
        }
        for slot in 0..usize::try_from(ring.slots).expect("slots are in memory") {
            let label =
                if ring.slots == 1 { ring.buffer.to_string() } else { format!("{}[{slot}]", ring.buffer) };
            let cells = cells(&|column| held(&column.slots[at][slot]));
            out.push(Row { kind: RowKind::Slot(at, slot), label, cells });
        }
    }
    for at in 0..it.groups.len() {
        let cells = cells(&|column| column.in_flight[at].to_string());
        out.push(Row { kind: RowKind::Groups(at), label: groups_label(it, at), cells });
    }
    out
}

fn unless_empty(kind: RowKind, cells: Vec<String>) -> Option<Row> {
    cells.iter().any(|it| !it.is_empty()).then(|| Row { kind, label: String::new(), cells })
}

/// `groups in flight`; where there are several kinds, or several roles have some, of what and of whom.
fn groups_label(it: &Timeline, at: usize) -> String {
    let (own, others) = (&it.groups[at], || it.groups.iter().enumerate().filter(|it| it.0 != at));
    let role = own.role.as_ref().filter(|_| others().any(|it| it.1.kind == own.kind));
    match role {
        _ if it.groups.len() == 1 => "groups in flight".to_owned(),
        None => format!("groups of {}", in_groups(own.kind)),
        Some(role) => format!("{role}: {}", in_groups(own.kind)),
    }
}

/// Whether what a buffer holds is told: not of registers that are filled and used in one step.
fn is_shown(ring: &Ring) -> bool {
    ring.slots > 1 || ring.scope.is_of_blocks()
}

/// What the slots that are shown hold.
pub(super) fn held_in_slots(it: &Timeline) -> impl Iterator<Item = &Vec<Held>> {
    let rings = it.rings.iter().enumerate().filter(|it| is_shown(it.1));
    rings.flat_map(|(at, _)| it.columns.iter().flat_map(move |column| &column.slots[at]))
}

pub(super) fn has(it: &Timeline, wanted: &dyn Fn(&Sync) -> bool) -> bool {
    it.columns.iter().flat_map(|it| it.syncs.iter().chain(&it.ends)).flatten().any(wanted)
}

/// The letter for groups of a kind: of products, of stores.
const fn letter(group: Group) -> &'static str {
    match group {
        Group::CpAsync => "",
        Group::Wgmma | Group::Tcgen05 => "p",
        Group::Bulk => "s",
    }
}

/// What stands between statements, in short.
pub(super) fn syncs(syncs: &[Sync]) -> String {
    let word = |it: &Sync| match it {
        Sync::Commit { group } => format!("c{}", letter(*group)),
        Sync::Wait { group, in_flight, .. } => format!("w{}{in_flight}", letter(*group)),
        Sync::Barrier { at, inside: false } => format!("b{}", at + 1),
        Sync::Barrier { at, inside: true } => format!("(b{})", at + 1),
        Sync::Await { mbarrier, .. } => format!("a{}", mbarrier + 1),
        Sync::Arrive { mbarrier, .. } => format!("r{}", mbarrier + 1),
        Sync::Expect { mbarrier, .. } => format!("e{}", mbarrier + 1),
        Sync::Fence { before: Fence::Async } => "f".to_owned(),
        Sync::Fence { before: Fence::Wgmma } => "fp".to_owned(),
    };
    syncs.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A word, what it means, and what it is used for.
type Word<'a> = (&'static str, &'a str, &'a dyn Fn(&Sync) -> bool);

/// What these words mean, as far as they are used, but for those of barriers, which drawings have other signs for.
pub(super) fn words(it: &Timeline) -> Vec<(&'static str, String)> {
    let mut out: Vec<(&'static str, String)> = Vec::new();
    for (kind, closed, wait) in [
        (Group::CpAsync, "c", "wN"),
        (Group::Wgmma, "cp", "wpN"),
        (Group::Tcgen05, "cp", "wpN"),
        (Group::Bulk, "cs", "wsN"),
    ] {
        if has(it, &|it| matches!(it, Sync::Commit { group } if *group == kind)) {
            out.push((closed, format!("a group of {} is closed", in_groups(kind))));
        }
        if has(it, &|it| matches!(it, Sync::Wait { group, .. } if *group == kind)) {
            let what =
                if kind == Group::CpAsync { String::new() } else { format!(" of {}", in_groups(kind)) };
            let reads =
                |it: &Sync| matches!(it, Sync::Wait { group, reads_only: true, .. } if *group == kind);
            let still = if has(it, &reads) { "have still to read" } else { "are in flight" };
            out.push((wait, format!("wait until at most N groups{what} {still}")));
        }
    }
    let others: [Word<'_>; 5] = [
        ("aN", "await a phase of mbarriers N", &|it| matches!(it, Sync::Await { .. })),
        ("eN", "the bytes are named that a phase of mbarriers N waits for", &|it| {
            matches!(it, Sync::Expect { .. })
        }),
        ("rN", "a slot is released: an arrival at mbarriers N", &|it| matches!(it, Sync::Arrive { .. })),
        ("fp", "a fence before products", &|it| *it == Sync::Fence { before: Fence::Wgmma }),
        ("f", "a fence between threads and the copy engine", &|it| {
            *it == Sync::Fence { before: Fence::Async }
        }),
    ];
    let used = others.into_iter().filter(|(.., wanted)| has(it, wanted));
    out.extend(used.map(|(word, meaning, _)| (word, meaning.to_owned())));
    out
}

fn held(held: &[Held]) -> String {
    let word = |it: &Held| format!("{}{}", it.iteration, if it.landed { "" } else { "*" });
    held.iter().map(word).collect::<Vec<_>>().join(",")
}

/// Prints the grid, in pieces where the page is too narrow.
pub(super) fn print(out: &mut dyn Write, it: &Timeline) -> io::Result<()> {
    let rows = rows(it);
    let label = rows.iter().map(|it| it.label.chars().count()).max().unwrap_or(0).max("step".len());
    let widths = widths(it, &rows);
    let width = |at: usize| widths[at];
    let mut at = 0;
    while at < it.columns.len() {
        // As many steps as the page has room for, at least one.
        let mut end = at;
        let mut used = label;
        while end < it.columns.len() && (end == at || used + 4 + width(end) <= WIDTH) {
            used += 2 + width(end) + if starts(it, end, at) { 2 } else { 0 };
            end += 1;
        }
        if at > 0 {
            writeln!(out)?;
        }
        chunk(out, it, &rows, label, at..end, &width)?;
        at = end;
    }
    Ok(())
}

/// The widths of the steps: of their widest cells, and so that the name of each part has room.
fn widths(it: &Timeline, rows: &[Row]) -> Vec<usize> {
    let cell = |at: usize| rows.iter().map(|it| it.cells[at].chars().count()).max().unwrap_or(0);
    let mut out: Vec<_> =
        it.columns.iter().enumerate().map(|(at, it)| cell(at).max(it.step.to_string().len())).collect();
    for part in [Part::Prologue, Part::Steady, Part::Epilogue] {
        let steps: Vec<_> = (0..out.len()).filter(|at| it.columns[*at].part == part).collect();
        let Some(last) = steps.last() else { continue };
        let room = steps.iter().map(|at| out[*at] + 2).sum::<usize>() - 2;
        out[*last] += part.to_string().len().saturating_sub(room);
    }
    out
}

/// Whether a part of the pipeline starts in this step, or goes on from the chunk before.
fn starts(it: &Timeline, at: usize, first: usize) -> bool {
    at == first || it.columns[at].part != it.columns[at - 1].part
}

fn chunk(
    out: &mut dyn Write,
    it: &Timeline,
    rows: &[Row],
    label: usize,
    range: Range<usize>,
    width: &dyn Fn(usize) -> usize,
) -> io::Result<()> {
    let first = range.start;
    let line = |name: &str, cell: &dyn Fn(usize) -> String| {
        let mut line = format!("{name:label$}");
        for at in range.clone() {
            let bar = if starts(it, at, first) { " |" } else { "" };
            let (cell, room) = (cell(at), width(at));
            line.extend([bar, "  ", &format!("{cell:<room$}")]);
        }
        line.trim_end().to_owned()
    };
    writeln!(out, "{}", parts(it, label, range.clone(), width))?;
    writeln!(out, "{}", line("step", &|at| it.columns[at].step.to_string()))?;
    let mut slots = false;
    for row in rows {
        if row.kind.is_memory() && !slots {
            writeln!(out, "{}", "-".repeat(line("", &|at| "-".repeat(width(at))).chars().count()))?;
            slots = true;
        }
        let empty = if row.kind.is_sparse() { "" } else { "." };
        let cell = |at: usize| if row.cells[at].is_empty() { empty } else { &row.cells[at] }.to_owned();
        writeln!(out, "{}", line(&row.label, &cell))?;
    }
    Ok(())
}

/// The names of the parts over their steps, cut where a part is narrower than its name.
fn parts(it: &Timeline, label: usize, range: Range<usize>, width: &dyn Fn(usize) -> usize) -> String {
    let mut line = " ".repeat(label);
    let mut room = 0;
    let mut word = String::new();
    for at in range.clone() {
        if starts(it, at, range.start) {
            line += &fitted(&word, room);
            line += " |  ";
            word = it.columns[at].part.to_string();
            room = width(at);
        } else {
            room += 2 + width(at);
        }
    }
    (line + &word).trim_end().to_owned()
}

fn fitted(word: &str, room: usize) -> String {
    let cut: String =
        if word.chars().count() > room { word.chars().take(room).collect() } else { word.to_owned() };
    format!("{cut:room$}")
}
