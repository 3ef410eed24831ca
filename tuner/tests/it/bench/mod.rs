//! Verification and timing on a machine with written-down faults and clock.

#![expect(clippy::unwrap_used, reason = "a test may stop")]
#![expect(clippy::cast_possible_truncation, reason = "the sizes are small")]

mod cpu;
mod fake;
mod finals;
mod screen;
mod unfused;

use std::time::Duration;

use codegen::device::{Machine, Program};
use fake::{Does, Fake, Formula, matmul, program};
use tilewright_tuner::{
    Bench, Candidate, Case, Comparison, Environment, Failure, LogError, Oracle, Record, RecordedStep, Regime,
    Script, Settings, append, gemm_of, parse_log, read_log,
};

fn quick(regime: Regime) -> Settings {
    Settings { idle: Duration::ZERO, ..Settings::new(regime, false) }
}

fn compare(machine: &mut dyn Machine, case: &Case, programs: &[Program], settings: &Settings) -> Comparison {
    let inputs = case.inputs();
    let mut oracle = Formula::of(&inputs);
    let mut bench = Bench::new(machine, case, &inputs, &mut oracle).unwrap();
    let candidates: Vec<Candidate<'_>> = programs
        .iter()
        .enumerate()
        .map(|(n, program)| Candidate { label: format!("rung {n}"), program })
        .collect();
    bench.compare(&candidates, settings, &mut |_| {})
}

#[test]
fn right_numbers_are_timed_and_compared_with_the_library() {
    let case = matmul(24, 17, 33, 5);
    let mut machine = Fake::new(1.0);
    let programs = [program(&case, Does::Right, 4e-3), program(&case, Does::Right, 2e-3)];
    let result = compare(&mut machine, &case, &programs, &quick(Regime::Cool));
    for (measured, ratio) in result.candidates.iter().zip([0.25, 0.5]) {
        assert_eq!(measured.failure, None);
        assert_eq!(measured.seconds.len(), 15);
        let check = &measured.before.as_ref().unwrap().outputs[0];
        assert_eq!((check.compared, check.elements, check.unwritten, check.wrong), (408, 408, 0, 0));
        assert!(measured.after.as_ref().unwrap().is_ok());
        let found = measured.versus_baseline.unwrap();
        assert!((found.median / ratio - 1.0).abs() < 0.01, "{found:?}");
    }
    assert_eq!(result.candidates[0].calls, 2);
    let gflops = result.candidates[1].gflops.unwrap();
    assert!((gflops - case.work.flops / 2e-3 / 1e9).abs() / gflops < 0.01);
    assert_eq!(machine.bytes_in_use(), 0);
}

/// A library that loads its code in the first run was once given samples of a single call.
#[test]
fn a_slow_first_run_does_not_choose_the_number_of_calls() {
    let case = matmul(24, 17, 33, 5);
    let mut machine = Fake::new(1.0);
    let programs = [program(&case, Does::LoadsFirst, 2e-3), program(&case, Does::Right, 2e-3)];
    let result = compare(&mut machine, &case, &programs, &quick(Regime::Cool));
    assert_eq!(result.candidates[0].calls, result.candidates[1].calls);
}

#[test]
fn every_unwritten_element_is_found() {
    // Large enough that the outputs are sampled: the middle element is no sample, its poison gives it away.
    let case = matmul(300, 200, 40, 5);
    let programs = [
        program(&case, Does::ForgetsMiddle, 1e-3),
        program(&case, Does::ForgetsLast, 1e-3),
        program(&case, Does::Nan, 1e-3),
    ];
    let result = compare(&mut Fake::new(1.0), &case, &programs, &quick(Regime::Cool));
    for (measured, (unwritten, nan)) in result.candidates.iter().zip([(1, 0), (1, 0), (0, 1)]) {
        assert_eq!(measured.failure, Some(Failure::Wrong));
        let check = &measured.before.as_ref().unwrap().outputs[0];
        assert_eq!((check.unwritten, check.nan, check.wrong), (unwritten, nan, 1));
        assert!(check.compared < check.elements && check.compared >= 1024);
        assert!(check.worst.as_ref().unwrap().got.is_nan());
        assert!(measured.seconds.is_empty() && measured.gflops.is_none());
    }
}

#[test]
fn one_lost_product_of_a_long_row_is_found() {
    let case = matmul(9, 8, 4096, 5);
    let programs = [program(&case, Does::DropsProduct, 1e-3), program(&case, Does::Right, 1e-3)];
    let result = compare(&mut Fake::new(1.0), &case, &programs, &quick(Regime::Cool));
    let wrong = result.candidates[0].before.as_ref().unwrap();
    assert_eq!(result.candidates[0].failure, Some(Failure::Wrong));
    assert!(wrong.outputs[0].wrong > 50 && wrong.error_in_tolerances() > 10.0, "{wrong:?}");
    let right = result.candidates[1].before.as_ref().unwrap();
    assert!(right.error_in_tolerances() < 0.3, "{right:?}");
}

#[test]
fn wrong_after_timing_crashes_and_wrong_sizes_are_told_apart() {
    let case = matmul(8, 8, 8, 5);
    let other = matmul(8, 8, 9, 5);
    let programs = [
        program(&case, Does::WrongLater, 1e-3),
        program(&case, Does::Crashes, 1e-3),
        program(&other, Does::Right, 1e-3),
    ];
    let result = compare(&mut Fake::new(1.0), &case, &programs, &quick(Regime::Cool));
    assert_eq!(result.candidates[0].failure, Some(Failure::WrongAfterTiming));
    assert!(result.candidates[0].gflops.is_none());
    assert!(matches!(result.candidates[1].failure, Some(Failure::Device(_))));
    let sizes = Failure::Buffers { program: vec![288, 288, 256], case: vec![256; 3] };
    assert_eq!(result.candidates[2].failure, Some(sizes));
}

#[test]
fn the_order_is_drawn_anew_each_round_and_the_same_for_a_seed() {
    let orders = |seed| {
        let case = matmul(4, 4, 4, seed);
        let mut machine = Fake::new(1.0);
        let runs = machine.runs.clone();
        // Each call is longer than a sample, so that each sample is one run.
        let programs: Vec<_> = (0..4).map(|_| program(&case, Does::Right, 0.01)).collect();
        compare(&mut machine, &case, &programs, &Settings { baseline: false, ..quick(Regime::Cool) });
        let runs: Vec<u32> = runs.borrow().iter().map(|it| it.unwrap().0).collect();
        let timed = &runs[runs.len() - 4 - 15 * 4..runs.len() - 4];
        timed.chunks(4).map(<[u32]>::to_vec).collect::<Vec<_>>()
    };
    let rounds = orders(1);
    assert_eq!(rounds, orders(1));
    assert_ne!(rounds, orders(2));
    assert!(rounds.windows(2).filter(|it| it[0] != it[1]).count() > 10, "{rounds:?}");
    for mut round in rounds {
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3]);
    }
}

#[test]
fn cold_flushes_before_each_single_call_and_slow_programs_leave_early() {
    let case = matmul(4, 4, 4, 1);
    let mut machine = Fake::new(1.0);
    let runs = machine.runs.clone();
    let programs = [
        program(&case, Does::Right, 1e-3),
        program(&case, Does::Right, 0.6),
        program(&case, Does::Right, 7.0),
    ];
    let result = compare(&mut machine, &case, &programs, &quick(Regime::ColdL2));
    assert_eq!(result.candidates[0].seconds.len(), 15);
    assert_eq!(result.candidates[1].seconds.len(), 3);
    assert_eq!(result.candidates[2].seconds.len(), 1);
    let runs = runs.borrow();
    let flushes = runs.iter().enumerate().filter(|(_, it)| it.is_none());
    let mut count = 0;
    for (at, _) in flushes {
        count += 1;
        assert_eq!(runs[at + 1].unwrap().1, 1);
    }
    assert_eq!(count, 15 + 15 + 3 + 1);
    // The data fits the caches: only after a flush is there a least time for memory.
    assert!(result.roofline.memory.unwrap() > 0.0);
}

#[test]
fn faster_than_the_machine_is_suspicious() {
    let case = matmul(64, 64, 64, 1);
    let peak = 10.0;
    let least = case.work.flops / (peak * 1e9);
    let programs = [program(&case, Does::Right, least * 1.05), program(&case, Does::Right, least * 0.95)];
    let result = compare(&mut Fake::new(peak), &case, &programs, &quick(Regime::Sustained));
    assert_eq!(result.candidates.iter().map(|it| it.suspicious).collect::<Vec<_>>(), [false, true]);
    // One thread of four has a quarter of the peak.
    let one = Settings { threads: 1, ..quick(Regime::Sustained) };
    let result = compare(&mut Fake::new(peak), &case, &programs, &one);
    assert!(result.candidates.iter().all(|it| it.suspicious));
}

#[test]
fn a_missing_library_is_told_and_stops_nothing() {
    let case = matmul(8, 8, 8, 1);
    let mut machine = Fake::new(1.0);
    machine.has_library = false;
    let programs = [program(&case, Does::Right, 1e-3)];
    let result = compare(&mut machine, &case, &programs, &quick(Regime::Cool));
    assert!(result.baseline.is_none() && result.no_baseline.is_some());
    assert!(result.candidates[0].gflops.is_some());
}

#[test]
fn the_reference_agrees_with_the_formula() {
    let case = matmul(5, 6, 7, 3);
    let inputs = case.inputs();
    let mut reference = case.reference(&inputs).unwrap();
    let formula = Formula::of(&inputs);
    assert_eq!((case.work.flops, case.work.bytes), (420.0, 428.0));
    for at in [[0, 0], [4, 5], [2, 3]] {
        let expected = formula.element(&at).value;
        let found = Oracle::elements(&mut reference, &"C".into(), &[at.to_vec()]).unwrap()[0].unwrap();
        assert!((found.value - expected).abs() < 1e-12 && found.above > 0.0 && found.above < 1e-4);
    }
}

#[test]
fn a_matrix_product_is_recognised() {
    let (gemm, names) = gemm_of(&matmul(3, 4, 5, 1)).unwrap();
    assert_eq!((gemm.m, gemm.n, gemm.k, gemm.batch, gemm.b_transposed), (3, 4, 5, 1, false));
    assert_eq!(names.map(|it| it.to_string()), ["A", "B", "C"]);
}

fn records() -> Vec<Record> {
    let case = matmul(8, 8, 8, 1);
    let mut machine = Fake::new(1.0);
    let settings = quick(Regime::Cool);
    let programs = [program(&case, Does::Right, 1e-3), program(&case, Does::Nan, 1e-3)];
    let result = compare(&mut machine, &case, &programs, &settings);
    let environment = Environment::new(machine.info(), &case, &settings);
    let script = Script {
        name: "a.ron".to_owned(),
        text: "schedule()".to_owned(),
        workload: "matmul".to_owned(),
        params: indexmap::IndexMap::from([("m".to_owned(), 8.into())]),
        steps: vec![RecordedStep::Unknown(serde_json::json!({"split": {"loop": "i"}}))],
    };
    let record = |it| {
        let time = "2026-01-02T03:04:05Z".to_owned();
        Record::new(&case, &result, it, script.clone(), environment.clone(), time)
    };
    result.candidates.iter().map(record).collect()
}

#[test]
fn a_log_survives_a_torn_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let records = records();
    assert_eq!(append(&path, &records, true).unwrap().cut, 0);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(read_log(&path).unwrap().records.len(), 2);
    let first = whole.iter().position(|it| *it == b'\n').unwrap() + 1;
    for end in first..whole.len() {
        let log = parse_log(&whole[..end]).unwrap();
        assert_eq!((log.records.len(), log.torn.unwrap_or(0)), (1, end - first));
    }
    std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
    let cut = append(&path, &records[..1], false).unwrap().cut;
    assert_eq!(cut as usize, whole.len() - 10 - first);
    let log = read_log(&path).unwrap();
    assert_eq!((log.records.len(), log.torn), (2, None));
    assert_eq!(log.records[0], log.records[1]);
}

#[test]
fn a_record_keeps_its_numbers_and_unknown_fields_and_newer_versions_are_refused() {
    let records = records();
    let text = serde_json::to_string(&records[1]).unwrap();
    assert!(text.contains("\"got\":\"NaN\""), "{text}");
    assert!(records[1].gflops.is_none() && records[1].failure.is_some());
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["later"] = serde_json::json!([1, 2]);
    let line = format!("{value}\n");
    let read = parse_log(line.as_bytes()).unwrap();
    assert_eq!(read.records[0].other["later"], serde_json::json!([1, 2]));
    assert_eq!(read.records[0].script, records[1].script);
    value["v"] = 2.into();
    let newer = parse_log(format!("{value}\n").as_bytes());
    assert!(matches!(newer, Err(LogError::Newer { line: 1, version: 2 })));
    let broken = parse_log(format!("{{}}\n{line}").as_bytes());
    assert!(matches!(broken, Err(LogError::Line { line: 1, .. })));
}
