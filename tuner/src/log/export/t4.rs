//! Results in the T4 format, version 1.0.0, with the metadata that 1.1 is going to ask for. Times are in milliseconds.

use indexmap::IndexMap;
use ir::Name;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Said, Table, configuration, milliseconds, result, said};
use crate::log::{Run, Trial};

#[derive(Serialize)]
struct Document<'a> {
    schema_version: &'a str,
    metadata: IndexMap<&'a str, Value>,
    results: Vec<TrialResult<'a>>,
}

#[derive(Serialize)]
struct TrialResult<'a> {
    timestamp: &'a str,
    configuration: IndexMap<Name, Value>,
    objectives: [&'a str; 1],
    times: Times,
    invalidity: &'a str,
    correctness: u8,
    measurements: Vec<Value>,
}

/// The schema says `compilation_time`, and the tools that read it say `compilation` and `benchmark`.
#[derive(Serialize)]
struct Times {
    compilation_time: f64,
    compilation: f64,
    benchmark: f64,
    framework: f64,
    search_algorithm: f64,
    validation: f64,
    runtimes: Vec<f64>,
}

/// The document as text.
pub fn t4(table: &Table<'_>) -> String {
    let lines = table.rows.iter().map(|(point, trial)| trial_result(configuration(table.head, point), trial));
    let document =
        Document { schema_version: "1.0.0", metadata: metadata(table.head), results: lines.collect() };
    serde_json::to_string_pretty(&document).expect("texts and numbers with texts for keys")
}

fn metadata(head: &Run) -> IndexMap<&'static str, Value> {
    let mut out = IndexMap::new();
    // The enumeration of the schema has no word for a CPU.
    if head.target.starts_with("cuda") {
        out.insert("compute_api", json!("CUDA"));
    }
    out.extend([
        ("platform", json!(head.host)),
        ("device", json!(head.machine.name)),
        ("autotuner", json!(format!("tilewright {}", head.tool))),
        ("timestamp", json!(head.time)),
        ("timeunit", json!("milliseconds")),
        ("kernel_name", json!(head.workload.name)),
        ("problem", json!(head.script.params)),
        ("environment", json!({"requirements": versions(head)})),
    ]);
    out
}

fn versions(head: &Run) -> Vec<String> {
    head.machine.versions.iter().map(|(name, version)| format!("{name}=={version}")).collect()
}

fn trial_result(configuration: IndexMap<Name, Value>, trial: &Trial) -> TrialResult<'_> {
    let result = result(trial);
    let said = said(trial);
    let measurements = result.map(|it| {
        vec![
            json!({"name": "time", "value": it.stats.median * 1e3, "unit": "ms"}),
            json!({"name": "GFLOP/s", "value": it.gflops, "unit": "GFLOP/s"}),
        ]
    });
    TrialResult {
        timestamp: &trial.time,
        configuration,
        objectives: ["time"],
        times: Times {
            compilation_time: trial.t.compile,
            compilation: trial.t.compile,
            benchmark: trial.t.measure,
            framework: trial.t.generate,
            search_algorithm: 0.0,
            // Verifying is a part of measuring here.
            validation: 0.0,
            runtimes: result.map(|it| milliseconds(&it.seconds)).unwrap_or_default(),
        },
        invalidity: match said {
            Said::Correct => "correct",
            Said::Constraints => "constraints",
            Said::Compile => "compile",
            Said::Timeout => "timeout",
            Said::Runtime | Said::Nothing => "runtime",
            Said::Correctness => "correctness",
        },
        correctness: u8::from(said == Said::Correct),
        measurements: measurements.unwrap_or_default(),
    }
}
