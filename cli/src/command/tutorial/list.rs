//! `tilewright tutorial list`.

use schedule::{Script, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    ladder::{Ladder, Rung},
    term::report::Report,
    term::shell::Shell,
    term::table::Table,
};

/// A ladder that ships.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a ladder")]
pub(crate) struct ShippedLadder {
    /// Its name.
    ladder: &'static str,
    /// The workload that it computes.
    workload: &'static str,
    /// The target, as scripts have it.
    target: String,
    /// Its rungs, in order.
    rungs: Vec<String>,
    /// What it is about.
    about: String,
}

/// The last line of the list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "the last line of the list")]
pub(crate) struct LadderCount {
    ok: True,
    /// How many ladders there are.
    ladders: usize,
    #[serde(skip)]
    all: Vec<ShippedLadder>,
}

impl Report for LadderCount {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut table = Table::new(["ladder", "workload", "target", "rungs", "about"]);
        for it in &self.all {
            table.row([it.ladder, it.workload, &it.target, &it.rungs.len().to_string(), &it.about]);
        }
        table.print(shell.out)?;
        writeln!(shell.out)?;
        shell.say("`tilewright tutorial LADDER` climbs one, `--step RUNG` shows one of its rungs")
    }
}

/// Every ladder that ships. What is said about one is derived from its scripts.
pub(super) fn list(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut all = vec![];
    for shipped in workloads::ladders() {
        let ladder = Ladder::find(shipped.name)?;
        let titles: Vec<String> = ladder.rungs.iter().map(Rung::title).collect();
        let (Some(first), Some(last)) = (ladder.rungs.first(), titles.last()) else { continue };
        let script = first.script()?;
        let target = script.target.as_ref().map_or("cpu".to_owned(), |it| it.value.to_string());
        let way = if titles.len() == 1 { last.clone() } else { format!("from {} to {last}", titles[0]) };
        let about = format!("{}: {way}", words(&script));
        let (ladder, workload) = (shipped.name, shipped.workload);
        let line = ShippedLadder { ladder, workload, target, rungs: titles, about };
        shell.line(&line)?;
        all.push(line);
    }
    shell.report(&LadderCount { ok: True, ladders: workloads::ladders().len(), all })
}

/// What a script computes on, in short: `f32, 1024`.
fn words(script: &Script) -> String {
    let params = &script.params.value;
    let text = params.values().filter_map(|it| match it {
        Param::Text(it) => Some(it.clone()),
        Param::Int(_) | Param::Float(_) => None,
    });
    // A type of the result that is that of the operands need not be said twice.
    let mut text: Vec<String> = text.collect();
    text.dedup();
    text.push(super::size_word(params));
    text.join(", ")
}
