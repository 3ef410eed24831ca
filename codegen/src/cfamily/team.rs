//! Teams of threads: the roles of a kernel, who leads a team, and where one waits for itself.

use indexmap::IndexMap;
use ir::{
    Arch, Arrival, Completion, Group, Index, Instr, Kernel, Less, Name, Op, Participants, SemaphoreKind,
    ThreadAxis, Turn, axis_var, intrin::WARPGROUP,
};

use super::{Dialect, Printer, helper::Helper, ptx::Ptx};
use crate::launch::TensorMemory;

/// The threads of a warp.
const WARP: i64 = ir::intrin::WARP;

/// Numbers of registers are multiples of this (PTX ISA, `setmaxnreg`).
const REGISTER_UNIT: i64 = 8;

/// The named barriers that a block has beside that of `__syncthreads` (PTX ISA, `bar`).
pub(crate) const NAMED_BARRIERS: i64 = 15;

/// Threads of a block with consecutive numbers that run the same statements: a role, or all.
#[derive(Clone, Default)]
pub(super) struct Team {
    /// Its name, if it is a role.
    role: Option<Name>,
    /// The number of the first.
    first: i64,
    /// How many there are on each axis; none where only the launch says so.
    axes: Vec<(ThreadAxis, Option<i64>)>,
    /// How many registers each gets, if that is said.
    registers: Option<u32>,
}

impl Team {
    /// All threads of a block.
    pub(super) fn block(kernel: &Kernel) -> Team {
        let axes = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
        let axes = axes.map(|(axis, extent)| (*axis, extent.as_int())).collect();
        Team { axes, ..Team::default() }
    }

    /// The roles of a kernel, one behind the other.
    fn roles(kernel: &Kernel) -> Vec<Team> {
        let mut first = 0;
        let team = |(name, it): (&Name, &ir::WarpRole)| {
            let axes = it.axes.iter().map(|(axis, extent)| (*axis, Some(*extent))).collect();
            let team = Team { role: Some(name.clone()), first, axes, registers: it.registers };
            first += it.threads();
            team
        };
        kernel.roles.iter().map(team).collect()
    }

    /// How many there are, or the most that there may be.
    fn threads(&self) -> i64 {
        self.axes.iter().map(|it| it.1).product::<Option<i64>>().unwrap_or_else(|| Arch::MAX_THREADS.into())
    }

    /// The axes, the one on which neighbours have consecutive numbers first.
    fn in_order(&self) -> Vec<(ThreadAxis, Option<i64>)> {
        let order = [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ];
        order.iter().filter_map(|axis| self.axes.iter().find(|it| it.0 == *axis).copied()).collect()
    }

    fn first_warp(&self) -> i64 {
        self.first / WARP
    }

    /// The number of a thread in the team. Blocks of roles have one axis.
    fn thread(&self) -> String {
        if self.role.is_some() {
            return if self.first == 0 {
                "threadIdx.x".to_owned()
            } else {
                format!("(threadIdx.x - {})", self.first)
            };
        }
        let (mut before, mut unknown) = (1, String::new());
        let mut terms = Vec::new();
        for (axis, extent) in self.in_order() {
            let factor = if before == 1 { String::new() } else { format!(" * {before}") };
            terms.push(format!("{}{factor}{unknown}", axis.as_str()));
            match extent {
                Some(extent) => before *= extent,
                None => unknown.push_str(&axis.as_str().replace("threadIdx", " * blockDim")),
            }
        }
        match &*terms {
            [] => "0".to_owned(),
            [one] => one.clone(),
            _ => format!("({})", terms.join(" + ")),
        }
    }

    /// The condition that one thread of a team in this one passes, and whether it is elected by its warp.
    ///
    /// What waits for groups has to be the thread that committed them: that of a fixed number. All else the elected one does: the
    /// compiler knows then that it is one, and puts no loop over the lanes of the warp around a bulk copy.
    fn leads(&self, of: Participants, body: &[Op]) -> (String, bool) {
        let (thread, first) = (self.thread(), self.first_warp());
        let mut counts_groups = false;
        for op in body {
            op.each_instr(&mut |it| {
                counts_groups |=
                    matches!(it.completion(), Completion::WithGroup(Group::Bulk | Group::Tcgen05))
                        || matches!(
                            it,
                            Instr::Commit(_) | Instr::Wait(_) | Instr::Arrive(Arrival { is_late: true, .. })
                        );
            });
        }
        if of == Participants::Cluster {
            // The thread of its role, in the first block.
            return (format!("{} == 0 && {thread} == 0", axis_var(ThreadAxis::ClusterX)), false);
        }
        match (of, counts_groups) {
            (Participants::Thread, _) => ("1".to_owned(), false),
            (Participants::Warp, false) => (String::new(), true),
            (Participants::Warp, true) => (format!("{thread} % {WARP} == 0"), false),
            (Participants::Warpgroup, false) if self.threads() > WARPGROUP => {
                let warp = if first == 0 { "tw_warp".to_owned() } else { format!("(tw_warp - {first})") };
                (format!("{warp} % {} == 0", WARPGROUP / WARP), true)
            }
            (Participants::Warpgroup, true) if self.threads() > WARPGROUP => {
                (format!("{thread} % {WARPGROUP} == 0"), false)
            }
            (_, false) => (format!("tw_warp == {first}"), true),
            (_, true) => (format!("{thread} == 0"), false),
        }
    }

    /// How many named barriers a barrier of a kind takes.
    fn named(&self, among: Participants) -> i64 {
        match among {
            Participants::Warpgroup => self.threads() / WARPGROUP,
            Participants::Role if self.threads() > WARP => 1,
            Participants::Role
            | Participants::Thread
            | Participants::Warp
            | Participants::Block
            | Participants::Cluster => 0,
        }
    }
}

/// The numbers of the named barriers of a kernel: the first of each role and use.
pub(crate) type NamedBarriers = IndexMap<(Option<Name>, Use), i64>;

/// What named barriers are there for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Use {
    /// Barriers of a team.
    Barrier(Participants),
    /// Turns in a loop: a barrier for each that takes them, at which the one before it arrives.
    Turns(Name),
}

/// Which named barriers a kernel has, and how many.
pub(crate) fn named_barriers(kernel: &Kernel) -> (NamedBarriers, i64) {
    let (mut numbers, mut taken) = (NamedBarriers::new(), 0);
    let block = Team::block(kernel);
    let roles = Team::roles(kernel);
    for top in &kernel.body {
        let team = match top {
            Op::Role(name, _) => roles.iter().find(|it| it.role.as_ref() == Some(name)).unwrap_or(&block),
            _ => &block,
        };
        top.each_instr(&mut |it| {
            let (of, count) = match it {
                Instr::Barrier(it) => (Use::Barrier(it.among), team.named(it.among)),
                Instr::Turn(it) => (Use::Turns(it.of.clone()), it.members),
                _ => return,
            };
            let key = (team.role.clone(), of);
            if count > 0 && !numbers.contains_key(&key) {
                numbers.insert(key, taken + 1);
                taken += count;
            }
        });
    }
    (numbers, taken)
}

/// Whether the source of a kernel needs the number of a warp as a value that the compiler knows to be one for all its lanes.
fn numbers_warps(kernel: &Kernel) -> bool {
    let mut needs = !kernel.roles.is_empty() || TensorMemory::of(kernel).is_some();
    for op in &kernel.body {
        op.walk(&mut |op| {
            needs |= match op {
                Op::Leader(of, _) => !matches!(of, Participants::Thread | Participants::Warp),
                Op::Instr(Instr::Barrier(it), _) => it.among == Participants::Warpgroup,
                _ => false,
            };
        });
    }
    needs
}

/// Whether warpgroups of a kernel multiply.
fn multiplies(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.iter().for_each(|op| op.each_instr(&mut |it| found |= matches!(it, Instr::Wgmma(_))));
    found
}

/// A thread axis of the launch. Operands of warpgroups are at addresses that are the same for all lanes of a warp, which the compiler
/// has to see.
pub(super) fn thread_axis(kernel: &Kernel, axis: ThreadAxis) -> String {
    let across = kernel.launch.get(&ThreadAxis::ThreadX).and_then(Index::as_int).unwrap_or(1);
    let is_uniform = axis.is_thread() && axis != ThreadAxis::ThreadX && across % WARP == 0;
    if is_uniform && multiplies(kernel) {
        format!("__shfl_sync(0xffffffff, {}, 0)", axis.as_str())
    } else {
        axis.as_str().to_owned()
    }
}

impl Printer<'_> {
    /// The number of the warp in its block, where it is asked for.
    pub(super) fn warp_number(&mut self, kernel: &Kernel) {
        self.frame.roles = Team::roles(kernel);
        self.frame.team = Team::block(kernel);
        self.frame.named_barriers = named_barriers(kernel).0;
        self.frame.registers_at_start = self.registers_at_start(kernel);
        if numbers_warps(kernel) {
            let of_launch = self.frame.team.thread();
            let thread = if kernel.roles.is_empty() { of_launch.as_str() } else { "threadIdx.x" };
            self.line(&format!("const int tw_warp = __shfl_sync(0xffffffff, {thread} / {WARP}, 0);"));
        }
    }

    /// How many registers each thread of a kernel with roles starts with: its share of those of a multiprocessor.
    fn registers_at_start(&self, kernel: &Kernel) -> i64 {
        let Dialect::Cuda(caps) = self.dialect else { return 0 };
        let resident = kernel.threads() * kernel.blocks_per_sm.unwrap_or(1);
        let share = i64::from(caps.registers_per_sm) / resident.max(1) / REGISTER_UNIT;
        let most = (i64::from(caps.registers_per_thread) + REGISTER_UNIT - 1) / REGISTER_UNIT;
        share.min(most) * REGISTER_UNIT
    }

    /// What the threads of a role do.
    pub(super) fn role(&mut self, name: &Name, body: &[Op]) {
        let roles = &self.frame.roles;
        let Some(at) = roles.iter().position(|it| it.role.as_ref() == Some(name)) else { return };
        let (team, is_last) = (roles[at].clone(), at + 1 == roles.len());
        let (first, end) = (team.first_warp(), (team.first + team.threads()) / WARP);
        self.line(&format!("// {name}"));
        let head = match (first, is_last) {
            (0, _) => format!("if (tw_warp < {end})"),
            (_, true) => format!("if ({first} <= tw_warp)"),
            (_, false) => format!("if ({first} <= tw_warp && tw_warp < {end})"),
        };
        let outside = (std::mem::replace(&mut self.frame.team, team), self.frame.bounds.clone());
        self.nest(&head, |printer| {
            if let Some(count) = printer.frame.team.registers {
                let grows = i64::from(count) > printer.frame.registers_at_start;
                let name = printer.require(Helper::Ptx(Ptx::Registers { count, grows }));
                printer.line(&format!("{name}();"));
            }
            printer.role_axes(body);
            printer.ops(body);
        });
        (self.frame.team, self.frame.bounds) = outside;
    }

    /// The axes of a role as variables. From warps on they are the same for all lanes.
    fn role_axes(&mut self, body: &[Op]) {
        let team = self.frame.team.clone();
        let (first, thread) = (team.first, team.thread());
        let warp = if first == 0 { "tw_warp".to_owned() } else { format!("(tw_warp - {})", first / WARP) };
        let total = team.threads();
        let mut before = 1;
        for (axis, extent) in team.in_order() {
            let extent = extent.expect("a role has so many threads");
            let var = axis_var(axis);
            self.frame.bounds.insert(&var, &Index::int(extent));
            let (of, per) = if before % WARP == 0 { (&warp, before / WARP) } else { (&thread, before) };
            before *= extent;
            if !super::cuda::mentions(body, &var) {
                continue;
            }
            let quotient = if per == 1 { String::new() } else { format!(" / {per}") };
            let remainder = if before == total { String::new() } else { format!(" % {extent}") };
            let of_index = self.index_type(self.frame.wide);
            self.line(&format!("const {of_index} {var} = {of}{quotient}{remainder};"));
        }
    }

    /// What one thread of a team does.
    pub(super) fn leader(&mut self, of: Participants, body: &[Op]) {
        let (condition, is_elected) = self.frame.team.leads(of, body);
        let mut all = condition;
        if is_elected {
            let elect = self.require(Helper::Ptx(Ptx::Elect));
            let and = if all.is_empty() { "" } else { " && " };
            all = format!("{all}{and}{elect}()");
        }
        self.nest(&format!("if ({all})"), |it| it.ops(body));
    }

    /// A barrier: the threads of a team wait for each other.
    pub(super) fn barrier(&mut self, among: Participants) {
        if among == Participants::Cluster && !self.dialect.is_c() {
            let name = self.require(Helper::Ptx(Ptx::ClusterMeeting));
            self.line(&format!("{name}();"));
            return;
        }
        let team = self.frame.team.clone();
        let number = self.frame.named_barriers.get(&(team.role.clone(), Use::Barrier(among))).copied();
        let (Some(number), false) = (number, self.dialect.is_c()) else {
            let is_warp = among == Participants::Warp || (among == Participants::Role && number.is_none());
            match among {
                _ if self.dialect.is_c() => {
                    self.line("// One thread runs this: there is nobody to wait for.");
                }
                _ if is_warp => self.line("__syncwarp();"),
                _ => self.tensor_barrier(|it| it.line("__syncthreads();")),
            }
            return;
        };
        let teams = team.named(among);
        let threads = team.threads() / teams;
        let first = team.first / WARPGROUP;
        let mut barriers = vec![];
        for at in 0..teams {
            let name = self.require(Helper::Ptx(Ptx::NamedBarrier { number: number + at, threads }));
            let condition = match (teams, at + 1 == teams) {
                (1, _) => String::new(),
                (_, true) => "else ".to_owned(),
                (_, false) => format!("if (tw_warp / {} == {}) ", WARPGROUP / WARP, first + at),
            };
            let or = if at > 0 && at + 1 < teams { "else " } else { "" };
            barriers.push(format!("{or}{condition}{name}();"));
        }
        self.tensor_barrier(|it| barriers.iter().for_each(|line| it.line(line)));
    }

    /// The beginning or the end of a turn: a warpgroup waits at its barrier for the one before it, which arrives there when it ends.
    pub(super) fn turn(&mut self, it: &Turn) {
        let key = (self.frame.team.role.clone(), Use::Turns(it.of.clone()));
        let Some(first) = self.frame.named_barriers.get(&key).copied().filter(|_| !self.dialect.is_c())
        else {
            self.line("// One thread runs this: all turns are its own.");
            return;
        };
        let (threads, members) = (2 * WARPGROUP, Index::int(it.members));
        let begins = it.kind == SemaphoreKind::Acquire;
        let condition = if begins {
            Less::new(Index::int(0), it.turn.clone())
        } else {
            Less::new(it.turn.clone() + 1, it.count.clone())
        };
        let head = format!("if ({})", self.conditions(&[condition]));
        let own = self.frame.bounds.simplify(&it.turn.floor_mod(&members));
        let own = self.index(&own);
        self.nest(&head, |printer| {
            for at in 0..it.members {
                let which = if begins { at } else { (at + 1) % it.members };
                let number = first + which;
                let name = printer.require(Helper::Ptx(if begins {
                    Ptx::NamedBarrier { number, threads }
                } else {
                    Ptx::NamedArrival { number, threads }
                }));
                let condition = match at {
                    0 => format!("if ({own} == 0) "),
                    _ if at + 1 == it.members => "else ".to_owned(),
                    _ => format!("else if ({own} == {at}) "),
                };
                printer.line(&format!("{condition}{name}();"));
            }
        });
    }
}
