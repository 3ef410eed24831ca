//! The timelines of the pipelines in `tests/lower`: whether every statement is found again, and one in full.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use ir::{Arch, Kernel, Module, Op, Target};
use tilewright_codegen::{
    lower::lower_explained,
    timeline::{Part, Sync, Timeline, consequences, timelines},
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
        for column in &it.columns {
            let runs: Vec<_> =
                column.runs.iter().map(|it| it.map_or(".".to_owned(), |it| it.to_string())).collect();
            let slots: Vec<_> = column.slots[0]
                .iter()
                .map(|it| it.iter().map(|it| it.iteration.to_string()).collect::<Vec<_>>().join(","))
                .collect();
            let barriers = column.syncs.iter().flatten().count();
            let (part, step) = (column.part, column.step);
            writeln!(text, "{part} {step}: runs {runs:?}, slots {slots:?}, {barriers} barriers").unwrap();
        }
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
