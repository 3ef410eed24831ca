//! The timelines of the pipelines in `tests/lower`: whether every statement is found again, and one in full.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use ir::{Arch, Instr, Kernel, Module, Name, Op, Participants, Scope, Target};
use tilewright_codegen::{
    lower::{Lowered, lower_explained, no_effect},
    timeline::{Held, Moment, Part, Sync, Timeline, consequences, timelines, without_pipelines},
};

/// The program of a test of lowering, and its target.
fn program(name: &str) -> (ir::Func, Target) {
    let path = format!("{}/tests/lower/{name}.tw", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (head, program) = text.split_once('\n').unwrap();
    let target = match head.rsplit(' ').next() {
        Some("cpu") => Target::Cpu,
        Some("sm_90a") => Target::Cuda(HOPPER),
        _ => Target::Cuda(ARCH),
    };
    (ir::text::parse(program).unwrap(), target)
}

/// The names of all of them.
fn programs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
    let paths = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let programs = paths.filter(|it| it.extension().is_some_and(|it| it == "tw"));
    let mut names: Vec<_> = programs.map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

const ARCH: Arch = Arch { sm: 80, suffix: None };
const HOPPER: Arch = Arch { sm: 90, suffix: Some('a') };

/// All statements of pipelines are found by where the instructions of the kernel come from.
#[test]
fn every_statement_is_found() {
    let mut count = 0;
    for name in programs() {
        let (func, target) = program(&name);
        let Ok(lowered) = lower_explained(&func, &target) else { continue };
        let timelines = timelines(&lowered);
        let Lowered { module, pipelines: reports, .. } = lowered;
        assert_eq!(timelines.len(), reports.len(), "{name}: a pipeline is not found\n{module}");
        for it in &timelines {
            for statement in &it.statements {
                let moves = !statement.reads.is_empty() || !statement.writes.is_empty();
                let moves = moves || is_of_registers(&module, &statement.name);
                assert!(moves, "{name}: `{}` is not found\n{module}", statement.name);
            }
            // Each column speaks of barriers that the list has.
            let syncs = it.columns.iter().flat_map(|it| it.syncs.iter().chain(&it.ends).flatten());
            let barriers =
                syncs.filter_map(|it| if let Sync::Barrier { at, .. } = it { Some(*at) } else { None });
            assert!(barriers.into_iter().all(|at| at < it.barriers.len()));
            // Lanes of a warp meet before one of them speaks for all: that is no dependence.
            let mut barriers = it.barriers.iter().filter(|it| it.among != Participants::Warp);
            assert!(barriers.all(|it| !it.proof.is_empty()), "{name}: a barrier has no reason");
        }
        count += timelines.len();
    }
    assert!(count >= 30, "{count} pipelines");
}

/// Whether a statement reads and writes nothing but registers.
fn is_of_registers(module: &Module, name: &Name) -> bool {
    let (mut local, mut touched) = (BTreeSet::new(), BTreeSet::new());
    for op in module.kernels.iter().flat_map(|it| &it.body) {
        op.walk(&mut |op| match op {
            Op::Alloc(it) if it.scope == Scope::Local => {
                local.insert(it.name.clone());
            }
            Op::Instr(it, origin) if origin.block() == Some(name) => {
                it.each_access(&mut |it, _| {
                    touched.insert(it.buffer.clone());
                });
            }
            _ => {}
        });
    }
    !touched.is_empty() && touched.is_subset(&local)
}

/// All barriers of a pipeline that is alone in its kernel are in its timeline.
#[test]
fn no_barrier_is_lost() {
    for name in ["pipeline_simple", "pipeline_cuda", "pipeline_consumer_first", "pipeline_dynamic"] {
        let (func, target) = program(name);
        let lowered = lower_explained(&func, &target).unwrap();
        let (timelines, module) = (timelines(&lowered), lowered.module);
        let count: usize = module.kernels.iter().map(barriers).sum();
        assert_eq!(timelines[0].barriers.len(), count, "{name}\n{module}");
    }
}

fn barriers(kernel: &Kernel) -> usize {
    let mut count = 0;
    for op in &kernel.body {
        op.walk(&mut |op| count += usize::from(matches!(op, Op::Instr(Instr::Barrier(_), _))));
    }
    count
}

#[test]
fn the_slots_of_a_pipeline_come_round() {
    insta::assert_snapshot!(told("merge_sibling_pipelines"));
}

/// Each role has its own pace, and mbarriers tell of iterations.
#[test]
fn roles_and_rings() {
    for name in [
        "role_producer",
        "role_wgmma_lag",
        "role_persistent",
        "role_two_producers",
        "tma_ring_nested",
        "tma_ring_symbolic",
        "role_ping_pong",
    ] {
        insta::assert_snapshot!(name, told(name));
    }
}

#[test]
fn groups_in_flight_are_counted() {
    insta::assert_snapshot!(told("async_two_mechanisms") + &told("barrier_async_ring"));
}

fn told(name: &str) -> String {
    let (func, target) = program(name);
    let lowered = lower_explained(&func, &target).unwrap();
    let (all, module) = (timelines(&lowered), lowered.module);
    let plain = tilewright_codegen::compile_module(&without_pipelines(&func), &target);
    let mut text = String::new();
    for it in &all {
        writeln!(text, "{} of {}: {} iterations, every {} steps", it.var, it.kernel, it.extent, it.cycle)
            .unwrap();
        for lane in it.lanes.iter().filter(|it| it.role.is_some()) {
            writeln!(text, "{lane:?}").unwrap();
        }
        for mbarrier in &it.mbarriers {
            writeln!(text, "{mbarrier:?}").unwrap();
        }
        text += &columns(it);
        let is_short = it.trips.is_some_and(|trips| trips <= it.last);
        assert!(is_short || it.columns.iter().any(|it| it.part == Part::Steady));
    }
    let all: Vec<&Timeline> = all.iter().collect();
    let plain = plain.as_ref().ok().map(|it| (&it.kernels[0], None));
    let costs = consequences(&all, (&module.kernels[0], None), plain, &ARCH);
    let bytes = [costs.before, costs.fewer, Some(costs.now)].map(|it| it.map(|it| it.shared_bytes));
    writeln!(text, "bytes before, with one slot fewer, now: {bytes:?}").unwrap();
    text
}

const SIBLINGS: &str = "func siblings
  in A: f32[8, 32]
  out C: f32[8, 32]
  out D: f32[8, 32]
  temp B: f32[32] @shared

  for b in 0..1 @blockIdx.x
    for k in 0..8 #{software_pipeline_stage: [0, 1], software_pipeline_order: [0, 1]}
      for t1 in 0..32 @threadIdx.x
        block B(vk: 8 = k, v: 32 = t1) #{double_buffer_scope: 0}
          B[v] = A[vk, v]
      for t2 in 0..32 @threadIdx.x
        block C(vk: 8 = k, v: 32 = t2)
          C[vk, v] = B[31 - v]
    for l in 0..8 #{software_pipeline_stage: [0, 3], software_pipeline_order: [0, 1]}
      for t3 in 0..32 @threadIdx.x
        block B_again(vl: 8 = l, v: 32 = t3)
          B[v] = A[vl, v]
      for t4 in 0..32 @threadIdx.x
        block D(vl: 8 = l, v: 32 = t4)
          D[vl, v] = B[31 - v]
";

#[test]
fn what_changes_nothing_is_told() {
    let (mut func, target) = program("pipeline_simple");
    func.map_blocks(&mut |it| {
        it.attrs.double_buffer = true;
    });
    let notes = |func: &ir::Func| no_effect(func, &lower_explained(func, &target).unwrap().pipelines);
    let told = notes(&func);
    assert!(told.iter().any(|it| it.ends_with(" already has 2 slots")), "{told:?}");
    // Pipelines that share a buffer in name have one each, and what is told has the name of the script.
    let siblings = ir::text::parse(SIBLINGS).unwrap();
    assert_eq!(
        no_effect(&siblings, &lower_explained(&siblings, &Target::Cuda(ARCH)).unwrap().pipelines),
        ["no effect: B already has 2 slots"]
    );
    let plain = without_pipelines(&func);
    assert_eq!(notes(&plain), Vec::<String>::new());
}

/// One line a step.
fn columns(it: &Timeline) -> String {
    let mut text = String::new();
    for column in &it.columns {
        let word = |it: &Option<Moment>| it.map_or_else(|| ".".to_owned(), |it| it.to_string());
        let runs: Vec<_> = column.runs.iter().map(word).collect();
        let held = |it: &Held| format!("{}{}", it.iteration, if it.landed { "" } else { "*" });
        let slots = column.slots.iter().flatten().map(|it| it.iter().map(held).collect::<Vec<_>>().join(","));
        let slots: Vec<_> = slots.collect();
        let sync = |it: &Sync| match it {
            Sync::Commit { .. } => "commit".to_owned(),
            Sync::Wait { in_flight, .. } => format!("wait {in_flight}"),
            Sync::Barrier { at, inside } => {
                format!("barrier {at}{}", if *inside { " inside" } else { "" })
            }
            other => format!("{other:?}"),
        };
        let syncs = column.syncs.iter().chain(&column.ends);
        let syncs: Vec<Vec<_>> = syncs.map(|it| it.iter().map(sync).collect()).collect();
        let (part, step) = (column.part, column.step);
        let groups: usize = column.in_flight.iter().sum();
        writeln!(text, "{part} {step}: runs {runs:?}, slots {slots:?}, {syncs:?}, {groups} groups").unwrap();
    }
    text
}
