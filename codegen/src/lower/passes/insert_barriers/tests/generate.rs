//! Kernels at random: loops, conditions, copies and stores of threads that read what others wrote.

use std::sync::Arc;

use indexmap::IndexMap;
use ir::{
    Access, Alloc, Arg, BinaryOp, DType, For, ForKind, Group, Index, Instr, Kernel, Less, Module, Name, Op,
    Role, Scope, ThreadAxis, Value, Wait, axis_var,
};

use super::random::Random;

/// Shared buffers and how many rows they have; `G` is in global memory.
const BUFFERS: [(&str, i64); 4] = [("S", 2), ("T", 2), ("U", 3), ("G", 2)];
/// The most iterations of a loop.
pub(super) const MOST_TRIPS: i64 = 4;

struct Generator<'a> {
    random: &'a mut Random,
    axes: Vec<(ThreadAxis, i64)>,
    /// The number of a thread.
    thread: Index,
    threads: i64,
    /// The loops around.
    loops: Vec<Name>,
    /// Buffers that nobody may touch: copies to them are under way.
    busy: Vec<&'static str>,
    made: i64,
    budget: i64,
}

/// A kernel of a few threads in two blocks, over the dimension `n`.
pub(super) fn kernel(random: &mut Random) -> Module {
    let axes = random.pick(&[
        vec![(ThreadAxis::ThreadX, 8)],
        vec![(ThreadAxis::ThreadX, 4), (ThreadAxis::ThreadY, 2)],
        vec![(ThreadAxis::ThreadX, 3), (ThreadAxis::ThreadY, 3)],
        vec![(ThreadAxis::ThreadX, 2), (ThreadAxis::ThreadY, 2), (ThreadAxis::ThreadZ, 2)],
    ]);
    let (mut thread, mut threads) = (Index::int(0), 1);
    for (axis, count) in &axes {
        thread = thread + Index::var(&axis_var(*axis)) * threads;
        threads *= count;
    }
    let budget = 3 + random.below(20);
    let launch = axes.iter().map(|(axis, count)| (*axis, Index::int(*count)));
    let launch = launch.chain([(ThreadAxis::BlockX, Index::int(2))]).collect();
    let (loops, busy) = (vec![], vec![]);
    let mut it = Generator { random, axes, thread, threads, loops, busy, made: 0, budget };
    let apart = it.random.chance(25);
    let mut body = it.start(apart);
    body.extend(if apart { it.one_after_the_other() } else { it.list(0) });
    it.module(launch, body)
}

impl Generator<'_> {
    fn row(&self) -> i64 {
        2 * self.threads
    }

    fn module(&self, launch: IndexMap<ThreadAxis, Index>, body: Vec<Op>) -> Module {
        let arg = |shape: &[i64], role| {
            let shape = shape.iter().map(|it| Index::int(*it)).collect();
            Arg { dtype: DType::F32, shape, layout: ir::Layout::default(), role, zeroed: false, below: None }
        };
        let source = arg(&[64, self.row()], Role::Input);
        let slots = BUFFERS.iter().find(|it| it.0 == "G").expect("it is one of them").1;
        let args = [(Name::new("A"), source), (Name::new("G"), arg(&[2, slots, self.row()], Role::Output))];
        let used = IndexMap::from([(Name::new("A"), false), (Name::new("G"), true)]);
        let name = Name::new("random");
        let kernel = Kernel { args: used, body, ..Kernel::new(name.clone(), launch) };
        Module { name, dims: vec![Name::new("n")], args: args.into(), kernels: vec![kernel] }
    }

    /// Allocations, and a number in each element but of buffers that share bytes.
    fn start(&mut self, apart: bool) -> Vec<Op> {
        let mut out = Vec::new();
        for (name, slots) in BUFFERS.into_iter().filter(|it| it.0 != "G") {
            let offset = (apart && name != "U").then_some(0);
            out.push(alloc(name, vec![slots, self.row()], Scope::Shared, offset));
        }
        out.push(alloc("L", vec![2], Scope::Local, None));
        for at in 0..2 {
            out.push(Op::from(Instr::Store(access("L", vec![Index::int(at)]), self.number())));
        }
        for (name, slots) in BUFFERS.into_iter().filter(|it| !apart || it.0 == "U" || it.0 == "G") {
            out.extend(self.filled(name, slots));
        }
        out.push(Instr::barrier().into());
        out
    }

    fn filled(&mut self, name: &str, slots: i64) -> Vec<Op> {
        let elements = (0..slots).flat_map(|slot| [(slot, 0), (slot, self.threads)]);
        let places = elements.map(|(slot, by)| place(name, Index::int(slot), self.thread.clone() + by));
        let places: Vec<_> = places.collect();
        places.into_iter().map(|place| Op::from(Instr::Store(place, self.number()))).collect()
    }

    /// `S` and `T` share bytes: the one is filled and used, then the other, maybe again and again.
    fn one_after_the_other(&mut self) -> Vec<Op> {
        let var = self.random.chance(50).then(|| self.fresh("i"));
        self.loops.extend(var.clone());
        let mut body = Vec::new();
        for (name, other) in [("S", "T"), ("T", "S")] {
            self.busy.push(other);
            body.extend(self.filled(name, 2));
            body.extend(self.list(1));
            self.busy.pop();
        }
        let Some(var) = var else { return body };
        self.loops.pop();
        vec![Op::For(Arc::new(For {
            var,
            extent: Index::int(2),
            kind: ForKind::Serial,
            counters: vec![],
            independent: ir::Independence::Unknown,
            body,
        }))]
    }

    fn list(&mut self, depth: usize) -> Vec<Op> {
        let mut out = Vec::new();
        for _ in 0..=self.random.below(4) {
            if self.budget > 0 {
                out.extend(self.stmts(depth));
            }
        }
        out
    }

    fn stmts(&mut self, depth: usize) -> Vec<Op> {
        self.budget -= 1;
        match self.random.below(20) {
            0..7 if depth < 3 => vec![self.for_loop(depth)],
            7 if depth < 3 => {
                let cond = self.uniform();
                vec![Op::If(vec![cond], self.list(depth + 1))]
            }
            8 if depth < 3 => {
                let cond = self.divergent();
                vec![Op::If(vec![cond], self.list(3))]
            }
            9 | 10 if depth < 3 => self.copied(),
            11 if depth < 2 => self.ring(depth),
            _ => vec![self.store()],
        }
    }

    fn fresh(&mut self, prefix: &str) -> Name {
        self.made += 1;
        Name::new(format!("{prefix}{}", self.made))
    }

    fn for_loop(&mut self, depth: usize) -> Op {
        let n = Index::var(&Name::new("n"));
        let mut extents =
            vec![Index::int(1), Index::int(2), Index::int(3), Index::int(MOST_TRIPS), n.clone()];
        extents.extend([&n - &Index::int(1), n.minimum(&Index::int(2)), Index::int(0)]);
        extents.extend(self.loops.last().map(Index::var));
        let mut extent = self.random.pick(&extents);
        if self.random.chance(5) {
            extent = Index::var(&axis_var(ThreadAxis::ThreadX));
        }
        let var = self.fresh("i");
        self.loops.push(var.clone());
        let body = self.list(depth + 1);
        self.loops.pop();
        let kind = self.random.pick(&[ForKind::Serial, ForKind::Serial, ForKind::Unrolled]);
        Op::For(Arc::new(For {
            var,
            extent,
            kind,
            counters: vec![],
            independent: ir::Independence::Unknown,
            body,
        }))
    }

    /// A condition that is the same for all threads of a block.
    fn uniform(&mut self) -> Less {
        let mut sides = vec![Index::var(&Name::new("n")), Index::var(&axis_var(ThreadAxis::BlockX))];
        sides.extend(self.loops.iter().map(Index::var));
        let (side, limit) = (self.random.pick(&sides), Index::int(1 + self.random.below(3)));
        if self.random.chance(50) { Less::new(side, limit) } else { Less::new(limit - 1, side) }
    }

    fn divergent(&mut self) -> Less {
        let mut sides = vec![self.thread.clone()];
        sides.extend(self.axes.iter().map(|it| Index::var(&axis_var(it.0))));
        let mut limits = vec![Index::int(1), Index::int(2), Index::int(3), Index::var(&Name::new("n"))];
        limits.extend(self.loops.last().map(Index::var));
        Less::new(self.random.pick(&sides), self.random.pick(&limits))
    }

    /// A value that no other thread writes.
    fn number(&mut self) -> Value {
        self.made += 1;
        let loops = self.loops.iter().fold(Index::int(self.made), |sum, it| sum * 5 + Index::var(it));
        Value::Cast(
            DType::F32,
            Arc::new(Value::Index(DType::I32, loops * self.threads + self.thread.clone())),
        )
    }

    /// A row: of a ring, or one.
    fn slot(&mut self, slots: i64) -> Index {
        match self.loops.last() {
            Some(var) if self.random.chance(60) => {
                let at = Index::var(var) + self.random.below(2);
                at.floor_mod(&Index::int(slots))
            }
            Some(_) | None => Index::int(self.random.below(slots)),
        }
    }

    /// An element that the thread has for itself, maybe in a loop of two.
    fn own(&mut self, inner: Option<&Name>) -> Index {
        let (thread, threads) = (self.thread.clone(), self.threads);
        if let Some(inner) = inner.map(Index::var) {
            return if self.random.chance(50) { thread * 2 + inner } else { inner * threads + thread };
        }
        let mut mirrored = Index::int(0);
        for (axis, count) in &self.axes {
            mirrored = mirrored * *count + Index::var(&axis_var(*axis));
        }
        match self.random.below(6) {
            0..2 => thread,
            2 => Index::int(self.row() - 1) - thread,
            3 => mirrored,
            4 => (thread + 1).floor_mod(&Index::int(threads)),
            _ => thread + threads,
        }
    }

    /// An element that several threads may read.
    fn any(&mut self, inner: Option<&Name>) -> Index {
        let thread = self.thread.clone();
        match self.random.below(8) {
            0 => Index::int(0),
            1 => thread.floor_div(&Index::int(2)),
            2 => (thread * 3 + 1).floor_mod(&Index::int(self.row())),
            3 => thread.minimum(&Index::int(3)),
            _ => self.own(inner),
        }
    }

    fn free(&mut self, but: &str) -> (&'static str, i64) {
        let all: Vec<_> =
            BUFFERS.into_iter().filter(|it| it.0 != but && !self.busy.contains(&it.0)).collect();
        self.random.pick(&all)
    }

    /// `to[…] = from[…] + number`, maybe under a condition or in a loop of the thread.
    fn store(&mut self) -> Op {
        let inner = self.random.chance(20).then(|| self.fresh("v"));
        let (to, slots) = self.free("");
        let slot = self.slot(slots);
        let element = self.own(inner.as_ref());
        let mut value =
            Value::Binary(BinaryOp::Add, Arc::new(self.load(to, inner.as_ref())), Arc::new(self.number()));
        if self.random.chance(20) {
            value = Value::Binary(BinaryOp::Add, Arc::new(self.load(to, inner.as_ref())), Arc::new(value));
        }
        let mut op = if self.random.chance(10) {
            Op::from(Instr::Store(access("L", vec![Index::int(0)]), value))
        } else {
            Op::from(Instr::Store(place(to, slot, element), value))
        };
        if let Some(var) = inner {
            let kind = self.random.pick(&[ForKind::Serial, ForKind::Unrolled, ForKind::Vectorized]);
            op = Op::For(Arc::new(For {
                var,
                extent: Index::int(2),
                kind,
                counters: vec![],
                independent: ir::Independence::Unknown,
                body: vec![op],
            }));
        }
        match self.random.below(10) {
            0 | 1 => Op::If(vec![self.divergent()], vec![op]),
            2 => Op::If(vec![self.uniform()], vec![op]),
            _ => op,
        }
    }

    fn load(&mut self, but: &str, inner: Option<&Name>) -> Value {
        if self.random.chance(15) {
            return Value::Load(access("L", vec![Index::int(0)]));
        }
        let (from, slots) = self.free(but);
        let slot = self.slot(slots);
        let element = self.any(inner);
        Value::Load(place(from, slot, element))
    }

    fn copy(&mut self, to: &str, slot: Index, row: Index) -> Op {
        let from = access("A", vec![row, self.thread.clone()]);
        self.copy_of(from, to, slot)
    }

    fn copy_of(&mut self, from: Access, to: &str, slot: Index) -> Op {
        let element = self.own(None);
        Op::from(Instr::AsyncCopy(place(to, slot, element), Value::Load(from)))
    }

    fn shared(&mut self) -> Option<(&'static str, i64)> {
        let all: Vec<_> =
            BUFFERS.into_iter().filter(|it| it.0 != "G" && !self.busy.contains(&it.0)).collect();
        (all.len() > 1).then(|| self.random.pick(&all))
    }

    /// A copy, something else, and the wait for it.
    fn copied(&mut self) -> Vec<Op> {
        let Some((to, slots)) = self.shared() else { return vec![] };
        let slot = self.slot(slots);
        let written = self.busy.is_empty() && self.random.chance(40);
        let mut out = if written {
            let from = place("G", Index::int(self.random.below(2)), self.any(None));
            vec![self.copy_of(from, to, slot)]
        } else {
            let row = Index::int(self.random.below(64));
            vec![self.copy(to, slot, row)]
        };
        if self.random.chance(30) {
            out = vec![Op::If(vec![self.divergent()], out)];
        }
        out.push(Op::from(Instr::Commit(Group::CpAsync)));
        self.busy.extend([to, "G"].iter().take(if written { 2 } else { 1 }));
        for _ in 0..self.random.below(3) {
            out.push(self.store());
        }
        self.busy.truncate(self.busy.len() - if written { 2 } else { 1 });
        out.push(Op::from(Instr::Wait(Wait::copies(0, vec![Name::new(to)]))));
        out
    }

    /// Copies that run ahead of their uses.
    fn ring(&mut self, depth: usize) -> Vec<Op> {
        let Some((to, slots)) = self.shared() else { return vec![] };
        let ahead = 1 + self.random.below(slots - 1);
        let mut out = Vec::new();
        for at in 0..ahead {
            out.extend([
                self.copy(to, Index::int(at), Index::int(at)),
                Op::from(Instr::Commit(Group::CpAsync)),
            ]);
        }
        let var = self.fresh("k");
        let extent = self.random.pick(&[Index::int(3), Index::int(MOST_TRIPS), Index::var(&Name::new("n"))]);
        let next = Index::var(&var) + ahead;
        self.loops.push(var.clone());
        self.busy.push(to);
        let slot = |at: Index| at.floor_mod(&Index::int(slots));
        let copy = self.copy(to, slot(next.clone()), next.clone());
        let in_flight = u32::try_from(ahead).unwrap();
        let wait = Op::from(Instr::Wait(Wait::copies(in_flight, vec![Name::new(to)])));
        let mut body = vec![
            Op::If(vec![Less::new(next, extent.clone())], vec![copy]),
            Op::from(Instr::Commit(Group::CpAsync)),
            wait,
        ];
        let element = self.any(None);
        let used = Value::Load(place(to, slot(Index::var(&var)), element));
        let (by, by_slots) = self.free(to);
        let (by_slot, own) = (self.slot(by_slots), self.own(None));
        let value = Value::Binary(BinaryOp::Add, Arc::new(used), Arc::new(self.number()));
        body.push(Op::from(Instr::Store(place(by, by_slot, own), value)));
        if self.random.chance(40) {
            body.extend(self.list(depth + 2));
        }
        self.loops.pop();
        self.busy.pop();
        out.push(Op::For(Arc::new(For {
            var,
            extent,
            kind: ForKind::Serial,
            counters: vec![],
            independent: ir::Independence::Unknown,
            body,
        })));
        out.push(Op::from(Instr::Wait(Wait::copies(0, vec![Name::new(to)]))));
        out
    }
}

fn place(buffer: &str, slot: Index, element: Index) -> Access {
    let block = (buffer == "G").then(|| Index::var(&axis_var(ThreadAxis::BlockX)));
    access(buffer, block.into_iter().chain([slot, element]).collect())
}

fn access(buffer: &str, indices: Vec<Index>) -> Access {
    Access { buffer: Name::new(buffer), indices, lanes: 1 }
}

fn alloc(name: &str, shape: Vec<i64>, scope: Scope, offset: Option<i64>) -> Op {
    Op::Alloc(Alloc { shape, offset, ..Alloc::new(Name::new(name), DType::F32, 0, scope) })
}
