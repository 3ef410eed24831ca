use std::{collections::BTreeSet, sync::Arc};

use indexmap::IndexMap;
use schedule::Script;
use tilewright_tuner::{
    Space,
    build::{Problem, generate},
    filter::Limits,
    log::Origin,
    search::{
        Breeding, Evaluation, Evolution, Knobs, Next, Points, Seeded, Strategy,
        roofline::{Gpu, predict},
        rule::{Look, picks, seeds},
    },
};

use super::common::{complete, hopper, matmul};

const SCRIPT: &str = r#"schedule(
    workload: "matmul",
    target: "cuda",
    knobs: {"im": [1, 8, 2, 4], "ty": [2, 4, 8, 16], "jm": [4, 1, 2], "tx": [16, 32], "ki": [4, 8, 16], "fetch": boolean},
    constraints: ["ty * tx >= 64", "im * ty * ki % (ty * tx) == 0", "jm * tx * ki % (ty * tx) == 0"],
    steps: [
        split(loop: "i", into: {"by": None, "im": "im", "ty": "ty"}),
        split(loop: "j", into: {"bx": None, "jm": "jm", "tx": "tx"}),
        split(loop: "k", into: {"ko": None, "ki": "ki"}),
        reorder(order: ["by", "bx", "ty", "tx", "ko", "ki", "im", "jm"]),
        bind(loop: "by", axis: "blockIdx.y"),
        bind(loop: "bx", axis: "blockIdx.x"),
        bind(loop: "ty", axis: "threadIdx.y"),
        bind(loop: "tx", axis: "threadIdx.x"),
        cache_write(block: "C", scope: "local"),
        reverse_compute_at(block: "C_local", loop: "tx"),
        decompose_reduction(block: "C", loop: "ko"),
        choose(knob: "fetch", one_of: [[], [
            cache_read(block: "C", buffer: "A", scope: "shared"),
            compute_at(block: "A_shared", loop: "ko"),
            fuse(loops: ["A_shared_0", "A_shared_1"], into: "A_shared_f"),
            split(loop: "A_shared_f", into: {"A_shared_r": None, "A_shared_ty": "ty", "A_shared_tx": "tx"}),
            bind(loop: "A_shared_ty", axis: "threadIdx.y"),
            bind(loop: "A_shared_tx", axis: "threadIdx.x"),
            cache_read(block: "C", buffer: "B", scope: "shared"),
            compute_at(block: "B_shared", loop: "ko"),
            fuse(loops: ["B_shared_0", "B_shared_1"], into: "B_shared_f"),
            split(loop: "B_shared_f", into: {"B_shared_r": None, "B_shared_ty": "ty", "B_shared_tx": "tx"}),
            bind(loop: "B_shared_ty", axis: "threadIdx.y"),
            bind(loop: "B_shared_tx", axis: "threadIdx.x"),
        ]]),
    ],
)"#;

fn space() -> (Space, Problem, Gpu) {
    let params = complete(&IndexMap::new());
    let space = Space::of(&Script::parse(SCRIPT).unwrap(), &params).unwrap();
    let hopper_gpu = Gpu {
        arch: ir::Arch::parse("sm_90a").unwrap(),
        units: 132.0,
        clock: 1.98e9,
        memory: 4.8e12,
        cache: 62_914_560.0,
    };
    (space, matmul(&params), hopper_gpu)
}

#[test]
fn the_rule_picks_good_points_of_a_space() {
    let (space, problem, gpu) = space();
    assert_eq!(problem.target, hopper());
    let look = Look { points: 96, take: 6, seed: 1, limits: Limits::default() };
    let found = picks(&problem, &space, &gpu, &look);
    assert_eq!(found, picks(&problem, &space, &gpu, &look));
    assert_eq!(found.len(), 6);
    assert!(found.is_sorted_by(|a, b| a.seconds <= b.seconds));
    assert_eq!(found.iter().map(|it| it.index).collect::<BTreeSet<_>>().len(), 6);

    let knobs = Knobs::new(&space);
    let all = knobs.stream(3).filter_map(|index| {
        let module = generate(&problem, &space.steps(index).ok()?).ok()?.module;
        Some(predict(&module, &IndexMap::new(), &gpu)?.seconds)
    });
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    assert!(all.len() > 100, "{}", all.len());
    assert!(found[0].seconds <= all[all.len() / 50], "{found:?} {:?}", &all[..5]);
    assert!(found.iter().all(|it| space.admits(it.index).is_ok() && it.seconds < all[all.len() / 4]));
    // What the rule says of shared memory is what everybody knows.
    assert_eq!(space.decisions(found[0].index)["fetch"], 1.into());
}

#[test]
fn the_defaults_and_the_picks_begin_a_search() {
    let (space, problem, gpu) = space();
    let look = Look { points: 32, take: 3, seed: 1, limits: Limits::default() };
    let found = picks(&problem, &space, &gpu, &look);
    let seeds = seeds(&space, &found);
    let rules = seeds.iter().filter(|it| it.origin == Origin::Rule).count();
    assert_eq!(rules, 3);
    let knobs: Arc<dyn Points> = Arc::new(Knobs::new(&space));
    let mut strategy = Seeded::new(seeds.clone(), Evolution::new(Arc::clone(&knobs), 1, Breeding::default()));
    let mut proposed = BTreeSet::new();
    for n in 0..120 {
        let Next::Try(it) = strategy.next() else { panic!("there are more points") };
        assert!(seeds.get(n).is_none_or(|seed| *seed == it));
        assert_eq!(space.admits(it.index), Ok(()));
        assert!(proposed.insert(it.index));
        let digits = knobs.digits(it.index);
        assert_eq!(knobs.admit(&digits), Some(it.index));
        let seconds = 1.0 + digits.iter().sum::<usize>() as f64;
        strategy.tell(Evaluation { index: it.index, n: Some(n as u64), seconds: Some(seconds) });
    }
}

#[test]
fn choices_are_next_to_each_other_by_their_numbers() {
    let knobs = Knobs::new(&space().0);
    assert_eq!(knobs.radices(), [4, 4, 3, 2, 3, 2]);
    // Of 1, 8, 2, 4 in this order.
    let near: Vec<_> = (0..4).map(|digit| knobs.near(0, digit)).collect();
    assert_eq!(near, [vec![2], vec![3], vec![0, 3], vec![2, 1]]);
}
