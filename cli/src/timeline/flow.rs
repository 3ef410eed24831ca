//! What each statement waits for and releases, and the mbarriers by which it does.

use std::io::{self, Write};

use codegen::timeline::{Column, Part, SlotBarrier, Sync, Timeline, in_groups};
use ir::{Group, Name};

use super::bytes;
use crate::term::table::Table;

/// What a statement waits for and what it releases, in words.
pub(super) struct Flow {
    pub(super) waits: Vec<String>,
    pub(super) releases: Vec<String>,
}

/// Whether there is more to tell than a grid tells: mbarriers, or asynchronous work other than copies by threads.
pub(super) fn is_told(it: &Timeline) -> bool {
    !it.mbarriers.is_empty() || it.groups.iter().any(|it| it.kind != Group::CpAsync)
}

/// What the statements wait for and release, in a step in which each of them runs.
pub(super) fn flows(it: &Timeline) -> Vec<Flow> {
    (0..it.statements.len()).map(|rank| flow(it, rank)).collect()
}

fn flow(it: &Timeline, rank: usize) -> Flow {
    let runs = |column: &&Column| column.runs[rank].is_some();
    let steady = it.columns.iter().filter(|it| it.part == Part::Steady).find(runs);
    let Some(column) = steady.or_else(|| it.columns.iter().find(runs)) else {
        return Flow { waits: vec![], releases: vec![] };
    };
    let role = &it.statements[rank].role;
    let next = it.statements.get(rank + 1).filter(|it| it.role == *role);
    let lane = it.lanes.iter().position(|it| it.role == *role);
    let own = &column.syncs[rank];
    let behind = match (next, lane) {
        (Some(_), _) => &column.syncs[rank + 1],
        (None, Some(lane)) => &column.ends[lane],
        (None, None) => own,
    };
    let waits = own.iter().filter_map(|sync| match sync {
        Sync::Await { mbarrier, fill } => Some(phase(&it.mbarriers[*mbarrier], *fill)),
        Sync::Wait { group, in_flight, reads_only, .. } => Some(all_but(*group, *in_flight, *reads_only)),
        Sync::Barrier { at, .. } => Some(format!("barrier b{}", at + 1)),
        Sync::Commit { .. } | Sync::Arrive { .. } | Sync::Expect { .. } | Sync::Fence { .. } => None,
    });
    let fills = it.statements[rank].fills.map(|at| {
        let mbarrier = &it.mbarriers[at];
        let bytes = mbarrier.bytes.map(|it| format!(" after {}", bytes(it))).unwrap_or_default();
        format!("{}{bytes}", slot(mbarrier, Some(0)))
    });
    // What stands behind the last statement of a lane belongs to nobody else.
    let is_last = next.is_none();
    let released = behind.iter().filter_map(|sync| match sync {
        Sync::Commit { group } => Some(format!("a group of {}", in_groups(*group))),
        Sync::Arrive { mbarrier, fill } => Some(slot(&it.mbarriers[*mbarrier], *fill)),
        Sync::Wait { in_flight, .. } if is_last => Some(left(*in_flight)),
        Sync::Barrier { at, .. } if is_last => Some(format!("barrier b{}", at + 1)),
        _ => None,
    });
    Flow { waits: waits.collect(), releases: fills.into_iter().chain(released).collect() }
}

/// `ko_full[i mod 4]`, with `i` the statement's iteration.
fn slot(it: &SlotBarrier, fill: Option<i64>) -> String {
    let (name, slots) = (&it.name, it.slots);
    match (slots, fill.map(|it| it % slots)) {
        (1, _) => name.to_string(),
        (_, None) => format!("{name}[?]"),
        (_, Some(0)) => format!("{name}[i mod {slots}]"),
        (_, Some(fill)) => format!("{name}[(i{fill:+}) mod {slots}]"),
    }
}

/// `ko_full[i mod 4] phase i/4`.
fn phase(it: &SlotBarrier, fill: Option<i64>) -> String {
    let slot = slot(it, fill);
    let Some(fill) = fill else { return slot };
    let (turns, rest) = (fill / it.slots, fill % it.slots);
    let number = match (it.slots, rest) {
        (1, _) => "i".to_owned(),
        (slots, 0) => format!("i/{slots}"),
        (slots, rest) => format!("(i{rest:+})/{slots}"),
    };
    let turns = if turns == 0 { String::new() } else { format!("{turns:+}") };
    format!("{slot} phase {number}{turns}")
}

fn all_but(group: Group, in_flight: u32, reads_only: bool) -> String {
    let what =
        if reads_only { format!("reads of {}", in_groups(group)) } else { in_groups(group).to_owned() };
    match in_flight {
        0 => format!("all {what}"),
        1 => format!("{what} but for 1 group"),
        more => format!("{what} but for {more} groups"),
    }
}

fn left(in_flight: u32) -> String {
    match in_flight {
        0 => "no group stays in flight".to_owned(),
        1 => "1 group stays in flight".to_owned(),
        more => format!("{more} groups stay in flight"),
    }
}

/// Prints both as tables.
pub(super) fn print(out: &mut dyn Write, it: &Timeline) -> io::Result<()> {
    let has_roles = it.lanes.iter().any(|it| it.role.is_some());
    let heads = has_roles.then_some("role").into_iter().chain(["statement", "waits for", "releases"]);
    let mut table = Table::new(heads);
    for (statement, flow) in it.statements.iter().zip(flows(it)) {
        for at in 0..flow.waits.len().max(flow.releases.len()).max(1) {
            let cell = |all: &[String]| match (all.get(at), at) {
                (Some(it), _) => it.clone(),
                (None, 0) => "—".to_owned(),
                (None, _) => String::new(),
            };
            let role = statement.role.as_ref().filter(|_| at == 0).map(Name::to_string);
            let role = has_roles.then(|| role.unwrap_or_default());
            let name = if at == 0 { statement.name.to_string() } else { String::new() };
            table.row(role.into_iter().chain([name, cell(&flow.waits), cell(&flow.releases)]));
        }
    }
    table.print(out)?;
    if it.mbarriers.is_empty() {
        return Ok(());
    }
    writeln!(out, "(i: the statement's iteration, counted through all runs of the loop)\n")?;
    let mut table = Table::new(["mbarriers", "slots", "arrivals", "bytes", "lag", "told by", "awaited by"]);
    for (at, it) in it.mbarriers.iter().enumerate() {
        let along = along(it);
        let (arrivals, bytes) = match it.bytes {
            None => (format!("{}{along}", it.arrivals), "—".to_owned()),
            Some(count) => (it.arrivals.to_string(), format!("{}{along}", bytes(count))),
        };
        table.row([
            format!("{}: {}", at + 1, it.name),
            it.slots.to_string(),
            arrivals,
            bytes,
            it.lag.to_string(),
            names(&it.told_by),
            names(&it.awaited_by),
        ]);
    }
    table.print(out)?;
    writeln!(out, "(arrivals and bytes of a phase; lag: iterations that are told of late)")
}

/// Where other blocks of a cluster have a part in it.
fn along(it: &SlotBarrier) -> String {
    match (it.at_first, it.along.is_empty()) {
        (true, _) => " at first".to_owned(),
        (false, true) => String::new(),
        (false, false) => format!(" along {}", it.along.join(", ")),
    }
}

/// Both in sentences.
pub(super) fn sentences(it: &Timeline) -> Vec<String> {
    if !is_told(it) {
        return vec![];
    }
    let mbarriers = it.mbarriers.iter().enumerate().map(|(at, it)| {
        let bytes = it.bytes.map(|it| format!(" and {}", bytes(it))).unwrap_or_default();
        let lag = if it.lag == 0 { String::new() } else { format!(", {} late", iterations(it.lag)) };
        let (name, slots, arrivals) = (&it.name, it.slots, it.arrivals);
        let along = along(it);
        let (told, awaited) = (names(&it.told_by), names(&it.awaited_by));
        let arrivals = if arrivals == 1 { "1 arrival".to_owned() } else { format!("{arrivals} arrivals") };
        format!(
            "mbarriers {}: {name}[{slots}], {arrivals}{bytes}{along} a phase, told by {told}{lag}, awaited by {awaited}",
            at + 1
        )
    });
    let flows = it.statements.iter().zip(flows(it)).map(|(statement, flow)| {
        let words = |all: &[String]| if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
        format!("{}: waits for {}; releases {}", statement.name, words(&flow.waits), words(&flow.releases))
    });
    mbarriers.chain(flows).collect()
}

/// `3 iterations`.
pub(super) fn iterations(count: i64) -> String {
    if count == 1 { "1 iteration".to_owned() } else { format!("{count} iterations") }
}

fn names(all: &[Name]) -> String {
    if all.is_empty() {
        return "—".to_owned();
    }
    all.iter().map(Name::to_string).collect::<Vec<_>>().join(", ")
}
