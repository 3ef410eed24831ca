//! Searching a space from a program: `cargo run --release -p tilewright --example tune`.
//!
//! The run's log is a folder like that of `tilewright tune`: `tilewright top`, `report` and `resume` read it.

use std::{
    io::{Write, stdout},
    path::Path,
    sync::atomic::AtomicBool,
};

use tilewright::{Diagnostic, Plan, TuneOptions, Tuner};
use tuner::tune::TuneEvent;

const SPACE: &str = r#"
schedule(
    workload: "matmul",
    params: {"m": 256, "n": 256, "k": 256},
    knobs: {"rows": [2, 4, 8], "columns": [16, 32, 64]},
    steps: [
        split(loop: "i", into: {"io": None, "ii": "rows"}),
        split(loop: "j", into: {"jo": None, "ji": "columns"}),
        reorder(order: ["jo", "io", "k", "ii", "ji"]),
        vectorize(loop: "ji"),
        unroll(loop: "ii"),
    ],
)
"#;

fn main() -> Result<(), Diagnostic> {
    // Candidates are compiled and measured in processes of their own, which are this program again.
    tilewright::serve_if_worker();
    let mut out = stdout().lock();
    let plan = Plan::parse(Path::new("space.ron"), SPACE, &[])?;
    let log = std::env::temp_dir().join(format!("tilewright-example-{}.twlog", std::process::id()));
    let mut options = TuneOptions::new(&log, 9);
    options.plan.finalists = 3;
    let tuner = Tuner::start(&plan, &options)?;
    let ended = tuner.run(&AtomicBool::new(false), &mut |it| {
        if let TuneEvent::Entry(_, summary) = it {
            eprintln!("{} trials", summary.trials);
        }
    })?;
    match ended.winner {
        Some(it) => writeln!(out, "trial {} wins: {:?}", it.n, it.decisions)?,
        None => writeln!(out, "no candidate gave a result")?,
    }
    writeln!(out, "the log is in {}", log.display())?;
    Ok(())
}
