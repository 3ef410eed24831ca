//! Points to begin with: the defaults of the script, and what the roofline rule likes best.

use std::{collections::HashSet, num::NonZero, sync::Arc, thread};

use super::{
    Breeding, Evaluation, Evolution, Knobs, Next, Points, Proposal, Strategy,
    roofline::{Gpu, predict},
};
use crate::{
    Space,
    build::{Problem, generate},
    filter::{Limits, before_compiling},
    log::Origin,
    sha256,
};

/// How to look for good points by the rule alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// How many points to look at. Half of them are random, and the rest come from the better ones of these.
    pub points: usize,
    /// How many to take.
    pub take: usize,
    /// Where the points come from.
    pub seed: u64,
    /// Which candidates are left out.
    pub limits: Limits,
}

/// A point that the rule likes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pick {
    /// Its index.
    pub index: u128,
    /// Seconds per call, about.
    pub seconds: f64,
}

/// How many points are worked out at a time, whatever the number of processors.
const BATCH: usize = 32;

/// The best points by the rule, no two of which make the same source or are next to each other if there are others.
///
/// Candidates are scheduled, lowered and printed on all processors, which takes some milliseconds each; neither a
/// compiler nor a device is needed. The same input gives the same points everywhere.
pub fn picks(problem: &Problem, space: &Space, gpu: &Gpu, look: &Look) -> Vec<Pick> {
    let points: Arc<dyn Points> = Arc::new(Knobs::new(space));
    let breeding = Breeding { first: look.points / 2, batch: BATCH, ahead: 1, ..Breeding::default() };
    let mut strategy = Evolution::new(Arc::clone(&points), look.seed, breeding);
    let mut found: Vec<Pick> = vec![];
    let mut sources = HashSet::new();
    let mut looked = 0;
    while looked < look.points {
        let mut batch = vec![];
        while batch.len() < BATCH.min(look.points - looked)
            && let Next::Try(it) = strategy.next()
        {
            batch.push(it.index);
        }
        if batch.is_empty() {
            break;
        }
        for (index, made) in batch.iter().zip(estimates(problem, space, gpu, look, &batch)) {
            let fresh = made.filter(|(source, _)| sources.insert(source.clone()));
            let seconds = fresh.map(|it| it.1);
            strategy.tell(Evaluation { index: *index, n: Some(looked as u64), seconds });
            found.extend(seconds.map(|seconds| Pick { index: *index, seconds }));
            looked += 1;
        }
    }
    found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    apart(&*points, found, look.take)
}

/// The defaults of the script, if the space admits them, and then the picks, as the seeds of a strategy.
pub fn seeds(space: &Space, picks: &[Pick]) -> Vec<Proposal> {
    let default = Some(0).filter(|it| space.admits(*it).is_ok());
    let default = default.map(|index| Proposal { index, origin: Origin::Default });
    let picks = picks.iter().map(|it| Proposal { index: it.index, origin: Origin::Rule });
    default.into_iter().chain(picks).collect()
}

/// The digest of the source and the seconds of each point, if it makes a program that passes the filter.
fn estimates(
    problem: &Problem,
    space: &Space,
    gpu: &Gpu,
    look: &Look,
    batch: &[u128],
) -> Vec<Option<(String, f64)>> {
    let one = |index: &u128| {
        let steps = space.steps(*index).ok()?;
        let generated = generate(problem, &steps).ok()?;
        before_compiling(&generated, &problem.target, &look.limits).ok()?;
        let seconds = predict(&generated.module, &problem.case.dims, gpu)?.seconds;
        Some((sha256(&generated.source), seconds))
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let part = batch.len().div_ceil(workers).max(1);
    let all = |part: &[u128]| part.iter().map(one).collect::<Vec<_>>();
    thread::scope(|scope| {
        let start = |part| (part, thread::Builder::new().spawn_scoped(scope, move || all(part)));
        let parts: Vec<_> = batch.chunks(part).map(start).collect();
        parts
            .into_iter()
            .flat_map(|(part, started)| match started {
                // A fault in one of them loses the points of its part and not the search.
                Ok(it) => it.join().unwrap_or_else(|_| vec![None; part.len()]),
                // Where there is no room for another thread, this one does it.
                Err(_) => all(part),
            })
            .collect()
    })
}

/// The first so many that differ from each other in more than one knob, and then others.
fn apart(points: &dyn Points, sorted: Vec<Pick>, take: usize) -> Vec<Pick> {
    let (mut taken, mut others): (Vec<(Vec<usize>, Pick)>, Vec<Pick>) = (vec![], vec![]);
    for pick in sorted {
        let digits = points.digits(pick.index);
        let far = |it: &(Vec<usize>, Pick)| it.0.iter().zip(&digits).filter(|(a, b)| a != b).count() > 1;
        if taken.len() < take && taken.iter().all(far) {
            taken.push((digits, pick));
        } else {
            others.push(pick);
        }
    }
    let picks = taken.into_iter().map(|it| it.1).chain(others);
    picks.take(take).collect()
}
