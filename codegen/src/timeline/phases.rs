//! Of which iterations mbarriers tell: phases and slots of a lowered kernel, counted back.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Arrival, BulkCopy, BulkKind, Index, Instr, Kernel, Mbarriers, Name, Op, Phase, PipelineStep, SyncKind,
    ThreadAxis, axis_var,
};

use super::{
    Sync,
    clock::Clock,
    find::{Body, Key, Step},
    sync::SlotBarrier,
};

/// The mbarriers of a kernel, as a pipeline sees them.
pub(super) struct Phases<'b> {
    clock: &'b Clock,
    mbarriers: Vec<(&'b Name, &'b Mbarriers)>,
    /// The variables of loops and axes: with all of them 0, what is left of a slot or a phase is that of the first run.
    variables: BTreeSet<Name>,
    /// How many bytes a phase waits for, as the kernel says.
    bytes: BTreeMap<&'b Name, i64>,
    /// The axes of the cluster along which other blocks arrive or send boxes.
    along: BTreeMap<&'b Name, BTreeSet<ThreadAxis>>,
    /// Those of the first block of a cluster, to which the others tell what they do.
    at_first: BTreeSet<&'b Name>,
}

impl<'b> Phases<'b> {
    pub(super) fn of(kernel: &'b Kernel, clock: &'b Clock) -> Phases<'b> {
        let mut variables: BTreeSet<Name> = ThreadAxis::ALL.map(axis_var).into();
        let (mut bytes, mut concerned) = (BTreeMap::new(), BTreeSet::new());
        let (mut along, mut at_first) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeSet::new());
        for op in &kernel.body {
            op.walk(&mut |op| match op {
                Op::For(it) => {
                    variables.insert(it.var.clone());
                }
                Op::Instr(it, origin) => {
                    if let Some(SyncKind::Arrive(it)) = it.sync() {
                        let blocks = if it.at_first { kernel.cluster_blocks() } else { 1 };
                        let own = it.bytes.as_ref().and_then(Index::as_int);
                        bytes.extend(own.map(|bytes| (&it.barrier, bytes * blocks)));
                        at_first.extend(it.at_first.then_some(&it.barrier));
                    }
                    if let Some(name) = mbarrier(it) {
                        along.entry(name).or_default().extend(axes(it));
                    }
                    let is_own = origin.steps().last().is_some_and(|it| it.var == clock.var);
                    concerned.extend(mbarrier(it).filter(|_| is_own));
                }
                Op::Alloc(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {}
            });
        }
        let mbarriers = kernel.mbarriers.iter().filter(|it| concerned.contains(it.0)).collect();
        Phases { clock, mbarriers, variables, bytes, along, at_first }
    }

    fn position(&self, name: &Name) -> Option<usize> {
        self.mbarriers.iter().position(|it| it.0 == name)
    }

    /// What an expression is in the first run of every loop around it.
    fn first(&self, it: &Index) -> Option<i64> {
        it.subst(&|name| self.variables.contains(name).then(|| Index::int(0))).as_int()
    }

    /// The iteration of a statement in a step of the first run of the loop.
    fn iteration(&self, step: &PipelineStep, rank: usize) -> Option<i64> {
        let number = i64::try_from(step.step).ok()?;
        let step = self.clock.step_at(step.section, number, self.clock.pretended());
        Some(step - self.clock.components.get(rank)?.stage)
    }

    /// A wait for a phase: of the fill that this is, counted from the iteration of the statement behind.
    pub(super) fn awaited(&self, it: &Phase, step: &PipelineStep, rank: usize) -> Option<Sync> {
        let mbarrier = self.position(&it.barrier)?;
        let slots = self.mbarriers[mbarrier].1.slots;
        let about = || {
            let fill = self.first(&it.phase)? * slots + self.first(&it.slot)?;
            let fill = fill - self.iteration(step, rank)?;
            // Further away is nothing: the first run of a loop around this one is written out, then.
            (-slots..=slots).contains(&fill).then_some(fill)
        };
        Some(Sync::Await { mbarrier, fill: about() })
    }

    /// An arrival: a thread speaks of what is behind it, by at most as many iterations as there are slots; and what it expects is
    /// ahead.
    pub(super) fn arrived(
        &self,
        it: &Arrival,
        step: &PipelineStep,
        lane: usize,
        rank: usize,
    ) -> Option<Sync> {
        let mbarrier = self.position(&it.barrier)?;
        let slots = self.mbarriers[mbarrier].1.slots;
        let expects = it.bytes.is_some();
        let about = || {
            let rank = if expects { rank } else { self.clock.before(lane, rank)? };
            let ahead = (self.first(&it.slot)? - self.iteration(step, rank)?).rem_euclid(slots);
            Some(if expects || ahead == 0 { ahead } else { ahead - slots })
        };
        let fill = about();
        Some(if expects { Sync::Expect { mbarrier, fill } } else { Sync::Arrive { mbarrier, fill } })
    }

    /// The mbarriers for which the bulk copies of a statement count.
    pub(super) fn filled_by(&self, body: &Body<'_>) -> Option<usize> {
        let mut out = None;
        for (_, op) in body {
            op.each_instr(&mut |it| {
                if it.sync().is_none() {
                    out = mbarrier(it).or(out);
                }
            });
        }
        out.and_then(|it| self.position(it))
    }

    /// The mbarriers, with who tells and who waits.
    pub(super) fn told(&self, steps: &BTreeMap<Key, Step>, fills: &[Option<usize>]) -> Vec<SlotBarrier> {
        let one = |(at, (name, it)): (usize, &(&Name, &Mbarriers))| {
            let mut out = SlotBarrier {
                name: (*name).clone(),
                slots: it.slots,
                arrivals: it.arrivals,
                bytes: self.bytes.get(name).copied(),
                along: self.along.get(name).into_iter().flatten().map(|it| it.as_str()).collect(),
                at_first: self.at_first.contains(name),
                lag: 0,
                told_by: vec![],
                awaited_by: vec![],
            };
            let copiers = (0..fills.len()).filter(|rank| fills[*rank] == Some(at));
            let (mut tell, mut wait): (BTreeSet<usize>, BTreeSet<usize>) =
                (copiers.collect(), BTreeSet::new());
            for ((lane, ..), step) in steps {
                for (rank, sync) in synced(step) {
                    match sync {
                        Sync::Arrive { mbarrier, fill } if *mbarrier == at => {
                            tell.extend(self.clock.before(*lane, rank));
                            out.lag = out.lag.max(-fill.unwrap_or(0));
                        }
                        Sync::Await { mbarrier, .. } if *mbarrier == at => {
                            wait.insert(rank);
                        }
                        _ => {}
                    }
                }
            }
            let name = |rank: usize| self.clock.components.get(rank).map(|it| it.name.clone());
            out.told_by = tell.into_iter().filter_map(name).collect();
            out.awaited_by = wait.into_iter().filter_map(name).collect();
            out
        };
        self.mbarriers.iter().enumerate().map(one).collect()
    }
}

/// The mbarriers that an instruction speaks of.
fn mbarrier(it: &Instr) -> Option<&Name> {
    match it {
        Instr::Await(it) => Some(&it.barrier),
        Instr::Arrive(it) => Some(&it.barrier),
        it => it.fill().map(|it| it.barrier),
    }
}

/// The axes of the cluster along which an instruction tells other blocks.
fn axes(it: &Instr) -> &[ThreadAxis] {
    match it {
        Instr::Arrive(it) => &it.along,
        Instr::Bulk(BulkCopy { kind: BulkKind::Load { along, .. }, .. }) => along.as_slice(),
        _ => &[],
    }
}

/// What stands in a step, each with the rank of the statement that it stands before.
pub(super) fn synced(step: &Step) -> impl Iterator<Item = (usize, &Sync)> {
    step.iter().enumerate().flat_map(|(rank, all)| all.iter().map(move |it| (rank, it)))
}
