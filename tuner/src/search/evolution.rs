//! Evolution: new points from the best so far.
//!
//! The first proposals are random. After that each is, by chance, a random one, a mutation of a good point (another
//! choice for one knob or a few, preferably one next to the old), or a crossover of two. Good points are drawn by rank,
//! the best most often, so that scale and noise of times do not matter.
//!
//! Proposals are made in batches, and a batch depends on the results of all batches but the last few: results of
//! later ones are not looked at even where they are known. So workers are kept busy, and yet what is proposed depends
//! on the results alone.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use indexmap::IndexMap;
use rand::{Rng, rngs::ChaCha8Rng};
use serde_json::Value;

use super::{Evaluation, Next, Points, Proposal, Random, Strategy};
use crate::{
    data::{below, stream},
    log::Origin,
};

/// The numbers of an evolution. The defaults were found on tables of different shapes; see `tests/it/search`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Breeding {
    /// How many points are drawn at random first, adopted ones included.
    pub first: usize,
    /// How many proposals a batch has.
    pub batch: usize,
    /// How many batches may be under way.
    pub ahead: usize,
    /// How many of the best points have children.
    pub parents: usize,
    /// How strongly better parents are preferred: the rank is that share of `parents`, drawn from 0 to 1, to this power.
    pub pressure: f64,
    /// The share of random points.
    pub random: f64,
    /// The share of crossovers among the others.
    pub crossover: f64,
    /// The chance that a mutation goes on to one more knob.
    pub further: f64,
    /// The chance that a knob gets a choice next to the old instead of any.
    pub near: f64,
    /// After how many trials without a better one the random share becomes `restart`, until there is one.
    pub patience: usize,
    /// The share of random points then.
    pub restart: f64,
}

impl Default for Breeding {
    fn default() -> Breeding {
        Breeding {
            first: 24,
            batch: 8,
            ahead: 2,
            parents: 4,
            pressure: 2.0,
            random: 0.05,
            crossover: 0.4,
            further: 0.1,
            near: 0.4,
            patience: 48,
            restart: 0.2,
        }
    }
}

/// Learns from results; see the module.
pub struct Evolution {
    points: Arc<dyn Points>,
    breeding: Breeding,
    rng: ChaCha8Rng,
    random: Random,
    made: Vec<Proposed>,
    at: HashMap<u128, usize>,
    /// Where in `made` each batch begins. The first has the adopted points too.
    batches: Vec<usize>,
    ready: VecDeque<Proposal>,
    /// Whether every point has been proposed.
    is_exhausted: bool,
}

/// A point that was proposed.
struct Proposed {
    index: u128,
    digits: Vec<usize>,
    evaluation: Option<Evaluation>,
}

/// A point to breed from.
struct Parent {
    n: u64,
    digits: Vec<usize>,
}

/// What a batch is made of.
struct Stock {
    /// The best first.
    parents: Vec<Parent>,
    /// How many trials there were since the best one.
    stale: usize,
}

/// How many children are thrown away, for being known or not admitted, before a random point takes their place.
const ATTEMPTS: usize = 64;

/// Knobs with more choices than this get one next to the old the more often, the more they have.
const FEW_CHOICES: f64 = 8.0;

impl Evolution {
    /// Over a space.
    pub fn new(points: Arc<dyn Points>, seed: u64, breeding: Breeding) -> Evolution {
        let random = Random::new(&*points, seed);
        Evolution {
            points,
            breeding,
            rng: stream(seed, 1),
            random,
            made: vec![],
            at: HashMap::new(),
            batches: vec![],
            ready: VecDeque::new(),
            is_exhausted: false,
        }
    }

    /// Notes a proposal; false if there was one of this index before.
    fn add(&mut self, index: u128) -> bool {
        if self.at.contains_key(&index) {
            return false;
        }
        self.at.insert(index, self.made.len());
        self.made.push(Proposed { index, digits: self.points.digits(index), evaluation: None });
        true
    }

    /// How many of the proposals, from the first, the next batch may depend on.
    fn horizon(&self) -> usize {
        match self.batches.len().checked_sub(self.breeding.ahead.max(1)) {
            Some(batch) => self.batches.get(batch + 1).copied().unwrap_or(self.made.len()),
            None => 0,
        }
    }

    /// Makes the next batch, which stays empty if there is no point left.
    fn make_batch(&mut self, horizon: usize) {
        let stock = Stock::of(&self.made[..horizon], &self.breeding);
        self.batches.push(self.made.len());
        for _ in 0..self.breeding.batch.max(1) {
            let child = if self.made.len() < self.breeding.first { None } else { self.child(&stock) };
            let Some(proposal) = child.or_else(|| self.draw()) else {
                self.is_exhausted = true;
                return;
            };
            self.ready.push_back(proposal);
        }
    }

    /// A random point.
    fn draw(&mut self) -> Option<Proposal> {
        loop {
            let Next::Try(proposal) = self.random.next() else { return None };
            if self.add(proposal.index) {
                return Some(proposal);
            }
        }
    }

    /// A new point made of known ones; none if a random one shall take its place.
    fn child(&mut self, stock: &Stock) -> Option<Proposal> {
        let share =
            if stock.stale >= self.breeding.patience { self.breeding.restart } else { self.breeding.random };
        if stock.parents.is_empty() || self.chance(share) {
            return None;
        }
        for _ in 0..ATTEMPTS {
            let parent = self.pick(stock);
            let (digits, origin) = if self.chance(self.breeding.crossover) {
                let other = self.pick(stock);
                (self.cross(&parent.digits, &other.digits), Origin::Crossover { of: [parent.n, other.n] })
            } else {
                (self.mutate(&parent.digits), Origin::Mutation { of: parent.n })
            };
            if let Some(index) = self.points.admit(&digits)
                && self.add(index)
            {
                return Some(Proposal { index, origin });
            }
        }
        None
    }

    fn pick<'a>(&mut self, stock: &'a Stock) -> &'a Parent {
        let share = self.uniform().powf(self.breeding.pressure);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a small number"
        )]
        let rank = (share * stock.parents.len() as f64) as usize;
        &stock.parents[rank.min(stock.parents.len() - 1)]
    }

    /// Each digit of one of the two.
    fn cross(&mut self, a: &[usize], b: &[usize]) -> Vec<usize> {
        a.iter().zip(b).map(|(a, b)| if self.chance(0.5) { *a } else { *b }).collect()
    }

    /// Another choice for a knob, and by chance for more.
    fn mutate(&mut self, digits: &[usize]) -> Vec<usize> {
        let mut out = digits.to_vec();
        let open: Vec<usize> = (0..out.len()).filter(|knob| self.points.radices()[*knob] > 1).collect();
        if open.is_empty() {
            return out;
        }
        loop {
            let knob = open[below(&mut self.rng, open.len())];
            // Of many choices few are any good, and those next to a good one are more often than most.
            let few = (FEW_CHOICES / self.points.radices()[knob] as f64).min(1.0);
            let is_far = self.chance((1.0 - self.breeding.near) * few);
            let near = if is_far { vec![] } else { self.points.near(knob, out[knob]) };
            out[knob] = if near.is_empty() {
                // Any but the one it has.
                let any = below(&mut self.rng, self.points.radices()[knob] - 1);
                any + usize::from(any >= out[knob])
            } else {
                near[below(&mut self.rng, near.len())]
            };
            if !self.chance(self.breeding.further) {
                return out;
            }
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }
}

impl Stock {
    fn of(known: &[Proposed], breeding: &Breeding) -> Stock {
        let results = || known.iter().filter_map(|it| Some((it, it.evaluation?)));
        let mut good: Vec<(f64, u64, &Proposed)> =
            results().filter_map(|(made, it)| Some((it.seconds?, it.n?, made))).collect();
        // The order of proposals decides between equals, for the sort is stable.
        good.sort_by(|a, b| a.0.total_cmp(&b.0));
        let best = good.first().map(|it| it.2.index);
        let trials = || results().filter(|(_, it)| it.n.is_some());
        let stale = trials().rev().take_while(|(made, _)| Some(made.index) != best).count();
        good.truncate(breeding.parents.max(1));
        let parents = good.into_iter().map(|(_, n, made)| Parent { n, digits: made.digits.clone() });
        Stock { parents: parents.collect(), stale }
    }
}

impl Strategy for Evolution {
    fn next(&mut self) -> Next {
        if self.ready.is_empty() && !self.is_exhausted {
            let horizon = self.horizon();
            if self.made[..horizon].iter().any(|it| it.evaluation.is_none()) {
                return Next::Wait;
            }
            self.make_batch(horizon);
        }
        self.ready.pop_front().map_or(Next::Done, Next::Try)
    }

    fn tell(&mut self, evaluation: Evaluation) {
        if let Some(at) = self.at.get(&evaluation.index) {
            self.made[*at].evaluation = Some(evaluation);
        }
    }

    fn adopt(&mut self, index: u128) {
        self.add(index);
    }

    fn describe(&self) -> crate::log::Strategy {
        let Breeding { first, batch, ahead, parents, patience, .. } = self.breeding;
        let counts = [
            ("first", first),
            ("batch", batch),
            ("ahead", ahead),
            ("parents", parents),
            ("patience", patience),
        ];
        let Breeding { pressure, random, crossover, further, near, restart, .. } = self.breeding;
        let shares = [
            ("pressure", pressure),
            ("random", random),
            ("crossover", crossover),
            ("further", further),
            ("near", near),
            ("restart", restart),
        ];
        let counts = counts.map(|(name, it)| (name.to_owned(), Value::from(it)));
        let shares = shares.map(|(name, it)| (name.to_owned(), Value::from(it)));
        let params: IndexMap<String, Value> = counts.into_iter().chain(shares).collect();
        crate::log::Strategy { name: "evolution".to_owned(), params }
    }
}
