//! The timelines of the pipelines in `tests/lower`: whether every statement is found again, and one in full.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use indexmap::IndexMap;
use ir::{
    Access, Alloc, Arch, Arg, DType, For, ForKind, Index, Kernel, Mechanism, Module, Name, Op, Role, Scope,
    Target, ThreadAxis, Value, Wait,
};
use tilewright_codegen::{
    lower::{ComponentReport, PipelineReport, SlotReport, lower_explained},
    timeline::{Held, Moment, Part, Sync, Timeline, consequences, timelines},
};

fn lowered(path: &std::path::Path) -> Option<(Module, Vec<Timeline>)> {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, program) = text.split_once('\n').unwrap();
    let target = if head.ends_with("cpu") { Target::Cpu } else { Target::Cuda(ARCH) };
    let func = ir::text::parse(program).unwrap();
    let (module, reports) = lower_explained(&func, &target).ok()?;
    let timelines = timelines(&module, &reports);
    assert_eq!(timelines.len(), reports.len(), "{}: a pipeline is not found\n{module}", path.display());
    Some((module, timelines))
}

const ARCH: Arch = Arch { sm: 80, suffix: None };

#[test]
fn every_statement_is_found() {
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lower")).unwrap() {
        let path = entry.unwrap().path();
        let Some((module, timelines)) = lowered(&path) else { continue };
        for it in &timelines {
            for statement in &it.statements {
                let known = it.threads.is_some() && !module.kernels[0].launch.is_empty();
                let moves = !statement.reads.is_empty() || !statement.writes.is_empty();
                assert!(!known || moves, "{}: `{}` is not found\n{module}", path.display(), statement.name);
            }
            // Each column speaks of barriers that the list has.
            let barriers =
                it.columns.iter().flat_map(|it| it.syncs.iter().flatten()).filter_map(|it| match it {
                    Sync::Barrier { at, .. } => Some(*at),
                    Sync::Commit | Sync::Wait { .. } => None,
                });
            assert!(barriers.into_iter().all(|at| at < it.barriers.len()));
        }
        count += timelines.len();
    }
    assert!(count >= 6, "{count} pipelines");
}

/// All barriers of a pipeline that is alone in its kernel are in its timeline.
#[test]
fn no_barrier_is_lost() {
    for name in ["pipeline_simple", "pipeline_cuda", "pipeline_consumer_first", "pipeline_dynamic"] {
        let path = format!("{}/tests/lower/{name}.tw", env!("CARGO_MANIFEST_DIR"));
        let (module, timelines) = lowered(path.as_ref()).unwrap();
        let count: usize = module.kernels.iter().map(barriers).sum();
        assert_eq!(timelines[0].barriers.len(), count, "{name}\n{module}");
    }
}

fn barriers(kernel: &Kernel) -> usize {
    let mut count = 0;
    for op in &kernel.body {
        op.walk(&mut |op| count += usize::from(matches!(op, Op::Barrier)));
    }
    count
}

#[test]
fn the_slots_of_a_pipeline_come_round() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lower/merge_sibling_pipelines.tw");
    let (module, timelines) = lowered(path.as_ref()).unwrap();
    let mut text = String::new();
    for it in &timelines {
        writeln!(text, "{} of {}: {} iterations, every {} steps", it.var, it.kernel, it.extent, it.cycle)
            .unwrap();
        text += &columns(it);
        let costs = consequences(it, &module.kernels[0], &ARCH, None);
        writeln!(
            text,
            "{:?}\n",
            [Some(costs.now), costs.fewer, costs.single].map(|it| it.map(|it| it.shared_bytes))
        )
        .unwrap();
        assert!(it.columns.iter().any(|it| it.part == Part::Steady));
    }
    insta::assert_snapshot!(text);
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
            Sync::Commit => "commit".to_owned(),
            Sync::Wait { in_flight, .. } => format!("wait {in_flight}"),
            Sync::Barrier { at, inside } => {
                format!("barrier {at}{}", if *inside { " inside" } else { "" })
            }
        };
        let syncs: Vec<Vec<_>> = column.syncs.iter().map(|it| it.iter().map(sync).collect()).collect();
        let (part, step, groups) = (column.part, column.step, column.in_flight);
        writeln!(text, "{part} {step}: runs {runs:?}, slots {slots:?}, {syncs:?}, {groups} groups").unwrap();
    }
    text
}

fn place(name: &str) -> Access {
    Access { buffer: Name::new(name), indices: vec![Index::int(0)], lanes: 1 }
}

/// Copies two iterations ahead, as lowering writes them.
fn async_kernel() -> Module {
    let copy = || [Op::Copy(place("S"), Value::Load(place("A"))), Op::Commit];
    let wait = |in_flight| {
        let proof = Op::Comment("S: written before, read after".to_owned());
        [Op::Wait(Wait { in_flight, buffers: vec![Name::new("S")] }), proof, Op::Barrier]
    };
    let read = || [Op::Store(place("C"), Value::Load(place("S")))];
    let alloc =
        Alloc { name: Name::new("S"), dtype: DType::F32, len: 96, scope: Scope::Shared, offset: None };
    let body = wait(1).into_iter().chain(read()).chain(copy()).collect();
    let k = Op::For(For { var: Name::new("k"), extent: Index::int(6), kind: ForKind::Serial, body }.into());
    let body = [Op::Alloc(alloc)].into_iter().chain(copy()).chain(copy()).chain([k]);
    let body = body.chain(wait(1)).chain(read()).chain(wait(0)).chain(read()).collect();
    let launch = IndexMap::from([(ThreadAxis::ThreadX, Index::int(32))]);
    let arg = |role| Arg { dtype: DType::F32, len: Index::int(256), role };
    let args = [(Name::new("A"), arg(Role::Input)), (Name::new("C"), arg(Role::Output))];
    let used = args.iter().map(|it| (it.0.clone(), it.1.role == Role::Output)).collect();
    let kernel = Kernel { name: Name::new("f"), args: used, launch, blocks_per_sm: None, body };
    Module { name: Name::new("f"), dims: vec![], args: args.into_iter().collect(), kernels: vec![kernel] }
}

#[test]
fn groups_in_flight_are_counted() {
    let component = |name: &str, stage, order, mechanism, reads: &str, writes: &str| ComponentReport {
        name: Name::new(name),
        stage,
        order,
        mechanism,
        reason: String::new(),
        reads: vec![Name::new(reads)],
        writes: vec![Name::new(writes)],
    };
    let (buffer, scope) = (Name::new("S"), Scope::Shared);
    let report = PipelineReport {
        var: Name::new("k"),
        extent: Index::int(8),
        style: "peel",
        unroll: 1,
        components: vec![
            component("S", 0, 1, Mechanism::CpAsync, "A", "S"),
            component("C", 2, 0, Mechanism::Plain, "S", "C"),
        ],
        buffers: vec![SlotReport { buffer, scope, slots: 3, needed: 2, forced: Some(3), bytes: 128 }],
    };
    let all = timelines(&async_kernel(), &[report]);
    let proofs: Vec<_> = all[0].barriers.iter().map(|it| (it.part, &it.before, &it.proof)).collect();
    insta::assert_snapshot!(format!("{}{:?}\n{proofs:#?}", columns(&all[0]), all[0].rings[0].note));
}
