//! Splits local arrays into registers.

use std::collections::{BTreeMap, BTreeSet};

use ir::{Access, Alloc, ForKind, Index, Module, Name, Op, Scope, Target};

use crate::lower::analysis::names;

/// On a CPU, replaces each local array whose every subscript is constant by one allocation for each group of lanes
/// that is accessed as one, which the printer makes a variable.
///
/// ```text
/// local C_local[16]; C_local[0 ..8] = 0; C_local[8 ..8] = 0
/// ->
/// local C_local_0[8]; local C_local_8[8]; C_local_0[0 ..8] = 0; C_local_8[0 ..8] = 0
/// ```
///
/// An array whose accesses overlap in other ways than single elements of a group stays, and so does one that
/// several threads see.
pub(crate) fn scalarize(mut module: Module, target: &Target) -> Module {
    if *target != Target::Cpu {
        return module;
    }
    for kernel in &mut module.kernels {
        let mut survey = Survey::default();
        survey.ops(&kernel.body, false);
        let mut taken = names::taken(&module.dims, &kernel.body);
        let groups = survey.arrays.into_iter().filter_map(|(name, it)| {
            let groups = name_groups(&name, it.groups()?, &mut taken);
            Some((name, groups))
        });
        let groups = groups.collect();
        kernel.body = kernel.body.iter().flat_map(|op| rewrite(op, &groups)).collect();
    }
    module
}

/// The groups of an array: the first element of each, its size and the name of its allocation.
type Groups = BTreeMap<i64, (i64, Name)>;

#[derive(Default)]
struct Survey {
    arrays: BTreeMap<Name, Array>,
}

struct Array {
    len: i64,
    is_parallel: bool,
    /// First elements and sizes of the accesses; `None` where one is not constant.
    accesses: Option<BTreeSet<(i64, i64)>>,
}

impl Survey {
    fn ops(&mut self, ops: &[Op], is_parallel: bool) {
        for op in ops {
            match op {
                Op::Alloc(it) if it.scope == Scope::Local => {
                    let array = Array { len: it.elements(), is_parallel, accesses: Some(BTreeSet::new()) };
                    self.arrays.insert(it.name.clone(), array);
                }
                Op::For(it) => self.ops(&it.body, is_parallel || it.kind == ForKind::Parallel),
                Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => self.ops(body, is_parallel),
                Op::Instr(it, _) => it.each_access(&mut |access, _| self.access(access, is_parallel)),
                Op::Alloc(_) => {}
            }
        }
    }

    fn access(&mut self, access: &Access, is_parallel: bool) {
        let Some(array) = self.arrays.get_mut(&access.buffer) else { return };
        let at = access.indices.first().and_then(Index::as_int);
        match (at, array.accesses.as_mut()) {
            (Some(at), Some(known)) if array.is_parallel == is_parallel => {
                known.insert((at, i64::from(access.lanes)));
            }
            _ => array.accesses = None,
        }
    }
}

impl Array {
    /// The first element and size of each group; `None` where the accesses do not form groups, or are one.
    fn groups(&self) -> Option<Vec<(i64, i64)>> {
        let accesses = self.accesses.as_ref()?;
        let mut widest: Vec<_> = accesses.iter().copied().collect();
        widest.sort_by_key(|(at, lanes)| (*at, -lanes));
        let mut out: Vec<(i64, i64)> = Vec::new();
        for (at, lanes) in widest {
            match out.last() {
                Some((start, size)) if at < start + size => {
                    if lanes != 1 && (at, lanes) != (*start, *size) {
                        return None;
                    }
                }
                _ if at < 0 || at + lanes > self.len => return None,
                _ => out.push((at, lanes)),
            }
        }
        (out != [(0, self.len)]).then_some(out)
    }
}

fn name_groups(array: &Name, groups: Vec<(i64, i64)>, taken: &mut BTreeSet<Name>) -> Groups {
    let mut out = Groups::new();
    for (at, size) in groups {
        let name = Name::fresh(&format!("{array}_{at}"), |it| taken.contains(it));
        taken.insert(name.clone());
        out.insert(at, (size, name));
    }
    out
}

fn rewrite(op: &Op, groups: &BTreeMap<Name, Groups>) -> Vec<Op> {
    match op {
        Op::Alloc(it) => match groups.get(&it.name) {
            Some(groups) => groups
                .values()
                .map(|(len, name)| Op::Alloc(Alloc { name: name.clone(), shape: vec![*len], ..it.clone() }))
                .collect(),
            None => vec![op.clone()],
        },
        Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {
            let list = &mut |body: Vec<Op>| body.iter().flat_map(|op| rewrite(op, groups)).collect();
            vec![op.clone().map_children(list)]
        }
        Op::Instr(it, origin) => {
            vec![Op::Instr(it.map_accesses(&mut |it| moved(it, groups)), origin.clone())]
        }
    }
}

/// The access in the group that holds it.
fn moved(access: &Access, groups: &BTreeMap<Name, Groups>) -> Access {
    let at = access.indices.first().and_then(Index::as_int);
    let group = at.zip(groups.get(&access.buffer));
    let group = group.and_then(|(at, groups)| Some((at, groups.range(..=at).next_back()?)));
    match group {
        Some((at, (start, (_, name)))) => {
            Access { buffer: name.clone(), indices: vec![Index::int(at - start)], lanes: access.lanes }
        }
        None => access.clone(),
    }
}
