//! A kernel as the clock and the counts need it: loops with their trips, statements with what they cost.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use ir::{Kernel, Module, Name, Op, Scope, ThreadAxis, axis_var};

use super::{
    access::{Known, Warp},
    build::Builder,
};

/// A kernel.
pub(super) struct Tree {
    pub(super) body: Vec<Node>,
    /// How many buffers there are; statements have them by number.
    pub(super) buffers: usize,
    /// The registers that private arrays take.
    pub(super) registers: f64,
}

/// A statement, or statements that are repeated.
pub(super) enum Node {
    Loop { trips: f64, is_unrolled: bool, body: Vec<Node> },
    Work(Work),
    Commit,
    Wait(usize),
    Barrier,
}

/// What a statement costs a warp.
#[derive(Default)]
pub(super) struct Work {
    /// The share of warps and iterations that come by.
    pub(super) share: f64,
    pub(super) costs: Totals,
    /// Cycles until what it loads is there.
    pub(super) latency: f64,
    /// The buffers whose contents this thread must have made before.
    pub(super) reads: Vec<usize>,
    pub(super) writes: usize,
    /// Whether it only moves data.
    pub(super) is_move: bool,
    pub(super) is_shared_store: bool,
    pub(super) is_copy: bool,
}

/// Memory of a kernel.
pub(super) struct Buffer {
    pub(super) number: usize,
    /// Of an element, in bytes.
    pub(super) size: i64,
    pub(super) len: i64,
    pub(super) scope: Scope,
    /// Whether the kernel writes it.
    pub(super) is_written: bool,
}

impl Tree {
    pub(super) fn of(module: &Module, kernel: &Kernel, dims: &IndexMap<Name, i64>) -> Option<Tree> {
        let mut known: Known = dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
        let mut block = IndexMap::new();
        for (axis, extent) in &kernel.launch {
            let extent = extent.eval(&|it| dims.get(it).copied())?;
            if axis.is_thread() {
                block.insert(*axis, extent);
            } else {
                known.insert(axis_var(*axis), extent / 2);
            }
        }
        let buffers = buffers(module, kernel)?;
        let mut builder =
            Builder { buffers, in_memory: HashSet::new(), warps: warps(&block), known, loops: vec![] };
        builder.find_arrays_in_memory(&kernel.body, &mut vec![]);
        let body = builder.ops(&kernel.body, 1.0);
        let in_registers = builder
            .buffers
            .iter()
            .filter(|(name, it)| it.scope == Scope::Local && !builder.in_memory.contains(*name));
        let bytes: i64 = in_registers.map(|(_, it)| it.size.saturating_mul(it.len)).sum();
        Some(Tree { body, buffers: builder.buffers.len(), registers: bytes as f64 / 4.0 })
    }
}

/// Three warps of a block: the first, one in the middle, the last.
fn warps(block: &IndexMap<ThreadAxis, i64>) -> Vec<Warp> {
    let threads: i64 = block.values().product();
    let count = (threads + 31) / 32;
    let mut numbers = vec![count / 2, 0, count - 1];
    numbers.dedup();
    let thread = |mut at: i64| {
        let mut out = HashMap::new();
        for axis in [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ] {
            let extent = block.get(&axis).copied().unwrap_or(1);
            out.insert(axis_var(axis), at % extent);
            at /= extent;
        }
        out
    };
    numbers.iter().map(|it| (it * 32..(it * 32 + 32).min(threads)).map(thread).collect()).collect()
}

fn buffers(module: &Module, kernel: &Kernel) -> Option<IndexMap<Name, Buffer>> {
    let mut out = IndexMap::new();
    for (name, is_written) in &kernel.args {
        let size = module.args.get(name)?.dtype.bytes_i64();
        let number = out.len();
        let buffer = Buffer { number, size, len: 0, scope: Scope::Global, is_written: *is_written };
        out.insert(name.clone(), buffer);
    }
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op {
                let size = it.dtype.bytes_i64();
                let number = out.len();
                let buffer = Buffer { number, size, len: it.elements(), scope: it.scope, is_written: true };
                out.entry(it.name.clone()).or_insert(buffer);
            }
        });
    }
    Some(out)
}

/// What some statements cost a warp, repetitions counted.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    /// Issue slots, of which arithmetic takes so many.
    pub(super) issue: f64,
    pub(super) arithmetic: f64,
    /// Wavefronts of shared memory.
    pub(super) shared: f64,
    /// Sectors of global memory, and those of them that the first-level cache does not have.
    pub(super) sectors: f64,
    pub(super) behind: f64,
}

impl Totals {
    fn add(&mut self, times: f64, it: &Totals) {
        self.issue += times * it.issue;
        self.arithmetic += times * it.arithmetic;
        self.shared += times * it.shared;
        self.sectors += times * it.sectors;
        self.behind += times * it.behind;
    }
}

pub(super) fn totals(nodes: &[Node]) -> Totals {
    let mut out = Totals::default();
    for node in nodes {
        match node {
            Node::Loop { trips, is_unrolled: _, body } => out.add(*trips, &totals(body)),
            Node::Work(it) => out.add(it.share, &it.costs),
            Node::Commit | Node::Wait(_) | Node::Barrier => out.issue += 1.0,
        }
    }
    out
}
