//! Screens on the fake machine: how many samples whom, what is refused with which words, and what is left behind.

use indexmap::IndexMap;
use ir::Name;
use tilewright_tuner::{
    Bench, Case, Tensor,
    bench::{Kept, screen},
    log::{ErrorKind, Measurement, Stage, TrialError},
    protocol::Screen,
};

use super::fake::{Does, Fake, Formula, matmul, program};

fn how(best: Option<f64>) -> Screen {
    Screen { best, deadline: 2.0, threads: 0 }
}

/// Screens programs one after the other on one bench.
fn screened(
    machine: &mut Fake,
    case: &Case,
    all: &[(Does, f64)],
    best: Option<f64>,
) -> Vec<Result<Measurement, TrialError>> {
    let inputs = case.inputs();
    let mut oracle = Formula::of(&inputs);
    let mut bench = Bench::new(machine, case, &inputs, &mut oracle).unwrap();
    let screens =
        all.iter().map(|(does, seconds)| screen(&mut bench, &program(case, *does, *seconds), &how(best)));
    screens.collect()
}

#[test]
fn a_good_candidate_has_ten_samples_and_two_verdicts() {
    let case = matmul(24, 17, 33, 5);
    let mut machine = Fake::new(1.0);
    machine.clock = |runs, _| Some(1900.0 + runs as f64);
    let found = screened(&mut machine, &case, &[(Does::Right, 4e-4)], Some(5e-4)).remove(0).unwrap();
    assert_eq!((found.seconds.len(), found.calls, found.screened, found.suspicious), (10, 5, false, false));
    assert!((found.gflops * 4e-4 * 1e9 / case.work.flops - 1.0).abs() < 0.01);
    assert!(found.before.is_ok() && found.after.is_ok());
    // The clock before the first sample and after the last.
    assert!((found.clock_mhz[1] - found.clock_mhz[0] - 10.0).abs() < 1e-9);
    assert_eq!((machine.bytes_in_use(), machine.programs_loaded()), (0, 0));
}

#[test]
fn twice_the_best_is_left_after_three_samples() {
    let case = matmul(24, 17, 33, 5);
    let programs = [(Does::Right, 2.1e-3), (Does::Right, 1.9e-3), (Does::Right, 0.5), (Does::Right, 0.15)];
    let found = screened(&mut Fake::new(1.0), &case, &programs, Some(1e-3));
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    let counts: Vec<_> = found.iter().map(|it| (it.seconds.len(), it.screened)).collect();
    // A very slow one shows at once.
    assert_eq!(counts, [(3, true), (10, false), (1, true), (2, true)]);
    assert!(found[0].after.is_ok());
    // Without a best nobody is left early, and a slow one gets the time there is.
    let found = screened(&mut Fake::new(1.0), &case, &programs, None);
    let counts: Vec<_> = found.into_iter().map(|it| it.unwrap()).collect();
    let counts: Vec<_> = counts.iter().map(|it| (it.seconds.len(), it.screened)).collect();
    assert_eq!(counts, [(10, false), (10, false), (4, false), (10, false)]);
}

#[test]
fn noise_gets_more_samples_up_to_a_tenth_of_a_second() {
    let case = matmul(24, 17, 33, 5);
    let found = screened(&mut Fake::new(1.0), &case, &[(Does::Noisy, 1e-3)], None).remove(0).unwrap();
    assert!((30..60).contains(&found.seconds.len()), "{}", found.seconds.len());
    let spent = found.seconds.iter().sum::<f64>() * f64::from(found.calls);
    assert!((0.1..0.11).contains(&spent), "{spent}");
}

#[test]
fn faster_than_the_machine_is_suspicious() {
    let case = matmul(64, 64, 64, 1);
    let least = case.work.flops / 10e9;
    let programs = [(Does::Right, least * 1.05), (Does::Right, least * 0.95)];
    let found = screened(&mut Fake::new(10.0), &case, &programs, None);
    let found: Vec<bool> = found.into_iter().map(|it| it.unwrap().suspicious).collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn what_stops_a_candidate_has_a_kind_and_words() {
    let case = matmul(300, 200, 40, 5);
    let programs = [Does::ForgetsMiddle, Does::Nan, Does::DropsProduct, Does::WrongLater, Does::Crashes];
    let mut machine = Fake::new(1.0);
    let found = screened(&mut machine, &case, &programs.map(|it| (it, 1e-3)), None);
    let found: Vec<TrialError> = found.into_iter().map(Result::unwrap_err).collect();
    let kinds: Vec<_> = found.iter().map(|it| (it.stage, it.kind, it.sticky)).collect();
    let verify = |kind| (Stage::Verify, kind, false);
    assert_eq!(
        kinds,
        [
            verify(ErrorKind::Nan),
            verify(ErrorKind::Nan),
            verify(ErrorKind::WrongResult),
            verify(ErrorKind::WrongResult),
            (Stage::Run, ErrorKind::Launch, false),
        ]
    );
    let words = "its numbers are wrong: 1 of 1136 compared elements of `C` differ, 1 of 60000 were never written; \
                 C[150, 1] is NaN and should be ";
    assert!(found[0].message.starts_with(words), "{}", found[0].message);
    assert!(found[3].message.starts_with("its numbers are wrong after timing"), "{}", found[3].message);
    assert_eq!((machine.bytes_in_use(), machine.programs_loaded()), (0, 0));
}

#[test]
fn a_program_of_other_sizes_is_a_fault_of_ours() {
    let (case, other) = (matmul(8, 8, 8, 5), matmul(8, 8, 9, 5));
    let inputs = case.inputs();
    let (mut machine, mut oracle) = (Fake::new(1.0), Formula::of(&inputs));
    let mut bench = Bench::new(&mut machine, &case, &inputs, &mut oracle).unwrap();
    let found = screen(&mut bench, &program(&other, Does::Right, 1e-3), &how(None)).unwrap_err();
    assert_eq!((found.stage, found.kind), (Stage::Run, ErrorKind::Internal));
}

#[test]
fn nothing_is_touched_once_the_machine_is_lost() {
    let case = matmul(8, 8, 8, 5);
    for (does, kind) in [(Does::Strays, ErrorKind::IllegalAddress), (Does::Hangs, ErrorKind::Hang)] {
        // The fake stops the test if anything is freed, unloaded or copied afterwards.
        let found = screened(&mut Fake::new(1.0), &case, &[(does, 1e-3)], None).remove(0).unwrap_err();
        assert_eq!((found.stage, found.kind, found.sticky), (Stage::Run, kind, true));
    }
}

/// A candidate that overwrites an input is wrong itself, and only itself.
#[test]
fn spoiled_inputs_spoil_no_other_candidate() {
    let case = matmul(8, 8, 8, 5);
    let programs = [(Does::SpoilsInput, 1e-3), (Does::Right, 1e-3)];
    let found = screened(&mut Fake::new(1.0), &case, &programs, None);
    assert_eq!(found[0].as_ref().unwrap_err().kind, ErrorKind::WrongResult);
    assert!(found[1].is_ok(), "{:?}", found[1]);
}

#[test]
fn a_bench_may_be_put_away_and_taken_up_again() {
    let case = matmul(8, 8, 8, 5);
    let inputs: IndexMap<Name, Tensor> = case.inputs();
    let mut machine = Fake::new(1.0);
    let mut kept: Option<Kept> = None;
    for _ in 0..3 {
        let mut oracle = Formula::of(&inputs);
        let mut bench = match kept.take() {
            Some(it) => Bench::again(&mut machine, &case, &inputs, &mut oracle, it),
            None => Bench::new(&mut machine, &case, &inputs, &mut oracle).unwrap(),
        };
        assert!(screen(&mut bench, &program(&case, Does::Right, 1e-3), &how(None)).is_ok());
        kept = Some(bench.keep());
    }
    assert_eq!((machine.memory.len(), machine.bytes_in_use()), (3, 3 * 256));
}
