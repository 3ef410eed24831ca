//! Findings and counters of the virtual GPU as people read them.

use std::{
    io::{self, Write},
    ops::Range,
};

use codegen::vgpu::{Access, CountedFinding, Counters, Direction, Traffic};
use ir::{Arch, Module, Target};

use crate::{
    diagnostic::Diagnostic,
    plan::Plan,
    term::table::{Table, counted, grouped},
};

/// Over the columns of a table of several programs.
pub(super) const HEADS: [&str; 7] =
    ["rung", "findings", "numbers", "assignments", "barriers", "wavefronts/ideal", "sectors/ideal"];

/// How many lines a table of accesses has at most.
const LINES: usize = 12;

/// The architecture that a script is lowered for.
pub(crate) fn arch(plan: &Plan, asked: Option<&Arch>) -> String {
    match plan.virtual_target(asked) {
        Target::Cuda(arch) => arch.to_string(),
        Target::Cpu => "cpu".to_owned(),
    }
}

/// What to expect of a long run.
pub(super) fn long(name: &str, steps: u64, runs: usize) -> String {
    format!(
        "{name}: about {} assignments of single threads in each of {runs} runs, and a hundred million take a second or \
         more; `--param` and `--size` make smaller programs",
        grouped(steps)
    )
}

/// `1.25`, or a dash where nothing was asked for.
pub(super) fn ratio([requests, units, ideal]: [u64; 3]) -> String {
    if requests == 0 { "—".to_owned() } else { format!("{:.2}", units as f64 / ideal.max(1) as f64) }
}

/// A finding with its places in the kernel.
pub(super) fn finding(module: &Module, found: &CountedFinding) -> Diagnostic {
    let finding = &found.finding;
    let times = if found.times > 1 { format!(" ({} times)", grouped(found.times)) } else { String::new() };
    let report =
        Diagnostic::failed(finding, format!("{}{times}", finding.sentence())).help(finding.help().to_owned());
    let told = finding.told();
    let Some((_, first)) = told.first() else { return report };
    let Some(kernel) = module.kernels.iter().find(|it| it.name == first.kernel) else { return report };
    let text = kernel.to_string();
    // Where both accesses are in one kernel, one picture shows both; a race between kernels there is none.
    let marks = told.iter().map(|(verb, it)| (line(&text, it), format!("{} {verb}", it.who())));
    let marks: Vec<_> = marks.collect();
    report.about(format!("kernel {}", kernel.name), text, marks)
}

/// The bytes of the line of an access, without its indentation.
fn line(text: &str, access: &Access) -> Range<usize> {
    let before: usize = text.split_inclusive('\n').take(access.line.saturating_sub(1)).map(str::len).sum();
    let line = text[before..].lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    before + indent..before + line.len()
}

/// What a kernel did.
pub(super) fn counters(it: &Counters, out: &mut dyn Write) -> io::Result<()> {
    let count = |it, word| counted(usize::try_from(it).expect("a count of 64 bits"), word);
    let axes = |it: [i64; 3]| it.map(|it| it.to_string()).join("x");
    writeln!(
        out,
        "\n{}: {}{} blocks of {} threads; {}, {}, {}",
        it.kernel,
        axes(it.grid),
        it.cluster.map(|it| format!(" clusters of {}", axes(it))).unwrap_or_default(),
        axes(it.block),
        count(it.steps, "assignment"),
        count(it.barriers, "barrier"),
        count(it.waits, "wait")
    )?;
    for (space, unit) in [("shared", "wavefronts"), ("global", "sectors")] {
        let [requests, units, ideal] = it.total(space);
        if requests == 0 {
            continue;
        }
        writeln!(
            out,
            "{space} memory: {} requests of warps, {} {unit} where {} would do ({}x)",
            grouped(requests),
            grouped(units),
            grouped(ideal),
            ratio([requests, units, ideal])
        )?;
    }
    let conflicts = |it: &&Traffic| it.space == "shared" && it.units > it.ideal;
    traffic("bank conflicts", "wavefronts", it.traffic.iter().filter(conflicts), out)?;
    let scattered = |it: &&Traffic| it.space == "global" && it.units > it.ideal;
    traffic("accesses that are not coalesced", "sectors", it.traffic.iter().filter(scattered), out)
}

/// The accesses that cost most more than they have to.
fn traffic<'a>(
    title: &str,
    unit: &str,
    all: impl Iterator<Item = &'a Traffic>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut all: Vec<&Traffic> = all.collect();
    if all.is_empty() {
        return Ok(());
    }
    all.sort_by_key(|it| (it.ideal.wrapping_sub(it.units), it.line));
    let (shown, rest) = all.split_at(all.len().min(LINES));
    writeln!(out, "{title}, most costly first; lines are counted from that of `kernel`")?;
    let mut table =
        Table::new(["line", "", "buffer", "requests", unit, "ideal", "worst request", "statement"]);
    for it in shown {
        table.row([
            it.line.to_string(),
            match it.direction {
                Direction::Read => "reads".to_owned(),
                Direction::Write => "writes".to_owned(),
            },
            it.buffer.to_string(),
            grouped(it.requests),
            grouped(it.units),
            grouped(it.ideal),
            format!("{} for {}", it.worst, it.worst_ideal),
            shortened(&it.text),
        ]);
    }
    table.print(out)?;
    if !rest.is_empty() {
        writeln!(out, "and {} more", rest.len())?;
    }
    Ok(())
}

/// The beginning of a statement.
fn shortened(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(60).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}
