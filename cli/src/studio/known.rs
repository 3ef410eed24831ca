//! What is known of the script: what the last save gave, what is left of those before it, and what differs.

use std::{collections::BTreeMap, fmt::Write, path::Path, sync::Arc};

use schedule::diff_text;
use serde_json::json;

use super::{
    board::{Board, Steps},
    panels::{CONTEXT, quiet},
    told::{Panel, ScriptTold, StepTold, Told},
};
use crate::{
    command::show::html::changes,
    term::{
        code::{Lang, html},
        markup::{escaped, prose},
    },
};

/// What is known, and the board that shows it.
#[derive(Debug)]
pub(super) struct Known {
    board: Arc<Board>,
    /// The file name of the script.
    name: String,
    state: State,
    /// What there is to say of the state.
    words: String,
    /// The save that is looked at, from 1.
    save: u64,
    /// The one whose script is on the page.
    shown: u64,
    /// The one that its steps are of.
    stepped: u64,
    panels: BTreeMap<Panel, PanelState>,
    legal: Legal,
}

/// How it stands with the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A save is being looked at.
    Working,
    /// It is legal.
    Legal,
    /// Something is wrong with it.
    Wrong,
    /// Its file is not there.
    Missing,
    /// It could not be looked at.
    Failed,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Working => "working",
            State::Legal => "legal",
            State::Wrong => "wrong",
            State::Missing => "missing",
            State::Failed => "failed",
        }
    }
}

/// A panel.
#[derive(Debug, Default)]
struct PanelState {
    html: String,
    /// The save that it is of.
    save: u64,
    /// How far it is, while it is made anew.
    progress: Option<String>,
    /// Why it waits until somebody asks for it.
    why: Option<String>,
    /// What it said at the last legal save for which it was made.
    good: Option<String>,
    /// What it said at the one before.
    before: Option<String>,
    /// How these differ.
    diff: Option<String>,
}

/// The scripts of the last two legal saves.
#[derive(Debug, Default)]
struct Legal {
    last: Option<String>,
    /// How they differ; none as long as there is but one.
    diff: Option<String>,
}

/// The panels in the order in which their differences are told: what one looks for first is not behind pages of source.
const SHORT_FIRST: [Panel; 6] =
    [Panel::Resources, Panel::VirtualGpu, Panel::Program, Panel::Timeline, Panel::Kernel, Panel::Source];

impl Known {
    /// Before the first save is looked at.
    pub(super) fn new(board: Arc<Board>, script: &Path) -> Known {
        let name = script.file_name().unwrap_or(script.as_os_str()).to_string_lossy().into_owned();
        let panels = Panel::ALL.map(|it| (it, PanelState::default())).into();
        let (state, words) = (State::Working, String::new());
        let known = Known {
            board,
            name,
            state,
            words,
            save: 0,
            shown: 0,
            stepped: 0,
            panels,
            legal: Legal::default(),
        };
        known.put_panels();
        known
    }

    /// A save begins to be looked at.
    pub(super) fn begin(&mut self) {
        self.save += 1;
        for it in self.panels.values_mut() {
            it.progress = None;
        }
        // What is wrong stays on the page until it is known to be mended.
        if self.shown == 0 || matches!(self.state, State::Missing | State::Failed) {
            self.state = State::Working;
            self.words.clear();
        }
        self.put_state();
    }

    /// The script cannot be read.
    pub(super) fn missing(&mut self, path: &Path) {
        self.state = State::Missing;
        self.words = format!("{} is not there; waiting for it to come back", path.display());
        self.put_state();
    }

    /// A process could not do its work.
    pub(super) fn fail(&mut self, words: String) {
        for it in self.panels.values_mut() {
            it.progress = None;
        }
        (self.state, self.words) = (State::Failed, words);
        self.put_state();
    }

    /// All that was under way has ended.
    pub(super) fn end(&mut self) {
        for it in self.panels.values_mut() {
            it.progress = None;
        }
        self.put_state();
    }

    /// Somebody asks for a panel; says whether that is to be done. It is not if it is under way, or is no panel of a legal script.
    pub(super) fn asked(&mut self, panel: Panel) -> bool {
        if matches!(self.state, State::Working | State::Wrong | State::Missing) || self.shown != self.save {
            return false;
        }
        let progress = &mut self.panel(panel).progress;
        let is_new = progress.is_none();
        if is_new {
            *progress = Some("starting".to_owned());
            self.put_state();
        }
        is_new
    }

    /// A process tells something.
    pub(super) fn hear(&mut self, told: Told) {
        match told {
            Told::Script(it) => self.script(it),
            Told::Steps { start, steps } => self.steps(start, steps),
            Told::Panel { panel, html, text } => self.told(panel, html, text),
            Told::Progress { panel, words } => self.panel(panel).progress = Some(words),
            Told::OnDemand { panel, why } => self.panel(panel).why = Some(why),
            Told::Failed(words) => return self.fail(words),
        }
        self.put_state();
    }

    fn told(&mut self, panel: Panel, html: String, text: String) {
        let (save, is_legal) = (self.save, self.state != State::Wrong);
        let it = self.panel(panel);
        (it.html, it.save, it.progress, it.why) = (html, save, None, None);
        if is_legal {
            it.diff = it.before.as_ref().map(|before| diff_text(before, &text, CONTEXT));
            it.good = Some(text);
        }
        self.put_panel(panel);
        self.put_changes();
    }

    fn script(&mut self, it: ScriptTold) {
        self.shown = self.save;
        self.words = it.summary;
        self.state = if it.wrong == 0 { State::Legal } else { State::Wrong };
        self.board.put("script", "", &json!({ "html": it.html, "wrong": it.wrong }));
        if it.wrong > 0 {
            return;
        }
        for panel in self.panels.values_mut() {
            panel.before.clone_from(&panel.good);
            (panel.diff, panel.why) = (None, None);
        }
        let last = self.legal.last.replace(it.text);
        self.legal.diff =
            last.map(|last| diff_text(&last, self.legal.last.as_deref().unwrap_or_default(), CONTEXT));
        self.put_changes();
    }

    fn steps(&mut self, start: String, steps: Vec<StepTold>) {
        let list: Vec<_> = steps
            .iter()
            .map(|it| {
                let loops: Vec<_> = it.loops.iter().map(|(name, extent)| format!("{name}: {extent}")).collect();
                json!({ "call": html(&it.call, Lang::Ron), "line": it.line, "loops": loops, "parts": it.parts })
            })
            .collect();
        self.stepped = self.save;
        self.board.set_steps(Steps { start, steps });
        // The number makes a list that reads the same another one: the page then asks for its step again.
        self.board.put("steps", "", &json!({ "steps": list, "save": self.save }));
    }

    fn panel(&mut self, panel: Panel) -> &mut PanelState {
        self.panels.entry(panel).or_default()
    }

    fn put_panels(&self) {
        for it in Panel::ALL {
            self.put_panel(it);
        }
        self.put_state();
    }

    fn put_panel(&self, panel: Panel) {
        let html = self.panels.get(&panel).map_or("", |it| &it.html);
        let data = json!({ "id": panel.id(), "title": panel.title(), "html": html });
        self.board.put("panel", panel.id(), &data);
    }

    /// How it stands with the script and with each panel.
    fn put_state(&self) {
        let is_busy = self.shown != self.save && self.state != State::Failed;
        let is_gone = match self.state {
            State::Missing => true,
            State::Failed => self.shown != self.save,
            State::Working | State::Legal | State::Wrong => false,
        };
        let is_stale = |save| save > 0 && (is_gone || save != self.shown);
        let panel = |(panel, it): (&Panel, &PanelState)| {
            json!({
                "id": panel.id(),
                "stale": is_stale(it.save),
                "changed": it.diff.as_deref().is_some_and(|it| !it.is_empty()),
                "progress": it.progress,
                "why": it.why.as_deref().map(prose),
            })
        };
        let panels: Vec<_> = self.panels.iter().map(panel).collect();
        let data = json!({
            "name": self.name,
            "state": self.state.word(),
            "words": self.words,
            "busy": is_busy,
            "steps_stale": is_stale(self.stepped),
            "panels": panels,
        });
        self.board.put("state", "", &data);
    }

    /// What the last legal save changed.
    fn put_changes(&self) {
        let Some(script) = &self.legal.diff else {
            let words = "Save the script: what that changes stands here, in each form of the program.";
            return self.board.put("changes", "", &json!({ "html": quiet(words) }));
        };
        let all = SHORT_FIRST.iter().filter_map(|it| Some((it.title(), self.panels.get(it)?.diff.as_ref()?)));
        let mut out = String::new();
        let mut same = vec![];
        for (title, diff) in [("Script", script)].into_iter().chain(all) {
            let Some(counted) = changes::counted(diff) else {
                same.push(title);
                continue;
            };
            let id = title.to_lowercase().replace(' ', "-");
            let _ = writeln!(
                out,
                "<details open data-of=\"{id}\"><summary>{}: {}</summary>\n{}</details>",
                escaped(title),
                escaped(&counted),
                changes::html(diff)
            );
        }
        if !same.is_empty() {
            out += &quiet(&format!("As before: {}.", same.join(", ")));
        }
        self.board.put("changes", "", &json!({ "html": out }));
    }
}
