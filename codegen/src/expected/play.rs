//! A clock along the teams of the blocks of one multiprocessor, statement by statement.

use std::collections::{BTreeMap, HashMap};

use ir::{
    BulkCopy, Completion, For, ForKind, Group, Index, Instr, Kernel, Less, Module, Name, Op, Participants,
    SyncKind,
};

use super::{
    ExpectedLoop,
    cost::Cost,
    rates::{Rates, Resource, SCHEDULERS},
    server::Server,
    team::{Frame, Team},
};

/// Statements that are played, at most: what takes longer is not told.
const MOST_STEPS: usize = 3_000_000;

/// Cycles for which each resource was busy, in the order of [`Resource::ALL`].
pub(super) type Busy = [f64; 5];

/// How far a loop was at a time.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    time: f64,
    busy: Busy,
}

/// A phase of an mbarrier, and those before it.
#[derive(Default)]
pub(super) struct Phases {
    pub(super) over: Vec<f64>,
    pub(super) arrivals: f64,
    pub(super) expected: f64,
    pub(super) come: f64,
    pub(super) latest: f64,
}

/// A barrier that teams meet at.
#[derive(Default)]
pub(super) struct Meeting {
    pub(super) came: Vec<(usize, f64)>,
}

/// The teams, and what they share.
pub(super) struct Play<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    pub(super) rates: &'a Rates<'a>,
    /// How many multiprocessors there are.
    pub(super) units: i64,
    pub(super) teams: Vec<Team<'a>>,
    pub(super) servers: [Server; 5],
    pub(super) phases: HashMap<(usize, &'a Name, i64), Phases>,
    pub(super) meetings: HashMap<(usize, Option<&'a Name>, Participants), Meeting>,
    pub(super) turns: HashMap<(usize, &'a Name), BTreeMap<i64, f64>>,
    pub(super) costs: HashMap<*const Instr, Cost>,
    pub(super) sharing: HashMap<*const BulkCopy, f64>,
    /// The loops that are looked at, and what their runs so far said.
    pub(super) vars: &'a [Name],
    pub(super) marks: HashMap<(usize, &'a Name), Vec<Mark>>,
    pub(super) windows: Vec<(Name, f64, Busy)>,
    /// The longest that a box took, and a group of products.
    pub(super) box_cycles: f64,
    pub(super) group_cycles: f64,
}

/// Whether a team went on.
pub(super) enum Went {
    On,
    Not,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        (module, kernel): (&'a Module, &'a Kernel),
        rates: &'a Rates<'a>,
        units: i64,
        teams: Vec<Team<'a>>,
        vars: &'a [Name],
    ) -> Play<'a> {
        Play {
            module,
            kernel,
            rates,
            units,
            teams,
            servers: std::array::from_fn(|_| Server::default()),
            phases: HashMap::new(),
            meetings: HashMap::new(),
            turns: HashMap::new(),
            costs: HashMap::new(),
            sharing: HashMap::new(),
            vars,
            marks: HashMap::new(),
            windows: vec![],
            box_cycles: 0.0,
            group_cycles: 0.0,
        }
    }

    /// What the runs of a loop said: of their paces the median.
    pub(super) fn expected_loop(&self, var: &Name) -> Option<ExpectedLoop> {
        let mut all: Vec<_> = self.windows.iter().filter(|it| it.0 == *var).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (_, interval, busy) = all.get(all.len() / 2)?;
        let mut busy: Vec<_> = Resource::ALL.into_iter().zip(*busy).filter(|it| it.1 >= 0.5).collect();
        busy.sort_by(|a, b| b.1.total_cmp(&a.1));
        let chain = self.box_cycles + self.group_cycles;
        Some(ExpectedLoop { var: var.clone(), interval: *interval, busy, chain })
    }

    /// Plays all to the end, and gives the cycles that it took; nothing where it never ends, is too long, or has what this does not know.
    pub(super) fn run(&mut self) -> Option<f64> {
        for _ in 0..MOST_STEPS {
            let next = (0..self.teams.len())
                .filter(|at| !self.teams[*at].is_waiting && !self.teams[*at].frames.is_empty())
                .min_by(|a, b| self.teams[*a].now.total_cmp(&self.teams[*b].now));
            let Some(at) = next else {
                let is_over = self.teams.iter().all(|it| it.frames.is_empty());
                let ends = self.teams.iter().map(|it| it.now);
                return is_over.then(|| ends.fold(0.0, f64::max));
            };
            let now = self.teams[at].now;
            self.servers.iter_mut().for_each(|it| it.forget(now));
            if let Went::Not = self.step(at)? {
                self.teams[at].is_waiting = true;
            }
        }
        None
    }

    fn step(&mut self, at: usize) -> Option<Went> {
        let frame = self.teams[at].frames.last()?;
        let (ops, place) = (frame.ops, frame.at);
        let Some(op) = ops.get(place) else {
            self.end_of_list(at);
            return Some(Went::On);
        };
        match op {
            Op::Instr(it, _) => {
                if let Went::Not = self.instr(at, it)? {
                    return Some(Went::Not);
                }
                self.teams[at].frames.last_mut()?.at += 1;
            }
            Op::Alloc(_) => self.teams[at].frames.last_mut()?.at += 1,
            _ => {
                self.teams[at].frames.last_mut()?.at += 1;
                self.enter(at, op)?;
            }
        }
        Some(Went::On)
    }

    /// Goes into what has statements of its own.
    fn enter(&mut self, at: usize, op: &'a Op) -> Option<()> {
        let team = &mut self.teams[at];
        match op {
            Op::For(it) => {
                let count = eval(&it.extent, team)?;
                if count > 0 {
                    team.env.insert(it.var.clone(), 0);
                    team.frames.push(Frame { ops: &it.body, at: 0, around: Some((it, 0, count)), by: None });
                    if let Some(var) = self.vars.iter().find(|var| **var == it.var) {
                        self.marks.insert((at, var), vec![]);
                        self.mark(at, it);
                    }
                }
            }
            Op::If(conditions, body) => {
                let holds = |it: &Less| Some(eval(&it.lhs, team)? < eval(&it.rhs, team)?);
                if conditions.iter().all(|it| holds(it).unwrap_or(true)) {
                    team.frames.push(Frame { ops: body, at: 0, around: None, by: None });
                }
            }
            Op::Leader(by, body) => {
                let is_mine = match by {
                    Participants::Thread | Participants::Warp | Participants::Warpgroup => true,
                    Participants::Role | Participants::Block | Participants::Cluster => team.number == 0,
                };
                if is_mine {
                    team.frames.push(Frame { ops: body, at: 0, around: None, by: Some(*by) });
                }
            }
            Op::Role(_, body) => team.frames.push(Frame { ops: body, at: 0, around: None, by: None }),
            Op::Alloc(_) | Op::Instr(..) => {}
        }
        Some(())
    }

    fn end_of_list(&mut self, at: usize) {
        let team = &mut self.teams[at];
        let Some(frame) = team.frames.last_mut() else { return };
        let Some((it, iteration, count)) = frame.around else {
            team.frames.pop();
            return;
        };
        if it.kind == ForKind::Serial {
            // It is counted, compared and gone back to.
            let slots = 3.0 * team.warps;
            self.issue(at, slots);
        }
        self.mark(at, it);
        let frame = team_frame(&mut self.teams[at]);
        if iteration + 1 < count {
            (frame.at, frame.around) = (0, Some((it, iteration + 1, count)));
            self.teams[at].env.insert(it.var.clone(), iteration + 1);
            return;
        }
        self.teams[at].frames.pop();
        self.teams[at].env.remove(&it.var);
        self.end_of_run(at, it);
    }

    /// Notes when an iteration of a loop begins.
    fn mark(&mut self, at: usize, it: &'a For) {
        let busy = self.servers.each_ref().map(Server::busy);
        let time = self.teams[at].now;
        if let Some(all) = self.marks.get_mut(&(at, &it.var)) {
            all.push(Mark { time, busy });
        }
    }

    /// What a run of a loop said: of its second half, in which all are at their pace.
    fn end_of_run(&mut self, at: usize, it: &'a For) {
        let Some(all) = self.marks.remove(&(at, &it.var)) else { return };
        let (first, last) = (all.len() / 2, all.len() - 1);
        if last > first + 1 {
            let count = (last - first) as f64;
            let (from, to) = (all[first], all[last]);
            let busy = std::array::from_fn(|n| (to.busy[n] - from.busy[n]) / count);
            self.windows.push((it.var.clone(), (to.time - from.time) / count, busy));
        }
    }

    /// Keeps a resource for so long, from a time on or later: when that begins and ends.
    pub(super) fn serve(&mut self, of: Resource, from: f64, cycles: f64) -> (f64, f64) {
        self.servers[of as usize].serve(from, cycles)
    }

    /// Lets a team issue so many instructions of warps.
    pub(super) fn issue(&mut self, at: usize, slots: f64) {
        let (begin, end) = self.serve(Resource::Issue, self.teams[at].now, slots / SCHEDULERS);
        // One warp has one scheduler, and does not issue faster than that.
        let warps = self.teams[at].doing().0;
        self.teams[at].now = end.max(begin + slots / warps.min(SCHEDULERS));
    }

    fn instr(&mut self, at: usize, it: &'a Instr) -> Option<Went> {
        match it.sync() {
            Some(SyncKind::Commit(group)) => {
                let team = &mut self.teams[at];
                let now = team.now;
                let all = team.under_way.entry(group).or_default();
                let open = std::mem::take(&mut all.open);
                all.closed.push((open.0.max(now), open.1.max(now)));
            }
            Some(SyncKind::Wait(it)) => {
                let team = &mut self.teams[at];
                let all = team.under_way.entry(it.group).or_default();
                let left = all.closed.len().saturating_sub(it.in_flight as usize);
                let over = all.closed.drain(..left).map(|end| if it.reads_only { end.0 } else { end.1 });
                team.now = over.fold(team.now, f64::max);
            }
            Some(SyncKind::Barrier) => {
                let Instr::Barrier(barrier) = it else { return None };
                return Some(self.meet(at, barrier.among));
            }
            Some(SyncKind::Await(it)) => return self.wait(at, it),
            Some(SyncKind::Arrive(it)) => self.arrive(at, it)?,
            Some(SyncKind::Fence(_)) => self.issue(at, self.teams[at].warps),
            Some(SyncKind::Turn(it)) => return self.turn(at, it),
            None => match (it, it.completion()) {
                (Instr::Bulk(it), _) => self.bulk(at, it)?,
                (Instr::Wgmma(it), _) => self.wgmma(at, it)?,
                (_, Completion::AtOnce | Completion::WithGroup(Group::CpAsync)) => self.own(at, it),
                (_, Completion::WithGroup(_) | Completion::WithPhase) => return None,
            },
        }
        Some(Went::On)
    }
}

pub(super) fn team_frame<'t, 'a>(team: &'t mut Team<'a>) -> &'t mut Frame<'a> {
    team.frames.last_mut().expect("it is in a list")
}

/// What an expression is for a team.
pub(super) fn eval(it: &Index, team: &Team<'_>) -> Option<i64> {
    it.eval(&|name| team.env.get(name).copied())
}
