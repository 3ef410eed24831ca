//! The speed of the compiler itself on the longest scripts that ship: from their steps to CUDA C++.

use std::hint::black_box;

use codegen::{compile_module, emit::emit};
use ir::{Arch, Func, Name, Target, modulo::candidates};
use mimalloc::MiMalloc;
use schedule::{Decisions, Script, Session, Step, workload};
use workloads::Shipped;

/// As the command has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    divan::main();
}

const CUDA: &str = "matmul-cuda-f32";
const HOPPER: &str = "matmul-hopper";
const MOYE: &str = "matmul-moye";

/// The unscheduled program and the steps of the longest rung of a ladder.
fn rung(ladder: &str) -> (Func, Vec<Step>) {
    let ladder = workloads::find_ladder(ladder).expect("the ladder ships");
    let expanded =
        |it: &Shipped| tilewright::expand(it.name.as_ref(), it.text).expect("rungs use what ships");
    let texts = ladder.rungs.iter().map(expanded);
    let text = texts.max_by_key(|it| it.lines().count()).expect("a ladder has rungs");
    let script = Script::parse(&text).expect("rungs are well formed");
    let workload = workloads::find(&script.workload.value).expect("the workload ships");
    let workload = workload::parse(workload).expect("workloads are well formed");
    let func = workload.instantiate(&script.params.value).expect("rungs give the parameters");
    let steps = script.resolve(&script.params.value, &Decisions::new()).expect("knobs have defaults");
    (func, steps.into_iter().map(|it| it.value).collect())
}

fn target(ladder: &str) -> Target {
    let hopper = Arch { sm: 90, suffix: Some('a') };
    Target::Cuda(if ladder == HOPPER { hopper } else { Arch { sm: 80, suffix: None } })
}

fn schedule(func: &Func, steps: &[Step], target: &Target) -> Session {
    let mut session = Session::new(func.clone(), Some(target.clone()));
    for step in steps {
        session.apply(step).expect("rungs are legal");
    }
    session
}

fn source(func: &Func, target: &Target) -> String {
    let module = compile_module(func, target).expect("rungs lower");
    emit(&module, target).expect("rungs print")
}

/// Every step checked, applied and verified.
#[divan::bench]
fn apply_steps(bencher: divan::Bencher) {
    let ((func, steps), target) = (rung(CUDA), target(CUDA));
    bencher.bench(|| schedule(black_box(&func), black_box(&steps), &target));
}

/// The scheduled program lowered and printed.
#[divan::bench]
fn lower_and_emit(bencher: divan::Bencher) {
    let ((func, steps), target) = (rung(CUDA), target(CUDA));
    let session = schedule(&func, &steps, &target);
    bencher.bench(|| source(black_box(session.func()), &target));
}

/// All of it.
#[divan::bench]
fn steps_to_source(bencher: divan::Bencher) {
    let ((func, steps), target) = (rung(CUDA), target(CUDA));
    bencher.bench(|| source(schedule(black_box(&func), black_box(&steps), &target).func(), &target));
}

/// All of it for Hopper, proofs of phases included.
#[divan::bench]
fn hopper_steps_to_source(bencher: divan::Bencher) {
    let ((func, steps), target) = (rung(HOPPER), target(HOPPER));
    bencher.bench(|| source(schedule(black_box(&func), black_box(&steps), &target).func(), &target));
}

/// The scheduled program for Hopper lowered and printed.
#[divan::bench]
fn hopper_lower_and_emit(bencher: divan::Bencher) {
    let ((func, steps), target) = (rung(HOPPER), target(HOPPER));
    let session = schedule(&func, &steps, &target);
    bencher.bench(|| source(black_box(session.func()), &target));
}

/// The candidates for the outer loop of the pipeline with most statements that ships.
#[divan::bench]
fn work_out_pipeline(bencher: divan::Bencher) {
    let ((func, steps), target) = (rung(MOYE), target(MOYE));
    let Target::Cuda(arch) = &target else { return };
    let ko = Name::new("ko");
    let is_outer = |step: &Step| matches!(step, Step::SoftwarePipelineStage(it) if it.target == ko);
    let before = steps.iter().position(is_outer).expect("the rung has a pipeline");
    let session = schedule(&func, &steps[..before], &target);
    bencher.bench(|| candidates(black_box(session.func()), &ko, arch, 16));
}
