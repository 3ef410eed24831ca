//! The speed of the compiler itself on the longest script that ships: from its steps to CUDA C++.

use std::hint::black_box;

use codegen::{compile_module, emit::emit};
use ir::{Arch, Func, Target};
use mimalloc::MiMalloc;
use schedule::{Decisions, Script, Session, Step, workload};

/// As the command has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    divan::main();
}

/// The unscheduled program and the steps of the longest rung of the CUDA ladder.
fn rung() -> (Func, Vec<Step>) {
    let ladder = workloads::find_ladder("matmul-cuda-f32").expect("the ladder ships");
    let rung = ladder.rungs.iter().max_by_key(|it| it.text.lines().count()).expect("a ladder has rungs");
    let script = Script::parse(rung.text).expect("rungs are well formed");
    let text = workloads::find(&script.workload.value).expect("the workload ships");
    let workload = workload::parse(text).expect("workloads are well formed");
    let func = workload.instantiate(&script.params.value).expect("rungs give the parameters");
    let steps = script.resolve(&script.params.value, &Decisions::new()).expect("rungs have no knobs");
    (func, steps.into_iter().map(|it| it.value).collect())
}

fn target() -> Target {
    Target::Cuda(Arch { sm: 80, suffix: None })
}

fn schedule(func: &Func, steps: &[Step]) -> Session {
    let mut session = Session::new(func.clone(), Some(target()));
    for step in steps {
        session.apply(step).expect("rungs are legal");
    }
    session
}

fn source(func: &Func) -> String {
    let module = compile_module(func, &target()).expect("rungs lower");
    emit(&module, &target()).expect("rungs print")
}

/// Every step checked, applied and verified.
#[divan::bench]
fn apply_steps(bencher: divan::Bencher) {
    let (func, steps) = rung();
    bencher.bench(|| schedule(black_box(&func), black_box(&steps)));
}

/// The scheduled program lowered and printed.
#[divan::bench]
fn lower_and_emit(bencher: divan::Bencher) {
    let (func, steps) = rung();
    let session = schedule(&func, &steps);
    bencher.bench(|| source(black_box(session.func())));
}

/// All of it.
#[divan::bench]
fn steps_to_source(bencher: divan::Bencher) {
    let (func, steps) = rung();
    bencher.bench(|| source(schedule(black_box(&func), black_box(&steps)).func()));
}
