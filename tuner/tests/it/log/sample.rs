//! A run that might have been, entry by entry.

#![allow(dead_code, reason = "the tests of the command line include it, too, and do not use everything")]

use super::log::{Entry, Event, Finals, Happening, Run, Trial};
use serde_json::{Value, json};

fn entry<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The head of a run of a name.
pub(crate) fn head(run: &str) -> Run {
    entry(json!({
        "v": 1, "run": run, "tool": "0.1.0", "time": "2026-11-21T19:13:00Z",
        "args": ["tilewright", "tune", "space.ron"], "seed": 1,
        "strategy": {"name": "random", "params": {}},
        "script": {
            "name": "space.ron", "text": "schedule(…)", "sha256": "ab".repeat(32),
            "params": {"m": 64, "n": 48, "k": 40, "dtype": "f32"},
            "knobs": {"bm": [8, 16, 32], "ti": [[8, 2], [4, 4]], "wide": [0, 1]}, "size": "12",
        },
        "workload": {
            // `printf 'func matmul\n' | sha256sum`
            "id": "26cd1e43d746bdeb6cd52387f149816cdd9a5f1912bd30b0e41cbfbeca0eff83",
            "name": "matmul", "program": "func matmul\n", "dims": {}, "flops": 245_760.0, "bytes": 30_208.0,
        },
        "target": "cuda:sm_90a",
        "machine": {
            "name": "NVIDIA H100", "arch": "sm_90a", "units": 132, "peak_f32_gflops": 66_900.0,
            "peak_gb_per_s": 3_350.0, "cache_bytes": 52_428_800, "versions": [["CUDA driver", "13.0"]],
        },
        "host": "linux x86_64",
        "measure": {
            "proto": "v1", "regime": "cool", "caches": "as the calls before left them",
            "data": "N(0,1)", "threads": 0,
        },
        "plan": {
            "trials": 6, "seconds": null, "finalists": 2, "regime": "cool", "rounds": 31, "baseline": true,
            "incumbents": [], "per_step": false, "threads": 0, "exclusive": false,
        },
        "roofline": {"compute": 1e-6, "memory": null},
    }))
}

/// A trial that took so many microseconds. Its `n` chooses its decisions.
pub(crate) fn trial(run: &str, n: u64, microseconds: f64) -> Trial {
    let seconds = microseconds * 1e-6;
    let check = json!({"outputs": [{
        "buffer": "C", "elements": 3072, "compared": 3072, "unwritten": 0, "nan": 0, "wrong": 0,
        "max_error": 1e-6, "tolerance": 1e-5, "scale": 9.0, "worst": null,
    }]});
    let mut trial: Trial = entry(blank(run, n));
    trial.result = Some(entry(json!({
        "calls": 3, "seconds": [seconds, seconds * 1.25, seconds * 0.75],
        "stats": {
            "median": seconds, "min": seconds * 0.75, "max": seconds * 1.25,
            "quartile_1": seconds * 0.875, "quartile_3": seconds * 1.125,
        },
        "gflops": 245_760.0 / seconds / 1e9, "clock_mhz": [1755.0, 1750.0],
        "before": check, "after": check,
    })));
    trial
}

/// A trial that came to nothing.
pub(crate) fn failed(run: &str, n: u64, stage: &str, kind: &str, message: &str) -> Trial {
    let mut trial: Trial = entry(blank(run, n));
    trial.error = Some(entry(json!({"stage": stage, "kind": kind, "message": message})));
    trial
}

fn blank(run: &str, n: u64) -> Value {
    let at = usize::try_from(n).unwrap();
    let (bm, ti) = ([8, 16, 32][at % 3], [[8, 2], [4, 4]][at / 3 % 2]);
    json!({
        "run": run, "n": n, "id": format!("{n:064x}"),
        "decisions": {"bm": bm, "ti": ti, "wide": at / 6 % 2},
        "origin": {"by": "random"}, "src": format!("{:064x}", n + 1000), "bin": format!("{:064x}", n + 2000),
        "launches": [{
            "kernel": "matmul", "grid": [8, 4, 1], "block": [16, 16, 1], "shared_bytes": 4096,
            "buffers": [0, 1, 2], "dims": [],
        }],
        "res": [{
            "kernel": "matmul", "registers": 40 + n, "stack_bytes": 0, "spill_store_bytes": 0,
            "spill_load_bytes": 0, "static_shared_bytes": 2048, "barriers": 1, "constant_bytes": 380,
            "warnings": [],
        }],
        "t": {"generate": 9.5, "compile": 312.0, "measure": 58.25}, "worker": "w0",
        "time": "2026-11-21T19:13:07Z",
    })
}

/// Finals between two trials.
pub(crate) fn finals(run: &str, first: &Trial, second: &Trial) -> Finals {
    let finalist = |it: &Trial, ratio: f64| {
        json!({
            "n": it.n, "id": it.id, "result": it.result,
            "versus_winner": {"median": ratio, "low": ratio * 0.99, "high": ratio * 1.01, "rounds": 31},
            "versus_baseline": {"median": ratio * 0.9, "low": ratio * 0.89, "high": ratio * 0.91, "rounds": 31},
        })
    };
    entry(json!({
        "run": run, "rounds": 31, "dropped": 0, "regime": "cool",
        "noise_floor": {"median": 1.0, "low": 0.998, "high": 1.002, "rounds": 31},
        "finalists": [finalist(first, 1.0), finalist(second, 0.8)],
        "baseline": {
            "name": "cuBLASLt 13.1.0", "heuristic_seconds": 13e-6, "tried": 8, "seconds": [12e-6], "gflops": 20.48,
        },
        "time": "2026-11-21T19:15:00Z",
    }))
}

/// Something that happened.
pub(crate) fn event(run: &str, what: Happening, detail: &str) -> Event {
    entry(json!({"run": run, "what": what, "detail": detail, "time": "2026-11-21T19:16:00Z"}))
}

/// A whole run but for its head: trials fast and slow, failures, finals, an end.
pub(crate) fn body(run: &str) -> Vec<Entry> {
    let (first, second) = (trial(run, 2, 8.0), trial(run, 0, 10.0));
    let finals = finals(run, &first, &second);
    let mut screened = trial(run, 1, 30.0);
    screened.result.as_mut().unwrap().screened = true;
    let mut suspicious = trial(run, 4, 0.5);
    suspicious.result.as_mut().unwrap().suspicious = true;
    vec![
        Entry::Trial(second),
        Entry::Trial(screened),
        Entry::Trial(first),
        Entry::Trial(failed(run, 3, "compile", "compile", "kernel.cu(3): error: \"x\" is undefined")),
        Entry::Trial(suspicious),
        Entry::Trial(failed(run, 5, "run", "hang", "no end after 2 s\u{1b}[31m")),
        Entry::Event(event(run, Happening::WorkerReplaced, "w0: killed by signal 9")),
        Entry::Finals(finals),
        Entry::Event(event(run, Happening::Finished, "")),
    ]
}
