//! When components run, what slots that takes, and how long the loop takes then.

use super::{
    problem::{Edge, Problem},
    work::Pace,
};

/// When each component runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Placement {
    /// By place in program order.
    pub(super) stages: Vec<i64>,
    /// The places of the components in program order, first to last in a step.
    pub(super) order: Vec<usize>,
    /// How many slots of each ring there are.
    pub(super) slots: Vec<i64>,
    /// How far ahead of who waits for it things are fetched.
    pub(super) lead: Lead,
}

/// How many whole steps ahead of who waits for it something is fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lead {
    /// From global memory.
    pub(super) copies: i64,
    /// From shared memory into registers.
    pub(super) loads: i64,
}

/// How long a loop takes with a placement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Estimate {
    /// Cycles between the ends of two iterations of a block, once they overlap.
    pub(super) interval: f64,
    /// The same where no other block is on the multiprocessor.
    pub(super) alone: f64,
    /// The interval where memory takes longer than it should.
    pub(super) late: f64,
    /// Blocks that a multiprocessor holds.
    pub(super) resident: f64,
    /// Cycles for all iterations of all blocks of a multiprocessor.
    pub(super) cycles: f64,
    /// Whether no order and no copies further ahead make the interval shorter.
    pub(super) is_bound: bool,
    /// Barriers in a step.
    pub(super) barriers: u32,
}

/// Iterations of a loop whose extent is not known, for what begins and ends it.
const UNKNOWN_TRIPS: f64 = 64.0;
/// Steps that are looked at beyond the last stage: enough for the steady state.
const LOOKED_AT: i64 = 8;
/// By how much memory may take longer than it should, for telling apart what is as fast if it does not.
const LATE: f64 = 1.2;
/// Cycles in which threads hand an asynchronous copy over.
const ISSUE: f64 = 8.0;

/// The places in a step, by place in program order.
pub(super) fn positions(order: &[usize]) -> Vec<i64> {
    let mut out = vec![0; order.len()];
    for (position, at) in (0..).zip(order) {
        out[*at] = position;
    }
    out
}

/// The least stages that keep dependences in an order, and with a lead; nothing where dependences go in a circle.
pub(super) fn stages(problem: &Problem, edges: &[Edge], order: &[usize], lead: Lead) -> Option<Vec<i64>> {
    let position = positions(order);
    let later = |it: &Edge| {
        let lead = match () {
            () if !it.is_flow || it.distance > 0 => 0,
            () if problem.is_fetch(it.src) => lead.copies,
            () if problem.is_load(it.src) => lead.loads,
            () => 0,
        };
        lead + i64::from(position[it.src] >= position[it.dst]) - it.distance
    };
    let count = order.len();
    let mut stages = vec![0; count];
    for round in 0..=count {
        let mut changed = false;
        for it in edges {
            let least = stages[it.src] + later(it);
            if stages[it.dst] < least {
                stages[it.dst] = least;
                changed = true;
            }
        }
        if !changed {
            break;
        }
        if round == count {
            return None;
        }
    }
    // What is not wanted before then need not be held so long.
    for at in (0..count).rev() {
        let out = edges.iter().filter(|it| it.src == at);
        let latest = out.map(|it| stages[it.dst] - later(it)).min();
        stages[at] = latest.map_or(stages[at], |it| it.max(stages[at]));
    }
    let first = stages.iter().copied().min()?;
    Some(stages.into_iter().map(|it| it - first).collect())
}

/// How far ahead of who waits for it things are fetched, at least.
pub(super) fn lead(problem: &Problem, stages: &[i64], order: &[usize]) -> Lead {
    let position = positions(order);
    let flows = problem.edges.iter().filter(|it| it.is_flow && it.distance == 0);
    let steps = |it: &Edge| stages[it.dst] - stages[it.src] - i64::from(position[it.src] >= position[it.dst]);
    let least = |wanted: &dyn Fn(usize) -> bool| {
        flows.clone().filter(|it| wanted(it.src)).map(steps).min().unwrap_or(0)
    };
    Lead { copies: least(&|at| problem.is_fetch(at)), loads: least(&|at| problem.is_load(at)) }
}

/// The least slots of each ring that keep iterations apart, as far as some of the components ask for them.
pub(super) fn slots(
    problem: &Problem,
    stages: &[i64],
    order: &[usize],
    ask: &dyn Fn(usize) -> bool,
) -> Vec<i64> {
    let position = positions(order);
    let needed = |writers: &[usize], users: &[usize]| {
        let pairs = writers.iter().flat_map(|w| users.iter().map(move |u| (*w, *u)));
        let asked = pairs.filter(|it| ask(it.0) && ask(it.1));
        let each = asked.map(|(w, u)| stages[u] - stages[w] + i64::from(position[w] < position[u]));
        each.max().unwrap_or(1).max(1)
    };
    problem.rings.iter().map(|it| needed(&it.writers, &it.users)).collect()
}

/// How long the loop takes; nothing where its slots do not fit.
pub(super) fn estimate(problem: &Problem, it: &Placement) -> Option<Estimate> {
    let resident = problem.resident(&it.slots);
    if resident < 1.0 {
        return None;
    }
    let share = problem.share();
    let together = resident.min(share);
    let trips = problem.trips.unwrap_or(UNKNOWN_TRIPS);
    let last = it.stages.iter().copied().max().unwrap_or(0);
    let steps = last + LOOKED_AT;
    let barriers = super::barriers::count(problem, it);
    let load = problem.load();
    let ends = Clock::new(problem, it, together, load).run(steps, barriers);
    let alone = steady(&ends);
    let late = steady(&Clock::new(problem, it, together, load * LATE).run(steps, barriers));
    let bound = problem.of_resources().1 * together;
    let alone_at_least = problem.of_resources().1.max(problem.of_recurrences());
    let first_whole = usize::try_from(last).expect("stages start at 0");
    let fill = (ends[first_whole] - alone).max(0.0);
    let rounds = (share / together).ceil();
    // Blocks hide each other's latencies, those at the beginning too.
    let cycles = rounds * (trips * bound).max(fill + trips * alone);
    let is_bound = alone <= alone_at_least * 1.001 || alone <= bound;
    Some(Estimate {
        interval: alone.max(bound),
        alone,
        late: late.max(bound),
        resident,
        cycles,
        is_bound,
        barriers,
    })
}

/// The length of a step, once all are alike.
fn steady(ends: &[f64]) -> f64 {
    (ends[ends.len() - 1] - ends[ends.len() - 5]) / 4.0
}

/// A clock along one block of threads, whose warps go in step.
struct Clock<'a> {
    problem: &'a Problem,
    placement: &'a Placement,
    /// Blocks whose copies come in between.
    together: f64,
    /// By how much latencies of global memory grow.
    load: f64,
    now: f64,
    /// Until when each resource is busy.
    free: [f64; 4],
    /// When each component of each iteration was done with, and when others may use what it made.
    over: Vec<Vec<f64>>,
    done: Vec<Vec<f64>>,
}

impl<'a> Clock<'a> {
    fn new(problem: &'a Problem, placement: &'a Placement, together: f64, load: f64) -> Clock<'a> {
        let none = vec![vec![]; problem.work.len()];
        Clock { problem, placement, together, load, now: 0.0, free: [0.0; 4], over: none.clone(), done: none }
    }

    /// The end of each step.
    fn run(mut self, steps: i64, barriers: u32) -> Vec<f64> {
        let barrier = f64::from(self.problem.arch.caps().latencies.barrier);
        let mut out = vec![];
        for step in 0..steps {
            self.now += f64::from(barriers) * barrier;
            for &at in &self.placement.order {
                if let Ok(iteration) = usize::try_from(step - self.placement.stages[at]) {
                    self.component(at, iteration);
                }
            }
            out.push(self.now);
        }
        out
    }

    fn component(&mut self, at: usize, iteration: usize) {
        let work = &self.problem.work[at];
        let start = self.operands(at, iteration).max(self.now);
        let waits = matches!(work.pace, Pace::Own);
        let issued = if waits { start } else { start + ISSUE };
        let needed = work.busy.iter().zip(&self.free).filter(|it| *it.0 > 0.0);
        let begin = needed.fold(issued, |latest, it| latest.max(*it.1));
        // What other blocks have asked for comes first.
        let times = if matches!(work.pace, Pace::Copy(_)) { self.together } else { 1.0 };
        let end = begin + (work.longest().1 * times).max(if waits { work.chain } else { 0.0 });
        for (free, busy) in self.free.iter_mut().zip(work.busy).filter(|it| it.1 > 0.0) {
            *free = begin + busy * times;
        }
        let load = if work.busy[0] > 0.0 { self.load } else { 1.0 };
        let done = end + work.latency * load;
        let (now, over) = match work.pace {
            // Nobody goes on who waits for what he loads from global memory to store it elsewhere.
            Pace::Own if work.busy[0] > 0.0 => (done, done),
            Pace::Own => (end, end),
            Pace::Products => (issued, done),
            Pace::Copy(_) | Pace::Move => (issued, end),
        };
        self.now = now;
        self.over[at].push(over);
        self.done[at].push(done);
    }

    /// When what a component needs is there, and the slots are free that it fills.
    fn operands(&self, at: usize, iteration: usize) -> f64 {
        let mut out: f64 = 0.0;
        let earlier = |distance: i64| iteration.checked_sub(usize::try_from(distance).ok()?);
        for it in self.problem.edges.iter().filter(|it| it.dst == at && it.is_flow) {
            let ready = earlier(it.distance).and_then(|n| self.done[it.src].get(n));
            out = ready.map_or(out, |it| out.max(*it));
        }
        for (ring, slots) in self.problem.rings.iter().zip(&self.placement.slots) {
            if ring.writers.contains(&at) {
                let used = |user: &usize| earlier(*slots).and_then(|n| self.over[*user].get(n)).copied();
                let users = ring.users.iter().filter(|it| **it != at);
                out = users.filter_map(used).fold(out, f64::max);
            }
        }
        out
    }
}
