//! The timeline of software pipelines as text, 80 columns wide where names allow it, and as a drawing.

mod expectation;
mod flow;
mod grid;
pub(crate) mod show;
mod svg;

use std::io::{self, Write};

use codegen::{
    device::Occupancy,
    expected::Expected,
    timeline::{Barrier, Base, Choice, Consequences, Lane, Moment, Moved, Part, Sync, Timeline},
};
use indexmap::IndexMap;
use ir::{Name, Participants, Scope};

use crate::term::{table::Table, wrap::wrapped};
use grid::{has, held_in_slots};
pub(crate) use show::{drawing, no_pipeline, show, told};
pub(crate) use svg::{COLOURS, DARK, GREY, INK};

/// The pipelines of a program, and what they cost in each kernel, where the target tells.
#[derive(Debug)]
struct Story {
    pipelines: Vec<Timeline>,
    kernels: Vec<Consequences>,
    expected: Vec<Expected>,
}

impl Story {
    /// The kernels that have pipelines, each with them and what they cost.
    fn by_kernel(&self) -> Vec<(Vec<&Timeline>, Option<&Consequences>)> {
        let mut out: IndexMap<&Name, Vec<&Timeline>> = IndexMap::new();
        for it in &self.pipelines {
            out.entry(&it.kernel).or_default().push(it);
        }
        let costs = |kernel: &Name| self.kernels.iter().find(|it| it.kernel == *kernel);
        out.into_iter().map(|(kernel, all)| (all, costs(kernel))).collect()
    }
}

/// Prints all.
fn print(out: &mut dyn Write, story: &Story) -> io::Result<()> {
    let mut is_first = true;
    for (pipelines, consequences) in story.by_kernel() {
        for it in pipelines {
            if !is_first {
                writeln!(out, "\n")?;
            }
            is_first = false;
            print_pipeline(out, it)?;
            if let Some(line) = expectation::of_loop(&story.expected, it) {
                writeln!(out)?;
                wrapped(&line, "", "  ", out)?;
            }
        }
        if let Some(it) = consequences {
            writeln!(out)?;
            costs(out, it)?;
            if let Some(line) = expectation::of_kernel(&story.expected, &it.kernel) {
                writeln!(out)?;
                wrapped(&line, "", "  ", out)?;
            }
        }
    }
    Ok(())
}

fn print_pipeline(out: &mut dyn Write, timeline: &Timeline) -> io::Result<()> {
    for line in title(timeline) {
        wrapped(&line, "", "", out)?;
    }
    writeln!(out)?;
    statements(out, timeline)?;
    writeln!(out)?;
    if flow::is_told(timeline) {
        flow::print(out, timeline)?;
        writeln!(out)?;
    }
    buffers(out, timeline)?;
    writeln!(out)?;
    grid::print(out, timeline)?;
    for line in legend(timeline) {
        wrapped(&line, "", "  ", out)?;
    }
    if !timeline.barriers.is_empty() {
        writeln!(out)?;
    }
    for line in barriers(timeline) {
        wrapped(&line, "", "    ", out)?;
    }
    Ok(())
}

/// What the pipeline is, in sentences.
fn title(it: &Timeline) -> Vec<String> {
    let inside = it.inside.as_ref().map(|it| format!(", inside the pipeline of `{it}`")).unwrap_or_default();
    let kernel = format!("pipeline of `{}` in kernel `{}`{inside}", it.var, it.kernel);
    let (last, around) = (it.last, steps(&it.last.to_string(), it.last == 1));
    let count = if it.extent == it.count.to_string() { String::new() } else { format!("{} = ", it.count) };
    let count = it.trips.map_or_else(|| format!("{count}{}", it.extent), |trips| trips.to_string());
    let what = if it.trips == Some(1) { "1 iteration".to_owned() } else { format!("{count} iterations") };
    let shape = match (it.trips, it.style) {
        _ if it.lanes.len() > 1 => format!("{what}, each role at a pace of its own"),
        (_, "predicate") => {
            let all = it.trips.map_or_else(|| format!("{}+{last}", it.count), |it| (it + last).to_string());
            format!("{what} in one loop of {}, each statement under a guard", steps(&all, false))
        }
        (Some(trips), _) if it.runs == Some(0) => {
            let all = steps(&(trips + last).to_string(), trips + last == 1);
            format!("{what}, too few for a steady state: {all}, written out")
        }
        (Some(trips), _) => {
            let steady = it.runs.unwrap_or(0) * it.unroll;
            let left = trips - last - steady;
            let left = if left > 0 {
                format!(", {} left over", steps(&left.to_string(), left == 1))
            } else {
                String::new()
            };
            let steady = steps(&steady.to_string(), steady == 1);
            format!("{what}: prologue of {around}, steady loop of {steady}{left}, epilogue of {around}")
        }
        (None, _) => format!("{what}: prologue of {around}, steady loop, epilogue of {around}, under guards"),
    };
    let unroll = (it.unroll > 1 && it.runs != Some(0)).then(|| {
        format!(
            "one run of the steady loop takes {} steps, so that registers have constant subscripts",
            it.unroll
        )
    });
    let reason = it.reason.as_ref().map(|it| format!("worked out, candidate {it}"));
    [kernel, shape].into_iter().chain(unroll).chain(reason).chain(roles(it)).collect()
}

/// The roles, with how far each may be ahead of those that come last.
fn roles(it: &Timeline) -> Vec<String> {
    let last = it.lanes.iter().max_by_key(|it| it.behind);
    let Some(slowest) = last.and_then(|it| it.role.as_ref()) else { return vec![] };
    let one = |lane: &Lane| {
        let role = lane.role.as_ref()?;
        let threads = lane.threads.map(|it| format!("{it} threads")).unwrap_or_default();
        let registers = lane.registers.map(|it| format!(" of {it} registers")).unwrap_or_default();
        let ahead = last.map_or(0, |it| it.behind) - lane.behind;
        let ahead = match ahead {
            0 => String::new(),
            ahead => format!(", up to {} ahead of `{slowest}`", flow::iterations(ahead)),
        };
        let next =
            if lane.goes_on { format!(", also into the next run of `{}`", it.var) } else { String::new() };
        let turns = if lane.turns == 1 {
            String::new()
        } else {
            format!(", each of {} warpgroups in turn", lane.turns)
        };
        Some(format!("`{role}`: {threads}{registers}{turns}{ahead}{next}"))
    };
    it.lanes.iter().filter_map(one).collect()
}

fn steps(count: &str, is_one: bool) -> String {
    format!("{count} step{}", if is_one { "" } else { "s" })
}

fn statements(out: &mut dyn Write, it: &Timeline) -> io::Result<()> {
    let statements = &it.statements;
    let has_roles = it.lanes.iter().any(|it| it.role.is_some());
    let role = |word: String| has_roles.then_some(word).into_iter();
    let heads = ["statement", "stage", "order", "how", "reads", "writes"].map(str::to_owned);
    let mut table = Table::new(role("role".to_owned()).chain(heads));
    for it in statements {
        let cells = [
            it.name.to_string(),
            it.stage.to_string(),
            it.order.to_string(),
            it.mechanism.to_owned(),
            traffic(&it.reads),
            traffic(&it.writes),
        ];
        let name = it.role.as_ref().map(Name::to_string);
        table.row(role(name.unwrap_or_default()).chain(cells));
    }
    table.print(out)?;
    if statements.iter().any(|it| !it.reads.is_empty() || !it.writes.is_empty()) {
        writeln!(out, "(bytes of a block in one iteration; registers do not count)")?;
    }
    for it in statements.iter().filter(|it| !it.reason.is_empty()) {
        wrapped(&format!("{}: {}. {}", it.name, it.mechanism, it.reason), "", "  ", out)?;
    }
    Ok(())
}

/// Bytes by memory: `4 KiB global + 64 KiB shared`.
fn traffic(moved: &[Moved]) -> String {
    let of = |scope| {
        let mut here = moved.iter().filter(|it| it.scope == scope).peekable();
        here.peek()?;
        let sum = here.map(|it| it.bytes).sum::<Option<i64>>();
        Some(format!("{} {scope}", sum.map_or_else(|| "?".to_owned(), bytes)))
    };
    let parts: Vec<_> = [Scope::Global, Scope::Cluster, Scope::Shared].into_iter().filter_map(of).collect();
    if parts.is_empty() { "—".to_owned() } else { parts.join(" + ") }
}

/// `640 B`, `5 KiB`, `1.5 MiB`.
fn bytes(count: i64) -> String {
    let kib = 1024;
    let (unit, word) = if count >= kib * kib { (kib * kib, "MiB") } else { (kib, "KiB") };
    // A number that tenths cannot tell is told in bytes.
    match count {
        _ if count >= kib && count % unit == 0 => format!("{} {word}", count / unit),
        _ if count >= kib && count * 10 % unit == 0 => {
            let tenths = count * 10 / unit;
            format!("{}.{} {word}", tenths / 10, tenths % 10)
        }
        _ => format!("{count} B"),
    }
}

fn buffers(out: &mut dyn Write, it: &Timeline) -> io::Result<()> {
    let mut table = Table::new(["buffer", "memory", "slots", "needed", "a slot", "all"]);
    for ring in &it.rings {
        table.row([
            ring.buffer.to_string(),
            ring.scope.to_string(),
            ring.slots.to_string(),
            ring.needed.to_string(),
            bytes(ring.bytes),
            bytes(ring.bytes * ring.slots),
        ]);
    }
    table.print(out)?;
    for ring in &it.rings {
        if let Some(note) = &ring.note {
            wrapped(note, "", "  ", out)?;
        }
    }
    Ok(())
}

/// What the letters of the steps stand for.
fn moments(it: &Timeline) -> Vec<String> {
    let mut out = Vec::new();
    let base = |wanted| it.columns.iter().any(|it| it.step.base == wanted);
    let multiple = |of: &str| match it.cycle {
        1 => String::new(),
        cycle => format!(", here a multiple of {cycle}{of}"),
    };
    if base(Base::Steady) {
        out.push(format!(
            "t: any step of the steady state{}",
            multiple(", after which the slots come round")
        ));
    }
    if base(Base::End(it.count)) {
        out.push(format!("{}: the number of iterations{}", it.count, multiple("")));
    }
    let is_next = |it: &Moment| it.base == Base::Next;
    if it.columns.iter().flat_map(|it| &it.runs).flatten().any(is_next) {
        out.push(format!("N': iteration N of the next run of `{}`", it.var));
    }
    out
}

/// What the signs of the grid mean, as far as they are used.
fn legend(it: &Timeline) -> Vec<String> {
    let mut out = moments(it);
    let mut words: Vec<_> =
        grid::words(it).into_iter().map(|(word, meaning)| format!("{word}: {meaning}")).collect();
    if has(it, &|it| matches!(it, Sync::Barrier { .. })) {
        words.push("bN: barrier N of the list below".to_owned());
    }
    if has(it, &|it| matches!(it, Sync::Barrier { inside: true, .. })) {
        words.push("(bN): it stands inside the statement".to_owned());
    }
    if held_in_slots(it).any(|it| it.len() > 1) {
        words.push("x,y: y takes the place of x".to_owned());
    }
    if held_in_slots(it).flatten().any(|it| !it.landed) {
        words.push("*: a copy that may still be in flight at the end of the step".to_owned());
    }
    out.extend((!words.is_empty()).then(|| words.join("; ")));
    out
}

/// The barriers with what they are there for, those of equal words on one line.
fn barriers(it: &Timeline) -> Vec<String> {
    let words = |barrier: &Barrier| {
        let place = match (&barrier.before, barrier.part) {
            (Some(name), _) => format!("at {name}"),
            (None, Part::Prologue) => "at the end of the prologue".to_owned(),
            (None, Part::Steady | Part::Epilogue) => "at the end of the step".to_owned(),
        };
        let part = if it.style == "predicate" { "every step".to_owned() } else { barrier.part.to_string() };
        let proof =
            if barrier.proof.is_empty() { String::new() } else { format!(": {}", barrier.proof.join(" ")) };
        let among = match barrier.among {
            Participants::Block | Participants::Thread => "",
            Participants::Warp => ", of a warp",
            Participants::Warpgroup => ", of a warpgroup",
            Participants::Role => ", of the role",
            Participants::Cluster => ", of the cluster",
        };
        format!("({part}, {place}{among}){proof}")
    };
    let mut out: IndexMap<String, Vec<String>> = IndexMap::new();
    for (at, barrier) in it.barriers.iter().enumerate() {
        out.entry(words(barrier)).or_default().push(format!("b{}", at + 1));
    }
    out.into_iter().map(|(words, numbers)| format!("{} {words}", numbers.join(", "))).collect()
}

fn costs(out: &mut dyn Write, it: &Consequences) -> io::Result<()> {
    writeln!(out, "what it costs in kernel `{}`", it.kernel)?;
    let mut table = Table::new([String::new()].into_iter().chain(heads(it)));
    for (what, choice) in choices(it) {
        table.row([what.to_owned()].into_iter().chain(cells(it, choice)));
    }
    table.print(out)?;
    for line in footnotes(it) {
        wrapped(&line, "", "  ", out)?;
    }
    Ok(())
}

/// The rows of the table of costs.
fn choices(it: &Consequences) -> Vec<(&'static str, &Choice)> {
    let rows = [
        ("without pipelines", it.before.as_ref()),
        ("one slot fewer", it.fewer.as_ref()),
        ("as it is", Some(&it.now)),
    ];
    rows.into_iter().filter_map(|(what, it)| Some((what, it?))).collect()
}

/// The heads of its columns after the first; registers only where a compiler told of them.
fn heads(it: &Consequences) -> Vec<String> {
    let registers = it.now.registers.map(|_| "registers");
    let heads = ["slots"].into_iter().chain(registers);
    heads.chain(["shared", "warps", "limited by", "blocks/SM"]).map(str::to_owned).collect()
}

/// The cells of a row under these heads.
fn cells(all: &Consequences, it: &Choice) -> Vec<String> {
    let full = it.occupancy.as_ref();
    let unknown = || "—".to_owned();
    let limits =
        |it: &Occupancy| it.limited_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let slots = if it.slots == 0 { unknown() } else { it.slots.to_string() };
    let registers = || it.registers.map_or_else(unknown, |it| it.to_string());
    let registers = all.now.registers.map(|_| registers());
    let rest = [
        bytes(it.shared_bytes),
        full.map_or_else(unknown, |it| format!("{} of {}", it.warps, it.max_warps)),
        full.map_or_else(unknown, limits),
        full.map_or_else(unknown, |it| it.blocks.to_string()),
    ];
    [slots].into_iter().chain(registers).chain(rest).collect()
}

/// What there is to say of the costs.
fn footnotes(it: &Consequences) -> Vec<String> {
    let slot = (it.bytes_per_slot > 0)
        .then(|| format!("one more iteration in flight takes {} of shared memory", bytes(it.bytes_per_slot)));
    let unknown =
        "an upper bound: registers are not known without NVRTC, so only threads and shared memory count";
    let registers = (it.now.registers.is_none() && it.now.occupancy.is_some()).then(|| unknown.to_owned());
    slot.into_iter().chain(registers).chain(it.verdict.clone()).collect()
}
