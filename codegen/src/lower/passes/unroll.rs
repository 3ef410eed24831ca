//! Writes out the loops that index registers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ir::{Alloc, For, ForKind, Index, Module, Name, Op, Scope, Target};

use crate::lower::analysis::names;

/// The most statements that a kernel may have when loops are written out.
const MAX_STATEMENTS: i64 = 4096;
/// The longest serial loop that is written out.
const MAX_SERIAL: i64 = 64;
/// The largest array that could live in registers, in bytes.
const MAX_REGISTERS: i64 = 8192;

/// On a CPU, writes out the loops whose variables index a local array, if that makes all its subscripts constant.
///
/// ```text
/// local C_local[2]; for j in 0..2 @unrolled { C_local[j] = 0 }
/// ->
/// local C_local[2]; C_local[0] = 0; C_local[1] = 0
/// ```
///
/// Short serial loops count as unrolled ones here. Other loops stay, and so do all where the kernel would grow
/// beyond 4096 statements. CUDA's compiler is asked by a pragma instead.
pub(crate) fn unroll(mut module: Module, target: &Target) -> Module {
    if *target != Target::Cpu {
        return module;
    }
    for kernel in &mut module.kernels {
        let body = std::mem::take(&mut kernel.body);
        let mut survey = Survey::default();
        survey.ops(&body);
        let chosen = survey.choose(&body);
        let mut writer = Writer { chosen, taken: names::taken(&module.dims, &body) };
        kernel.body = writer.ops(body);
    }
    module
}

/// Which loops the subscripts of each local array depend on.
#[derive(Default)]
struct Survey {
    /// The loops around the place, and whether each can be written out.
    loops: Vec<(Name, bool)>,
    /// For each array the number of loops around it and the loops that index it; `None` where some cannot be.
    arrays: BTreeMap<Name, (usize, Option<BTreeSet<Name>>)>,
}

impl Survey {
    fn ops(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Alloc(it) if is_register_array(it) => {
                    self.arrays.insert(it.name.clone(), (self.loops.len(), Some(BTreeSet::new())));
                }
                Op::For(it) => {
                    let can = match it.kind {
                        ForKind::Unrolled => it.extent.as_int().is_some(),
                        ForKind::Serial => it.extent.as_int().is_some_and(|it| it <= MAX_SERIAL),
                        ForKind::Parallel | ForKind::Vectorized => false,
                    };
                    self.loops.push((it.var.clone(), can));
                    self.ops(&it.body);
                    self.loops.pop();
                }
                Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => self.ops(body),
                Op::Instr(it, _) => it.each_access(&mut |access, _| self.access(access)),
                Op::Alloc(_) => {}
            }
        }
    }

    fn access(&mut self, access: &ir::Access) {
        let Some((outside, indexed_by)) = self.arrays.get_mut(&access.buffer) else { return };
        for var in access.indices.iter().flat_map(Index::vars) {
            let inside = self.loops.iter().skip(*outside).find(|it| it.0 == var);
            match (inside, indexed_by.as_mut()) {
                (Some((_, true)), Some(vars)) => {
                    vars.insert(var);
                }
                _ => *indexed_by = None,
            }
        }
    }

    /// The loops of as many arrays as the limit allows.
    fn choose(&self, body: &[Op]) -> BTreeSet<Name> {
        let mut chosen = BTreeSet::new();
        for vars in self.arrays.values().filter_map(|it| it.1.as_ref()) {
            let with: BTreeSet<_> = chosen.union(vars).cloned().collect();
            if size(body, &with) <= MAX_STATEMENTS {
                chosen = with;
            }
        }
        chosen
    }
}

fn is_register_array(it: &Alloc) -> bool {
    let bytes = it.elements().saturating_mul(it.dtype.bytes_i64());
    it.scope == Scope::Local && bytes <= MAX_REGISTERS
}

/// The number of statements with the chosen loops written out.
fn size(ops: &[Op], chosen: &BTreeSet<Name>) -> i64 {
    let sizes = ops.iter().map(|op| match op {
        Op::For(it) if chosen.contains(&it.var) => {
            size(&it.body, chosen).saturating_mul(it.extent.as_int().unwrap_or(i64::MAX))
        }
        Op::For(it) => size(&it.body, chosen).saturating_add(1),
        Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => size(body, chosen).saturating_add(1),
        Op::Alloc(_) | Op::Instr(..) => 1,
    });
    sizes.fold(0, i64::saturating_add)
}

struct Writer {
    chosen: BTreeSet<Name>,
    taken: BTreeSet<Name>,
}

impl Writer {
    fn ops(&mut self, ops: Vec<Op>) -> Vec<Op> {
        ops.into_iter().flat_map(|op| self.op(op)).collect()
    }

    fn op(&mut self, op: Op) -> Vec<Op> {
        match op {
            Op::For(it) => {
                let it = Arc::unwrap_or_clone(it);
                let body = self.ops(it.body);
                match it.extent.as_int().filter(|_| self.chosen.contains(&it.var)) {
                    Some(extent) => (0..extent).flat_map(|at| self.copy(&body, &it.var, at)).collect(),
                    None => vec![Op::For(Arc::new(For { body, ..it }))],
                }
            }
            op => vec![op.map_children(&mut |body| self.ops(body))],
        }
    }

    /// The body at one iteration; what it declares gets new names in each iteration but the first.
    fn copy(&mut self, body: &[Op], var: &Name, at: i64) -> Vec<Op> {
        let mut renamed = BTreeMap::new();
        if at > 0 {
            for op in body {
                op.walk(&mut |op| match op {
                    Op::Alloc(ir::Alloc { name, .. }) => self.rename(name, &mut renamed),
                    Op::For(it) => self.rename(&it.var, &mut renamed),
                    _ => {}
                });
            }
        }
        let with = |name: &Name| {
            let renamed = renamed.get(name).map(Index::var);
            if name == var { Some(Index::int(at)) } else { renamed }
        };
        body.iter().map(|op| rename(&op.subst(&with), &renamed)).collect()
    }

    fn rename(&mut self, name: &Name, renamed: &mut BTreeMap<Name, Name>) {
        let new = Name::fresh(name.as_str(), |it| self.taken.contains(it));
        self.taken.insert(new.clone());
        renamed.insert(name.clone(), new);
    }
}

/// The statement with new names for the loops and allocations in it; indices have them already.
fn rename(op: &Op, with: &BTreeMap<Name, Name>) -> Op {
    let new = |name: &Name| with.get(name).unwrap_or(name).clone();
    let access = |it: &ir::Access| ir::Access { buffer: new(&it.buffer), ..it.clone() };
    match op {
        _ if with.is_empty() => op.clone(),
        Op::Alloc(it) => Op::Alloc(Alloc { name: new(&it.name), ..it.clone() }),
        Op::For(it) => {
            let body = it.body.iter().map(|op| rename(op, with)).collect();
            Op::For(Arc::new(For { var: new(&it.var), body, ..For::clone(it) }))
        }
        Op::If(..) | Op::Leader(..) | Op::Role(..) => {
            op.clone().map_children(&mut |body| body.iter().map(|op| rename(op, with)).collect())
        }
        Op::Instr(it, origin) => Op::Instr(it.map_accesses(&mut |it| access(it)), origin.clone()),
    }
}
