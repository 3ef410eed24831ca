//! Counts groups of asynchronous work: where they are committed and how long each use has to wait.
//!
//! No formula stands behind the counts. The steps of an emission are gone through one by one, every commit is booked,
//! and each use is held against the group that it needs, in the prologue, in as many runs of the steady loop as there are
//! iterations in flight, and in the epilogue. A wait in the steady loop has one number for all its runs: the least.

mod over;
mod timeline;

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Func, Group, Instr, Mechanism, Name, Scope, Stmt, Wait,
    pipeline::{Emission, EmissionPoint, Insertions, PipelinePlan, Section},
};

use crate::lower::marks;

use timeline::{Moment, timelines, two_runs};

pub(crate) use over::{Over, over_in_step};

/// What the ledger knows of a component.
struct Account {
    /// Which of the batches it copies in; none if it does not.
    batch: Option<usize>,
    /// What it copies.
    fills: BTreeSet<Name>,
    /// What it waits for: the copying component, the buffers, and how many iterations before its own at least. It uses
    /// what is copied, or writes where it is copied from.
    needs: Vec<(usize, Vec<Name>, i64)>,
}

/// The commits and waits of a loop whose components do some of their work in groups of a kind, in a program that writes these
/// buffers. What `outlasts` a run of the loop is waited for in the next.
pub(crate) fn groups(
    kind: Group,
    func: &Func,
    plan: &PipelinePlan,
    emission: &Emission,
    written: &BTreeSet<Name>,
    outlasts: bool,
) -> Insertions {
    let copies = members(kind, func, plan);
    if copies.is_empty() {
        return Insertions::new();
    }
    // What another role needs, mbarriers tell it.
    let accounts = accounts(kind, plan, &copies, true);
    let timelines = if outlasts { two_runs(plan, emission) } else { timelines(plan, emission) };
    let ledger = Ledger { kind, plan, emission, accounts: &accounts, written, timelines, outlasts };
    let waits = ledger.waits();
    let mut out = Insertions::new();
    // The end of a group of products into tensor memory is an arrival at an mbarrier, and is the end of all groups before it.
    let is_cumulative = kind == Group::Tcgen05 && waits.values().all(|it| it.0 <= 0);
    let commits = if is_cumulative { waits.keys().map(|it| (*it, 1)).collect() } else { ledger.commits() };
    for (place, count) in commits {
        let commits = (0..count).map(|_| marks::instruction("async_commit", Instr::Commit(kind)));
        out.entry(place).or_default().extend(commits);
    }
    for (place, (in_flight, buffers)) in waits {
        let in_flight =
            u32::try_from(in_flight.max(0)).expect("there are as many groups as steps written out");
        let wait = Wait {
            group: kind,
            reads_only: kind == Group::Bulk,
            in_flight,
            buffers: buffers.into_iter().collect(),
        };
        out.entry(place).or_default().push(marks::instruction("async_wait", Instr::Wait(wait)));
    }
    out
}

/// How many groups of products may be in flight when what they read is given back to the role that fills it, in a loop as it is
/// declared: those that are in flight there when the slot is written again.
pub(crate) fn lag(func: &Func, plan: &PipelinePlan, emission: &Emission, written: &BTreeSet<Name>) -> u32 {
    let kind = product_group(plan);
    let copies = members(kind, func, plan);
    let accounts = accounts(kind, plan, &copies, false);
    let timelines = timelines(plan, emission);
    let outlasts = false;
    let ledger = Ledger { kind, plan, emission, accounts: &accounts, written, timelines, outlasts };
    let gives_back = |names: &BTreeSet<Name>| names.iter().any(|it| plan.slots.contains_key(it));
    let is_steady = |place: &EmissionPoint| place.section == Section::Steady;
    let all = ledger.waits().into_iter().filter(|(place, wait)| is_steady(place) && gives_back(&wait.1));
    let least = all.map(|(_, wait)| wait.0).min().unwrap_or(0);
    u32::try_from(least.max(0)).expect("there are as many groups as steps written out")
}

/// Components that copy one after the other make a batch, which is committed together; one that touches what the
/// batch before it copies begins another, unless it is done in turn with that.
fn accounts(kind: Group, plan: &PipelinePlan, copies: &BTreeSet<usize>, by_role: bool) -> Vec<Account> {
    let touched: Vec<BTreeSet<Name>> =
        plan.components.iter().map(|it| it.reads().union(&it.writes()).cloned().collect()).collect();
    let filled = |at: usize| -> BTreeSet<Name> {
        if copies.contains(&at) { plan.components[at].writes() } else { BTreeSet::new() }
    };
    let mut batches = vec![None; plan.components.len()];
    let (mut batch, mut open) = (0, BTreeSet::new());
    for (at, _) in plan.in_order() {
        let is_in_turn = kind == Group::Tcgen05 || open.is_disjoint(&touched[at]);
        if !copies.contains(&at) || !is_in_turn {
            batch += usize::from(!open.is_empty());
            open.clear();
        }
        if copies.contains(&at) {
            open.extend(filled(at));
            batches[at] = Some(batch);
        }
    }
    let needs = |user: usize| {
        let writes = plan.components[user].writes();
        let concerns = |copier: &&usize| !by_role || plan.role(**copier) == plan.role(user);
        let each = copies.iter().filter(concerns).flat_map(|&copier| {
            let reads = plan.components[copier].reads();
            let source_written = !reads.is_disjoint(&writes);
            let concerned = |it: &&Name| source_written || touched[user].contains(*it);
            let buffers: Vec<Name> = filled(copier).iter().filter(concerned).cloned().collect();
            // What a component finds of later ones is of an earlier iteration: in a ring, of the last in that slot.
            let count = |it: &Name| plan.slots.get(it).map_or(1, |it| it.count());
            let slots = buffers.iter().map(count).min();
            let slots = if source_written { 1 } else { slots.unwrap_or(1) };
            let distance = |slots: i64| if copier < user { 0 } else { slots };
            if kind == Group::CpAsync {
                return vec![(copier, buffers, distance(slots))];
            }
            // Products are added to each other in order. What they read, they read until they are over.
            let sums: Vec<Name> = filled(copier).intersection(&touched[user]).cloned().collect();
            let read: Vec<Name> = reads.intersection(&writes).cloned().collect();
            let slots = read.iter().map(count).min().unwrap_or(1);
            let needs = vec![(copier, sums, distance(1)), (copier, read, distance(slots))];
            // What one thread has the tensor core do comes in turn (`Tcgen05`).
            let is_in_turn = kind == Group::Tcgen05 && copies.contains(&user);
            if copier == user || is_in_turn { vec![] } else { needs }
        });
        each.filter(|it| !it.1.is_empty()).collect()
    };
    // What a component waits for by itself, where it is done at all, nobody has to wait for before it.
    let waits_itself = |at: usize| {
        let is_wait = |it: &&ir::Block| matches!(&it.body, Stmt::Instr(it) if matches!(&**it, Instr::Wait(it) if it.group == kind));
        plan.components[at].body.blocks().iter().any(is_wait)
    };
    let needs = |at: usize| if waits_itself(at) { vec![] } else { needs(at) };
    let account = |(at, batch)| Account { batch, fills: filled(at), needs: needs(at) };
    batches.into_iter().enumerate().map(account).collect()
}

struct Ledger<'a> {
    kind: Group,
    plan: &'a PipelinePlan,
    emission: &'a Emission,
    accounts: &'a [Account],
    written: &'a BTreeSet<Name>,
    timelines: Vec<Vec<Moment<'a>>>,
    /// Whether nobody has to wait for what is in flight when the loop is over.
    outlasts: bool,
}

impl Ledger<'_> {
    /// The waits that all uses need.
    fn waits(&self) -> Waits {
        let mut waits = Waits::new();
        // Each round settles the first use that is not waited for; a number only ever falls, so this ends.
        while let Some((place, in_flight, buffers)) = self.first_unsettled(&waits) {
            let wait = waits.entry(place).or_insert((in_flight, BTreeSet::new()));
            wait.0 = wait.0.min(in_flight);
            wait.1.extend(buffers);
        }
        waits
    }

    /// Books what is committed before an instance of a step.
    fn close_before(&self, moment: &Moment<'_>, at: usize, book: &mut Book<'_>) {
        for batch in self.closed_before(moment, at) {
            let copying = moment.step.iter().map(|it| it.component);
            let copying = copying.filter(|it| self.accounts[*it].batch == Some(batch));
            book.commit(copying.map(|component| (component, self.iteration(moment, component))));
        }
    }

    /// How many groups are committed before an instance of a step, and the batch that each of them closes.
    ///
    /// Every step before and in the steady loop commits every batch, empty or not, so that a wait there has one number;
    /// after it only what runs is committed, unless that is known at run time only. Products are in no step before the loop but
    /// with what waits for them.
    fn closed_before(&self, moment: &Moment<'_>, at: usize) -> Vec<usize> {
        let always = self.emission.is_dynamic
            || moment.section == Section::Steady
            || self.kind == Group::CpAsync
                && moment.section == Section::Prologue
                && self.emission.steady.is_some();
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
    fn commits(&self) -> BTreeMap<EmissionPoint, usize> {
        let mut out = BTreeMap::new();
        for moment in self.timelines.iter().flatten() {
            for at in 0..=moment.step.len() {
                let count = self.closed_before(moment, at).len();
                if count > 0 {
                    let place = EmissionPoint { section: moment.section, step: moment.number, at };
                    out.insert(place, count);
                }
            }
        }
        out
    }

    /// The first use that the given waits do not provide for: where, with how many groups in flight at most, of what.
    ///
    /// The wait that a use relies on has to name what it is for, be it an earlier one.
    fn first_unsettled(&self, waits: &Waits) -> Option<(EmissionPoint, i64, BTreeSet<Name>)> {
        self.timelines.iter().find_map(|it| self.first_unsettled_of(it, waits))
    }

    fn first_unsettled_of(
        &self,
        timeline: &[Moment<'_>],
        waits: &Waits,
    ) -> Option<(EmissionPoint, i64, BTreeSet<Name>)> {
        let mut book = Book::new(waits);
        for moment in timeline {
            for at in 0..=moment.step.len() {
                let place = EmissionPoint { section: moment.section, step: moment.number, at };
                self.close_before(moment, at, &mut book);
                book.reach(place);
                let Some(instance) = moment.step.get(at) else { continue };
                let iteration = self.iteration(moment, instance.component);
                let needs = self.accounts[instance.component].needs.iter();
                let needs = needs.map(|(copier, names, distance)| {
                    (book.group(*copier, iteration - distance), names.iter().collect())
                });
                if let Some(found) = book.unsettled(place, needs.collect()) {
                    return Some(found);
                }
            }
        }
        if self.outlasts { None } else { self.left(book, timeline.len()) }
    }

    fn iteration(&self, moment: &Moment<'_>, component: usize) -> i64 {
        moment.time - self.plan.components[component].stage
    }

    /// Copies that are in flight when the loop is over, where somebody may come upon them: of what is used outside the
    /// loop, and of memory that is waited for at all. What nobody waits for is never copied asynchronously.
    ///
    /// Where copies come from may be written after the loop, unless nobody writes it. Of a loop that runs on behind its
    /// last iteration to finish it, the groups of iterations that there are not are empty.
    fn left(&self, mut book: Book<'_>, steps: usize) -> Option<(EmissionPoint, i64, BTreeSet<Name>)> {
        let place = EmissionPoint { section: Section::Epilogue, step: self.emission.epilogue.len(), at: 0 };
        book.reach(place);
        let times = i64::try_from(steps).expect("they are written out");
        let runs_on = self.emission.is_dynamic && self.emission.epilogue.is_empty();
        let end = if runs_on { times - self.plan.last_stage() } else { i64::MAX };
        let waited = |name: &&Name| book.waits.values().any(|it| it.1.contains(*name));
        let copied = book.groups.iter().filter(|((_, iteration), _)| *iteration < end);
        let needs = copied.map(|((copier, _), group)| {
            let overwritten = !self.plan.components[*copier].reads().is_disjoint(self.written);
            let seen = |name: &&Name| overwritten || !self.plan.slots.contains_key(*name) || waited(name);
            (*group, self.accounts[*copier].fills.iter().filter(seen).collect())
        });
        book.unsettled(place, needs.collect())
    }
}

/// How many groups may be in flight at a place, and what has to have landed.
type Waits = BTreeMap<EmissionPoint, (i64, BTreeSet<Name>)>;

/// What was committed and waited for until some time.
struct Book<'a> {
    waits: &'a Waits,
    committed: i64,
    landed: i64,
    /// Up to which group each wait made copies land, from the first one on.
    completions: Vec<(i64, EmissionPoint)>,
    /// The number of the group, from 1, that each component's copies of each iteration are in.
    groups: BTreeMap<(usize, i64), i64>,
}

impl Book<'_> {
    fn new(waits: &Waits) -> Book<'_> {
        Book { waits, committed: 0, landed: 0, completions: vec![], groups: BTreeMap::new() }
    }

    /// Closes a group of the copies of components, each with its iteration.
    fn commit(&mut self, copies: impl Iterator<Item = (usize, i64)>) {
        self.committed += 1;
        self.groups.extend(copies.map(|it| (it, self.committed)));
    }

    /// Waits, if there is a wait at the place.
    fn reach(&mut self, place: EmissionPoint) {
        if let Some((in_flight, _)) = self.waits.get(&place)
            && self.committed - in_flight > self.landed
        {
            self.landed = self.committed - in_flight;
            self.completions.push((self.landed, place));
        }
    }

    /// The group of a component's last copies of an iteration or those before; 0 if it has not copied.
    fn group(&self, copier: usize, iteration: i64) -> i64 {
        self.groups.range((copier, i64::MIN)..=(copier, iteration)).next_back().map_or(0, |it| *it.1)
    }

    /// A wait that is missing at a place, where these groups are needed for the sake of these buffers, or one that does
    /// not name a buffer.
    fn unsettled(
        &self,
        place: EmissionPoint,
        needs: Vec<(i64, BTreeSet<&Name>)>,
    ) -> Option<(EmissionPoint, i64, BTreeSet<Name>)> {
        let mut needed = 0;
        let mut buffers = BTreeSet::new();
        for (group, names) in needs.into_iter().filter(|it| !it.1.is_empty() && it.0 > 0) {
            if group > self.landed {
                needed = needed.max(group);
                buffers.extend(names.into_iter().cloned());
            } else if let Some((_, at)) = self.completions.iter().find(|it| it.0 >= group) {
                let (in_flight, known) = &self.waits[at];
                if !names.iter().all(|name| known.contains(*name)) {
                    return Some((*at, *in_flight, names.into_iter().cloned().collect()));
                }
            }
        }
        (needed > 0).then(|| (place, self.committed - needed, buffers))
    }
}

/// The components that work in groups of a kind, by their places in the plan.
pub(crate) fn members(kind: Group, func: &Func, plan: &PipelinePlan) -> BTreeSet<usize> {
    let mechanism = match kind {
        Group::CpAsync => Mechanism::CpAsync,
        Group::Wgmma => Mechanism::Wgmma,
        // What a role does for others, mbarriers tell of.
        Group::Tcgen05 => {
            return done_by(Mechanism::Tcgen05, plan).filter(|it| plan.role(*it).is_none()).collect();
        }
        Group::Bulk => return done_by(Mechanism::Tma, plan).filter(|it| stores(func, plan, *it)).collect(),
    };
    done_by(mechanism, plan).collect()
}

/// The kind of the groups that products of a loop are in: no loop has both.
pub(crate) fn product_group(plan: &PipelinePlan) -> Group {
    let has_tensor_memory = done_by(Mechanism::Tcgen05, plan).next().is_some();
    if has_tensor_memory { Group::Tcgen05 } else { Group::Wgmma }
}

/// The components that are products of such groups.
pub(crate) fn products(plan: &PipelinePlan) -> impl Iterator<Item = usize> {
    done_by(Mechanism::Wgmma, plan).chain(done_by(Mechanism::Tcgen05, plan))
}

/// Whether a component goes to global memory.
pub(crate) fn stores(func: &Func, plan: &PipelinePlan, at: usize) -> bool {
    let is_global = |name: &Name| func.buffers[name].scope == Scope::Global;
    plan.components[at].writes().iter().any(is_global)
}

/// The components that a mechanism does, by their places in the plan: those with blocks that are marked so. Of what the copy engine
/// and warpgroups do in a pipeline inside of a component, that pipeline knows.
pub(crate) fn done_by(mechanism: Mechanism, plan: &PipelinePlan) -> impl Iterator<Item = usize> {
    let is_marked = move |body: &ir::Stmt| {
        let blocks = body.blocks();
        let mut own = blocks.iter().filter(|it| !marks::is_sync(it));
        let mut marked = own.clone().filter(|it| it.attrs.mechanism == Some(mechanism));
        marked.next().is_some()
            && (mechanism == Mechanism::CpAsync || own.all(|it| it.attrs.mechanism == Some(mechanism)))
    };
    let all = plan.components.iter().enumerate();
    all.filter(move |it| is_marked(&it.1.body)).map(|(at, _)| at)
}
