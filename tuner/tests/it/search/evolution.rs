use std::{collections::BTreeSet, sync::Arc};

use tilewright_tuner::{
    log::Origin,
    search::{
        Breeding, Evaluation, Evolution, Grid, Next, Points, Proposal, Seeded, Strategy, simulate::Table,
    },
};

use super::synthetic::{self, Synthetic, hash};

fn evolution(points: &Arc<Grid>, seed: u64) -> Evolution {
    Evolution::new(Arc::clone(points) as Arc<dyn Points>, seed, Breeding::default())
}

/// The first proposals of a strategy when up to `under_way` of them are told in an order drawn from `order`. Every
/// seventh candidate is refused before it is a trial.
fn proposals(
    it: &Synthetic,
    strategy: &mut dyn Strategy,
    count: usize,
    under_way: usize,
    order: u64,
) -> Vec<u128> {
    let mut out: Vec<u128> = vec![];
    let mut waiting: Vec<(usize, u128)> = vec![];
    while out.len() < count {
        let next = if waiting.len() < under_way { strategy.next() } else { Next::Wait };
        match next {
            Next::Try(proposal) => {
                waiting.push((out.len(), proposal.index));
                out.push(proposal.index);
            }
            Next::Done => break,
            Next::Wait => {
                let share = hash(order, &[out.len(), waiting.len()]);
                let (at, index) = waiting.swap_remove((share * waiting.len() as f64) as usize);
                let refused = index % 7 == 0;
                let seconds = it.seconds(index).filter(|_| !refused);
                strategy.tell(Evaluation { index, n: (!refused).then_some(at as u64), seconds });
            }
        }
    }
    out
}

#[test]
fn what_is_proposed_depends_on_results_and_seed_but_not_on_their_order() {
    for it in synthetic::all(5) {
        let plain = proposals(&it, &mut evolution(&it.points, 1), 150, 1, 0);
        for (under_way, order) in [(1, 1), (3, 2), (16, 3), (64, 4)] {
            assert_eq!(
                proposals(&it, &mut evolution(&it.points, 1), 150, under_way, order),
                plain,
                "{}",
                it.name
            );
        }
        assert_ne!(proposals(&it, &mut evolution(&it.points, 2), 150, 1, 0), plain);
    }
}

#[test]
fn every_point_is_proposed_once() {
    let points = Arc::new(Grid::new(vec![4, 3, 5], &|digits| digits.iter().sum::<usize>() % 2 == 0));
    let it = Synthetic { name: "small", table: Table::default(), points };
    let all = proposals(&it, &mut evolution(&it.points, 1), 1000, 5, 1);
    assert_eq!(all.len(), it.points.len());
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), it.points.iter().collect());
    let one = Arc::new(Grid::new(vec![1], &|_| true));
    let mut strategy = evolution(&one, 1);
    let first = Proposal { index: 0, origin: Origin::Random };
    assert_eq!(
        [strategy.next(), strategy.next(), strategy.next()],
        [Next::Try(first), Next::Done, Next::Done]
    );
}

#[test]
fn children_have_the_trials_they_come_from() {
    let it = &synthetic::all(5)[0];
    let mut strategy = evolution(&it.points, 1);
    let mut tried: Vec<u128> = vec![];
    let (mut mutations, mut crossovers) = (0, 0);
    while tried.len() < 200 {
        let Next::Try(proposal) = strategy.next() else { panic!("everything is told") };
        let digits = it.points.digits(proposal.index);
        let of = |n: u64| it.points.digits(tried[usize::try_from(n).unwrap()]);
        match proposal.origin {
            Origin::Mutation { of: n } => {
                let changed = digits.iter().zip(of(n)).filter(|(a, b)| **a != *b).count();
                assert!((1..=5).contains(&changed), "{changed}");
                mutations += 1;
            }
            Origin::Crossover { of: [a, b] } => {
                let (a, b) = (of(a), of(b));
                assert!((0..digits.len()).all(|knob| [a[knob], b[knob]].contains(&digits[knob])));
                crossovers += 1;
            }
            Origin::Random => {}
            Origin::Rule | Origin::Default => panic!("nobody proposed these"),
        }
        let n = Some(tried.len() as u64);
        strategy.tell(Evaluation { index: proposal.index, n, seconds: it.seconds(proposal.index) });
        tried.push(proposal.index);
    }
    assert!(mutations > 50 && crossovers > 10, "{mutations} {crossovers}");
}

#[test]
fn seeds_have_children() {
    let it = &synthetic::all(5)[1];
    let best = it.points.iter().filter(|it2| it.seconds(*it2).is_some());
    let best = best.min_by(|a, b| it.seconds(*a).unwrap().total_cmp(&it.seconds(*b).unwrap())).unwrap();
    let seeds = vec![Proposal { index: best, origin: Origin::Rule }];
    let mut strategy = Seeded::new(seeds, evolution(&it.points, 1));
    let all = proposals(it, &mut strategy, 80, 1, 0);
    assert_eq!(all[0], best);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 80);
    let near = |index: &&u128| {
        let digits = it.points.digits(**index);
        digits.iter().zip(it.points.digits(best)).filter(|(a, b)| **a != *b).count() == 1
    };
    let from_seed = all.iter().filter(near).count();
    let without = proposals(it, &mut evolution(&it.points, 1), 80, 1, 0);
    let by_chance = without.iter().filter(near).count();
    assert!(from_seed > by_chance + 5, "{from_seed} {by_chance}");
}
