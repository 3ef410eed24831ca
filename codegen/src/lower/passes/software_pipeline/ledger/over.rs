//! Where products of warpgroups are known to be over, so that what they have read can be given back there.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Func, Name,
    pipeline::{Emission, EmissionPoint, PipelinePlan},
};

use super::{Book, Ledger, Moment, accounts, members, product_group, timelines};

/// Behind which instance of its step, and with how many groups in flight there, products are known to be over: by the place of the instance that starts
/// them, where a wait that others of its role need says so in the same step, and each time at the same place.
pub(crate) fn over_in_step(
    func: &Func,
    plan: &PipelinePlan,
    emission: &Emission,
    written: &BTreeSet<Name>,
) -> BTreeMap<EmissionPoint, Over> {
    let kind = product_group(plan);
    let copies = members(kind, func, plan);
    let accounts = accounts(kind, plan, &copies, true);
    let timelines = timelines(plan, emission);
    let ledger = Ledger { kind, plan, emission, accounts: &accounts, written, timelines, outlasts: false };
    ledger.over_in_step()
}

/// Where something is known to be over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Over {
    /// Before the instance at this place of the step.
    pub(crate) at: usize,
    /// How many groups may be in flight there.
    pub(crate) in_flight: u32,
}

impl Ledger<'_> {
    /// Where in its step what each instance starts is over, if it is there each time.
    fn over_in_step(&self) -> BTreeMap<EmissionPoint, Over> {
        let waits = self.waits();
        let mut out: BTreeMap<EmissionPoint, Option<Over>> = BTreeMap::new();
        for timeline in &self.timelines {
            let mut book = Book::new(&waits);
            for moment in timeline {
                let found = self.over_in(moment, &mut book);
                for (place, over) in found {
                    let known = out.entry(place).or_insert(over);
                    *known = known.filter(|it| Some(*it) == over);
                }
            }
        }
        out.into_iter().filter_map(|(place, over)| Some((place, over?))).collect()
    }

    /// Goes through a step, and tells of each instance whose work is in a group where in the step that group is over.
    fn over_in(&self, moment: &Moment<'_>, book: &mut Book<'_>) -> BTreeMap<EmissionPoint, Option<Over>> {
        let (section, step) = (moment.section, moment.number);
        let mut out = BTreeMap::new();
        for at in 0..=moment.step.len() {
            let place = EmissionPoint { section, step, at };
            self.close_before(moment, at, book);
            book.reach(place);
            for (start, instance) in moment.step.iter().enumerate().take(at) {
                let group =
                    book.groups.get(&(instance.component, self.iteration(moment, instance.component)));
                let is_over = group.is_some_and(|it| *it <= book.landed);
                let in_flight = book.waits.get(&place).and_then(|it| u32::try_from(it.0).ok());
                let over = in_flight.filter(|_| is_over).map(|in_flight| Over { at, in_flight });
                let known = out.entry(EmissionPoint { section, step, at: start }).or_insert(over);
                *known = known.or(over);
            }
        }
        out
    }
}
