//! Random schedules: whatever the session accepts, the interpreter gives the same values.
//!
//! Each case is a list of numbers; each number becomes a step over the names that the program has at that point, and
//! refused steps are dropped. `SCHEDULE_SEED` chooses other cases, `SCHEDULE_CASES` how many.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{cell::RefCell, collections::BTreeMap, env};

use crate::common::{difference, program};
use crate::propose::{Dice, propose};
use ir::{CrossBlock, Func, Index, LoopKind, Name};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};
use tilewright_schedule::{Session, Step, primitive};

const PROGRAMS: [&str; 19] = [
    "matmul",
    "matmul_relu",
    "matmul_ragged",
    "stencil",
    "axpy",
    "row_sum",
    "prefix",
    "copies",
    "producers",
    "ring",
    "waves",
    "conv2d",
    "argmax",
    "gather",
    "lengths",
    "online_softmax",
    "causal",
    "cumsum",
    "cumsum_twice",
];

#[test]
fn accepted_schedules_compute_the_same() {
    let number = |name: &str, default: u64| env::var(name).map_or(default, |it| it.parse().unwrap());
    let cases = u32::try_from(number("SCHEDULE_CASES", 6000)).unwrap();
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number("SCHEDULE_SEED", 2).to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let accepted: RefCell<BTreeMap<&str, u32>> = RefCell::default();
    let steps = vec(any::<u64>(), 0..24);
    let result = runner.run(&(0..PROGRAMS.len(), steps), |(which, numbers)| {
        let before = program(PROGRAMS[which]);
        let mut session = Session::new(before.clone(), target(numbers.len()));
        for number in numbers {
            if let Some(step) = propose(session.func(), Dice(number))
                && session.apply(&step).is_ok()
            {
                *accepted.borrow_mut().entry(step.name()).or_default() += 1;
            }
        }
        let after = session.func();
        match difference(&before, after).or_else(|| difference(&before, &reversed(after))) {
            None => Ok(()),
            Some(problem) => {
                let steps: Vec<String> = session.trace().map(Step::to_ron).collect();
                let text = ir::text::print(session.func()).text;
                let report = format!("{}: {problem}\n{}\n{text}", PROGRAMS[which], steps.join("\n"));
                Err(TestCaseError::fail(report))
            }
        }
    });
    if let Err(err) = result {
        panic!("{err}");
    }
    // A primitive that is never accepted is never tested.
    let accepted = accepted.into_inner();
    println!("{accepted:?}");
    let missing: Vec<&str> = primitive::names().filter(|it| !accepted.contains_key(it)).collect();
    assert!(cases < 1000 || missing.is_empty(), "never accepted: {missing:?}");
}

/// A GPU for every other schedule: some steps are for GPUs, and some for none.
fn target(steps: usize) -> Option<ir::Target> {
    (steps % 2 == 1).then_some(ir::Target::Cuda(ir::Arch { sm: 80, suffix: None }))
}

/// Whether the loop is bound to threads that reduce over it together.
fn reduced_by_threads(it: &ir::Loop) -> bool {
    let reduces =
        |iter: &ir::Iter| iter.kind == ir::IterKind::Reduce && iter.binding.any_var(&|name| *name == it.var);
    matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread())
        && it.body.blocks().iter().any(|block| block.iters.iter().any(reduces))
}

/// The program with the iterations of each parallel, vectorized or bound loop run from the last to the first.
///
/// What is really independent does not mind; it is the cheapest of the orders that threads may run in.
fn reversed(func: &Func) -> Func {
    let mut func = func.clone();
    let independent: Vec<ir::Loop> = func
        .loops()
        .into_iter()
        .filter(|it| !matches!(it.kind, LoopKind::Serial | LoopKind::Unrolled))
        // Blocks that take turns keep the order.
        .filter(|it| it.attrs.cross_block != Some(CrossBlock::Semaphore))
        // Threads that reduce together start from their own parts: which of them starts the whole is no matter of order.
        .filter(|it| !reduced_by_threads(it))
        .cloned()
        .collect();
    let value = |name: &Name| {
        let it = independent.iter().find(|it| it.var == *name)?;
        Some(&it.extent - 1 - Index::var(name))
    };
    func.body.walk_mut(&mut |stmt| {
        if let ir::Stmt::Loop(it) = stmt {
            let it = std::sync::Arc::make_mut(it);
            it.extent = it.extent.subst(&value);
        }
        true
    });
    func.map_blocks(&mut |block| {
        for iter in &mut block.iters {
            iter.binding = iter.binding.subst(&value);
        }
        block.guards = block.guards.iter().map(|it| it.subst(&value)).collect();
    });
    func
}
