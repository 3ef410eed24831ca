//! The files of MetaSchedule: a line for each record, or a trace alone.

use serde_json::Value;

use super::{TraceError, no_record};

/// A trace: instructions, and what was decided in those that choose.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(super) instructions: Vec<Value>,
    pub(super) decisions: Vec<(usize, Value)>,
}

/// The trace of a text: its only one, that of a record by its number from 1, or that of the fastest record.
pub(crate) fn find(text: &str, record: Option<usize>) -> Result<Trace, TraceError> {
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && let Some(trace) = trace_of(&value)
    {
        return match record {
            None | Some(1) => Ok(trace),
            Some(n) => Err(no_record(format!("there is no record {n}: the file is one trace"))),
        };
    }
    let mut records = vec![];
    for (at, line) in text.lines().enumerate().filter(|it| !it.1.trim().is_empty()) {
        let value: Value = serde_json::from_str(line)
            .map_err(|err| no_record(format!("line {} is not JSON: {err}", at + 1)))?;
        let found = record_of(&value).ok_or_else(|| {
            no_record(format!(
                "line {} is no record: [workload, [trace, [seconds], target, arguments]]",
                at + 1
            ))
        })?;
        records.push(found);
    }
    let count = records.len();
    let chosen = match record {
        Some(n) => n.checked_sub(1).filter(|it| *it < count),
        None => (0..count).min_by(|a, b| records[*a].1.total_cmp(&records[*b].1)),
    };
    match (chosen, record) {
        (Some(at), _) => Ok(records.swap_remove(at).0),
        (None, Some(n)) => Err(no_record(format!("there is no record {n}: the file has {count}"))),
        (None, None) => Err(no_record("the file has no record")),
    }
}

/// A trace and its mean time; one that was not run is the slowest.
fn record_of(value: &Value) -> Option<(Trace, f64)> {
    let [_, record] = &value.as_array()?[..] else { return None };
    let record = record.as_array()?;
    let trace = trace_of(record.first()?)?;
    let times: Vec<f64> = record.get(1)?.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    Some((trace, if times.is_empty() { f64::INFINITY } else { mean }))
}

/// `[[instruction, …], [[place, decision], …]]`.
fn trace_of(value: &Value) -> Option<Trace> {
    let [instructions, decisions] = &value.as_array()?[..] else { return None };
    let instructions = instructions.as_array()?.clone();
    let decision = |it: &Value| {
        let [at, decision] = &it.as_array()?[..] else { return None };
        Some((usize::try_from(at.as_u64()?).ok()?, decision.clone()))
    };
    let decisions = decisions.as_array()?.iter().map(decision).collect::<Option<_>>()?;
    instructions.iter().all(Value::is_array).then_some(Trace { instructions, decisions })
}
