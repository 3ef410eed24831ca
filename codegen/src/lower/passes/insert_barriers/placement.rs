//! Where the barriers of a list of statements stand.

use std::{cell::RefCell, collections::BTreeMap};

use ir::{Barrier, Group, Instr, Name, Op, Participants, SyncKind, Wait};

use crate::lower::{
    analysis::{
        dependence::{Dependence, Dependences, Reason, When},
        kernel_accesses::KernelAccess,
    },
    passes::insert_barriers::{
        flow::{Flow, Item},
        interval_hitting::{CircularInterval, fewest},
    },
};

/// Statements in an order, and the barriers before some of them.
pub(crate) struct BarrierPlacement {
    items: Vec<Item>,
    /// Before which statements, in order, and for which dependences.
    barriers: Vec<(usize, Vec<Dependence>)>,
    /// The variable of the loop around.
    var: Option<Name>,
}

/// The statements of one list, and what is known of pairs of them.
struct Placer<'a> {
    deps: &'a Dependences,
    items: &'a [Item],
    around: &'a [Op],
    /// The dependence between two statements, by their places.
    known: RefCell<BTreeMap<Question, Option<Box<Dependence>>>>,
}

/// Two statements, by their places, and when the second of them happens.
type Question = (usize, usize, When);

impl BarrierPlacement {
    /// The fewest barriers for a list, repeated by a loop or not.
    ///
    /// Waits for copies may move to the front of a loop's body, where one barrier can serve what was copied and what
    /// is copied next.
    pub(crate) fn best(deps: &Dependences, items: &[Item], around: &[Op], repeats: bool) -> BarrierPlacement {
        let placer = Placer { deps, items, around, known: RefCell::default() };
        let order: Vec<usize> = (0..items.len()).collect();
        let mut barriers = placer.barriers(&order, repeats);
        let mut chosen = (order, vec![]);
        if repeats
            && barriers.len() > 1
            && let Some((order, waits)) = hoisted(items)
        {
            let fewer = placer.barriers(&order, repeats);
            if fewer.len() < barriers.len() {
                (barriers, chosen) = (fewer, (order, waits));
            }
        }
        let (order, waits) = chosen;
        let var = around.iter().rev().find_map(|op| match op {
            Op::For(it) => Some(it.var.clone()),
            _ => None,
        });
        let mut ordered: Vec<Item> = order.into_iter().map(|at| items[at].clone()).collect();
        let first = ordered.iter().skip(waits.len()).find_map(|it| it.op.first_origin()).cloned();
        for (item, wait) in ordered.iter_mut().zip(waits) {
            if let Op::Instr(it, origin) = &mut item.op {
                *it = Instr::Wait(wait);
                *origin = first.as_ref().map_or_else(|| origin.clone(), |first| origin.moved_to(first));
            }
        }
        BarrierPlacement { items: ordered, barriers, var }
    }

    /// A dependence that a barrier is there for.
    pub(crate) fn dependence(&self) -> Option<&Dependence> {
        self.barriers.iter().find_map(|it| it.1.first())
    }

    /// The statements with the barriers between them, of so many threads.
    pub(crate) fn carried_out(self, among: Participants) -> (Vec<Op>, Flow) {
        let (mut ops, mut flow) = (Vec::new(), Flow::default());
        let mut barriers = self.barriers.into_iter().peekable();
        for (at, item) in self.items.into_iter().enumerate() {
            if let Some((_, served)) = barriers.next_if(|it| it.0 == at) {
                let proof = proof(&served, self.var.as_ref());
                let origin = item.op.first_origin().cloned().unwrap_or_default();
                ops.push(Op::Instr(Instr::Barrier(Barrier { among, proof }), origin));
                flow.then(&Flow::barrier());
            }
            flow.then(&item.flow);
            ops.push(item.op);
        }
        (ops, flow)
    }
}

impl Placer<'_> {
    /// Before which statements of an order barriers stand, and for what.
    fn barriers(&self, order: &[usize], repeats: bool) -> Vec<(usize, Vec<Dependence>)> {
        let gaps = order.len();
        let mut needs = self.needs_in_one(order);
        if repeats {
            needs.extend(self.needs_in_next(order));
        }
        let intervals: Vec<CircularInterval> = needs.iter().map(|it| it.0).collect();
        let mut chosen = fewest(&intervals, gaps, repeats);
        // All else that iterations have with later ones is in order if there is a barrier in each iteration.
        if repeats
            && chosen.is_empty()
            && !self.items.iter().any(|it| it.flow.meets)
            && let Some((at, dependence)) = self.any_later(order)
        {
            chosen = vec![at];
            needs.push((CircularInterval { start: at, length: 1 }, dependence));
        }
        // Each of the fewest barriers is the only one for some dependence.
        let only = |interval: &CircularInterval, gap: usize| {
            chosen.iter().all(|&it| interval.contains(it, gaps) == (it == gap))
        };
        let serves = |gap| {
            let all = || needs.iter().filter(|it| only(&it.0, gap)).map(|it| it.1.clone());
            // What statements exchange says more to readers than the mbarrier by which it comes, or that its block is there.
            let is_data = |it: &Dependence| !self.deps.walk.is_mbarrier(&it.buffer) && it.life == [false; 2];
            let data: Vec<_> = all().filter(is_data).collect();
            if data.is_empty() { all().collect() } else { data }
        };
        chosen.iter().map(|&gap| (gap, serves(gap))).collect()
    }

    /// Where barriers must stand for the sake of one iteration.
    fn needs_in_one(&self, order: &[usize]) -> Vec<(CircularInterval, Dependence)> {
        let mut out = Vec::new();
        for then in 0..order.len() {
            // Back in time, up to where all threads meet.
            for first in (0..then).rev() {
                if let Some(it) = self.dependence(order[first], order[then], When::Same) {
                    out.push((CircularInterval { start: first + 1, length: then - first }, it));
                }
                if self.items[order[first]].flow.meets {
                    break;
                }
            }
        }
        out
    }

    /// Where barriers must stand between one iteration and the next, if not just anywhere.
    fn needs_in_next(&self, order: &[usize]) -> Vec<(CircularInterval, Dependence)> {
        let count = order.len();
        let mut out = Vec::new();
        for then in 0..count {
            // A statement in which threads meet may still need another barrier between its end and its beginning.
            let last = if self.items[order[then]].flow.meets { then } else { then + 1 };
            for first in (last..count).rev() {
                if let Some(it) = self.dependence(order[first], order[then], When::Next) {
                    out.push((
                        CircularInterval { start: (first + 1) % count, length: count - first + then },
                        it,
                    ));
                }
                if self.items[order[first]].flow.meets {
                    break;
                }
            }
            if self.items[order[then]].flow.meets {
                break;
            }
        }
        out
    }

    /// A dependence of a statement on any earlier iteration, and the place of the statement.
    fn any_later(&self, order: &[usize]) -> Option<(usize, Dependence)> {
        let places = 0..order.len();
        places.clone().find_map(|then| {
            places.clone().find_map(|first| {
                let (first, at) = (order[first], order[then]);
                let later = self.dependence(first, at, When::Later)?;
                Some((then, self.dependence(first, at, When::Next).unwrap_or(later)))
            })
        })
    }

    /// A dependence of what the one statement leaves behind and what the other begins with.
    fn dependence(&self, first: usize, then: usize, when: When) -> Option<Dependence> {
        let (after, before) = (&self.items[first].flow.after, &self.items[then].flow.before);
        if after.is_empty() || before.is_empty() {
            return None;
        }
        let key = (first, then, when);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.as_deref().cloned();
        }
        let pairs = || after.iter().flat_map(|a| before.iter().map(move |b| (a, b)));
        let is_data = |it: &(&KernelAccess, &KernelAccess)| !self.deps.walk.is_mbarrier(&it.0.buffer);
        let between = |(a, b): (&KernelAccess, &KernelAccess)| self.deps.between(a, b, self.around, when);
        // Data says more to readers than the mbarrier by which it comes.
        let found = pairs().filter(is_data).find_map(between);
        let found = found.or_else(|| pairs().filter(|it| !is_data(it)).find_map(between));
        self.known.borrow_mut().insert(key, found.clone().map(Box::new));
        found
    }
}

/// The order with waits at the front, and those waits: a commit that one moves across is one group less in flight.
fn hoisted(items: &[Item]) -> Option<(Vec<usize>, Vec<Wait>)> {
    let (mut front, mut rest, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    let mut commits = 0;
    let mut countable = true;
    for (at, item) in items.iter().enumerate() {
        match item.op.instr().and_then(Instr::sync) {
            Some(SyncKind::Wait(wait))
                if wait.group == Group::CpAsync && countable && wait.in_flight >= commits =>
            {
                front.push(at);
                waits.push(Wait { in_flight: wait.in_flight - commits, ..wait.clone() });
                continue;
            }
            Some(SyncKind::Commit(Group::CpAsync)) => commits += 1,
            Some(_) => {}
            None => {
                item.op
                    .each_instr(&mut |it| countable &= it.sync() != Some(SyncKind::Commit(Group::CpAsync)));
            }
        }
        rest.push(at);
    }
    let moved = front.iter().enumerate().any(|(at, from)| at != *from);
    moved.then(|| ([front, rest].concat(), waits))
}

/// The dependences that a barrier serves, in words.
fn proof(served: &[Dependence], var: Option<&Name>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&Dependence>)> = Vec::new();
    for it in served {
        let phrase = phrase(it, var);
        match groups.iter_mut().find(|group| group.0 == phrase) {
            Some(group) => group.1.push(it),
            None => groups.push((phrase, vec![it])),
        }
    }
    let mut out = Vec::new();
    for (phrase, all) in &groups {
        let mut names: Vec<&str> = Vec::new();
        for it in all {
            if !names.contains(&it.buffer.as_str()) {
                names.push(it.buffer.as_str());
            }
        }
        // One pair of threads is enough to see why.
        let example =
            if out.is_empty() { format!(" ({})", reason(all[0], names.len() > 1)) } else { String::new() };
        out.push(format!("{}: {phrase}{example}", names.join(", ")));
    }
    out
}

fn phrase(it: &Dependence, var: Option<&Name>) -> String {
    let verb = |writes| if writes { "written" } else { "read" };
    let (first, then) = (verb(it.first_writes), verb(it.then_writes));
    let var = var.map_or("the loop", Name::as_str);
    match it.when {
        When::Same if it.life[0] => format!("there when its block has begun, {then} after"),
        When::Same if it.life[1] => format!("{first} before, gone when its block ends"),
        When::Same if first == then => format!("{first} before and after"),
        When::Same => format!("{first} before, {then} after"),
        When::Next => format!("{first} in one iteration of {var}, {then} in the next"),
        When::Later => format!("{first} in one iteration of {var}, {then} in a later one"),
    }
}

fn reason(it: &Dependence, named: bool) -> String {
    let verb = |writes, is_life: bool| match (is_life, writes) {
        (true, _) => "has",
        (false, true) => "writes",
        (false, false) => "reads",
    };
    let thread = |it: &[i64]| match it {
        [only] => only.to_string(),
        all => format!("({})", list(all)),
    };
    match &it.reason {
        Reason::Example { first, then, element, other } => format!(
            "thread {} {} {}[{}], thread {} {} {}",
            thread(first),
            verb(it.first_writes, it.life[0]),
            if named { it.buffer.as_str() } else { "" },
            list(element),
            thread(then),
            verb(it.then_writes, it.life[1]),
            other.as_ref().map_or_else(|| "it".to_owned(), |it| format!("those bytes of {it}")),
        ),
        Reason::Unproved => "no proof that it is not by different threads".to_string(),
    }
}

fn list(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}
