//! Search: in which order the points of a space are tried.
//!
//! A [`Strategy`] proposes indexes of points and is told what came of them. It knows a space as [`Points`]: knobs with
//! numbered choices. What it proposes depends on its seed and on what it was told, never on the order in which it was
//! told or on how many candidates are under way; where it needs a result before it can go on, it says [`Next::Wait`].
//! So a run is repeated by telling the results of a log again.
//!
//! [`Random`] is the default and the baseline, [`Evolution`] learns from results, [`Seeded`] tries given points
//! first, and [`rule`] finds good ones by [`roofline`], an estimate of their times. [`simulate`] runs a strategy against a table of results
//! instead of a machine, and [`regret`] says from that what a search costs.

mod evolution;
mod knobs;
mod points;
mod random;
pub mod regret;
pub mod roofline;
pub mod rule;
mod seeded;
pub mod simulate;

pub use evolution::{Breeding, Evolution};
pub use knobs::Knobs;
pub use points::{Grid, Points};
pub use random::Random;
pub use seeded::Seeded;

use std::sync::Arc;

use roofline::Gpu;
use rule::{Look, picks, seeds};

use crate::{
    Space,
    build::Problem,
    filter::Limits,
    log::{Origin, Run},
};

/// The name of the strategy that learns from results.
pub const EVOLUTION: &str = "evolution";

/// How many points the roofline rule looks at, and how many of them an evolution starts from.
const SAMPLED_POINTS: usize = 512;
const SEEDS: usize = 8;

/// What chooses the points to try.
pub trait Strategy: Send {
    /// What to try next. No index is proposed twice, and none that the space does not admit.
    fn next(&mut self) -> Next;

    /// What came of a proposal, once for each, in any order.
    fn tell(&mut self, evaluation: Evaluation);

    /// Takes a proposal made by somebody else for one of its own: it is not proposed again, its result will be told,
    /// and what is proposed later may depend on that. To be called before the first [`Strategy::next`].
    fn adopt(&mut self, index: u128);

    /// Its name and its numbers, for the head of a log.
    fn describe(&self) -> crate::log::Strategy;
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn next(&mut self) -> Next {
        (**self).next()
    }

    fn tell(&mut self, evaluation: Evaluation) {
        (**self).tell(evaluation);
    }

    fn adopt(&mut self, index: u128) {
        (**self).adopt(index);
    }

    fn describe(&self) -> crate::log::Strategy {
        (**self).describe()
    }
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    /// Try this.
    Try(Proposal),
    /// What comes next depends on a proposal whose result has not been told.
    Wait,
    /// Every point has been proposed.
    Done,
}

/// A point to try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// Its index in the space.
    pub index: u128,
    /// How the strategy came to it.
    pub origin: Origin,
}

/// What became of a proposal, as the strategy is told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evaluation {
    /// The proposal.
    pub index: u128,
    /// The number of the trial that it became; none if it was refused before.
    pub n: Option<u64>,
    /// Seconds per call; none if it was refused or failed.
    pub seconds: Option<f64>,
}

/// The strategy that the head of a log describes. Evolution starts from the defaults of the script and, on a GPU, from
/// what the roofline rule likes best.
pub fn strategy(head: &Run, problem: &Problem, space: &Space) -> Box<dyn Strategy> {
    let points = Knobs::new(space);
    if head.strategy.name != EVOLUTION {
        return Box::new(Random::new(&points, head.seed));
    }
    let look = Look { points: SAMPLED_POINTS, take: SEEDS, seed: head.seed, limits: Limits::default() };
    let gpu = Gpu::of(&head.machine);
    let picks = gpu.map(|gpu| picks(problem, space, &gpu, &look)).unwrap_or_default();
    let evolution = Evolution::new(Arc::new(points), head.seed, Breeding::default());
    Box::new(Seeded::new(seeds(space, &picks), evolution))
}
