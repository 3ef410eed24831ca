//! A cache of Kernel Tuner, which its simulation mode runs searches against. Times are in milliseconds.

use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Said, Table, configuration, milliseconds, result, said, value};
use crate::log::{Run, Trial};

#[derive(Serialize)]
struct Cache<'a> {
    device_name: &'a str,
    kernel_name: &'a str,
    problem_size: Vec<&'a Value>,
    tune_params_keys: Vec<&'a Name>,
    tune_params: IndexMap<&'a Name, Vec<Value>>,
    objective: &'a str,
    #[serde(rename = "cache")]
    lines: IndexMap<String, CacheLine<'a>>,
}

#[derive(Serialize)]
struct CacheLine<'a> {
    #[serde(flatten)]
    configuration: IndexMap<Name, Value>,
    time: Value,
    times: Vec<f64>,
    #[serde(rename = "GFLOP/s", skip_serializing_if = "Option::is_none")]
    gflops: Option<f64>,
    compile_time: f64,
    verification_time: f64,
    benchmark_time: f64,
    strategy_time: f64,
    framework_time: f64,
    timestamp: &'a str,
}

/// The cache as text. The size of the problem is the numbers among the parameters of the workload, in their order.
pub fn kernel_tuner(table: &Table<'_>) -> String {
    let head = table.head;
    let cache = Cache {
        device_name: &head.machine.name,
        kernel_name: &head.workload.name,
        problem_size: head.script.params.values().filter(|it| it.is_number()).collect(),
        tune_params_keys: head.script.knobs.keys().collect(),
        tune_params: head.script.knobs.iter().map(|(k, v)| (k, v.iter().map(value).collect())).collect(),
        objective: "time",
        lines: table.rows.iter().map(|(point, trial)| line(head, point, trial)).collect(),
    };
    serde_json::to_string_pretty(&cache).expect("texts and numbers with texts for keys")
}

/// An entry with its key: the choices, separated by commas.
fn line<'a>(head: &Run, point: &[Choice], trial: &'a Trial) -> (String, CacheLine<'a>) {
    let words: Vec<_> = point.iter().map(ToString::to_string).collect();
    (words.join(","), CacheLine::of(configuration(head, point), trial))
}

impl CacheLine<'_> {
    fn of(configuration: IndexMap<Name, Value>, trial: &Trial) -> CacheLine<'_> {
        let result = result(trial);
        let time = match said(trial) {
            Said::Correct => json!(result.map(|it| it.stats.median * 1e3)),
            Said::Constraints => json!("InvalidConfig"),
            Said::Compile => json!("CompilationFailedConfig"),
            Said::Timeout | Said::Runtime | Said::Correctness | Said::Nothing => json!("RuntimeFailedConfig"),
        };
        CacheLine {
            configuration,
            time,
            times: result.map(|it| milliseconds(&it.seconds)).unwrap_or_default(),
            gflops: result.map(|it| it.gflops),
            compile_time: trial.t.compile,
            // Verifying is a part of measuring here.
            verification_time: 0.0,
            benchmark_time: trial.t.measure,
            strategy_time: 0.0,
            framework_time: trial.t.generate,
            timestamp: &trial.time,
        }
    }
}
