//! From a kernel to the tree that is counted.

use std::collections::HashSet;

use codegen::expected::accesses::touched;
use indexmap::IndexMap;
use ir::{
    Access, BinaryOp, Completion, DType, Effect, Effects, For, ForKind, Group, Instr, Less, Mode, Name, Op,
    Scope, SyncKind, TensorOp, UnaryOp, Value, intrin::Instruction,
};

use super::{
    access::{Known, Warp, holds, offsets, wavefronts},
    tree::{Buffer, Node, Totals, Work},
};

/// Cycles until data arrive from shared memory, from the first-level cache, from behind it.
const SHARED_LATENCY: f64 = 28.0;
const NEAR_LATENCY: f64 = 40.0;
const FAR_LATENCY: f64 = 400.0;
/// Issue slots that an iteration of a loop takes that stays one, and a condition.
const ITERATION: f64 = 4.0;
const CONDITION: f64 = 2.0;
/// How many lines of 128 bytes a warp may touch at once so that they are still in the first-level cache when it comes by
/// again.
const LINES_KEPT: usize = 24;
/// How many iterations are looked at for sectors that they have in common.
const LOOKED_AT: i64 = 8;

/// A loop around a statement.
pub(super) struct Around<'a> {
    it: &'a For,
    trips: i64,
    is_unrolled: bool,
}

/// What is known where a statement stands.
pub(super) struct Builder<'a> {
    pub(super) buffers: IndexMap<Name, Buffer>,
    /// Private arrays that are indexed at run time and so are in memory.
    pub(super) in_memory: HashSet<Name>,
    pub(super) warps: Vec<Warp>,
    pub(super) known: Known,
    pub(super) loops: Vec<Around<'a>>,
}

impl<'a> Builder<'a> {
    /// Private arrays that are indexed by something that is no constant once loops are written out.
    pub(super) fn find_arrays_in_memory(&mut self, ops: &[Op], kept: &mut Vec<Name>) {
        for op in ops {
            match op {
                Op::For(it) => {
                    let is_loop = !Self::is_unrolled(it);
                    if is_loop {
                        kept.push(it.var.clone());
                    }
                    self.find_arrays_in_memory(&it.body, kept);
                    if is_loop {
                        kept.pop();
                    }
                }
                Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => {
                    self.find_arrays_in_memory(body, kept);
                }
                Op::Instr(it, _) => {
                    let lane = self.warps.first().and_then(|it| it.first()).cloned().unwrap_or_default();
                    it.each_access(&mut |access, _| {
                        let varies = |name: &Name| kept.contains(name) || lane.contains_key(name);
                        if access.indices.iter().any(|it| it.any_var(&varies)) {
                            self.in_memory.insert(access.buffer.clone());
                        }
                    });
                }
                Op::Alloc(_) => {}
            }
        }
    }

    fn trips(&self, it: &For) -> i64 {
        it.extent.eval(&|name| self.known.get(name).copied()).unwrap_or(1).max(0)
    }

    /// Whether the compiler writes a loop out.
    fn is_unrolled(it: &For) -> bool {
        match it.kind {
            ForKind::Unrolled | ForKind::Vectorized => true,
            ForKind::Serial | ForKind::Parallel => false,
        }
    }

    pub(super) fn ops(&mut self, ops: &'a [Op], share: f64) -> Vec<Node> {
        let mut out = vec![];
        for op in ops {
            match op {
                Op::For(it) => out.push(self.repeat(it, share)),
                Op::If(conditions, body) => {
                    let inside = share * self.share_of(conditions);
                    let costs = Totals { issue: CONDITION, ..Totals::default() };
                    out.push(Node::Work(Work { share, costs, ..Work::default() }));
                    if inside > 0.0 {
                        out.extend(self.ops(body, inside));
                    }
                }
                // That one thread does it for all is as if one warp did.
                Op::Leader(_, body) | Op::Role(_, body) => out.extend(self.ops(body, share)),
                Op::Instr(it, _) => out.extend(self.instr(it, share)),
                Op::Alloc(_) => {}
            }
        }
        out
    }

    fn instr(&self, it: &Instr, share: f64) -> Option<Node> {
        let effects = it.effects();
        match effects.sync {
            Some(SyncKind::Commit(Group::CpAsync)) => Some(Node::Commit),
            Some(SyncKind::Wait(it)) if it.group == Group::CpAsync => Some(Node::Wait(it.in_flight as usize)),
            // What a block waits for others is not modelled.
            Some(SyncKind::Barrier) => Some(Node::Barrier),
            Some(_) => None,
            None => self.work(it, &effects, share).map(Node::Work),
        }
    }

    fn repeat(&mut self, it: &'a For, share: f64) -> Node {
        let trips = self.trips(it);
        let is_unrolled = Self::is_unrolled(it);
        // The middle of a loop is more like the rest of it than its ends.
        let outside = self.known.insert(it.var.clone(), trips / 2);
        self.loops.push(Around { it, trips, is_unrolled });
        let mut body = self.ops(&it.body, share);
        self.loops.pop();
        match outside {
            Some(value) => self.known.insert(it.var.clone(), value),
            None => self.known.remove(&it.var),
        };
        if !is_unrolled {
            let costs = Totals { issue: ITERATION, ..Totals::default() };
            body.push(Node::Work(Work { share, costs, ..Work::default() }));
        }
        Node::Loop { trips: trips as f64, is_unrolled, body }
    }

    /// The share of warps in which a condition holds for some thread.
    fn share_of(&self, conditions: &[Less]) -> f64 {
        let some = |warp: &&Warp| warp.iter().any(|lane| holds(conditions, lane, &self.known));
        self.warps.iter().filter(some).count() as f64 / self.warps.len().max(1) as f64
    }

    /// What an instruction costs that writes something.
    fn work(&self, it: &Instr, effects: &Effects<'_>, share: f64) -> Option<Work> {
        let place = effects.accesses.iter().find(|it| it.mode.writes())?.access;
        let is_copy = effects.completion == Completion::WithGroup(Group::CpAsync);
        let mut out = Work { share, is_copy, ..Work::default() };
        out.costs.arithmetic = match it {
            // A warp does it once, however many elements of its result a lane has.
            Instr::Tensor(it) => tensor(it),
            _ => it.assignment().map_or(0.0, |(place, value)| f64::from(place.lanes) * arithmetic(value)),
        };
        out.is_move = out.costs.arithmetic <= 0.0;
        for load in effects.accesses.iter().filter(|it| it.mode == Mode::Read) {
            let accumulates = load.access == place && self.is_parallel(place);
            self.load(load.access, accumulates, &mut out);
        }
        if let Some(buffer) = self.buffers.get(&place.buffer) {
            out.writes = buffer.number;
            out.is_shared_store = buffer.scope.is_of_blocks();
            self.store(place, buffer, is_copy, &mut out.costs);
            // Double precision has half the rate at best.
            if buffer.size == 8 {
                out.costs.arithmetic *= 2.0;
            }
        }
        out.costs.issue += out.costs.arithmetic;
        Some(out)
    }

    /// Whether a loop that is written out goes over elements of a place, so that none has to wait for another.
    fn is_parallel(&self, place: &Access) -> bool {
        let over =
            |it: &Around<'_>| place.indices.iter().any(|index| index.any_var(&|name| *name == it.it.var));
        place.lanes > 1 || self.loops.iter().any(|it| it.is_unrolled && over(it))
    }

    fn load(&self, access: &Access, accumulates: bool, out: &mut Work) {
        let Some(buffer) = self.buffers.get(&access.buffer) else { return };
        let in_registers = buffer.scope == Scope::Local && !self.in_memory.contains(&access.buffer);
        if in_registers {
            if !accumulates {
                out.reads.push(buffer.number);
            }
            return;
        }
        let (weight, stays) = self.weight(access, buffer);
        let width = i64::from(access.lanes) * buffer.size;
        let costs = &mut out.costs;
        let mut latency = NEAR_LATENCY;
        match buffer.scope {
            // Products and loads of whole rows, which this has no rates for.
            Scope::Tensor => costs.issue += 1.0,
            Scope::Fragment | Scope::Local => {
                costs.issue += 1.0;
                // 32 lanes are interleaved word by word: each byte of one is a sector of all.
                costs.sectors += width as f64;
            }
            // What is in another block comes from further away, by a rate that this does not know.
            Scope::Cluster | Scope::Shared => {
                costs.issue += weight;
                costs.shared += weight * wavefronts(&self.starts(access, buffer), width);
                latency = SHARED_LATENCY;
            }
            Scope::Global => {
                costs.issue += 2.0 * weight;
                costs.sectors += weight * touched(&self.starts(access, buffer), width, 32).len() as f64;
                if !stays {
                    costs.behind += weight * self.fresh(access, buffer, width);
                    latency = FAR_LATENCY;
                }
                if buffer.is_written {
                    out.reads.push(buffer.number);
                }
            }
        }
        if weight >= 1.0 {
            out.latency = out.latency.max(latency);
        }
    }

    fn store(&self, place: &Access, buffer: &Buffer, is_copy: bool, costs: &mut Totals) {
        let width = i64::from(place.lanes) * buffer.size;
        match buffer.scope {
            Scope::Tensor => {}
            Scope::Local if !self.in_memory.contains(&place.buffer) => {}
            Scope::Fragment | Scope::Local => {
                costs.issue += 1.0;
                costs.sectors += width as f64;
            }
            Scope::Cluster | Scope::Shared => {
                costs.issue += if is_copy { 0.0 } else { 1.0 };
                costs.shared += wavefronts(&self.starts(place, buffer), width);
            }
            Scope::Global => {
                let sectors = touched(&self.starts(place, buffer), width, 32).len() as f64;
                costs.issue += 2.0;
                costs.sectors += sectors;
                costs.behind += sectors;
            }
        }
    }

    /// How often a load is done for each time the statement runs, and whether what it loads was loaded in the
    /// iteration before.
    ///
    /// A loop that does not change what is loaded has the load before it, unless loops inside do and stay loops.
    fn weight(&self, access: &Access, buffer: &Buffer) -> (f64, bool) {
        let mut weight = 1.0;
        for around in self.loops.iter().rev() {
            if access.indices.iter().any(|it| it.any_var(&|name| *name == around.it.var)) {
                if !around.is_unrolled {
                    return (weight, false);
                }
            } else if buffer.is_written && changes(&around.it.body, &access.buffer) {
                return (weight, !around.is_unrolled);
            } else {
                weight /= (around.trips as f64).max(1.0);
            }
        }
        (weight, false)
    }

    /// Where each lane of a warp starts, in bytes.
    fn starts(&self, access: &Access, buffer: &Buffer) -> Vec<i64> {
        let lanes: Vec<_> = self.warps.first().map(|it| it.iter().collect()).unwrap_or_default();
        let Some(index) = access.indices.last() else { return vec![] };
        offsets(index, &lanes, &self.known).iter().map(|it| it.wrapping_mul(buffer.size)).collect()
    }

    /// The sectors that a load touches and the iterations before have not.
    fn fresh(&self, access: &Access, buffer: &Buffer, width: i64) -> f64 {
        let now = touched(&self.starts(access, buffer), width, 32);
        let over =
            |it: &&Around<'_>| access.indices.iter().any(|index| index.any_var(&|name| *name == it.it.var));
        let around = self.loops.iter().rev().find(over);
        let lines = touched(&self.starts(access, buffer), width, 128).len();
        let Some(around) = around.filter(|it| it.trips > 1 && lines <= LINES_KEPT) else {
            return now.len() as f64;
        };
        let count = around.trips.min(LOOKED_AT);
        let warp: Vec<_> = self.warps.first().map(|it| it.iter().collect()).unwrap_or_default();
        let mut known = self.known.clone();
        let mut all = HashSet::new();
        for value in 0..count {
            known.insert(around.it.var.clone(), value);
            let Some(index) = access.indices.last() else { break };
            let starts = offsets(index, &warp, &known);
            let starts: Vec<i64> = starts.iter().map(|it| it.wrapping_mul(buffer.size)).collect();
            all.extend(touched(&starts, width, 32));
        }
        all.len() as f64 / count as f64
    }
}

/// Whether statements write a buffer, or threads meet there, who may.
fn changes(ops: &[Op], buffer: &Name) -> bool {
    let mut found = false;
    for op in ops {
        op.each_instr(&mut |it| {
            let effects = it.effects();
            let writes = |it: &Effect<'_>| it.mode.writes() && it.access.buffer == *buffer;
            let waits = matches!(effects.sync, Some(SyncKind::Barrier | SyncKind::Wait(_)));
            found |= waits || effects.accesses.iter().any(writes);
        });
    }
    found
}

/// Issue slots of the arithmetic pipe that an element takes.
fn arithmetic(value: &Value) -> f64 {
    match value {
        Value::Const(_) | Value::Load(_) => 0.0,
        Value::Index(..) => 1.0,
        // Signs are part of the instruction that takes the operand.
        Value::Cast(DType::F32 | DType::Tf32, a) | Value::Unary(UnaryOp::Neg | UnaryOp::Abs, a) => {
            arithmetic(a)
        }
        Value::Cast(_, a) => 1.0 + arithmetic(a),
        Value::Unary(_, a) => 8.0 + arithmetic(a),
        Value::Binary(BinaryOp::Div, a, b) => 8.0 + arithmetic(a) + arithmetic(b),
        // A product that is added is one instruction with the sum.
        Value::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
            let fused = [a, b].iter().any(|it| matches!(&***it, Value::Binary(BinaryOp::Mul, ..)));
            (if fused { 0.0 } else { 1.0 }) + arithmetic(a) + arithmetic(b)
        }
        Value::Binary(_, a, b) => 1.0 + arithmetic(a) + arithmetic(b),
        Value::Where(cond, a, b) => 1.0 + arithmetic(cond) + arithmetic(a) + arithmetic(b),
        Value::Select(conditions, a, b) => conditions.len() as f64 + arithmetic(a) + arithmetic(b),
    }
}

/// Issue slots that a tensor instruction takes as a whole.
fn tensor(it: &TensorOp) -> f64 {
    match it.intrinsic.instruction {
        Instruction::Mma { a, c, .. } => MMA_SLOTS * (a.tile[1] * c.tile[0] * c.tile[1]) as f64 / 2048.0,
        Instruction::Wgmma { .. }
        | Instruction::Tcgen05(_)
        | Instruction::TensorCopy
        | Instruction::TensorLoad(_)
        | Instruction::Ldmatrix { .. }
        | Instruction::Stmatrix { .. }
        | Instruction::Lanes(_) => 0.0,
    }
}

/// Issue slots for which 2048 multiplications and additions of a warp are assumed to keep its tensor core busy, on every
/// GPU and for every type. Nobody measured it; it only has to be the same for the candidates that are compared.
const MMA_SLOTS: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, totals};
    use super::*;

    /// A warp that does a tensor instruction so and so often.
    fn arithmetic_of(statement: &str) -> f64 {
        let text = format!(
            "module m\n  out C: f32[128]\n\n  kernel k<<<threadIdx.x: 32>>>(mut C)\n    \
             alloc M: f16[256] @shared\n    alloc A: f16[8] @local\n    alloc B: f16[4] @local\n    \
             alloc S: f32[4] @local\n    for i in 0..3\n      {statement}\n    \
             C[threadIdx_x*4 +: 4] = S[0 +: 4]\n"
        );
        let module = ir::text::parse_module(&text).unwrap();
        let tree = Tree::of(&module, &module.kernels[0], &IndexMap::new()).unwrap();
        totals(&tree.body).arithmetic
    }

    #[test]
    fn a_tensor_instruction_counts_once_whatever_a_lane_has_of_it() {
        let product = arithmetic_of("S[0 +: 4] = mma_m16n8k16_f16_f32(S[0 +: 4], A[0 +: 8], B[0 +: 4])");
        assert!((product - 3.0 * MMA_SLOTS).abs() < 1e-9, "{product}");
        let load = arithmetic_of("A[0 +: 8] = ldmatrix_x4(M[threadIdx_x*8 +: 8])");
        assert!(load.abs() < 1e-9, "{load}");
        let sums = arithmetic_of("S[0 +: 4] = S[0 +: 4] * 2.0f32");
        assert!((sums - 12.0).abs() < 1e-9, "{sums}");
    }
}
