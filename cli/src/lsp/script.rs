//! What a script or a library says and what its steps do, as far as it can be read: while somebody writes it, some of it is broken most of the time.
//!
//! What cannot be read is blanked out, byte for byte, and the rest is read again. So places stay what they are, and the steps before
//! a mistake are applied as ever. What comes behind it is applied, too, but errors in it are not told: they may follow from what
//! is missing.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use ir::{Func, Name};
use schedule::{Session, procedure::Definitions, ron_text::parse};
use serde::de::IgnoredAny;

use super::outline::{Entry, Outline};
use crate::{
    diagnostic::Diagnostic,
    made::maker,
    plan::Plan,
    script_text::find_library,
    source::workload_file,
    text_file::{Unsaved, plain},
};

/// A script as far as it can be read.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: Arc<str>,
    pub(super) outline: Outline,
    /// What it says; none if not even its workload can be read.
    pub(super) plan: Option<Plan>,
    /// The program after each step.
    pub(super) states: Vec<State>,
    /// The procedures that it may call.
    pub(super) definitions: Option<Definitions>,
    /// What is wrong with it.
    pub(super) wrong: Vec<Diagnostic>,
    /// The program after all steps, if none was refused and nothing was blanked out.
    session: Option<Session>,
}

/// A step that was applied.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Where it stands in the script: it or the call that it was expanded from.
    pub(super) span: Range<usize>,
    /// The program after it.
    pub(super) func: Func,
    /// Whether it was refused, and changed nothing.
    pub(super) is_refused: bool,
}

/// The most parts of a script that are blanked out one after the other.
const MOST_BLANKS: usize = 32;

impl Script {
    /// Reads a script. What `before` was read of is read anew only from the first step on that is another.
    pub(super) fn read(path: &Path, text: &Arc<str>, unsaved: &Unsaved, before: Option<Script>) -> Script {
        let is_whole = parse::<IgnoredAny>(text).is_ok();
        let outline = Outline::of(text, is_whole);
        let mut out = Script {
            text: text.clone(),
            outline,
            plan: None,
            states: vec![],
            definitions: None,
            wrong: vec![],
            session: None,
        };
        let (readable, first_blank) = out.readable(path, unsaved);
        let find = |name: &str, user: &str| find_library(name, user, unsaved);
        let definitions = Definitions::of_text(&path.display().to_string(), &readable, &find);
        out.definitions = definitions.ok().flatten();
        let is_complete = first_blank.is_none();
        if let Some(plan) = out.plan.take() {
            let reports = out.apply(&plan, before);
            let own = path.display().to_string();
            let is_known = |it: &Diagnostic| {
                first_blank.is_none_or(|blank| it.place_in(&own).is_some_and(|it| it.start < blank))
            };
            out.wrong.extend(reports.into_iter().filter(is_known));
            out.plan = Some(plan);
        }
        if !is_complete || !out.wrong.is_empty() {
            out.session = None;
        }
        out
    }

    /// Reads a library: its steps have no program, and what is wrong with it is found elsewhere. While it is broken, what it
    /// had before may be called.
    pub(super) fn of_library(
        path: &Path,
        text: &Arc<str>,
        outline: Outline,
        unsaved: &Unsaved,
        before: Option<Script>,
    ) -> Script {
        let find = |name: &str, user: &str| find_library(name, user, unsaved);
        let read = Definitions::of_library(&path.display().to_string(), text, &find);
        let definitions = read.ok().or(before.and_then(|it| it.definitions));
        let (states, wrong) = (vec![], vec![]);
        Script { text: text.clone(), outline, plan: None, states, definitions, wrong, session: None }
    }

    /// The program after all steps and its plan, if nothing is wrong so far.
    pub(super) fn scheduled(&self) -> Option<(&Func, &Plan)> {
        Some((self.session.as_ref()?.func(), self.plan.as_ref()?))
    }

    /// Reads what can be read, and gives it back with the first byte that was blanked out.
    fn readable(&mut self, path: &Path, unsaved: &Unsaved) -> (String, Option<usize>) {
        let mut readable = self.text.to_string();
        let mut blanks: Vec<Range<usize>> = vec![];
        for round in 0..=MOST_BLANKS {
            let err = match Plan::parse_with(path, &readable, &[], unsaved) {
                Ok(plan) => {
                    self.plan = Some(plan);
                    break;
                }
                Err(err) => err,
            };
            let own = path.display().to_string();
            let place = err.place_in(&own);
            if round == 0 {
                self.wrong.push(err);
                blanks.extend(self.broken());
            }
            // What is no RON may be told of far behind the bracket or the quote that is missing.
            let is_found = round == 0 && !blanks.is_empty();
            let culprit = place.filter(|_| !is_found).and_then(|it| self.part_at(it.start));
            let is_new = |it: &Range<usize>| {
                !blanks.iter().any(|known| known.start <= it.start && it.end <= known.end)
            };
            match culprit.filter(is_new) {
                Some(part) => blanks.push(part),
                None if round > 0 || blanks.is_empty() => break,
                None => {}
            }
            readable = self.blanked(&blanks);
        }
        (readable, blanks.into_iter().map(|it| it.start).min())
    }

    /// The parts that are no RON: steps and fields that are not closed, or lack their value.
    fn broken(&self) -> Vec<Range<usize>> {
        let Some(root) = self.outline.root else { return vec![] };
        let is_broken = |node: usize| {
            let inner = (node..self.outline.nodes.len()).take_while(|it| {
                let it = &self.outline.nodes[*it];
                it.span.start < self.outline.nodes[node].span.end.max(1 + self.outline.nodes[node].span.start)
            });
            inner.into_iter().any(|it| {
                let it = &self.outline.nodes[it];
                let lacks = it.entries.iter().any(|it| it.key.is_some() && it.value.is_none());
                !it.is_closed || lacks
            })
        };
        let steps = self.outline.top(&self.text, "steps").and_then(|it| it.value);
        let fields =
            self.outline.nodes[root].entries.iter().filter(|it| it.value != steps || steps.is_none());
        let elements = steps.into_iter().flat_map(|it| &self.outline.nodes[it].entries);
        let all = fields.chain(elements).filter(|it| match it.value {
            Some(value) => is_broken(value),
            None => it.key.is_some(),
        });
        let strays = self.outline.strays.iter().cloned();
        all.map(|it| it.bounds.clone()).chain(strays).collect()
    }

    /// The step or the field at a place, from comma to comma.
    fn part_at(&self, offset: usize) -> Option<Range<usize>> {
        let root = self.outline.root?;
        let steps = self.outline.top(&self.text, "steps").and_then(|it| it.value);
        let elements = steps.into_iter().flat_map(|it| &self.outline.nodes[it].entries);
        let fields =
            self.outline.nodes[root].entries.iter().filter(|it| it.value.is_none() || it.value != steps);
        let mut all = elements.chain(fields).filter(|it| it.key.is_some() || it.value.is_some());
        all.find(|it| it.bounds.contains(&offset)).map(|it| it.bounds.clone())
    }

    /// The text without some parts and the commas behind them, closed where it is not.
    fn blanked(&self, parts: &[Range<usize>]) -> String {
        let mut bytes = self.text.as_bytes().to_vec();
        let mut blank = |range: Range<usize>| {
            for it in &mut bytes[range] {
                if *it != b'\n' {
                    *it = b' ';
                }
            }
        };
        for part in parts {
            blank(part.clone());
            if self.text[part.end..].starts_with(',') {
                blank(part.end..part.end + 1);
            }
        }
        let root = self.outline.root.map(|it| &self.outline.nodes[it]);
        let steps = self.outline.top(&self.text, "steps").and_then(|it| it.value);
        let steps = steps.map(|it| &self.outline.nodes[it]);
        let mut text = String::from_utf8(bytes).unwrap_or_default();
        // What follows may be a comment, which ends with its line.
        if root.is_some_and(|it| !it.is_closed) {
            text.push_str("\n)");
        }
        if let Some(it) = steps.filter(|it| !it.is_closed) {
            text.insert_str(it.inside.end, "\n]");
        }
        text
    }

    /// Applies the steps, from the first on that is another than before.
    fn apply(&mut self, plan: &Plan, before: Option<Script>) -> Vec<Diagnostic> {
        let target = plan.target(None, None);
        let known = before.and_then(|it| Some((it.session?, it.plan?, it.states)));
        let known = known.filter(|it| it.1.func == plan.func && it.1.target(None, None) == target);
        let (mut session, mut funcs) = match known {
            Some((mut session, _, states)) => {
                let same = session.trace().zip(&plan.steps).take_while(|it| it.0 == it.1).count();
                while session.trace().count() > same {
                    session.undo();
                }
                (session, states.into_iter().take(same).map(|it| (it.func, false)).collect::<Vec<_>>())
            }
            None => (Session::new(plan.func.clone(), Some(target)), vec![]),
        };
        let reports = plan.go_on(&mut session, None, &mut |_, session, is_refused| {
            funcs.push((session.func().clone(), is_refused));
        });
        let states = funcs.into_iter().zip(plan.spans());
        self.states = states
            .map(|((func, is_refused), span)| State { span: plan.text.written(span), func, is_refused })
            .collect();
        self.session = Some(session).filter(|_| self.states.iter().all(|it| !it.is_refused));
        reports
    }

    /// The files that it uses; nothing is known of them where not even its workload can be read.
    pub(super) fn uses(&self, path: &Path) -> Option<Vec<PathBuf>> {
        let plan = self.plan.as_ref()?;
        let workload = workload_file(path, &plan.script.workload.value);
        let libraries = plan.text.libraries().map(Path::to_owned);
        Some(workload.into_iter().chain(libraries).map(|it| plain(&it)).collect())
    }

    /// Where a knob or a value is said what it is.
    pub(super) fn knob(&self, name: &str) -> Option<&Entry> {
        ["knobs", "values"].into_iter().find_map(|field| {
            let node = self.outline.top(&self.text, field)?.value?;
            let is_it = |it: &&Entry| {
                it.key.as_ref().is_some_and(|it| self.text[it.clone()].trim_matches('"') == name)
            };
            self.outline.nodes[node].entries.iter().find(is_it)
        })
    }

    /// The program before what begins at a place.
    pub(super) fn before(&self, offset: usize) -> Option<&Func> {
        let done = self.states.iter().rev().find(|it| it.span.end <= offset);
        done.map(|it| &it.func).or(self.plan.as_ref().map(|it| &it.func))
    }

    /// The program after the step that stands there.
    pub(super) fn after(&self, step: &Range<usize>) -> Option<&Func> {
        self.states
            .iter()
            .rev()
            .find(|it| it.span.start <= step.start && step.end <= it.span.end)
            .map(|it| &it.func)
    }

    /// The last step before a place that made what has a name.
    pub(super) fn maker(&self, name: &Name, offset: usize) -> Option<&State> {
        let states = || self.states.iter().filter(|it| it.span.start < offset);
        let at = maker(name, &self.plan.as_ref()?.func, states().map(|it| &it.func))?;
        states().nth(at)
    }
}
