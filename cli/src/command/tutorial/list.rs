//! `tilewright tutorial list`.

use schedule::{Script, workload::Param};
use serde_json::json;

use crate::{
    command::ladder::{Ladder, Rung},
    diagnostic::Diagnostic,
    term::{shell::Shell, table::Table},
};

/// Every ladder that ships. What is said about one is derived from its scripts.
pub(super) fn list(shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut table = Table::new(["ladder", "workload", "target", "rungs", "about"]);
    for shipped in workloads::ladders() {
        let ladder = Ladder::find(shipped.name)?;
        let titles: Vec<String> = ladder.rungs.iter().map(Rung::title).collect();
        let (Some(first), Some(last)) = (ladder.rungs.first(), titles.last()) else { continue };
        let script = Script::parse(&first.text).map_err(|err| {
            Diagnostic::failed(&err, &err.message).at(&first.path, &first.text, err.span.clone())
        })?;
        let target = script.target.as_ref().map_or("cpu".to_owned(), |it| it.value.to_string());
        let about = format!("{}: from {} to {last}", words(&script), titles[0]);
        if shell.json {
            shell.json(&json!({
                "ladder": shipped.name,
                "workload": shipped.workload,
                "target": target,
                "rungs": titles,
                "about": about,
            }))?;
        }
        table.row([shipped.name, shipped.workload, &target, &titles.len().to_string(), &about]);
    }
    if shell.json {
        return shell.json(&json!({"ok": true, "ladders": workloads::ladders().len()}));
    }
    table.print(shell.out)?;
    writeln!(shell.out)?;
    shell.say("`tilewright tutorial LADDER` climbs one, `--step RUNG` shows one of its rungs")
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
