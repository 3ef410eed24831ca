//! Orders by branch and bound, and how far copies run ahead in each.

use super::{
    placement::{Estimate, Lead, Placement, estimate, slots, stages},
    problem::{Edge, Problem},
    work::Pace,
};
use crate::{Mechanism, pipeline::LAST_STAGE};

/// Orders that are looked at, at most. Those of the loops that there are have far fewer.
const MOST_ORDERS: usize = 1000;

/// How many candidates with the same slots are kept.
const MOST_ALIKE: usize = 2;
/// How much further copies run ahead than is enough: latencies of memory vary.
const MORE_AHEAD: i64 = 2;

/// A placement, and how long the loop takes with it.
pub(super) type Found = (Placement, Estimate);

/// The orders that are begun, and what was found.
struct Search<'a> {
    problem: &'a Problem,
    /// The most slots of a ring.
    most_slots: i64,
    units: Vec<Vec<usize>>,
    orders: usize,
    found: Vec<Found>,
}

/// Placements of a loop, best first.
pub(super) fn search(problem: &Problem, most_slots: i64) -> Vec<Found> {
    let mut search = Search { problem, most_slots, units: units(problem), orders: 0, found: vec![] };
    let mut free = (0..search.units.len()).collect();
    search.extend(&mut vec![], &mut free);
    ranked(problem, search.found)
}

impl Search<'_> {
    /// Tries every order that begins with some units.
    fn extend(&mut self, begun: &mut Vec<usize>, free: &mut Vec<usize>) {
        if self.orders >= MOST_ORDERS || !self.may_fit(begun) {
            return;
        }
        if free.is_empty() {
            self.orders += 1;
            let order: Vec<usize> = begun.iter().flat_map(|it| self.units[*it].clone()).collect();
            return self.place(&order);
        }
        for at in 0..free.len() {
            let unit = free.remove(at);
            begun.push(unit);
            self.extend(begun, free);
            begun.pop();
            free.insert(at, unit);
        }
    }

    /// Whether some order that begins so keeps every dependence in slots that fit.
    fn may_fit(&self, begun: &[usize]) -> bool {
        let order: Vec<usize> = begun.iter().flat_map(|it| self.units[*it].clone()).collect();
        let is_begun = |at: usize| order.contains(&at);
        // What is not begun yet comes later than all that is; among itself it may come in any order.
        let known = |it: &Edge| is_begun(it.src) || is_begun(it.dst);
        let edges: Vec<Edge> = self.problem.edges.iter().filter(|it| known(it)).copied().collect();
        let rest = (0..self.problem.work.len()).filter(|at| !is_begun(*at));
        let order: Vec<usize> = order.iter().copied().chain(rest).collect();
        let Some(stages) = stages(self.problem, &edges, &order, Lead { copies: 0, loads: 0 }) else {
            return false;
        };
        self.problem.resident(&slots(self.problem, &stages, &order, &is_begun)) >= 1.0
    }

    /// Adds the placements with an order.
    fn place(&mut self, order: &[usize]) {
        let problem = self.problem;
        let spares = i64::from(problem.rings.iter().any(|ring| may_be_spared(problem, ring)));
        let loads = i64::from((0..order.len()).any(|at| problem.is_load(at)));
        for (spare, loads) in (0..=spares).flat_map(|spare| (0..=loads).map(move |loads| (spare, loads))) {
            self.run_ahead(order, spare, loads);
        }
    }

    /// Adds placements in which copies run further and further ahead, until the interval is what resources and dependences bound it
    /// to, and some more.
    fn run_ahead(&mut self, order: &[usize], spare: i64, loads: i64) {
        let problem = self.problem;
        let fetches = (0..order.len()).any(|at| problem.is_fetch(at));
        // There is nothing to fetch beyond the last iteration.
        let is_there = |ahead: &i64| problem.trips.is_none_or(|it| (*ahead as f64) < it.max(1.0));
        let most = if fetches { LAST_STAGE } else { 0 };
        let (mut enough, mut last) = (0, f64::INFINITY);
        for copies in (0..=most).take_while(is_there) {
            let lead = Lead { copies, loads };
            let Some(stages) = stages(problem, &problem.edges, order, lead) else { return };
            if stages.iter().any(|it| *it > LAST_STAGE) {
                return;
            }
            let mut slots = slots(problem, &stages, order, &|_| true);
            for (count, ring) in slots.iter_mut().zip(&problem.rings) {
                *count += if may_be_spared(problem, ring) { spare } else { 0 };
            }
            let rings = slots.iter().zip(&problem.rings);
            if rings.filter(|it| it.1.is_shared).any(|it| *it.0 > self.most_slots) {
                return;
            }
            let it = Placement { stages, order: order.to_vec(), slots, lead };
            let Some(estimate) = estimate(problem, &it) else { return };
            enough += i64::from(estimate.is_bound || estimate.late > last * 0.999);
            last = estimate.late;
            self.found.push((it, estimate));
            if enough > MORE_AHEAD {
                return;
            }
        }
    }
}

/// Whether a slot more than needed lets somebody go on who would else wait until another one is over.
fn may_be_spared(problem: &Problem, ring: &super::problem::Ring) -> bool {
    let runs_on = |at: &usize| match problem.work[*at].pace {
        Pace::Products => true,
        Pace::Copy(Mechanism::Tma) => !ring.writers.contains(at),
        Pace::Copy(_) | Pace::Move | Pace::Own => false,
    };
    ring.is_shared && ring.users.iter().any(runs_on)
}

/// Components that do the same for the same ones, together: their order among each other tells nothing.
fn units(problem: &Problem) -> Vec<Vec<usize>> {
    let others = |at: usize, from: bool| {
        let of = |it: &Edge| if from { (it.src, it.dst) } else { (it.dst, it.src) };
        let ends = problem.edges.iter().map(|it| (of(it), it.distance)).filter(|it| it.0.0 == at);
        let mut out: Vec<_> = ends.map(|it| (it.0.1, it.1)).collect();
        out.sort_unstable();
        out
    };
    let is_twin = |a: usize, b: usize| {
        let (one, other) = (&problem.work[a], &problem.work[b]);
        one.pace == other.pace
            && one.longest().0 == other.longest().0
            && (others(a, true) == others(b, true) || one.pace == Pace::Move)
            && others(a, false).len() == others(b, false).len()
            && !problem.edges.iter().any(|it| (it.src, it.dst) == (a, b) || (it.src, it.dst) == (b, a))
    };
    let mut out: Vec<Vec<usize>> = vec![];
    for at in 0..problem.work.len() {
        match out.iter_mut().find(|unit| unit.iter().all(|it| is_twin(*it, at))) {
            Some(unit) => unit.push(at),
            None => out.push(vec![at]),
        }
    }
    out
}

/// How many pairs run in another order than they are written in.
fn turned(order: &[usize]) -> usize {
    let pairs = order.iter().enumerate().flat_map(|(n, a)| order[n + 1..].iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a > b).count()
}

/// The fastest first; of those that are as fast, first what copes best with a slow memory, then what takes least memory, then what
/// is most like what is written.
fn ranked(problem: &Problem, mut found: Vec<Found>) -> Vec<Found> {
    let least =
        |of: &dyn Fn(&Estimate) -> f64| found.iter().map(|it| of(&it.1)).fold(f64::INFINITY, f64::min);
    let (best, steadiest, quickest) = (least(&|it| it.cycles), least(&|it| it.late), least(&|it| it.alone));
    // Times that differ by less than a fiftieth count as the same: the model is not better than that.
    let fiftieths = |ratio: f64| ((ratio - 1.0) * 50.0).floor();
    let key = |(it, estimate): &Found| {
        let slower = fiftieths(estimate.cycles / best);
        let late = fiftieths(estimate.late / steadiest);
        // Other blocks may hide what one waits for, but not where there are none left.
        let alone = (fiftieths(estimate.alone / quickest) / 5.0).floor();
        let slots = it.slots.iter().map(|it| *it as f64).sum();
        let turned = turned(&it.order) as f64;
        [slower, late, alone, problem.shared(&it.slots), slots, f64::from(estimate.barriers), turned]
    };
    found.sort_by(|a, b| key(a).partial_cmp(&key(b)).expect("no time is unordered"));
    let mut out: Vec<Found> = vec![];
    for it in found {
        // Orders that lead to the same stages and slots are one idea.
        let is_known = |other: &Found| other.0.stages == it.0.stages && other.0.slots == it.0.slots;
        let alike = out.iter().filter(|other| other.0.slots == it.0.slots).count();
        if alike < MOST_ALIKE && !out.iter().any(is_known) {
            out.push(it);
        }
    }
    out
}
