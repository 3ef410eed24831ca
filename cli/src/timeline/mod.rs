//! The timeline of software pipelines as text, 80 columns wide where names allow it, and as a drawing.

mod grid;
mod show;
mod svg;

use std::io::{self, Write};

use codegen::timeline::{Base, Choice, Consequences, Moved, Part, Statement, Sync, Timeline};
use ir::Scope;

use crate::table::Table;
use grid::has;
pub(crate) use show::show;

/// The width of a page.
const PAGE: usize = 80;

/// A pipeline with what it costs, where the target tells.
#[derive(Debug, serde::Serialize)]
struct Drawn {
    #[serde(flatten)]
    timeline: Timeline,
    consequences: Option<Consequences>,
}

/// Prints a pipeline.
fn print(out: &mut dyn Write, it: &Drawn) -> io::Result<()> {
    let Drawn { timeline, consequences } = it;
    for line in title(timeline) {
        wrapped(out, &line, 0)?;
    }
    writeln!(out)?;
    statements(out, &timeline.statements)?;
    writeln!(out)?;
    buffers(out, timeline)?;
    writeln!(out)?;
    grid::print(out, timeline)?;
    for line in legend(timeline) {
        wrapped(out, &line, 2)?;
    }
    if !timeline.barriers.is_empty() {
        writeln!(out)?;
    }
    for line in barriers(timeline) {
        wrapped(out, &line, 4)?;
    }
    if let Some(it) = consequences {
        writeln!(out)?;
        costs(out, it)?;
    }
    Ok(())
}

/// What the pipeline is, in sentences.
fn title(it: &Timeline) -> Vec<String> {
    let inside = it.inside.as_ref().map(|it| format!(", inside the pipeline of `{it}`")).unwrap_or_default();
    let kernel = format!("pipeline of `{}` in kernel `{}`{inside}", it.var, it.kernel);
    let steps = |count: i64| if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
    let shape = match (it.trips, it.style) {
        (Some(trips), _) if trips <= it.last => {
            format!("{trips} iterations, fewer than it has stages: {}, written out", steps(trips + it.last))
        }
        (Some(trips), "predicate") => {
            format!(
                "{trips} iterations in one loop of {}, each statement under a guard",
                steps(trips + it.last)
            )
        }
        (Some(trips), _) => {
            let [around, steady] = [it.last, trips - it.last].map(steps);
            format!("{trips} iterations: prologue of {around}, steady loop of {steady}, epilogue of {around}")
        }
        (None, "predicate") => {
            let extent = &it.extent;
            format!(
                "n = {extent} iterations in one loop of n+{}, each statement under a guard",
                steps(it.last)
            )
        }
        (None, _) => format!("n = {} iterations; prologue and epilogue of {}", it.extent, steps(it.last)),
    };
    let unroll = (it.unroll > 1).then(|| format!("the steady loop is written out {} times", it.unroll));
    [kernel, shape].into_iter().chain(unroll).collect()
}

fn statements(out: &mut dyn Write, statements: &[Statement]) -> io::Result<()> {
    let mut table = Table::new(["statement", "stage", "order", "how", "reads", "writes"]);
    for it in statements {
        table.row([
            it.name.to_string(),
            it.stage.to_string(),
            it.order.to_string(),
            it.mechanism.to_owned(),
            traffic(&it.reads),
            traffic(&it.writes),
        ]);
    }
    table.print(out)?;
    if statements.iter().any(|it| !it.reads.is_empty() || !it.writes.is_empty()) {
        writeln!(out, "(bytes of a block in one iteration; registers do not count)")?;
    }
    for it in statements.iter().filter(|it| !it.reason.is_empty()) {
        wrapped(out, &format!("{}: {}. {}", it.name, it.mechanism, it.reason), 2)?;
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
    let parts: Vec<_> = [Scope::Global, Scope::Shared].into_iter().filter_map(of).collect();
    if parts.is_empty() { "—".to_owned() } else { parts.join(" + ") }
}

/// `640 B`, `5 KiB`, `1.5 MiB`.
fn bytes(count: i64) -> String {
    let kib = 1024;
    let (unit, word) = if count >= kib * kib { (kib * kib, "MiB") } else { (kib, "KiB") };
    match count {
        ..1024 => format!("{count} B"),
        _ if count % unit == 0 => format!("{} {word}", count / unit),
        _ => {
            // Tenths, to the nearest.
            let tenths = (count * 10 + unit / 2) / unit;
            format!("{}.{} {word}", tenths / 10, tenths % 10)
        }
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
            wrapped(out, note, 2)?;
        }
    }
    Ok(())
}

/// What the signs of the grid mean, as far as they are used.
fn legend(it: &Timeline) -> Vec<String> {
    let mut out = Vec::new();
    let base = |wanted| it.columns.iter().any(|it| it.step.base == wanted);
    if base(Base::Steady) {
        let multiple = match it.cycle {
            1 => String::new(),
            cycle => format!(", here a multiple of {cycle}, after which the slots come round"),
        };
        out.push(format!("i: any step of the steady state{multiple}"));
    }
    if base(Base::End) {
        out.push(match it.cycle {
            1 => "n: the number of iterations".to_owned(),
            cycle => format!("n: the number of iterations, here a multiple of {cycle}"),
        });
    }
    let mut words = Vec::new();
    if has(it, &|it| *it == Sync::Commit) {
        words.push("c: a group of copies is closed");
    }
    if has(it, &|it| matches!(it, Sync::Wait { .. })) {
        words.push("wN: wait until at most N groups are in flight");
    }
    if has(it, &|it| matches!(it, Sync::Barrier { .. })) {
        words.push("bN: barrier N of the list below");
    }
    if has(it, &|it| matches!(it, Sync::Barrier { inside: true, .. })) {
        words.push("(bN): it stands inside the statement");
    }
    let slots = || it.columns.iter().flat_map(|it| &it.slots).flatten();
    if slots().any(|it| it.len() > 1) {
        words.push("x,y: y takes the place of x");
    }
    if slots().flatten().any(|it| !it.landed) {
        words.push("*: a copy that may still be in flight");
    }
    out.extend((!words.is_empty()).then(|| words.join("; ")));
    out
}

/// The barriers, one a line, with what they are there for.
fn barriers(it: &Timeline) -> Vec<String> {
    let line = |(at, barrier): (usize, &codegen::timeline::Barrier)| {
        let place = match (&barrier.before, barrier.part) {
            (Some(name), _) => format!("at {name}"),
            (None, Part::Prologue) => "at the end of the prologue".to_owned(),
            (None, Part::Steady | Part::Epilogue) => "at the end of the step".to_owned(),
        };
        let part = if it.style == "predicate" { "every step".to_owned() } else { barrier.part.to_string() };
        let proof =
            if barrier.proof.is_empty() { String::new() } else { format!(": {}", barrier.proof.join(" ")) };
        format!("b{} ({part}, {place}){proof}", at + 1)
    };
    it.barriers.iter().enumerate().map(line).collect()
}

fn costs(out: &mut dyn Write, it: &Consequences) -> io::Result<()> {
    if it.now.slots == 0 {
        return wrapped(out, &footnotes(it)[0], 0);
    }
    let mut table = Table::new(["", "slots", "shared bytes", "blocks per SM", "warps", "limited by"]);
    let mut row = |what: &str, it: &Choice| {
        let full = it.occupancy.as_ref();
        let unknown = || "—".to_owned();
        table.row([
            what.to_owned(),
            it.slots.to_string(),
            it.shared_bytes.to_string(),
            full.map_or_else(unknown, |it| it.blocks.to_string()),
            full.map_or_else(unknown, |it| format!("{} of {}", it.warps, it.max_warps)),
            full.map(limits).unwrap_or_default(),
        ]);
    };
    row("as it is", &it.now);
    it.fewer.iter().for_each(|it| row("one slot fewer", it));
    it.single.iter().for_each(|it| row("one slot each", it));
    table.print(out)?;
    for line in footnotes(it) {
        wrapped(out, &line, 0)?;
    }
    Ok(())
}

fn limits(it: &codegen::device::Occupancy) -> String {
    it.limited_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What there is to say of the costs.
fn footnotes(it: &Consequences) -> Vec<String> {
    if it.now.slots == 0 {
        return vec!["its slots are registers; NVRTC tells how many (`show --emit resources`)".to_owned()];
    }
    let slot = (it.bytes_per_slot > 0)
        .then(|| format!("one more iteration in flight takes {} of shared memory", bytes(it.bytes_per_slot)));
    let registers = match it.registers {
        Some(count) => format!("with {count} registers a thread, in every row"),
        None => {
            "an estimate: no NVRTC was found to count registers, so only threads and shared memory limit it"
                .to_owned()
        }
    };
    let verdict = it.verdict.clone();
    slot.into_iter().chain([registers]).chain(verdict).collect()
}

/// Prints a line in words, broken where the page ends.
fn wrapped(out: &mut dyn Write, text: &str, indent: usize) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > PAGE {
            writeln!(out, "{line}")?;
            line = format!("{}{word}", " ".repeat(indent));
        } else if line.is_empty() {
            word.clone_into(&mut line);
        } else {
            line += " ";
            line += word;
        }
    }
    writeln!(out, "{line}")
}
