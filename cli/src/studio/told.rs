//! What the process that works tells the one that serves: a line of JSON each.

use serde::{Deserialize, Serialize};

/// A line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// The script as it was read; always the first line. Where something is wrong with it, what can be told all the same follows.
    Script(ScriptTold),
    /// The program that the steps start from, and what each of them makes of it, up to the first that is refused.
    Steps { start: String, steps: Vec<StepTold> },
    /// A panel, or what is newly known for it.
    Panel { panel: Panel, html: String, text: String },
    /// How far a panel is that takes a while.
    Progress { panel: Panel, words: String },
    /// A panel that is made when somebody asks for it, and why not before.
    OnDemand { panel: Panel, why: String },
    /// The work could not be done.
    Failed(String),
}

/// A script with what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ScriptTold {
    /// Its text.
    pub(super) text: String,
    /// Its lines as they stand on the page, each with what is wrong with it.
    pub(super) html: String,
    /// How many things are wrong.
    pub(super) wrong: usize,
    /// What `check` says of it in a line, or the first thing that is wrong.
    pub(super) summary: String,
}

/// What a step makes of the program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct StepTold {
    /// The step as a script has it.
    pub(super) call: String,
    /// Its primitive.
    pub(super) name: String,
    /// The line of the script that it stands in, from 1.
    pub(super) line: usize,
    /// The loops that were not there before, each with its extent.
    pub(super) loops: Vec<(String, String)>,
    /// What differs in the program.
    pub(super) diff: String,
    /// The loop nest after it.
    pub(super) nest: String,
    /// The parts that it touched and no later step removed, as lines of the panels name them.
    pub(super) parts: String,
}

/// A part of the page that stands for a form of the scheduled program, or for what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Panel {
    /// The program after all steps.
    Program,
    /// The lowered kernels.
    Kernel,
    /// The emitted source.
    Source,
    /// The timelines of its software pipelines.
    Timeline,
    /// What the kernels need of a multiprocessor.
    Resources,
    /// What the virtual GPU finds and counts.
    VirtualGpu,
}

impl Panel {
    /// All of them in the order of the page.
    pub(super) const ALL: [Panel; 6] =
        [Panel::Program, Panel::Kernel, Panel::Source, Panel::Timeline, Panel::Resources, Panel::VirtualGpu];

    /// The word that the page knows it by.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Panel::Program => "program",
            Panel::Kernel => "kernel",
            Panel::Source => "source",
            Panel::Timeline => "timeline",
            Panel::Resources => "resources",
            Panel::VirtualGpu => "virtual-gpu",
        }
    }

    /// Its title.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Panel::Program => "Program",
            Panel::Kernel => "Kernel",
            Panel::Source => "Source",
            Panel::Timeline => "Timeline",
            Panel::Resources => "Resources",
            Panel::VirtualGpu => "Virtual GPU",
        }
    }
}
