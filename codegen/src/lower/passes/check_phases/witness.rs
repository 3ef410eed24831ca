//! The order in which roles, run as one program, find all that they wait for.

use ir::{Instr, Less, Name, Op};

use super::{
    error::PhaseError,
    program::Program,
    survey::{Survey, arrival, sum},
};

/// Checks that each wait is behind the arrivals that it is for: in its own program, and at the same place of the others.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    // Those who copy go first, then those who multiply for others.
    let rank = |program: usize| {
        let of = |is_it: &dyn Fn(&Instr) -> bool| survey.programs[program].instrs().any(|it| is_it(it.1));
        let copies = of(&|it| it.fill().is_some());
        let multiplies = || of(&|it| survey.barriers.iter().any(|of| sum(it, &of.sums).is_some()));
        let place = if copies { 0 } else { 2 - usize::from(multiplies()) };
        (place, program)
    };
    for barrier in &survey.barriers {
        let arrives = |it: &Instr| i64::from(arrival(it, barrier.name).is_some());
        for (waiting, own) in barrier.uses.iter().enumerate() {
            let stuck = || PhaseError::Stuck { barrier: barrier.name.clone() };
            for (arriving, _) in barrier.uses.iter().enumerate().filter(|it| !it.1.arrivals.is_empty()) {
                let (there, here) = (&survey.programs[arriving], &survey.programs[waiting]);
                for event in &own.awaits {
                    let place = if arriving == waiting {
                        Some((here.parent(event.node), here.earlier(event.node).len()))
                    } else if here.only_waits_behind(event.node) {
                        // Nobody waits for what comes behind it, so it may come behind all.
                        Some((None, there.children(None).len()))
                    } else {
                        there.corresponding(here, event.node, rank(arriving) < rank(waiting))
                    };
                    let come = there.until(place.ok_or_else(stuck)?, &arrives, &event.bounds);
                    let has_come = Less::new(&event.number + own.offset, come.ok_or_else(stuck)?);
                    if event.bounds.prove(&has_come) != Some(true) {
                        return Err(stuck());
                    }
                }
            }
        }
    }
    Ok(())
}

impl Program<'_> {
    /// Whether a statement stands in no loop, and nothing but waits comes behind it.
    fn only_waits_behind(&self, node: usize) -> bool {
        let is_wait = |it: &usize| matches!(self.op(*it), Op::Instr(it, _) if matches!(it, Instr::Await(_)) || it.is_remark());
        [node].into_iter().chain(self.around(node)).all(|it| {
            let behind = &self.children(self.parent(it))[self.earlier(it).len() + 1..];
            !matches!(self.op(it), Op::For(_)) && behind.iter().all(is_wait)
        })
    }

    /// The place in this program that a statement of another has in both: in the same iterations of the loops that both have, between the same
    /// loops, and of what is between these behind all or before all. `None` if the loops come in another order.
    fn corresponding(
        &self,
        other: &Program<'_>,
        node: usize,
        is_first: bool,
    ) -> Option<(Option<usize>, usize)> {
        let mut around: Vec<usize> = other.around(node).filter(|it| other.loop_var(*it).is_some()).collect();
        around.reverse();
        let mut within = None;
        let mut theirs = None;
        for at in around.iter().copied().chain([node]) {
            let (own, before) = (self.flat(within), other.flat(theirs));
            let place =
                before.iter().position(|it| *it == at || other.around(at).any(|around| around == *it))?;
            let same = |node: &usize| self.loop_var(*node);
            if let Some(var) = other.loop_var(at)
                && let Some(found) = own.iter().find(|it| same(it) == Some(var))
                && at != node
            {
                (within, theirs) = (Some(*found), Some(at));
                continue;
            }
            let is_among = |all: &[usize], node: &usize| {
                same(node).is_some_and(|var| all.iter().any(|it| other.loop_var(*it) == Some(var)))
            };
            let first = own.iter().rposition(|it| is_among(&before[..place], it)).map_or(0, |it| it + 1);
            let last = own.iter().position(|it| is_among(&before[place..], it)).unwrap_or(own.len());
            if first > last {
                return None;
            }
            let next = own.get(if is_first { last } else { first });
            return Some(match next {
                Some(next) => (self.parent(*next), self.earlier(*next).len()),
                None => (within, self.children(within).len()),
            });
        }
        None
    }

    /// The statements of a list, and those under conditions and leaders in it.
    fn flat(&self, list: Option<usize>) -> Vec<usize> {
        let mut out = vec![];
        for node in self.children(list) {
            match self.op(*node) {
                Op::If(..) | Op::Leader(..) | Op::Role(..) => out.extend(self.flat(Some(*node))),
                Op::Alloc(_) | Op::For(_) | Op::Instr(..) => out.push(*node),
            }
        }
        out
    }

    fn loop_var(&self, node: usize) -> Option<&Name> {
        match self.op(node) {
            Op::For(it) => Some(&it.var),
            _ => None,
        }
    }
}
