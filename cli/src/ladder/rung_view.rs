//! The view of a rung beside its times: its steps, what they change, what its kernels need, and why it may be slower.

use std::io::{self, Write};

use ir::Target;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    build::Built,
    ladder::Rung,
    ladder::needs::{Needs, limits},
    plan::Plan,
    term::wrap::wrapped,
};

/// How many lines of a difference are shown unless all are wanted.
const MAX_DIFF_LINES: usize = 12;

/// How much is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Detail {
    /// The whole of each difference.
    pub(crate) full: bool,
    /// The difference of the generated code, too.
    pub(crate) code: bool,
}

/// What is shown of a rung beside the one below, without times.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RungView {
    /// Its position on the ladder, from 1.
    pub(crate) number: usize,
    /// What it is called.
    #[serde(rename = "rung")]
    pub(crate) title: String,
    /// What its script says of it.
    about: Option<String>,
    /// Whether its source is that of the rung below.
    pub(crate) no_effect: bool,
    /// The steps that the rung below has not.
    #[serde(rename = "steps_added")]
    added: Vec<String>,
    /// The steps that only the rung below has.
    #[serde(rename = "steps_removed")]
    removed: Vec<String>,
    /// How the program differs from that of the rung below; empty for the first rung.
    ir_diff: String,
    /// How its source differs, if that was asked.
    code_diff: Option<String>,
    /// What each kernel needs of a machine.
    needs: Vec<Needs>,
    /// What the script asks for in vain.
    notes: Vec<String>,
    #[serde(skip)]
    below: Vec<Needs>,
    #[serde(skip)]
    target: Target,
}

impl RungView {
    /// The view of a rung and the one below it, both built.
    pub(crate) fn new(
        number: usize,
        rung: &Rung,
        here: (&Plan, &Built),
        below: Option<(&Plan, &Built)>,
        target: &Target,
        detail: Detail,
    ) -> RungView {
        let (plan, built) = here;
        let words = |it: &Plan| it.script.steps().iter().map(|it| it.value.to_ron()).collect::<Vec<_>>();
        let new = words(plan);
        let old = below.map(|(plan, _)| words(plan)).unwrap_or_default();
        let source = |it: &Built| schedule::diff_text(&it.source, &built.source, 0);
        RungView {
            number,
            title: rung.title(),
            no_effect: below.is_some_and(|(_, it)| it.source == built.source),
            about: plan.script.about.clone(),
            removed: without(&old, &new),
            added: without(&new, &old),
            ir_diff: below.map(|(_, it)| schedule::diff(&it.func, &built.func, 0)).unwrap_or_default(),
            code_diff: below.filter(|_| detail.code).map(|(_, it)| source(it)),
            notes: built.notes.clone(),
            needs: Needs::of(built, target),
            below: below.map(|(_, it)| Needs::of(it, target)).unwrap_or_default(),
            target: target.clone(),
        }
    }

    /// Prints all that needs no measurement.
    pub(crate) fn print(&self, detail: Detail, out: &mut dyn Write) -> io::Result<()> {
        let none = if self.no_effect { "  (no effect)" } else { "" };
        writeln!(out, "── {}. {}{none}", self.number, self.title)?;
        if let Some(about) = &self.about {
            wrapped(about, "  ", "  ", out)?;
        }
        for (sign, steps) in [('-', &self.removed), ('+', &self.added)] {
            steps.iter().try_for_each(|it| writeln!(out, "  {sign} {it}"))?;
        }
        if self.number > 1 {
            print_diff("the program", &self.ir_diff, detail.full, out)?;
        }
        if let Some(diff) = &self.code_diff {
            let language = match self.target {
                Target::Cpu => "the generated C",
                Target::Cuda(_) => "the generated CUDA",
            };
            print_diff(language, diff, detail.full, out)?;
        }
        for it in &self.needs {
            let of = if self.needs.len() > 1 { format!("{} needs", it.kernel) } else { "needs".to_owned() };
            if let Some(words) = it.words(&self.target) {
                wrapped(&format!("{of}: {words}"), "  ", "    ", out)?;
            }
        }
        self.notes.iter().try_for_each(|it| wrapped(&format!("note: {it}"), "  ", "    ", out))
    }

    /// Why a rung may be slower than the one below, if fewer blocks share a multiprocessor.
    pub(crate) fn did_not_pay(&self) -> Option<String> {
        let ([below], [here]) = (self.below.as_slice(), self.needs.as_slice()) else { return None };
        let (below, here) = (below.occupancy.as_ref()?, here.occupancy.as_ref()?);
        let has = |word: &str| self.added.iter().any(|it| it.contains(word));
        let what = if has("double_buffer_scope") {
            "double buffering"
        } else if has("software_pipeline") {
            "pipelining"
        } else {
            "this rung"
        };
        (here.blocks < below.blocks).then(|| {
            format!(
                "{what} did not pay: occupancy fell from {} to {} blocks per SM, limited by {}",
                below.blocks,
                here.blocks,
                limits(&here.limited_by)
            )
        })
    }
}

fn print_diff(what: &str, diff: &str, full: bool, out: &mut dyn Write) -> io::Result<()> {
    let changed = |sign: char| diff.lines().filter(|it| it.starts_with(sign)).count();
    let (more, less) = (changed('+'), changed('-'));
    if more + less == 0 {
        return writeln!(out, "  {what} stays the same");
    }
    writeln!(out, "  {what} changes: {more} lines more, {less} lines less")?;
    let lines = diff.lines().filter(|it| !it.trim().starts_with('…'));
    let limit = if full { usize::MAX } else { MAX_DIFF_LINES };
    lines.take(limit).try_for_each(|it| writeln!(out, "    {it}"))?;
    if more + less > limit {
        writeln!(out, "    … {} lines more (`--full` shows all)", more + less - limit)?;
    }
    Ok(())
}

/// The lines of one list that the other does not have, repeats counted.
pub(crate) fn without(lines: &[String], others: &[String]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use codegen::device::{Limit, Occupancy};
    use ir::Target;

    use super::{Needs, RungView, without};

    #[test]
    fn fewer_blocks_are_a_reason() {
        let full = |blocks| {
            let limited_by = vec![Limit::Shared];
            let occupancy = Some(Occupancy { blocks, warps: 8 * blocks, max_warps: 64, limited_by });
            vec![Needs { occupancy, ..Needs::default() }]
        };
        let view = |from, to| RungView {
            number: 2,
            title: "double buffer".to_owned(),
            no_effect: false,
            about: None,
            added: vec!["double_buffer_scope(block: \"A_shared\")".to_owned()],
            removed: vec![],
            ir_diff: String::new(),
            code_diff: None,
            notes: vec![],
            needs: full(to),
            below: full(from),
            target: Target::Cpu,
        };
        let words = "double buffering did not pay: occupancy fell from 6 to 3 blocks per SM, limited by shared memory";
        assert_eq!(view(6, 3).did_not_pay().as_deref(), Some(words));
        assert_eq!(view(3, 3).did_not_pay(), None);
    }

    #[test]
    fn steps_are_compared_with_their_repeats() {
        let list = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(without(&list(&["a", "b", "a", "c"]), &list(&["a", "c"])), ["b", "a"]);
        assert!(without(&list(&["a"]), &list(&["b", "a"])).is_empty());
    }
}
