//! Finals on the fake machine: who wins and by how much, what the clocks say to it, and what is left behind.

use tilewright_tuner::{
    Bench, Case, Regime, Stats,
    bench::{finals, rank, tied},
    bootstrap::Interval,
    log::{ErrorKind, Finals, TrialError},
    protocol::Final,
};

use super::fake::{Does, Fake, Formula, matmul, program};

/// Single calls without pauses: the fake has no caches, and its time is not ours.
fn how() -> Final {
    Final { regime: Regime::ColdL2, rounds: 31, baseline: true, threads: 0 }
}

fn held(machine: &mut Fake, case: &Case, all: &[(Does, f64)], how: &Final) -> Result<Finals, TrialError> {
    let inputs = case.inputs();
    let mut oracle = Formula::of(&inputs);
    let mut bench = Bench::new(machine, case, &inputs, &mut oracle).unwrap();
    let programs: Vec<_> = all.iter().map(|(does, seconds)| program(case, *does, *seconds)).collect();
    finals(&mut bench, &programs, how)
}

fn is_about(found: Option<Interval>, expected: f64) -> bool {
    let close = |it: f64| (it / expected - 1.0).abs() < 0.01;
    found.is_some_and(|it| close(it.low) && close(it.median) && close(it.high) && it.low <= it.high)
}

#[test]
fn ratios_are_those_of_the_times() {
    let case = matmul(9, 7, 11, 5);
    let mut machine = Fake::new(1.0);
    machine.clock = |_, _| Some(1980.0);
    let programs = [(Does::Right, 2e-3), (Does::Right, 1e-3), (Does::Right, 4e-3)];
    let found = held(&mut machine, &case, &programs, &how()).unwrap();
    assert_eq!((found.rounds, found.dropped, found.regime), (31, 0, Regime::ColdL2));
    assert!(is_about(found.noise_floor, 1.0), "{:?}", found.noise_floor);
    for (finalist, (winner, theirs)) in found.finalists.iter().zip([(0.5, 0.5), (1.0, 1.0), (0.25, 0.25)]) {
        let result = finalist.result.as_ref().unwrap();
        assert_eq!((result.seconds.len(), result.clock_mhz.len()), (31, 31));
        assert!(result.before.is_ok() && result.after.is_ok());
        assert!(is_about(finalist.versus_winner, winner), "{:?}", finalist.versus_winner);
        assert!(is_about(finalist.versus_baseline, theirs), "{:?}", finalist.versus_baseline);
    }
    let baseline = found.baseline.unwrap();
    assert_eq!((baseline.seconds.len(), baseline.tried, baseline.name.as_str()), (31, 1, "gemm"));
    assert_eq!((machine.bytes_in_use(), machine.programs_loaded()), (0, 0));
}

#[test]
fn the_order_is_drawn_anew_and_the_first_program_stands_in_it_twice() {
    let case = matmul(4, 4, 4, 1);
    let mut machine = Fake::new(1.0);
    let runs = machine.runs.clone();
    let programs = [(Does::Right, 1e-2), (Does::Right, 2e-2)];
    let how = Final { baseline: false, ..how() };
    held(&mut machine, &case, &programs, &how).unwrap();
    let runs: Vec<u32> = runs.borrow().iter().flatten().map(|it| it.0).collect();
    // Three participants verify once more at the end.
    let timed = &runs[runs.len() - 3 - 3 * 31..runs.len() - 3];
    let rounds: Vec<Vec<u32>> = timed.chunks(3).map(<[u32]>::to_vec).collect();
    assert!(rounds.windows(2).filter(|it| it[0] != it[1]).count() > 15, "{rounds:?}");
    for mut round in rounds {
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2]);
    }
}

#[test]
fn bursts_and_sustained_rounds_have_samples_of_many_calls() {
    let case = matmul(4, 4, 4, 1);
    for (regime, calls) in [(Regime::Cool, 5), (Regime::Sustained, 200)] {
        let how = Final { regime, rounds: 7, ..how() };
        let found = held(&mut Fake::new(1.0), &case, &[(Does::Right, 1e-3)], &how).unwrap();
        assert_eq!(found.finalists[0].result.as_ref().unwrap().calls, calls);
        assert!(is_about(found.finalists[0].versus_winner, 1.0) && is_about(found.noise_floor, 1.0));
    }
}

/// A program that draws more power has a lower clock in every round: that is its own doing.
#[test]
fn clocks_that_always_differ_count_and_clocks_that_jump_do_not() {
    let case = matmul(4, 4, 4, 1);
    let programs = [(Does::Right, 1e-3), (Does::Right, 2e-3)];
    let steady = |_: usize, program: u32| Some(if program == 1 { 1850.0 } else { 1980.0 });
    let jumping = |runs: usize, _: u32| Some(if runs.is_multiple_of(13) { 1900.0 } else { 1980.0 });
    let wild = |runs: usize, _: u32| Some(if runs * 7 % 11 < 5 { 1800.0 } else { 1980.0 });
    let slow = |_: usize, program: u32| Some(if program == 1 { 1200.0 } else { 1980.0 });
    let with = |clock: fn(usize, u32) -> Option<f64>| {
        let mut machine = Fake::new(1.0);
        machine.clock = clock;
        held(&mut machine, &case, &programs, &how()).unwrap()
    };

    let found = with(steady);
    assert_eq!(found.dropped, 0);
    assert!(is_about(found.finalists[1].versus_winner, 0.5));
    let found = with(jumping);
    assert!((1..10).contains(&found.dropped), "{}", found.dropped);
    let versus = found.finalists[1].versus_winner;
    assert!(is_about(versus, 0.5) && versus.unwrap().rounds < 31, "{versus:?}");
    // No verdict rather than a wrong one; the times themselves stay.
    let found = with(wild);
    assert!(found.dropped > 9, "{}", found.dropped);
    assert_eq!((found.finalists[1].versus_winner, found.noise_floor), (None, None));
    assert!(found.finalists[1].result.is_some());
    assert_eq!(with(slow).finalists[1].versus_winner, None);
}

#[test]
fn a_clock_that_cannot_be_told_once_is_not_used_at_all() {
    let case = matmul(4, 4, 4, 1);
    let mut machine = Fake::new(1.0);
    machine.clock = |runs, _| (runs != 100).then_some(if runs.is_multiple_of(2) { 1000.0 } else { 1980.0 });
    let found = held(&mut machine, &case, &[(Does::Right, 1e-3)], &how()).unwrap();
    assert!(found.finalists[0].versus_winner.is_some());
}

#[test]
fn the_library_leaves_its_first_choice_only_for_a_clearly_faster_one() {
    let case = matmul(4, 4, 4, 1);
    let with = |choices: &[f64]| {
        let mut machine = Fake::new(1.0);
        machine.choices = choices.to_vec();
        let found = held(&mut machine, &case, &[(Does::Right, 1e-3)], &how()).unwrap();
        assert_eq!((machine.bytes_in_use(), machine.programs_loaded()), (0, 0));
        let baseline = found.baseline.unwrap();
        assert!((baseline.heuristic_seconds.unwrap() / choices[0] - 1.0).abs() < 0.01);
        (format!("{:.2}", baseline.seconds[0] * 1e3), baseline.tried, found.finalists[0].versus_baseline)
    };
    assert_eq!(with(&[1e-3, 0.99e-3]).0, "1.00");
    let (time, tried, versus) = with(&[1e-3, 0.9e-3, 0.8e-3]);
    assert_eq!((time.as_str(), tried), ("0.80", 3));
    assert!(is_about(versus, 0.8), "{versus:?}");
    assert_eq!(with(&[1e-3; 12]).1, 8);
}

#[test]
fn a_missing_library_is_told_and_stops_nothing() {
    let case = matmul(4, 4, 4, 1);
    let mut machine = Fake::new(1.0);
    machine.has_library = false;
    let found = held(&mut machine, &case, &[(Does::Right, 1e-3)], &how()).unwrap();
    assert_eq!(found.no_baseline.as_deref(), Some("the library was not found"));
    assert!(found.baseline.is_none() && found.finalists[0].versus_baseline.is_none());
    let unasked = Final { baseline: false, ..how() };
    let found = held(&mut machine, &case, &[(Does::Right, 1e-3)], &unasked).unwrap();
    assert!(found.baseline.is_none() && found.no_baseline.is_none());
}

#[test]
fn who_fails_drops_out_and_the_others_go_on() {
    let case = matmul(9, 7, 11, 5);
    let mut machine = Fake::new(1.0);
    let programs = [
        (Does::Nan, 1e-4),
        (Does::Crashes, 1e-4),
        (Does::Right, 2e-3),
        (Does::WrongLater, 1e-4),
        (Does::Right, 1e-3),
    ];
    let found = held(&mut machine, &case, &programs, &how()).unwrap();
    let kinds: Vec<_> = found.finalists.iter().map(|it| it.error.as_ref().map(|it| it.kind)).collect();
    let wrong = Some(ErrorKind::WrongResult);
    assert_eq!(kinds, [Some(ErrorKind::Nan), Some(ErrorKind::Launch), None, wrong, None]);
    assert!(found.finalists[3].error.as_ref().unwrap().message.contains("after timing"));
    assert!(is_about(found.finalists[2].versus_winner, 0.5) && is_about(found.noise_floor, 1.0));
    assert_eq!((machine.bytes_in_use(), machine.programs_loaded()), (0, 0));
}

#[test]
fn a_lost_machine_ends_them() {
    let case = matmul(4, 4, 4, 1);
    for (does, kind) in [(Does::Strays, ErrorKind::IllegalAddress), (Does::Hangs, ErrorKind::Hang)] {
        // The fake stops the test if anything is touched afterwards.
        let programs = [(Does::Right, 1e-3), (does, 1e-3), (Does::Right, 1e-3)];
        let error = held(&mut Fake::new(1.0), &case, &programs, &how()).unwrap_err();
        assert_eq!((error.kind, error.sticky), (kind, true));
    }
}

#[test]
fn what_is_faster_than_the_machine_wins_nothing() {
    let case = matmul(64, 64, 64, 1);
    let least = case.work.flops / 10e9;
    let programs = [(Does::Right, least * 0.9), (Does::Right, least * 1.1), (Does::Right, least * 2.2)];
    let mut found = held(&mut Fake::new(10.0), &case, &programs, &how()).unwrap();
    assert!(found.finalists[0].result.as_ref().unwrap().suspicious);
    assert_eq!((found.finalists[0].versus_winner, found.finalists[0].versus_baseline), (None, None));
    assert!(is_about(found.finalists[2].versus_winner, 0.5));
    rank(&mut found, |_| 0);
    assert!(found.finalists[2].result.as_ref().unwrap().suspicious);
}

/// Of those that are as fast, the key decides, and ratios are then in terms of that one.
#[test]
fn ties_are_broken_by_the_key_and_nothing_else_is() {
    let case = matmul(9, 7, 11, 5);
    let programs = [
        (Does::Right, 1.001e-3),
        (Does::Nan, 1e-3),
        (Does::Right, 2e-3),
        (Does::Right, 1e-3),
        (Does::Right, 1.5e-3),
    ];
    let mut found = held(&mut Fake::new(1.0), &case, &programs, &how()).unwrap();
    for (n, it) in (0..).zip(&mut found.finalists) {
        it.n = Some(n);
    }
    let ranked = |registers: [u32; 5]| {
        let mut found = found.clone();
        rank(&mut found, |it| registers[usize::try_from(it.n.unwrap()).unwrap()]);
        found
    };
    let order = |it: &Finals| it.finalists.iter().map(|it| it.n.unwrap()).collect::<Vec<_>>();
    let first = ranked([100, 1, 1, 168, 1]);
    assert_eq!(order(&first), [0, 3, 4, 2, 1]);
    assert!(is_about(first.finalists[0].versus_winner, 1.0));
    assert!(is_about(first.finalists[3].versus_winner, 1.001 / 2.0));
    let second = ranked([168, 1, 1, 100, 1]);
    assert_eq!(order(&second), [3, 0, 4, 2, 1]);
}

/// The times of a finalist, instead of those that were measured.
fn with_times(found: &mut Finals, at: usize, seconds: Vec<f64>) {
    let result = found.finalists[at].result.as_mut().unwrap();
    result.stats = Stats::of(&seconds).unwrap();
    result.seconds = seconds;
}

/// That the rounds cannot tell two apart does not make them as fast: the likely slower one does not win for its registers.
#[test]
fn what_scatters_is_no_tie() {
    let case = matmul(4, 4, 4, 1);
    let mut found = held(&mut Fake::new(1.0), &case, &[(Does::Right, 1e-3); 2], &how()).unwrap();
    (0..).zip(&mut found.finalists).for_each(|(n, it)| it.n = Some(n));
    with_times(&mut found, 0, vec![1e-3; 31]);
    with_times(&mut found, 1, (0..31).map(|it| if it < 17 { 1.3e-3 } else { 0.9e-3 }).collect());
    rank(&mut found, |it| std::cmp::Reverse(it.n));
    let versus = found.finalists[1].versus_winner.unwrap();
    assert!(versus.low < 1.0 && 1.0 < versus.high, "{versus:?}");
    assert_eq!((found.finalists[0].n, tied(&found)), (Some(0), vec![]));
}

/// Medians say who is fast in all rounds together, and pairs who is fast in each of them. Here all rounds but the last are
/// as slow for both, and the first program has more of the fast ones.
#[test]
fn pairs_decide_and_ties_are_told() {
    let case = matmul(4, 4, 4, 1);
    let mut found = held(&mut Fake::new(1.0), &case, &[(Does::Right, 1e-3); 3], &how()).unwrap();
    (0..).zip(&mut found.finalists).for_each(|(n, it)| it.n = Some(n));
    // The second is 5 % faster in each round but for a few, in which it was disturbed; its median is the larger one.
    let drift = |it: usize| if it < 16 { 1e-3 } else { 2e-3 };
    with_times(&mut found, 0, (0..31).map(drift).collect());
    let disturbed = |it: usize| if it < 4 { 2.2e-3 } else { drift(it) / 1.05 };
    with_times(&mut found, 1, (0..31).map(disturbed).collect());
    // The third ties with it.
    with_times(&mut found, 2, (0..31).map(|it| disturbed(it) * 1.001).collect());
    let medians: Vec<f64> =
        found.finalists.iter().map(|it| it.result.as_ref().unwrap().stats.median).collect();
    assert!(medians[0] < medians[1], "{medians:?}");
    rank(&mut found, |it| it.n);
    let order: Vec<_> = found.finalists.iter().map(|it| it.n.unwrap()).collect();
    assert_eq!((order, tied(&found)), (vec![1, 2, 0], vec![1]));
    rank(&mut found, |it| std::cmp::Reverse(it.n));
    assert_eq!((found.finalists[0].n, tied(&found)), (Some(2), vec![1]));
}
