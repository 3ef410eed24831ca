//! The section of one step: what it says, what it is for, and what it changes.

use std::fmt::Write;

use ir::{Func, Target};
use schedule::{Session, Step, diff_text, primitive};

use super::{changes, folded, history::History, listing};
use crate::{
    build::{lowered, source},
    diagnostic::Diagnostic,
    term::code::{Lang, html},
    term::markup::prose,
    timeline,
};

/// How many unchanged lines stand around a change.
const CONTEXT: usize = 3;

/// The sections of the steps so far.
pub(super) struct StepSections<'a> {
    pub(super) sections: Vec<StepSection>,
    /// What each of them made or changed.
    pub(super) history: History,
    target: &'a Target,
    /// The emitted source of the last program that had one.
    source: Option<String>,
    /// Why the last program had none.
    reason: Option<String>,
    /// The timelines of the last program.
    drawing: Option<String>,
}

/// The section of a step.
pub(super) struct StepSection {
    /// The step as a script has it.
    pub(super) call: String,
    /// How its section begins.
    pub(super) head: String,
    /// How its section goes on.
    pub(super) html: String,
}

impl<'a> StepSections<'a> {
    /// Before the first step.
    pub(super) fn new(func: &Func, target: &'a Target) -> StepSections<'a> {
        let source = lowered(func, target).and_then(|it| source(func, &it.module, target));
        let reason = source.as_ref().err().map(|it| it.message().to_owned());
        StepSections {
            sections: vec![],
            history: History::new(func),
            target,
            source: source.ok(),
            reason,
            drawing: None,
        }
    }

    /// Adds the section of the step that was applied last.
    pub(super) fn step(&mut self, step: &Step, session: &Session) {
        let (n, call) = (self.sections.len() + 1, step.to_ron());
        self.history.step(session.func());
        let mut head = format!("<h2><a href=\"#step-{n}\">{n}</a> {}</h2>\n", step.name());
        let _ = writeln!(head, "<pre class=\"call\">{}</pre>", html(&call, Lang::Ron));
        let _ = writeln!(head, "<p>{}</p>", prose(&about(step.name())));
        let mut out = match changes::html(&session.last_diff(CONTEXT)) {
            it if it.is_empty() => "<p class=\"quiet\">It changes nothing in the program.</p>\n".to_owned(),
            it => it,
        };
        let (func, target) = (session.func(), self.target);
        let lowered = lowered(func, target);
        let drawing = lowered.as_ref().ok().and_then(|it| timeline::drawing(func, it, target, false));
        out += &self.code(lowered.and_then(|it| source(func, &it.module, target)));
        out += &self.timeline(drawing);
        let program = listing(&ir::text::print(session.func()).text, Lang::Ir);
        out += &folded("The program after this step", &program, false);
        self.sections.push(StepSection { call, head, html: out });
    }

    /// What the step means for the code.
    fn code(&mut self, emitted: Result<String, Diagnostic>) -> String {
        let source = match emitted {
            Ok(it) => it,
            Err(err) => {
                // The same reason for step after step is no news.
                let reason = err.message().to_owned();
                let is_old = self.reason.as_ref() == Some(&reason);
                let words = format!("<p class=\"quiet\">There is no code yet: {}</p>\n", prose(&reason));
                self.reason = Some(reason);
                return if is_old { String::new() } else { words };
            }
        };
        self.reason = None;
        let before = self.source.replace(source.clone());
        let Some(before) = before else {
            let title = format!("The first code: {} lines", source.lines().count());
            return folded(&title, &listing(&source, Lang::C), false);
        };
        let diff = diff_text(&before, &source, CONTEXT);
        match changes::counted(&diff) {
            Some(words) => folded(&format!("The code: {words}"), &changes::html(&diff), false),
            None => "<p class=\"quiet\">The code stays as it was.</p>\n".to_owned(),
        }
    }

    /// The timelines, if the step changed them.
    fn timeline(&mut self, drawing: Option<String>) -> String {
        let is_news = drawing.is_some() && drawing != self.drawing;
        self.drawing = drawing;
        match &self.drawing {
            Some(it) if is_news => folded("The timeline", &panel(it), true),
            Some(_) | None => String::new(),
        }
    }
}

/// A drawing with colours of its own, as wide as it is.
pub(crate) fn panel(svg: &str) -> String {
    format!("<div class=\"scroll timeline\">\n{svg}</div>\n")
}

/// The first sentence of a primitive's manual.
pub(crate) fn about(name: &str) -> String {
    let text = primitive::explain(name).unwrap_or_default();
    let paragraph: Vec<_> = text.lines().take_while(|it| !it.trim().is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |it| it + 1);
    paragraph[..end].to_owned()
}
