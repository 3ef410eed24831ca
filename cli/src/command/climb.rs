//! What a climb found, and how it is told: a section for each rung, then tables over all sizes.

use std::io::{self, Write};

use codegen::device::{MachineInfo, Occupancy};
use ir::Arch;
use serde_json::{Value, json};
use tuner::{Comparison, Measured, Regime};

use crate::{
    build::{Built, occupancy_of},
    command::ladder::{Ladder, Rung},
    command::measure::{failure_words, gflops_words, roofline_words, time_words, verified_words},
    plan::Plan,
    term::table::Table,
};

/// A ladder with its measurements.
pub(crate) struct Climb {
    ladder: String,
    machine: String,
    arch: Option<Arch>,
    library: &'static str,
    regime: Regime,
    full: bool,
    rungs: Vec<Told>,
    sizes: Vec<Size>,
}

/// What there is to tell about a rung besides numbers.
struct Told {
    title: String,
    about: Option<String>,
    added: Vec<String>,
    removed: Vec<String>,
    diff: String,
    no_effect: bool,
    /// What the script asks for in vain.
    notes: Vec<String>,
    /// How full a multiprocessor gets, and that with the rung below.
    occupancy: Option<Occupancy>,
    below: Option<Occupancy>,
}

/// All rungs at one size.
struct Size {
    word: String,
    comparison: Comparison,
    single: Option<Comparison>,
}

/// How many lines of a difference are shown unless all are wanted.
const SHORT: usize = 12;

impl Climb {
    pub(crate) fn new(ladder: &Ladder, info: &MachineInfo, regime: Regime, full: bool) -> Climb {
        Climb {
            ladder: ladder.name.clone(),
            machine: format!("{} ({}, {} units)", info.name, info.arch, info.units),
            arch: Arch::parse(&info.arch),
            library: tuner::library(info),
            regime,
            full,
            rungs: ladder.rungs.iter().map(Told::new).collect(),
            sizes: vec![],
        }
    }

    /// Adds what was measured at one size. What is told of the rungs is that of the last size.
    pub(crate) fn add(
        &mut self,
        word: &str,
        comparison: Comparison,
        single: Option<Comparison>,
        plans: &[Plan],
        built: &[Built],
    ) {
        for (at, rung) in self.rungs.iter_mut().enumerate() {
            let below = at.checked_sub(1);
            rung.tell(&plans[at], &built[at], below.map(|it| (&plans[it], &built[it])));
            let full = |built| occupancy_of(built, self.arch.as_ref()?);
            (rung.occupancy, rung.below) = (full(&built[at]), below.and_then(|it| full(&built[it])));
        }
        self.sizes.push(Size { word: word.to_owned(), comparison, single });
    }

    /// How many measurements have no result.
    pub(crate) fn failures(&self) -> usize {
        let all = self.sizes.iter().flat_map(|it| &it.comparison.candidates);
        all.filter(|it| it.failure.is_some()).count()
    }

    /// The last line of `--json`.
    pub(crate) fn summary(&self) -> Value {
        let sizes = self.sizes.iter().map(|size| {
            let single = size.single_thread();
            json!({
                "size": size.word,
                "gflops": size.comparison.candidates.iter().map(|it| it.gflops).collect::<Vec<_>>(),
                "baseline_gflops": size.comparison.baseline.as_ref().and_then(|it| it.gflops),
                "single_thread": single.map(|(ours, theirs, ratio)| {
                    json!({"gflops": ours, "baseline_gflops": theirs, "versus_baseline": ratio})
                }),
            })
        });
        json!({
            "ok": self.failures() == 0,
            "ladder": self.ladder,
            "rungs": self.rungs.iter().map(|it| &it.title).collect::<Vec<_>>(),
            "no_effect": self.rungs.iter().map(|it| it.no_effect).collect::<Vec<_>>(),
            "sizes": sizes.collect::<Vec<_>>(),
        })
    }

    /// The whole story.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} on {}", self.ladder, self.machine)?;
        writeln!(out, "regime {}; caches {}", self.regime.as_str(), self.regime.cache_policy())?;
        for at in 0..self.rungs.len() {
            writeln!(out)?;
            self.print_rung(at, out)?;
        }
        writeln!(out, "\nGFLOPS, median of the samples")?;
        self.table(out, &|size, at| size.candidate(at).gflops.map(gflops_words))?;
        writeln!(out, "\nGain over the rung below")?;
        self.table(out, &|size, at| gain(size.candidate(at.checked_sub(1)?), size.candidate(at)))?;
        let has_baseline = self.sizes.iter().any(|it| it.comparison.baseline.is_some());
        if has_baseline {
            writeln!(out, "\n% of {}, round by round", self.library)?;
            let part = |it: &Measured| Some(format!("{:.1}", 100.0 * it.versus_baseline?.median));
            self.table(out, &|size, at| part(size.candidate(at)))?;
        }
        if self.sizes.iter().any(|it| it.single_thread().is_some()) {
            writeln!(out)?;
        }
        self.sizes.iter().try_for_each(|it| self.print_single(it, out))
    }

    fn print_rung(&self, at: usize, out: &mut dyn Write) -> io::Result<()> {
        let rung = &self.rungs[at];
        writeln!(out, "── {}. {}{}", at + 1, rung.title, if rung.no_effect { "  (no effect)" } else { "" })?;
        if let Some(about) = &rung.about {
            wrapped(about, out)?;
        }
        for (sign, steps) in [('-', &rung.removed), ('+', &rung.added)] {
            steps.iter().try_for_each(|it| writeln!(out, "  {sign} {it}"))?;
        }
        if at > 0 {
            rung.print_diff(self.full, out)?;
        }
        rung.notes.iter().try_for_each(|it| writeln!(out, "  note: {it}"))?;
        for size in &self.sizes {
            self.print_result(size, at, out)?;
        }
        Ok(())
    }

    fn print_result(&self, size: &Size, at: usize, out: &mut dyn Write) -> io::Result<()> {
        let it = size.candidate(at);
        if let Some(words) = failure_words(it) {
            return writeln!(out, "  {}: ✗ {words}", size.word);
        }
        let (Some(gflops), Some(stats)) = (it.gflops, it.stats) else { return Ok(()) };
        let mut words = vec![format!("{} GFLOPS ({})", gflops_words(gflops), time_words(stats.median))];
        if let Some(below) = at.checked_sub(1).and_then(|it| size.candidate(it).gflops) {
            words.push(format!("{:.2}x the rung below", gflops / below));
        }
        if let Some(first) = size.candidate(0).gflops.filter(|_| at > 1) {
            words.push(format!("{:.2}x the first", gflops / first));
        }
        words.extend(roofline_words(&size.comparison, it));
        if let Some(ratio) = it.versus_baseline {
            words.push(format!("{:.1} % of {}", 100.0 * ratio.median, self.library));
        }
        writeln!(out, "  {}: {}", size.word, words.join(", "))?;
        let below = at.checked_sub(1).and_then(|it| size.candidate(it).gflops);
        if below.is_some_and(|below| gflops < below)
            && let Some(words) = self.rungs[at].did_not_pay()
        {
            writeln!(out, "  {words}")?;
        }
        match &it.after {
            Some(verdict) => writeln!(out, "  ✓ verified: {}", verified_words(verdict)),
            None => Ok(()),
        }
    }

    /// One row for each rung, one column for each size.
    fn table(&self, out: &mut dyn Write, cell: &dyn Fn(&Size, usize) -> Option<String>) -> io::Result<()> {
        let heads = self.sizes.iter().map(|it| it.word.clone());
        let mut table = Table::new(["rung".to_owned()].into_iter().chain(heads));
        for (at, rung) in self.rungs.iter().enumerate() {
            let cells = self.sizes.iter().map(|it| cell(it, at).unwrap_or_else(|| "—".to_owned()));
            let note = rung.no_effect.then(|| "no effect".to_owned());
            table.row([format!("{}. {}", at + 1, rung.title)].into_iter().chain(cells).chain(note));
        }
        table.print(out)
    }

    fn print_single(&self, size: &Size, out: &mut dyn Write) -> io::Result<()> {
        let Some((ours, theirs, ratio)) = size.single_thread() else { return Ok(()) };
        writeln!(
            out,
            "{}: one thread against one thread: {} GFLOPS, {:.3} times {} ({} GFLOPS)",
            size.word,
            gflops_words(ours),
            ratio,
            self.library,
            gflops_words(theirs)
        )
    }
}

impl Size {
    fn candidate(&self, at: usize) -> &Measured {
        &self.comparison.candidates[at]
    }

    /// Our GFLOPS, the library's, and the ratio.
    fn single_thread(&self) -> Option<(f64, f64, f64)> {
        let single = self.single.as_ref()?;
        let ours = single.candidates.first()?;
        Some((ours.gflops?, single.baseline.as_ref()?.gflops?, ours.versus_baseline?.median))
    }
}

impl Told {
    fn new(rung: &Rung) -> Told {
        let (added, removed) = (vec![], vec![]);
        Told {
            title: rung.title(),
            about: None,
            added,
            removed,
            diff: String::new(),
            no_effect: false,
            notes: vec![],
            occupancy: None,
            below: None,
        }
    }

    fn tell(&mut self, plan: &Plan, built: &Built, below: Option<(&Plan, &Built)>) {
        self.about.clone_from(&plan.script.about);
        self.notes.clone_from(&built.notes);
        let words = |it: &Plan| it.script.steps().iter().map(|it| it.value.to_ron()).collect::<Vec<_>>();
        let new = words(plan);
        let old = below.map(|(plan, _)| words(plan)).unwrap_or_default();
        self.removed = without(&old, &new);
        self.added = without(&new, &old);
        if let Some((_, below)) = below {
            self.diff = schedule::diff(&below.func, &built.func, 0);
            self.no_effect = below.source == built.source;
        }
    }

    /// Why a rung may be slower than the one below, if fewer blocks share a multiprocessor.
    fn did_not_pay(&self) -> Option<String> {
        let (below, here) = (self.below.as_ref()?, self.occupancy.as_ref()?);
        let has = |word: &str| self.added.iter().any(|it| it.contains(word));
        let what = if has("double_buffer_scope") {
            "double buffering"
        } else if has("software_pipeline") {
            "pipelining"
        } else {
            "this rung"
        };
        let limits: Vec<_> = here.limited_by.iter().map(ToString::to_string).collect();
        (here.blocks < below.blocks).then(|| {
            format!(
                "{what} did not pay: occupancy fell from {} to {} blocks per SM, limited by {}",
                below.blocks,
                here.blocks,
                limits.join(" and ")
            )
        })
    }

    fn print_diff(&self, full: bool, out: &mut dyn Write) -> io::Result<()> {
        let changed = |sign: char| self.diff.lines().filter(|it| it.starts_with(sign)).count();
        let (more, less) = (changed('+'), changed('-'));
        writeln!(out, "  the program changes: {more} lines more, {less} lines less")?;
        let lines = self.diff.lines().filter(|it| !it.trim().starts_with('…'));
        let limit = if full { usize::MAX } else { SHORT };
        lines.take(limit).try_for_each(|it| writeln!(out, "    {it}"))?;
        if more + less > limit {
            writeln!(out, "    … {} lines more (`--full` shows all)", more + less - limit)?;
        }
        Ok(())
    }
}

/// The lines of one list that the other does not have, repeats counted.
fn without(lines: &[String], others: &[String]) -> Vec<String> {
    let mut others: Vec<&String> = others.iter().collect();
    let is_new = |it: &&String| match others.iter().position(|other| other == it) {
        Some(at) => {
            others.remove(at);
            false
        }
        None => true,
    };
    lines.iter().filter(is_new).cloned().collect()
}

fn gain(below: &Measured, it: &Measured) -> Option<String> {
    Some(format!("{:+.0} %", 100.0 * (it.gflops? / below.gflops? - 1.0)))
}

/// Text in lines of at most 100 characters.
fn wrapped(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() > 98 {
            writeln!(out, "  {line}")?;
            line.clear();
        }
        line.extend([if line.is_empty() { "" } else { " " }, word]);
    }
    if line.is_empty() { Ok(()) } else { writeln!(out, "  {line}") }
}

#[cfg(test)]
mod tests {
    use codegen::device::{Limit, Occupancy};

    use super::{Told, without};

    #[test]
    fn fewer_blocks_are_a_reason() {
        let full = |blocks| {
            Some(Occupancy { blocks, warps: 8 * blocks, max_warps: 64, limited_by: vec![Limit::Shared] })
        };
        let told = |from, to| Told {
            title: "double buffer".to_owned(),
            about: None,
            added: vec!["double_buffer_scope(block: \"A_shared\")".to_owned()],
            removed: vec![],
            diff: String::new(),
            no_effect: false,
            notes: vec![],
            occupancy: full(to),
            below: full(from),
        };
        let words = "double buffering did not pay: occupancy fell from 6 to 3 blocks per SM, limited by shared memory";
        assert_eq!(told(6, 3).did_not_pay().as_deref(), Some(words));
        assert_eq!(told(3, 3).did_not_pay(), None);
    }

    #[test]
    fn steps_are_compared_with_their_repeats() {
        let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(without(&list(&["a", "b", "a", "c"]), &list(&["a", "c"])), ["b", "a"]);
        assert!(without(&list(&["a"]), &list(&["b", "a"])).is_empty());
    }
}
