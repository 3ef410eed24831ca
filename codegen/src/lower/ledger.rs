//! Counts groups of asynchronous copies: where they are committed and how long each use has to wait.
//!
//! No formula stands behind the counts. The steps of an emission are gone through one by one, every commit is booked,
//! and each use is held against the group that it needs, in the prologue, in as many runs of the steady loop as there are
//! iterations in flight, and in the epilogue. A wait in the steady loop has one number for all its runs: the least.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Name, Wait,
    pipeline::{Emission, Marks, Place, Plan, Section, Step},
};

use super::marks;

/// What the ledger knows of a component.
struct Account {
    /// Which of the batches it copies in; none if it does not.
    batch: Option<usize>,
    /// What it waits for: the copying component, the buffers, and how many iterations before its own at least.
    needs: Vec<(usize, Vec<Name>, i64)>,
}

/// The commits and waits of a loop whose components of these numbers copy asynchronously.
pub(crate) fn marks(plan: &Plan, emission: &Emission, copies: &BTreeSet<usize>) -> Marks {
    if copies.is_empty() {
        return Marks::new();
    }
    let accounts = accounts(plan, copies);
    let ledger = Ledger { plan, emission, accounts: &accounts, timeline: timeline(plan, emission) };
    let mut waits: BTreeMap<Place, (i64, BTreeSet<Name>)> = BTreeMap::new();
    // Each round settles the first use that is not waited for; a number only ever falls, so this ends.
    while let Some((place, in_flight, buffers)) = ledger.first_unsettled(&waits) {
        let wait = waits.entry(place).or_insert((in_flight, BTreeSet::new()));
        wait.0 = wait.0.min(in_flight);
        wait.1.extend(buffers);
    }
    let mut out = Marks::new();
    for (place, count) in ledger.commits() {
        let commits = (0..count).map(|_| marks::commit(Name::new("async_commit")));
        out.entry(place).or_default().extend(commits);
    }
    for (place, (in_flight, buffers)) in waits {
        let in_flight = u32::try_from(in_flight.max(0)).unwrap_or(0);
        let wait = Wait { in_flight, buffers: buffers.into_iter().collect() };
        out.entry(place).or_default().push(marks::wait(Name::new("async_wait"), &wait));
    }
    out
}

/// Components that copy one after the other make a batch, which is committed together; one that touches what the
/// batch before it copies begins another.
fn accounts(plan: &Plan, copies: &BTreeSet<usize>) -> Vec<Account> {
    let touched: Vec<BTreeSet<Name>> =
        plan.components.iter().map(|it| it.reads().union(&it.writes()).cloned().collect()).collect();
    let filled = |at: usize| -> BTreeSet<Name> {
        if copies.contains(&at) { plan.components[at].writes() } else { BTreeSet::new() }
    };
    let mut batches = vec![None; plan.components.len()];
    let (mut batch, mut open) = (0, BTreeSet::new());
    for (at, _) in plan.in_order() {
        if !copies.contains(&at) || !open.is_disjoint(&touched[at]) {
            batch += usize::from(!open.is_empty());
            open.clear();
        }
        if copies.contains(&at) {
            open.extend(filled(at));
            batches[at] = Some(batch);
        }
    }
    let needs = |user: usize| {
        let each = copies.iter().filter_map(|&copier| {
            let buffers: Vec<Name> = filled(copier).intersection(&touched[user]).cloned().collect();
            // What a component finds of later ones is of an earlier iteration: in a ring, of the last in that slot.
            let slots = buffers.iter().filter_map(|it| Some(plan.slots.get(it)?.count())).min();
            let distance = if copier < user { 0 } else { slots.unwrap_or(1) };
            (!buffers.is_empty()).then_some((copier, buffers, distance))
        });
        each.collect()
    };
    batches.into_iter().enumerate().map(|(at, batch)| Account { batch, needs: needs(at) }).collect()
}

/// A step at a time.
struct Moment<'a> {
    time: i64,
    section: Section,
    number: usize,
    step: &'a Step,
}

/// The steps in the order in which they run, with as many runs of the steady loop as tell all there is to tell.
fn timeline<'a>(plan: &Plan, emission: &'a Emission) -> Vec<Moment<'a>> {
    let mut out: Vec<Moment<'a>> = Vec::new();
    let mut push = |section, number, step: &'a Step| {
        let time = i64::try_from(out.len()).unwrap_or(i64::MAX);
        out.push(Moment { time, section, number, step });
    };
    for (number, step) in emission.prologue.iter().enumerate() {
        push(Section::Prologue, number, step);
    }
    if let Some(steady) = &emission.steady {
        let slots = plan.slots.values().map(|it| it.count()).max().unwrap_or(1);
        let enough = 2 * plan.last_stage() + slots + 2;
        for _ in 0..steady.extent.as_int().unwrap_or(enough).min(enough) {
            for (number, step) in steady.steps.iter().enumerate() {
                push(Section::Steady, number, step);
            }
        }
    }
    for (number, step) in emission.epilogue.iter().enumerate() {
        push(Section::Epilogue, number, step);
    }
    out
}

struct Ledger<'a> {
    plan: &'a Plan,
    emission: &'a Emission,
    accounts: &'a [Account],
    timeline: Vec<Moment<'a>>,
}

impl Ledger<'_> {
    /// How many groups are committed before an instance of a step, and the batch that each of them closes.
    ///
    /// Every step before and in the steady loop commits every batch, empty or not, so that a wait there has one number;
    /// after it only what runs is committed, unless that is known at run time only.
    fn closed_before(&self, moment: &Moment<'_>, at: usize) -> Vec<usize> {
        let always = self.emission.is_dynamic
            || moment.section == Section::Steady
            || moment.section == Section::Prologue && self.emission.steady.is_some();
        let order = |component: usize| self.plan.components[component].order;
        let batch_end = |batch: usize| {
            let members = self.accounts.iter().enumerate().filter(|it| it.1.batch == Some(batch));
            members.map(|(component, _)| order(component)).max()
        };
        let place = |end: i64| moment.step.iter().take_while(|it| order(it.component) <= end).count();
        let runs =
            |batch: usize| moment.step.iter().any(|it| self.accounts[it.component].batch == Some(batch));
        let count = self.accounts.iter().filter_map(|it| it.batch).max().map_or(0, |it| it + 1);
        let batches = (0..count).filter(|batch| always || runs(*batch));
        batches.filter(|batch| batch_end(*batch).is_some_and(|end| place(end) == at)).collect()
    }

    /// How many commits stand at each place.
    fn commits(&self) -> BTreeMap<Place, usize> {
        let mut out = BTreeMap::new();
        for moment in &self.timeline {
            for at in 0..=moment.step.len() {
                let count = self.closed_before(moment, at).len();
                if count > 0 {
                    let place = Place { section: moment.section, step: moment.number, at };
                    out.insert(place, count);
                }
            }
        }
        out
    }

    /// The first use that the given waits do not provide for: where, with how many groups in flight at most, of what.
    fn first_unsettled(
        &self,
        waits: &BTreeMap<Place, (i64, BTreeSet<Name>)>,
    ) -> Option<(Place, i64, BTreeSet<Name>)> {
        let mut committed: i64 = 0;
        // Up to which group all have landed, and at which wait each of them has.
        let mut landed: i64 = 0;
        let mut landings: Vec<(i64, Place)> = Vec::new();
        // The number of the group, from 1, that each component's copies of each iteration are in.
        let mut groups: BTreeMap<(usize, i64), i64> = BTreeMap::new();
        for moment in &self.timeline {
            for at in 0..=moment.step.len() {
                let place = Place { section: moment.section, step: moment.number, at };
                for batch in self.closed_before(moment, at) {
                    committed += 1;
                    for (component, account) in self.accounts.iter().enumerate() {
                        if account.batch == Some(batch) {
                            let iteration = moment.time - self.plan.components[component].stage;
                            groups.insert((component, iteration), committed);
                        }
                    }
                }
                if let Some((in_flight, _)) = waits.get(&place)
                    && committed - in_flight > landed
                {
                    landed = committed - in_flight;
                    landings.push((landed, place));
                }
                let Some(instance) = moment.step.get(at) else { continue };
                let iteration = moment.time - self.plan.components[instance.component].stage;
                let mut needed = 0;
                let mut buffers = BTreeSet::new();
                for (copier, names, distance) in &self.accounts[instance.component].needs {
                    let group = groups.get(&(*copier, iteration - distance)).copied().unwrap_or(0);
                    if group > landed {
                        needed = needed.max(group);
                        buffers.extend(names.iter().cloned());
                    } else if let Some((_, at)) = landings.iter().find(|it| 0 < group && group <= it.0)
                        && let Some((in_flight, known)) = waits.get(at)
                        && !names.iter().all(|it| known.contains(it))
                    {
                        // The wait is there for this buffer, too.
                        return Some((*at, *in_flight, names.iter().cloned().collect()));
                    }
                }
                if needed > 0 {
                    return Some((place, committed - needed, buffers));
                }
            }
        }
        None
    }
}

/// The components that copy asynchronously, by their places in the plan: those of the stages that the loop's annotation
/// lists whose blocks are marked.
pub(crate) fn copies(plan: &Plan) -> BTreeSet<usize> {
    let copies = |body: &ir::Stmt| body.blocks().iter().any(|it| it.annotations.contains_key(marks::COPY));
    let all = plan.components.iter().enumerate();
    all.filter(|it| copies(&it.1.body)).map(|(at, _)| at).collect()
}
