//! Decides which local allocations are variables.

use std::collections::{BTreeMap, BTreeSet};

use ir::{Access, Alloc, ForKind, Index, Module, Name, Op, Scope, Target};

/// ```text
/// alloc C_local: f32[1] @local   ->   alloc C_local: f32[1] @local register
/// ```
///
/// Local memory that is accessed as a whole, or by single elements at constant places, needs no address: it becomes a
/// variable, of one element, or on a CPU of a vector of them. What the iterations of a parallel loop share stays in memory.
pub(crate) fn promote_registers(mut module: Module, target: &Target) -> Module {
    for kernel in &mut module.kernels {
        let mut uses = Uses { target, live: BTreeMap::new(), registers: BTreeSet::new() };
        uses.collect(&kernel.body, false);
        if !uses.registers.is_empty() {
            kernel.body = promoted(std::mem::take(&mut kernel.body), &uses.registers);
        }
    }
    module
}

fn promoted(ops: Vec<Op>, registers: &BTreeSet<Name>) -> Vec<Op> {
    let op = |op: Op| match op.map_children(&mut |body| promoted(body, registers)) {
        Op::Alloc(it) => {
            let is_register = registers.contains(&it.name);
            Op::Alloc(Alloc { is_register, ..it })
        }
        op => op,
    };
    ops.into_iter().map(op).collect()
}

/// Finds the allocations that can be variables.
struct Uses<'a> {
    target: &'a Target,
    /// The allocations in scope: how each is accessed so far.
    live: BTreeMap<Name, Use>,
    registers: BTreeSet<Name>,
}

struct Use {
    elements: i64,
    is_parallel: bool,
    is_variable: bool,
    is_whole: bool,
}

impl Uses<'_> {
    fn collect(&mut self, ops: &[Op], is_parallel: bool) {
        let mut declared = Vec::new();
        for op in ops {
            match op {
                Op::Alloc(it) => {
                    let (elements, is_variable) = (it.elements(), it.scope == Scope::Local);
                    declared.push(it.name.clone());
                    self.live
                        .insert(it.name.clone(), Use { elements, is_parallel, is_variable, is_whole: false });
                }
                Op::For(it) => self.collect(&it.body, is_parallel || it.kind == ForKind::Parallel),
                Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => self.collect(body, is_parallel),
                Op::Instr(it, _) => it.each_access(&mut |access, _| self.access(access, is_parallel)),
            }
        }
        for name in declared {
            if self.live.remove(&name).is_some_and(|it| it.is_register(self.target)) {
                self.registers.insert(name);
            }
        }
    }

    fn access(&mut self, access: &Access, is_parallel: bool) {
        let Some(it) = self.live.get_mut(&access.buffer) else { return };
        let at = access.indices.first().and_then(Index::as_int);
        let is_whole = i64::from(access.lanes) == it.elements && at == Some(0);
        let is_lane = access.lanes == 1 && at.is_some_and(|at| (0..it.elements).contains(&at));
        it.is_whole |= is_whole;
        // What a thread body captures needs an address.
        it.is_variable &= (is_whole || is_lane) && it.is_parallel == is_parallel;
    }
}

impl Use {
    /// Whether the language has a type for it.
    fn is_register(&self, target: &Target) -> bool {
        let is_vector = || u32::try_from(self.elements).is_ok_and(u32::is_power_of_two) && self.is_whole;
        self.is_variable && (self.elements == 1 || *target == Target::Cpu && is_vector())
    }
}
