//! The panels that need no compiler: the steps, the program, its kernels, its source and its timelines.

use std::fmt::Write;

use codegen::lower::{Lowered, no_effect};
use ir::{Func, Target, text::print};
use schedule::{Session, Step};

use super::{
    script_lines::line_of,
    told::{Panel, StepTold, Told},
    work::{Tell, rendered},
};
use crate::{
    build::lowered,
    command::show::html::{
        history::History,
        listing,
        result::{Views, list},
        step::panel as drawing,
        view::words,
    },
    diagnostic::Diagnostic,
    made::{maker, new_loops},
    plan::Plan,
    term::{
        code::Lang,
        markup::{escaped_block, prose},
    },
    timeline,
};

/// How many unchanged lines stand around a change.
pub(super) const CONTEXT: usize = 3;

/// What the steps so far made of the program.
pub(super) struct Steps<'a> {
    plan: &'a Plan,
    history: History,
    /// The program after each step.
    funcs: Vec<Func>,
    told: Vec<StepTold>,
}

impl<'a> Steps<'a> {
    /// Before the first step.
    pub(super) fn new(plan: &'a Plan) -> Steps<'a> {
        Steps { plan, history: History::new(&plan.func), funcs: vec![], told: vec![] }
    }

    /// Adds a step that was applied.
    pub(super) fn add(&mut self, step: &Step, session: &Session) {
        let func = session.func();
        self.history.step(func);
        let before = self.funcs.last().unwrap_or(&self.plan.func);
        let loops = new_loops(before, func);
        let loops = loops.into_iter().map(|it| (it.var.to_string(), it.extent.to_string())).collect();
        let start = self.start_of(self.told.len());
        self.told.push(StepTold {
            call: step.to_ron(),
            name: step.name().to_owned(),
            line: line_of(self.plan.text.original(), start),
            loops,
            diff: session.last_diff(CONTEXT),
            nest: print(func).text,
            parts: String::new(),
        });
        self.funcs.push(func.clone());
    }

    /// Where a step stands in the script: it, or the call that it was expanded from.
    fn start_of(&self, step: usize) -> usize {
        self.plan.text.written(&self.plan.spans()[step]).start
    }

    /// Where the step stands that made what is wrong.
    pub(super) fn culprit(&self, wrong: &Diagnostic) -> Option<usize> {
        let at = wrong.names().find_map(|name| maker(name, &self.plan.func, self.funcs.iter()))?;
        Some(self.start_of(at))
    }

    /// All of them.
    pub(super) fn told(mut self) -> Told {
        for (it, parts) in self.told.iter_mut().zip(self.history.touched()) {
            it.parts = words(parts);
        }
        Told::Steps { start: print(&self.plan.func).text, steps: self.told }
    }
}

/// A scheduled program with what it was lowered to.
pub(super) struct Program<'a> {
    pub(super) lowered: Lowered,
    pub(super) views: Views,
    /// What the script asks for in vain.
    notes: Vec<String>,
    pub(super) func: &'a Func,
    target: &'a Target,
}

impl<'a> Program<'a> {
    /// Lowers a scheduled program and emits its source.
    pub(super) fn of(func: &'a Func, target: &'a Target) -> Result<Program<'a>, Diagnostic> {
        let lowered = lowered(func, target)?;
        let notes = no_effect(func, &lowered.pipelines);
        let views = Views::of(func, &lowered.module, target)?;
        Ok(Program { lowered, views, notes, func, target })
    }

    /// Tells the panels.
    pub(super) fn tell(&self, tell: Tell<'_>) -> Result<(), Diagnostic> {
        let hash = tuner::sha256(&self.views.source);
        let lines = self.views.source.lines().count();
        let about = format!("<p class=\"quiet\">{lines} lines, sha256 <code>{hash}</code></p>\n");
        let panels = [
            (Panel::Program, notes(&self.notes) + &self.views.program.html(), print(self.func).text),
            (Panel::Kernel, self.views.kernel.html(), self.lowered.module.to_string()),
            (Panel::Source, about + &self.views.code.html(), format!("sha256 {hash}\n{}", self.views.source)),
        ];
        for (panel, html, text) in panels {
            tell(&Told::Panel { panel, html, text })?;
        }
        self.tell_timeline(false, tell)
    }

    /// Tells the timelines, with what their slots cost if a compiler is to tell that, too.
    pub(super) fn tell_timeline(&self, with_costs: bool, tell: Tell<'_>) -> Result<(), Diagnostic> {
        let told = |with_costs| timeline::told(self.func, &self.lowered, self.target, with_costs);
        // What differs is told of the plain one, since the other comes later and not everywhere.
        let (html, text) = if let (Some((svg, words)), Some((_, plain))) = (told(with_costs)?, told(false)?) {
            (drawing(&svg) + &printed(&words), plain)
        } else {
            let err = timeline::no_pipeline(self.func, &self.lowered.pipelines);
            (missing(&err), err.message().to_owned())
        };
        tell(&Told::Panel { panel: Panel::Timeline, html, text })
    }
}

/// The program of a script whose steps are legal, and which cannot be lowered.
pub(super) fn not_lowered(func: &Func) -> Told {
    let text = print(func).text;
    Told::Panel { panel: Panel::Program, html: listing(&text, Lang::Ir), text }
}

/// Sentences as a list, if there are any.
pub(super) fn notes(all: &[String]) -> String {
    if all.is_empty() { String::new() } else { list(all) }
}

/// Sentences, a paragraph each.
pub(super) fn quiet(words: &str) -> String {
    let mut out = String::new();
    for line in words.lines().filter(|it| !it.is_empty()) {
        let _ = writeln!(out, "<p class=\"quiet\">{}</p>", prose(line));
    }
    out
}

/// What there is not, why, and what would help, as a part of a panel that is none the worse for it.
pub(super) fn missing(err: &Diagnostic) -> String {
    let sentence = |words: &str| {
        let mut chars = words.chars();
        chars.next().map(|it| format!("{}{}.", it.to_uppercase(), chars.as_str())).unwrap_or_default()
    };
    quiet(&format!("{}\n{}", sentence(err.message()), err.advice().map(sentence).unwrap_or_default()))
}

/// What a command prints.
pub(super) fn printed(text: &str) -> String {
    format!("<pre class=\"code\">{}</pre>\n", escaped_block(text))
}

/// What it prints where something is wrong.
pub(super) fn refused(text: &str) -> String {
    format!("<pre class=\"code refusal\">{}</pre>\n", escaped_block(text))
}

/// A panel that says why there is nothing to see.
pub(super) fn refusal(panel: Panel, err: &Diagnostic) -> Told {
    let text = rendered(err);
    Told::Panel { panel, html: refused(&text), text }
}
