//! What the printer knows of the kernel that it prints, and of the place in it.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use ir::arith::Bounds;
use ir::{Access, Alloc, DType, ForKind, Index, IndexKind, Kernel, Less, Module, Name, Op, Scope};

use super::{Dialect, ring_counters::RingCounter};
use crate::lower::analysis::bounds::kernel_bounds;

/// What is known of a kernel and of the place in it.
#[derive(Default)]
pub(super) struct Frame {
    /// The symbol of the kernel.
    pub(super) symbol: String,
    /// The types of the buffers.
    pub(super) types: BTreeMap<Name, DType>,
    /// The allocations that are variables, with their lanes.
    pub(super) registers: BTreeMap<Name, u32>,
    /// Private arrays of registers, whose subscripts should become constants.
    pub(super) locals: BTreeSet<Name>,
    /// What is known of the variables in scope.
    pub(super) bounds: Bounds,
    /// Whether indices need 64 bits.
    pub(super) wide: bool,
    /// The loops around the place, outer first.
    pub(super) loops: Vec<Name>,
    /// Those of the loops around the place whose iterations the compiler writes out one after the other.
    pub(super) written_out: Vec<Name>,
    /// The remainders for which there are variables at the place.
    pub(super) ring_counters: Vec<RingCounter>,
    /// The allocations in scope at the place.
    pub(super) allocs: Vec<Alloc>,
    /// The arguments of the kernel, and whether it writes them.
    pub(super) args: IndexMap<Name, bool>,
    /// Where each shared buffer starts, in bytes.
    pub(super) shared_offsets: IndexMap<Name, i64>,
    /// Whether the place is inside a loop that runs on several threads.
    pub(super) is_parallel: bool,
}

impl Frame {
    /// At the start of a kernel.
    pub(super) fn of(dialect: Dialect, module: &Module, kernel: &Kernel) -> Frame {
        let mut uses = Uses { dialect, live: BTreeMap::new(), registers: BTreeMap::new() };
        uses.collect(&kernel.body, false);
        let mut frame = Frame {
            symbol: super::symbol(&kernel.name).into_owned(),
            types: module.args.iter().map(|(name, arg)| (name.clone(), arg.dtype)).collect(),
            registers: uses.registers,
            bounds: kernel_bounds(module, kernel),
            ..Frame::default()
        };
        for op in &kernel.body {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op {
                    frame.types.insert(it.name.clone(), it.dtype);
                    if it.scope == Scope::Local {
                        frame.locals.insert(it.name.clone());
                    }
                }
            });
        }
        frame.wide = dialect.is_c() || !fit_32_bits(&kernel.body, &mut frame.bounds.clone());
        frame
    }
}

/// Finds the allocations that can be variables.
struct Uses {
    dialect: Dialect,
    /// The allocations in scope: how each is accessed so far.
    live: BTreeMap<Name, Use>,
    registers: BTreeMap<Name, u32>,
}

struct Use {
    alloc: Alloc,
    is_parallel: bool,
    is_variable: bool,
    is_whole: bool,
}

impl Uses {
    fn collect(&mut self, ops: &[Op], is_parallel: bool) {
        let mut declared = Vec::new();
        for op in ops {
            match op {
                Op::Alloc(it) => {
                    let is_variable = it.scope == Scope::Local;
                    let it = Use { alloc: it.clone(), is_parallel, is_variable, is_whole: false };
                    declared.push(it.alloc.name.clone());
                    self.live.insert(it.alloc.name.clone(), it);
                }
                Op::For(it) => self.collect(&it.body, is_parallel || it.kind == ForKind::Parallel),
                Op::If(_, body) => self.collect(body, is_parallel),
                Op::Instr(it) => it.each_access(&mut |access, _| self.access(access, is_parallel)),
            }
        }
        for name in declared {
            if let Some((name, lanes)) = self.live.remove(&name).and_then(|it| it.register(self.dialect)) {
                self.registers.insert(name, lanes);
            }
        }
    }

    fn access(&mut self, access: &Access, is_parallel: bool) {
        let Some(it) = self.live.get_mut(&access.buffer) else { return };
        let at = access.indices.first().and_then(Index::as_int);
        let is_whole = i64::from(access.lanes) == it.alloc.elements() && at == Some(0);
        let is_lane = access.lanes == 1 && at.is_some_and(|at| (0..it.alloc.elements()).contains(&at));
        it.is_whole |= is_whole;
        // What a thread body captures needs an address.
        it.is_variable &= (is_whole || is_lane) && it.is_parallel == is_parallel;
    }
}

impl Use {
    /// The name and the lanes of the variable, if it is one.
    fn register(self, dialect: Dialect) -> Option<(Name, u32)> {
        let lanes = u32::try_from(self.alloc.elements()).ok()?;
        let has_type = lanes == 1 || (dialect.is_c() && lanes.is_power_of_two() && self.is_whole);
        (self.is_variable && has_type).then_some((self.alloc.name, lanes))
    }
}

/// Whether every index of the statements, and every part of it, is proved to fit 32 bits.
fn fit_32_bits(ops: &[Op], bounds: &mut Bounds) -> bool {
    ops.iter().all(|op| match op {
        Op::Alloc(_) => true,
        Op::For(it) => {
            let fits = fits(&it.extent, bounds);
            bounds.insert(&it.var, &it.extent);
            fits && fit_32_bits(&it.body, bounds)
        }
        Op::If(cond, body) => cond.iter().all(|it| less_fits(it, bounds)) && fit_32_bits(body, bounds),
        Op::Instr(it) => {
            let mut all = true;
            it.each_index(&mut |it| all &= fits(it, bounds));
            all
        }
    })
}

fn less_fits(less: &Less, bounds: &Bounds) -> bool {
    fits(&less.lhs, bounds) && fits(&less.rhs, bounds)
}

/// Whether an index, and every part of it, is proved to fit 32 bits.
pub(super) fn fits(index: &Index, bounds: &Bounds) -> bool {
    let parts = match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => true,
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::FloorMod(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b) => fits(a, bounds) && fits(b, bounds),
    };
    let limit = i64::from(i32::MAX);
    let (low, high) = bounds.interval(index);
    parts && low.is_some_and(|it| it > -limit) && high.is_some_and(|it| it < limit)
}
