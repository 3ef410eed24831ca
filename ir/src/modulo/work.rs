//! What the components of a loop do in one iteration: for how long they keep which part of a multiprocessor, and when others can
//! use what they have done.

use std::collections::{BTreeMap, BTreeSet};

use super::threads::Threads;
use crate::{
    Arch, BinaryOp, Feature, Func, Index, Loop, LoopKind, Mechanism, Name, Scope, Value,
    access::{Axes, FuncAccess, accesses},
    intrin::Instruction,
    pipeline::Component,
};

/// A part of a multiprocessor that does one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// The way from and to global memory.
    Global,
    /// Shared memory.
    Shared,
    /// The tensor cores.
    Tensor,
    /// What adds and multiplies numbers of a thread.
    Arithmetic,
}

impl Resource {
    pub(super) const ALL: [Resource; 4] =
        [Resource::Global, Resource::Shared, Resource::Tensor, Resource::Arithmetic];

    /// The words in reasons.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Resource::Global => "global memory",
            Resource::Shared => "shared memory",
            Resource::Tensor => "tensor cores",
            Resource::Arithmetic => "arithmetic",
        }
    }
}

/// Who waits until a component is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// A copy that runs beside the threads, once the script asks for it.
    Copy(Mechanism),
    /// Loads into registers, or stores from them: threads go on until somebody wants what they bring.
    Move,
    /// Products that threads do not wait for: of a warpgroup, or into tensor memory.
    Products,
    /// Threads do it themselves.
    Own,
}

/// What a component does in one iteration, for one block of threads.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Cycles for which it keeps each resource, in the order of [`Resource::ALL`].
    pub(super) busy: [f64; 4],
    /// Cycles from then on until others can use what it has done.
    pub(super) latency: f64,
    /// Cycles for which sums that it adds to make it wait for itself.
    pub(super) chain: f64,
    pub(super) pace: Pace,
    /// Bytes of each buffer in shared memory, or in registers of a thread, that it writes.
    pub(super) fills: BTreeMap<Name, f64>,
    pub(super) reads: BTreeSet<Name>,
    pub(super) writes: BTreeSet<Name>,
}

impl Work {
    /// The resource that it keeps longest, and for how long.
    pub(super) fn longest(&self) -> (Resource, f64) {
        let all = Resource::ALL.into_iter().zip(self.busy);
        all.reduce(|a, b| if b.1 > a.1 { b } else { a }).expect("there are resources")
    }
}

/// What is counted of a component.
struct Count<'a> {
    func: &'a Func,
    threads: &'a Threads,
    arch: &'a Arch,
    out: Work,
    /// Bytes that come from or go to global memory.
    global: f64,
    has_arithmetic: bool,
}

/// What a component does; `None` where a size is not known.
pub(super) fn work(func: &Func, component: &Component, threads: &Threads, arch: &Arch) -> Option<Work> {
    let all = accesses(&component.body, Axes::AsLoops);
    let (reads, writes) = (component.reads(), component.writes());
    let fills = BTreeMap::new();
    let out = Work { busy: [0.0; 4], latency: 0.0, chain: 0.0, pace: Pace::Own, fills, reads, writes };
    let mut count = Count { func, threads, arch, out, global: 0.0, has_arithmetic: false };
    for access in &all {
        count.memory(access)?;
        if let Some(value) = access.stored() {
            count.arithmetic(access, value)?;
        }
    }
    count.out.busy[0] = count.global / f64::from(arch.caps().latencies.cached_bytes);
    count.out.pace = count.pace(&all);
    count.finish();
    Some(count.out)
}

impl Count<'_> {
    fn scope(&self, access: &FuncAccess<'_>) -> Scope {
        self.func.buffers.get(access.buffer).map_or(Scope::Global, |it| it.scope)
    }

    fn bytes(&self, access: &FuncAccess<'_>) -> f64 {
        self.func.buffers.get(access.buffer).map_or(4, |it| it.dtype.bytes()) as f64
    }

    /// Adds what an access asks of memories.
    fn memory(&mut self, access: &FuncAccess<'_>) -> Option<()> {
        let (scope, bytes) = (self.scope(access), self.bytes(access));
        let distinct = self.threads.distinct(access, scope)? * bytes;
        let latencies = &self.arch.caps().latencies;
        match scope {
            Scope::Global => self.global += distinct,
            Scope::Shared | Scope::Cluster => {
                // Tensor cores that read shared memory themselves are built to keep up with it.
                if !is_product(access, true) {
                    let asked = if access.write {
                        self.threads.times(access)?
                    } else {
                        self.threads.asked(access)?
                    };
                    self.out.busy[1] += asked * bytes / f64::from(latencies.shared_bytes);
                }
            }
            Scope::Tensor | Scope::Fragment | Scope::Local => {}
        }
        if access.write && scope != Scope::Global {
            let filled = self.out.fills.entry(access.buffer.clone()).or_insert(0.0);
            *filled = filled.max(distinct);
        }
        Some(())
    }

    /// Adds what computing a value asks of the multiprocessor.
    fn arithmetic(&mut self, access: &FuncAccess<'_>, value: &Value) -> Option<()> {
        let caps = self.arch.caps();
        let times = self.threads.times(access)?;
        let sums = self.threads.sums(access)?;
        if is_product(access, false) {
            let factor = access.loads().into_iter().find(|it| *it != access.buffer);
            let dtype = factor.and_then(|it| self.func.buffers.get(it)).map(|it| it.dtype)?;
            let rate = caps.tensor.of(dtype).or(caps.tensor.f16).map_or(1024.0, f64::from);
            let is_asynchronous = is_product(access, true);
            let share = if is_asynchronous { 1.0 } else { f64::from(caps.latencies.product_percent) / 100.0 };
            self.out.busy[2] += 2.0 * times / (rate * share);
            if !is_asynchronous {
                let chain = sums / depth(access) as f64 * f64::from(caps.latencies.product);
                self.out.chain = self.out.chain.max(chain);
            }
            return Some(());
        }
        let slots = slots(value) * if access_is_wide(self.bytes(access)) { 2.0 } else { 1.0 };
        self.has_arithmetic |= slots > 0.0;
        self.out.busy[3] += times * slots / f64::from(caps.f32_lanes);
        if access.updates() {
            self.out.chain = self.out.chain.max(sums * f64::from(caps.latencies.arithmetic));
        }
        Some(())
    }

    /// Who waits for it.
    fn pace(&self, all: &[FuncAccess<'_>]) -> Pace {
        let (stores, loads): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.write);
        if stores.iter().all(|it| is_product(it, true)) {
            return Pace::Products;
        }
        let computes = self.has_arithmetic || self.out.busy[2] > 0.0;
        let unchanged = stores.iter().filter_map(|it| it.stored()).all(is_copy);
        let from = |scopes: &[Scope]| loads.iter().all(|it| scopes.contains(&self.scope(it)));
        let into = |scopes: &[Scope]| stores.iter().all(|it| scopes.contains(&self.scope(it)));
        let has_tma = self.arch.has(Feature::Tma) && is_whole(all);
        if !computes && unchanged && from(&[Scope::Global]) && into(&[Scope::Shared]) {
            let is_wide = stores.iter().all(|it| vector(it) as f64 * self.bytes(it) >= 4.0);
            return Pace::Copy(match () {
                () if has_tma => Mechanism::Tma,
                () if is_wide && self.arch.has(Feature::CpAsync) => Mechanism::CpAsync,
                () => Mechanism::RegisterStaged,
            });
        }
        if !computes && unchanged && has_tma && from(&[Scope::Shared]) && into(&[Scope::Global]) {
            return Pace::Copy(Mechanism::Tma);
        }
        let registers = [Scope::Local, Scope::Fragment];
        if !computes && (into(&registers) || from(&registers)) { Pace::Move } else { Pace::Own }
    }

    /// The latency, of what takes longest.
    fn finish(&mut self) {
        let it = &self.arch.caps().latencies;
        let reads_global = self.global > 0.0 && !matches!(self.out.pace, Pace::Copy(_));
        let cycles = match self.out.pace {
            Pace::Copy(Mechanism::Tma) => it.global + it.bulk_copy,
            Pace::Copy(_) => it.global + it.copy,
            Pace::Products => it.warpgroup_product,
            Pace::Move | Pace::Own if reads_global => it.global,
            Pace::Move if self.out.busy[1] > 0.0 => it.shared.max(it.matrix),
            Pace::Move => 0,
            Pace::Own if self.out.busy[2] > 0.0 => it.product,
            Pace::Own => it.arithmetic,
        };
        self.out.latency = f64::from(cycles);
    }
}

/// Whether a store or its operands are of a product of the tensor cores; or of one that threads do not wait for.
fn is_product(access: &FuncAccess<'_>, is_asynchronous: bool) -> bool {
    let instruction = access.block().and_then(|it| it.attrs.tensorize).map(|it| it.instruction);
    match instruction {
        Some(Instruction::Wgmma { .. } | Instruction::Tcgen05(_) | Instruction::TensorCopy) => true,
        Some(Instruction::Mma { .. }) => !is_asynchronous,
        _ => false,
    }
}

/// How many products one instruction adds to an element.
fn depth(access: &FuncAccess<'_>) -> i64 {
    match access.block().and_then(|it| it.attrs.tensorize).map(|it| it.instruction) {
        Some(Instruction::Mma { a, .. }) => a.tile[1],
        _ => 1,
    }
}

/// Whether a component is one that the copy engine could do: no loop of it is dealt to threads or to lanes.
fn is_whole(all: &[FuncAccess<'_>]) -> bool {
    let is_serial = |it: &&Loop| matches!(it.kind, LoopKind::Serial | LoopKind::Unrolled);
    all.iter().all(|it| it.loops.iter().all(is_serial))
}

/// How many neighbours a thread stores at once.
fn vector(access: &FuncAccess<'_>) -> i64 {
    let lanes = access.loops.iter().filter(|it| it.kind == LoopKind::Vectorized);
    lanes.filter_map(|it| it.extent.as_int()).product()
}

fn access_is_wide(bytes: f64) -> bool {
    bytes > 4.0
}

/// Whether a value is what was loaded, or a constant where there is nothing to load.
fn is_copy(value: &Value) -> bool {
    match value {
        Value::Load(_) | Value::Const(_) => true,
        Value::Select(_, a, b) => is_copy(a) && is_copy(b),
        Value::Index(..) | Value::Cast(..) | Value::Unary(..) | Value::Binary(..) | Value::Where(..) => false,
    }
}

/// How often the units that add and multiply are used: a product that is added is once.
fn slots(value: &Value) -> f64 {
    match value {
        Value::Const(_) | Value::Load(_) | Value::Index(..) => 0.0,
        Value::Cast(_, a) => slots(a),
        Value::Unary(_, a) => 1.0 + slots(a),
        Value::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
            let is_fused = [a, b].into_iter().any(|it| matches!(&**it, Value::Binary(BinaryOp::Mul, ..)));
            slots(a) + slots(b) + if is_fused { 0.0 } else { 1.0 }
        }
        Value::Binary(_, a, b) => 1.0 + slots(a) + slots(b),
        Value::Select(_, a, b) => slots(a).max(slots(b)),
        Value::Where(cond, a, b) => 1.0 + slots(cond) + slots(a) + slots(b),
    }
}

/// The number of iterations of a loop, where it is known.
pub(super) fn extent(it: &Index) -> Option<f64> {
    it.as_int().map(|it| it.max(0) as f64)
}
