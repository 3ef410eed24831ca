//! Which steps a pipeline takes, and where each of them stands in the kernel.

use ir::{
    Group, Kernel, Mechanism, Name,
    pipeline::{COMPUTE, Section},
};

use crate::lower::{ComponentReport, PipelineReport};

/// A number of iterations to count with where it is not known, or too large to draw all.
const MANY: i64 = 1 << 20;

/// The statements of a pipeline in the order in which they run, and its steps as the kernel has them: in a lane of their own, those
/// of each role.
pub(super) struct Clock {
    pub(super) var: Name,
    /// Those of one lane after those of the other, and in each in the order in which they run.
    pub(super) components: Vec<ComponentReport>,
    /// The lane of each of them.
    pub(super) lane_of: Vec<usize>,
    /// The roles that run statements of the pipeline; one lane without a role where all threads do the same.
    pub(super) lanes: Vec<Option<Name>>,
    /// The place of each component in program order among those in the order in which they run.
    ranks: Vec<usize>,
    /// The greatest stage in the kernel: there each role begins with its own first one.
    pub(super) last: i64,
    /// How many iterations there are, if it is known.
    pub(super) trips: Option<i64>,
    /// After how many steps slots and text come round.
    pub(super) cycle: i64,
    pub(super) unroll: i64,
    pub(super) is_predicated: bool,
}

impl Clock {
    /// The clock of a pipeline in a kernel, if that has statements of it.
    pub(super) fn of(report: &PipelineReport, kernel: &Kernel) -> Clock {
        let compute = Name::from(COMPUTE);
        let role = |it: &ComponentReport| it.role.clone().unwrap_or_else(|| compute.clone());
        let has = |name: &&Name| report.components.iter().any(|it| role(it) == **name);
        let mut lanes: Vec<_> = kernel.roles.keys().filter(has).cloned().map(Some).collect();
        if lanes.is_empty() {
            lanes.push(None);
        }
        let lane = |it: &ComponentReport| lanes.iter().position(|lane| *lane == Some(role(it))).unwrap_or(0);
        let mut order: Vec<usize> = (0..report.components.len()).collect();
        order.sort_by_key(|at| (lane(&report.components[*at]), report.components[*at].order));
        let mut ranks = vec![0; order.len()];
        for (rank, at) in order.iter().enumerate() {
            ranks[*at] = rank;
        }
        let components: Vec<_> = order.into_iter().map(|at| report.components[at].clone()).collect();
        let slots = report.buffers.iter().map(|it| it.slots);
        Clock {
            var: report.var.clone(),
            ranks,
            last: components.iter().map(|it| it.stage).max().unwrap_or(0),
            lane_of: components.iter().map(lane).collect(),
            components,
            lanes,
            trips: report.extent.as_int(),
            cycle: slots.chain([report.unroll]).fold(1, |a, b| lcm(a, b.max(1))),
            unroll: report.unroll.max(1),
            is_predicated: report.style == "predicate",
        }
    }

    /// The rank of a component.
    pub(super) fn rank(&self, component: usize) -> usize {
        self.ranks[component]
    }

    /// The statement of a lane before which something stands that is put before a component, perhaps of another lane; their number
    /// if it stands at the end.
    pub(super) fn rank_in(&self, lane: usize, component: usize) -> usize {
        let rank = self.rank(component);
        let order = self.components[rank].order;
        let next = self.ranks_of(lane).find(|it| self.components[*it].order >= order);
        if self.lane_of[rank] == lane { rank } else { next.unwrap_or(self.components.len()) }
    }

    /// The last statement of a lane before a rank, or else its last one.
    pub(super) fn before(&self, lane: usize, rank: usize) -> Option<usize> {
        self.ranks_of(lane).rfind(|it| *it < rank).or_else(|| self.ranks_of(lane).next_back())
    }

    /// The lane of a role; none if that runs nothing of the pipeline.
    pub(super) fn lane(&self, role: Option<&Name>) -> Option<usize> {
        self.lanes.iter().position(|it| it.as_ref() == role)
    }

    /// The ranks of a lane.
    pub(super) fn ranks_of(&self, lane: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.components.len()).filter(move |rank| self.lane_of[*rank] == lane)
    }

    /// A step far from the start, a multiple of the cycle.
    pub(super) fn far(&self) -> i64 {
        MANY * self.cycle
    }

    /// A number of iterations to count with: as many as there are, or very many.
    pub(super) fn pretended(&self) -> i64 {
        self.trips.unwrap_or(2 * self.far())
    }

    /// How often the steady loop runs, if it is known.
    pub(super) fn runs(&self) -> Option<i64> {
        let trips = self.trips?;
        Some(if self.is_predicated {
            (trips + self.last + self.unroll - 1) / self.unroll
        } else {
            (trips - self.last).max(0) / self.unroll
        })
    }

    /// The step after the last one of the steady loop, for a number of iterations.
    fn end(&self, trips: i64) -> i64 {
        self.last + (trips - self.last).max(0) / self.unroll * self.unroll
    }

    /// Where a step stands in the kernel, for a number of iterations.
    pub(super) fn place(&self, step: i64, trips: i64) -> (Section, i64) {
        let end = self.end(trips);
        if self.is_predicated {
            (Section::Steady, step % self.unroll)
        } else if step < self.last || end == self.last {
            (Section::Prologue, step)
        } else if step < end {
            (Section::Steady, (step - self.last) % self.unroll)
        } else {
            (Section::Epilogue, step - end)
        }
    }

    /// The step that stands somewhere in the kernel, in the first run of the steady loop, for a number of iterations.
    pub(super) fn step_at(&self, section: Section, number: i64, trips: i64) -> i64 {
        match section {
            Section::Prologue => number,
            Section::Steady if self.is_predicated => number,
            Section::Steady => self.last + number,
            Section::Epilogue => self.end(trips) + number,
        }
    }

    /// In groups of which kind a statement works, if it does.
    pub(super) fn group_of(&self, rank: usize, fills: &[Option<usize>]) -> Option<Group> {
        match self.components[rank].mechanism {
            Mechanism::Tma => fills[rank].is_none().then_some(Group::Bulk),
            mechanism => mechanism.group(),
        }
    }
}

fn lcm(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
