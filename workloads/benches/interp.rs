//! How long the interpreter takes for scheduled programs: a product of 128x128x128 and rows of a softmax.

use indexmap::IndexMap;
use ir::{Arch, Func, Name, Role, Target, Tensor, interp};
use schedule::{Decisions, Script, Session, procedure, workload, workload::Param};

fn main() {
    divan::main();
}

/// A rung of a ladder, scheduled for other sizes than its own.
fn scheduled(ladder: &str, rung: &str, sizes: &[(&str, i64)]) -> Func {
    let ladder = tilewright_workloads::find_ladder(ladder).expect("the ladder ships");
    let rung = ladder.rungs.iter().find(|it| it.name.contains(rung)).expect("the rung ships");
    let find = |_: &str, _: &str| unreachable!("the rungs below use no library");
    let text = procedure::expand(rung.name, rung.text, &find).expect("it has no mistakes");
    let script = Script::parse(text.text()).expect("it is a script");
    let workload = tilewright_workloads::find(&script.workload.value).expect("the workload ships");
    let workload = workload::parse(workload).expect("it is a workload");
    let mut params = script.params.value.clone();
    params.extend(sizes.iter().map(|(name, it)| ((*name).to_owned(), Param::Int(*it))));
    let func = workload.instantiate(&params).expect("the sizes are fine");
    let mut session = Session::new(func, Some(Target::Cuda(Arch { sm: 80, suffix: None })));
    for step in script.resolve(&params, &Decisions::new()).expect("rungs have no knobs") {
        session.apply(&step.value).expect("the rung is legal");
    }
    session.func().clone()
}

fn inputs(func: &Func) -> Vec<Tensor> {
    let inputs = func.buffers.values().filter(|it| it.role == Role::Input);
    let size =
        |it: &ir::Index| usize::try_from(it.as_int().expect("sizes are numbers")).expect("it is positive");
    inputs
        .map(|it| {
            let shape: Vec<_> = it.shape.iter().map(size).collect();
            Tensor::new(it.dtype, &shape, (0..shape.iter().product()).map(|at| (at % 7) as f64))
        })
        .collect()
}

fn bench(bencher: divan::Bencher<'_, '_>, func: &Func) {
    let inputs = inputs(func);
    let dims = IndexMap::<Name, i64>::new();
    bencher.bench_local(|| interp::run(func, &dims, &inputs).expect("it runs"));
}

#[divan::bench(args = ["serpentine", "nested"], sample_count = 1, sample_size = 1)]
fn matmul_128(bencher: divan::Bencher<'_, '_>, rung: &str) {
    bench(bencher, &scheduled("matmul-cuda-f32", rung, &[("m", 128), ("n", 128), ("k", 128)]));
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn softmax_64x1024(bencher: divan::Bencher<'_, '_>) {
    bench(bencher, &scheduled("softmax-cuda", "vectors", &[("m", 64), ("n", 1024)]));
}
