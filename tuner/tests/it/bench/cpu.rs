//! Screens and finals of compiled programs on this machine's processor.

use codegen::device::{CpuMachine, Machine as _, Program};
use ir::Target;
use schedule::Step;
use tilewright_tuner::{
    Bench, Regime,
    bench::{finals, screen},
    build::{Problem, generate},
    log::Stage,
    protocol::{Final, Screen},
};

use super::fake::matmul;

fn compiled(problem: &Problem, steps: &str) -> Program {
    let steps: Vec<Step> = serde_json::from_str(steps).unwrap();
    generate(problem, &steps).unwrap().compile(&problem.target).unwrap().program
}

#[test]
fn compiled_programs_are_screened_and_meet_in_finals() {
    let case = matmul(96, 80, 112, 7);
    let problem = Problem::new(case.func.clone(), case.dims.clone(), 7, Target::Cpu).unwrap();
    let plain = compiled(&problem, "[]");
    let reordered = compiled(&problem, r#"[{"reorder": {"order": ["i", "kk", "j"]}}]"#);
    let inputs = problem.case.inputs();
    let mut reference = problem.case.reference(&inputs).unwrap();
    let mut machine = CpuMachine::open().unwrap();
    let mut bench = Bench::new(&mut machine, &problem.case, &inputs, &mut reference).unwrap();

    let how = Screen { best: None, deadline: 10.0, threads: 1 };
    for program in [&plain, &reordered] {
        let found = screen(&mut bench, program, &how).unwrap();
        assert!(found.before.is_ok() && found.after.is_ok() && !found.screened);
        assert!(found.seconds.len() >= 10 && found.gflops > 0.0);
    }
    let slow = screen(&mut bench, &plain, &Screen { best: Some(1e-9), ..how }).unwrap();
    assert_eq!((slow.screened, slow.seconds.len()), (true, 3));

    let how = Final { regime: Regime::Cool, rounds: 7, baseline: true, threads: 1 };
    let broken = Program { binary: vec![1, 2, 3], ..plain.clone() };
    let found = finals(&mut bench, &[plain, broken, reordered], &how).unwrap();
    assert_eq!(found.finalists[1].error.as_ref().unwrap().stage, Stage::Run);
    for it in [&found.finalists[0], &found.finalists[2]] {
        assert!(
            it.versus_winner.is_some_and(|it| it.low <= it.median && it.median <= it.high && it.rounds == 7)
        );
        assert!(it.versus_baseline.is_some());
    }
    assert!(found.noise_floor.is_some() && found.baseline.unwrap().gflops > 0.0);
    drop(bench);
    assert_eq!(machine.info().arch, "cpu");
}
