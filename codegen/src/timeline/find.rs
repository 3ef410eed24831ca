//! Finds the statements of a pipeline again in the lowered kernel, and what stands between them.

use std::collections::BTreeSet;

use ir::{Kernel, Name, Op};

use super::{Barrier, Part, Sync, ring::Schedule};
use crate::lower::PipelineReport;

/// A pipeline in a kernel.
pub(super) struct Found<'a> {
    /// The loops around it.
    pub(super) around: Vec<Name>,
    /// What stands between the statements of each step of the prologue, of each copy of the steady body, and of each
    /// step of the epilogue.
    pub(super) prologue: Vec<Step>,
    /// See `prologue`.
    pub(super) steady: Vec<Step>,
    /// See `prologue`.
    pub(super) epilogue: Vec<Step>,
    /// The barriers that the steps speak of.
    pub(super) barriers: Vec<Barrier>,
    /// What each statement became, in one step.
    pub(super) bodies: Vec<Vec<&'a Op>>,
}

/// What happens before each statement of a step, and in the last place after all.
pub(super) type Step = Vec<Vec<Sync>>;

/// Finds the pipeline of a report in a kernel, if it is there.
pub(super) fn find<'a>(kernel: &'a Kernel, report: &PipelineReport) -> Option<Found<'a>> {
    let schedule = Schedule::of(report);
    let mut around = Vec::new();
    let is_loop = |op: &Op| matches!(op, Op::For(it) if it.var == report.var);
    if let Some((list, at)) = search(&kernel.body, &is_loop, &mut around) {
        let Op::For(steady) = &list[at] else { return None };
        return Some(with_loop(&schedule, around, &list[..at], &steady.body, &list[at + 1..], report));
    }
    // A loop shorter than its pipeline leaves straight code.
    schedule.trips.filter(|it| *it <= schedule.last)?;
    let first = schedule.expected(0..1).into_iter().next()?;
    let is_first = |op: &Op| {
        let writes = writes(op);
        !writes.is_empty() && writes.is_subset(&schedule.writes[first.1])
    };
    let (list, at) = search(&kernel.body, &is_first, &mut around)?;
    let mut scan = Scan::new(&schedule);
    let expected = schedule.expected(0..schedule.trips.unwrap_or(0) + schedule.last);
    let found = assign(&list[at..], &expected, &schedule, &vec![usize::MAX; schedule.writes.len()]);
    let most = scan.most(&found, &expected, 1);
    let found = assign(&list[at..], &expected, &schedule, &most);
    scan.bodies(&list[at..], &found, &expected);
    let steps = usize::try_from(schedule.trips.unwrap_or(0) + schedule.last).unwrap_or(0);
    let prologue = scan.steps(&list[at..], &found, &expected, steps, Part::Prologue);
    Some(scan.done(around, [prologue, vec![], vec![]]))
}

fn with_loop<'a>(
    schedule: &Schedule,
    around: Vec<Name>,
    before: &'a [Op],
    body: &'a [Op],
    after: &'a [Op],
    report: &PipelineReport,
) -> Found<'a> {
    let mut scan = Scan::new(schedule);
    let copies = usize::try_from(report.unroll.max(1)).unwrap_or(1);
    let ranks = 0..schedule.writes.len();
    let expected: Vec<_> = (0..copies).flat_map(|copy| ranks.clone().map(move |rank| (copy, rank))).collect();
    let all = vec![usize::MAX; schedule.writes.len()];
    let found = assign(body, &expected, schedule, &all);
    let most = scan.most(&found, &expected, copies);
    let found = if copies > 1 { assign(body, &expected, schedule, &most) } else { found };
    scan.bodies(body, &found, &expected);
    let steady = (found, expected);

    let peeled = report.style != "predicate";
    let last = if peeled { schedule.last } else { 0 };
    let mut expected = schedule.expected(0..last);
    expected.reverse();
    let reversed: Vec<_> = before.iter().rev().cloned().collect();
    let mut found = assign(&reversed, &expected, schedule, &most);
    found.reverse();
    let steps = usize::try_from(last).unwrap_or(0);
    let first = found.iter().position(Option::is_some).unwrap_or(before.len());
    let prologue = scan.steps(&before[first..], &found[first..], &expected, steps, Part::Prologue);
    let steady = scan.steps(body, &steady.0, &steady.1, copies, Part::Steady);
    let trips = schedule.trips.unwrap_or(schedule.last);
    let mut expected = schedule.expected(trips..trips + last);
    for it in &mut expected {
        it.0 -= usize::try_from(trips).unwrap_or(0);
    }
    let found = assign(after, &expected, schedule, &most);
    let end = found.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
    let epilogue = scan.steps(&after[..end], &found[..end], &expected, steps, Part::Epilogue);
    scan.done(around, [prologue, steady, epilogue])
}

/// The list in which a statement stands, and where; outer lists first.
fn search<'a>(
    ops: &'a [Op],
    wanted: &dyn Fn(&Op) -> bool,
    around: &mut Vec<Name>,
) -> Option<(&'a [Op], usize)> {
    if let Some(at) = ops.iter().position(wanted) {
        return Some((ops, at));
    }
    for op in ops {
        match op {
            Op::For(it) => {
                around.push(it.var.clone());
                if let Some(found) = search(&it.body, wanted, around) {
                    return Some(found);
                }
                around.pop();
            }
            Op::If(_, body) => {
                if let Some(found) = search(body, wanted, around) {
                    return Some(found);
                }
            }
            Op::Alloc(_)
            | Op::Store(..)
            | Op::Copy(..)
            | Op::Commit
            | Op::Wait(_)
            | Op::Barrier
            | Op::Comment(_) => {}
        }
    }
    None
}

/// The buffers that a statement writes.
fn writes(op: &Op) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    op.walk(&mut |op| {
        if let Some((place, _)) = op.assignment() {
            out.insert(place.buffer.clone());
        }
    });
    out
}

/// For each of the statements of a list, which of the expected steps and statements it belongs to. They come in
/// the expected order; some may be missing, and the first that is not expected ends it.
fn assign(
    ops: &[Op],
    expected: &[(usize, usize)],
    schedule: &Schedule,
    most: &[usize],
) -> Vec<Option<usize>> {
    let mut out = vec![None; ops.len()];
    let (mut at, mut used) = (0, 0);
    for (op, out) in ops.iter().zip(&mut out) {
        let writes = writes(op);
        if writes.is_empty() {
            continue;
        }
        let fits = |at: &usize| expected.get(*at).is_some_and(|it| writes.is_subset(&schedule.writes[it.1]));
        let exact = |at: usize| expected.get(at).is_some_and(|it| writes == schedule.writes[it.1]);
        let stays = fits(&at) && used < expected.get(at).map_or(0, |it| most[it.1]);
        if !stays || (used > 0 && !exact(at) && exact(at + 1)) {
            let first = if used == 0 { at } else { at + 1 };
            match (first..expected.len()).find(fits) {
                Some(next) => (at, used) = (next, 0),
                None if fits(&at) => {}
                None => break,
            }
        }
        used += 1;
        *out = Some(at);
    }
    out
}

/// Gathers what is found.
struct Scan<'a, 'b> {
    schedule: &'b Schedule,
    barriers: Vec<Barrier>,
    bodies: Vec<Vec<&'a Op>>,
}

impl<'a, 'b> Scan<'a, 'b> {
    fn new(schedule: &'b Schedule) -> Self {
        Scan { schedule, barriers: vec![], bodies: vec![vec![]; schedule.writes.len()] }
    }

    /// Of how many statements of a list one statement of the pipeline consists.
    fn most(&self, found: &[Option<usize>], expected: &[(usize, usize)], copies: usize) -> Vec<usize> {
        let ranks = 0..self.schedule.writes.len();
        let count = |rank| found.iter().flatten().filter(|it| expected[**it].1 == rank).count();
        let times = |rank| expected.iter().filter(|it| it.1 == rank).count().max(copies).max(1);
        ranks.map(|rank| count(rank).div_ceil(times(rank)).max(1)).collect()
    }

    fn bodies(&mut self, ops: &'a [Op], found: &[Option<usize>], expected: &[(usize, usize)]) {
        let mut first = vec![None; self.bodies.len()];
        for (op, at) in ops.iter().zip(found) {
            let Some((step, rank)) = at.map(|it| expected[it]) else { continue };
            if *first[rank].get_or_insert(step) == step {
                self.bodies[rank].push(op);
            }
        }
    }

    /// What stands between the statements of some steps.
    fn steps(
        &mut self,
        ops: &[Op],
        found: &[Option<usize>],
        expected: &[(usize, usize)],
        steps: usize,
        part: Part,
    ) -> Vec<Step> {
        let count = self.schedule.writes.len();
        let mut out = vec![vec![vec![]; count + 1]; steps];
        let (mut pending, mut proof) = (Vec::new(), Vec::new());
        let mut before: Option<(usize, usize)> = None;
        for (op, at) in ops.iter().zip(found) {
            if let Op::Comment(text) = op {
                proof.extend(text.lines().map(str::to_owned));
                continue;
            }
            let proof = std::mem::take(&mut proof);
            let Some((step, rank)) = at.map(|it| expected[it]) else {
                for sync in syncs(op) {
                    // A group is closed in the step of its copies, whatever comes next.
                    match before.filter(|_| sync == Sync::Commit).and_then(|(step, rank)| {
                        let here: &mut Step = out.get_mut(step)?;
                        here.get_mut(rank + 1)
                    }) {
                        Some(here) => here.push(sync),
                        None => pending.push((sync, proof.clone())),
                    }
                }
                continue;
            };
            let Some(here) = out.get_mut(step) else { continue };
            let name = &self.schedule.names[rank];
            for (sync, proof) in pending.drain(..) {
                here[rank].push(note(
                    &mut self.barriers,
                    sync,
                    part,
                    Some(name),
                    proof,
                    before == Some((step, rank)),
                ));
            }
            for (sync, proof) in inner(op) {
                here[rank].push(note(&mut self.barriers, sync, part, Some(name), proof, true));
            }
            before = Some((step, rank));
        }
        if let Some(end) = before.and_then(|it| out.get_mut(it.0)) {
            for (sync, proof) in pending {
                end[count].push(note(&mut self.barriers, sync, part, None, proof, false));
            }
        }
        out
    }

    fn done(self, around: Vec<Name>, [prologue, steady, epilogue]: [Vec<Step>; 3]) -> Found<'a> {
        Found { around, prologue, steady, epilogue, barriers: self.barriers, bodies: self.bodies }
    }
}

/// Numbers a barrier; others stay as they are.
fn note(
    barriers: &mut Vec<Barrier>,
    sync: Sync,
    part: Part,
    before: Option<&Name>,
    proof: Vec<String>,
    within: bool,
) -> Sync {
    let Sync::Barrier { inside, .. } = sync else { return sync };
    barriers.push(Barrier { part, before: before.cloned(), proof });
    Sync::Barrier { at: barriers.len() - 1, inside: inside || within }
}

/// The commit, wait or barrier that a statement is, also under a condition.
fn syncs(op: &Op) -> Vec<Sync> {
    match op {
        Op::Commit => vec![Sync::Commit],
        Op::Wait(it) => vec![Sync::Wait { in_flight: it.in_flight, buffers: it.buffers.clone() }],
        Op::Barrier => vec![Sync::Barrier { at: 0, inside: false }],
        Op::If(_, body) => body.iter().flat_map(syncs).collect(),
        Op::Alloc(_) | Op::For(_) | Op::Store(..) | Op::Copy(..) | Op::Comment(_) => vec![],
    }
}

/// The barriers inside a statement, with the comments over them.
fn inner(op: &Op) -> Vec<(Sync, Vec<String>)> {
    let (mut out, mut proof) = (Vec::new(), Vec::new());
    op.walk(&mut |op| match op {
        Op::Comment(text) => proof.extend(text.lines().map(str::to_owned)),
        Op::Barrier => out.push((Sync::Barrier { at: 0, inside: true }, std::mem::take(&mut proof))),
        Op::Alloc(_) | Op::For(_) | Op::If(..) | Op::Store(..) | Op::Copy(..) | Op::Commit | Op::Wait(_) => {
            proof.clear();
        }
    });
    out
}
