//! How long the virtual GPU takes for rungs of the matmul ladder: one tile of 128x128x64, and four of them.

use codegen::vgpu::{self, Settings};
use indexmap::IndexMap;
use ir::{Arch, Index, Module, Name, Role, Target};
use schedule::{Decisions, Session, script::Script, workload, workload::Param};

fn main() {
    divan::main();
}

/// A rung of the ladder, lowered.
fn module(rung: &str, (m, n, k): (i64, i64, i64)) -> Module {
    let ladder = workloads::find_ladder("matmul-cuda-f32").expect("the ladder ships");
    let rung = ladder.rungs.iter().find(|it| it.name.contains(rung)).expect("the rung ships");
    let text = tilewright::expand(rung.name.as_ref(), rung.text).expect("rungs use what ships");
    let script = Script::parse(&text).expect("it is a script");
    let workload = workload::parse(workloads::find("matmul").expect("it ships")).expect("it is a workload");
    let mut params = script.params.value.clone();
    params.extend([("m", m), ("n", n), ("k", k)].map(|(name, it)| (name.to_owned(), Param::Int(it))));
    let func = workload.instantiate(&params).expect("the sizes are fine");
    let target = Target::Cuda(Arch { sm: 80, suffix: None });
    let mut session = Session::new(func, Some(target.clone()));
    for step in script.resolve(&params, &Decisions::new()).expect("rungs have no knobs") {
        session.apply(&step.value).expect("the rung is legal");
    }
    codegen::compile_module(session.func(), &target).expect("the rung lowers")
}

fn inputs(module: &Module) -> IndexMap<Name, Vec<f64>> {
    let len = |it: &Index| usize::try_from(it.as_int().expect("sizes are numbers")).expect("it is positive");
    let inputs = module.args.iter().filter(|(_, it)| it.role == Role::Input);
    inputs
        .map(|(name, it)| (name.clone(), (0..len(&it.elements())).map(|at| (at % 7) as f64).collect()))
        .collect()
}

fn bench(bencher: divan::Bencher<'_, '_>, rung: &str, size: (i64, i64, i64)) {
    let module = module(rung, size);
    let memory = inputs(&module);
    bencher.with_inputs(|| memory.clone()).bench_local_values(|mut memory| {
        vgpu::run(&module, &IndexMap::new(), &mut memory, &Settings::default()).expect("it runs")
    });
}

#[divan::bench(args = ["shared", "pipeline", "serpentine"], max_time = 3)]
fn tile_128x128x64(bencher: divan::Bencher<'_, '_>, rung: &str) {
    bench(bencher, rung, (128, 128, 64));
}

#[divan::bench(args = ["serpentine"], sample_count = 1, sample_size = 1)]
fn cube_256(bencher: divan::Bencher<'_, '_>, rung: &str) {
    bench(bencher, rung, (256, 256, 256));
}
