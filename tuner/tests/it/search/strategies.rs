use std::collections::BTreeSet;

use tilewright_tuner::{
    log::Origin,
    search::{Evaluation, Grid, Next, Points, Proposal, Random, Seeded, Strategy},
};

/// Points of three knobs whose digits' sum is even.
fn grid() -> Grid {
    Grid::new(vec![4, 3, 5], &|digits| digits.iter().sum::<usize>() % 2 == 0)
}

/// All that a strategy proposes, every result told at once.
fn exhaust(strategy: &mut dyn Strategy) -> Vec<Proposal> {
    let mut out = vec![];
    loop {
        match strategy.next() {
            Next::Try(it) => {
                let n = Some(out.len() as u64);
                strategy.tell(Evaluation { index: it.index, n, seconds: Some(1.0 + it.index as f64) });
                out.push(it);
            }
            Next::Wait => panic!("nothing is under way"),
            Next::Done => return out,
        }
    }
}

fn indexes(proposals: &[Proposal]) -> Vec<u128> {
    proposals.iter().map(|it| it.index).collect()
}

#[test]
fn a_grid_numbers_its_points() {
    let grid = grid();
    assert_eq!(grid.len(), 30);
    for index in grid.iter() {
        let digits = grid.digits(index);
        assert_eq!(grid.admit(&digits), Some(index));
        assert_eq!(digits.iter().sum::<usize>() % 2, 0);
    }
    assert_eq!(grid.digits(0), [0, 0, 0]);
    assert_eq!(grid.admit(&[0, 0, 1]), None);
    assert_eq!([grid.near(0, 0), grid.near(0, 1), grid.near(2, 4)], [vec![1], vec![0, 2], vec![3]]);
}

#[test]
fn random_search_proposes_every_point_once_in_an_order_of_its_seed() {
    let grid = grid();
    let run = |seed| indexes(&exhaust(&mut Random::new(&grid, seed)));
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), grid.iter().collect());
    assert_eq!(first.len(), grid.len());
}

#[test]
fn seeds_come_first_and_once() {
    let grid = grid();
    let rule = |index| Proposal { index, origin: Origin::Rule };
    let plain = indexes(&exhaust(&mut Random::new(&grid, 3)));
    let seeds = vec![rule(plain[7]), rule(plain[2]), rule(plain[7])];
    let mut strategy = Seeded::new(seeds, Random::new(&grid, 3));
    assert_eq!(strategy.describe().params["seeds"], 2);
    let got = exhaust(&mut strategy);
    assert_eq!(got[..2], [rule(plain[7]), rule(plain[2])]);
    let rest: Vec<u128> = plain.iter().copied().filter(|it| ![plain[7], plain[2]].contains(it)).collect();
    assert_eq!(indexes(&got[2..]), rest);
    assert!(got[2..].iter().all(|it| it.origin == Origin::Random));
}
