//! What statements of a kernel touch of the memory that threads share.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use ir::{Access, Buffer, Index, Kernel, Name, Op, Scope, arith::Bounds, axis_var};

use super::barriers::{Limits, scope_of};

/// An access to shared or global memory, with what is known around it.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub(crate) buffer: Name,
    pub(crate) indices: Vec<Index>,
    pub(crate) write: bool,
    /// The variables of the loops around, with their extents, outermost first.
    pub(crate) vars: IndexMap<Name, Index>,
    /// For axes below a constant by a condition: that constant.
    pub(crate) limits: Limits,
}

impl Touch {
    /// The one thread of an axis that comes here, if a condition lets only one.
    pub(crate) fn only(&self, axis: &Name) -> Option<i64> {
        (self.limits.get(axis) == Some(&1)).then_some(0)
    }
}

/// What is known in a kernel.
pub(crate) struct Walk {
    dims: Vec<Name>,
    blocks: BTreeMap<Name, Index>,
    read_only: BTreeSet<Name>,
}

impl Walk {
    pub(crate) fn new(dims: &[Name], kernel: &Kernel) -> Walk {
        let blocks = kernel.launch.iter().filter(|(axis, _)| !axis.is_thread());
        let blocks = blocks.map(|(&axis, extent)| (axis_var(axis), extent.clone())).collect();
        let read_only = kernel.args.iter().filter(|it| !it.1).map(|it| it.0.clone()).collect();
        Walk { dims: dims.to_vec(), blocks, read_only }
    }

    /// Whether a variable has one value for all threads of a block, all the time.
    pub(crate) fn is_uniform(&self, name: &Name) -> bool {
        self.dims.contains(name) || self.blocks.contains_key(name)
    }

    /// What is known of dimensions and blocks.
    pub(crate) fn dims(&self) -> Bounds {
        let mut bounds = Bounds::default();
        self.dims.iter().for_each(|it| bounds.insert_dim(it));
        for (name, extent) in &self.blocks {
            bounds.insert(name, extent);
        }
        bounds
    }

    /// What is known under loops.
    pub(crate) fn bounds(&self, around: &[Op]) -> Bounds {
        let mut bounds = self.dims();
        for op in around {
            if let Op::For(it) = op {
                bounds.insert(&it.var, &it.extent);
            }
        }
        bounds
    }

    /// The touches of a store under the given loops and conditions: what it reads, then what it writes.
    pub(crate) fn touches(&self, op: &Op, around: &[Op], buffers: &IndexMap<Name, Buffer>) -> Vec<Touch> {
        let Some((place, value)) = op.assignment() else { return vec![] };
        let mut vars = IndexMap::new();
        let mut limits = Limits::new();
        for op in around {
            match op {
                Op::For(it) => {
                    vars.insert(it.var.clone(), it.extent.clone());
                }
                Op::If(conditions, _) => {
                    for less in conditions {
                        if let (Some(axis), Some(limit)) = (less.lhs.as_var(), less.rhs.as_int()) {
                            let known = limits.entry(axis.clone()).or_insert(limit);
                            *known = limit.min(*known);
                        }
                    }
                }
                Op::Alloc(_)
                | Op::Store(..)
                | Op::Copy(..)
                | Op::Commit
                | Op::Wait(_)
                | Op::Barrier
                | Op::Comment(_) => {}
            }
        }
        let mut out = Vec::new();
        let mut touch = |access: &Access, write| {
            if scope_of(buffers, access) != Scope::Local && !self.read_only.contains(&access.buffer) {
                let (buffer, indices) = (access.buffer.clone(), access.indices.clone());
                out.push(Touch { buffer, indices, write, vars: vars.clone(), limits: limits.clone() });
            }
        };
        value.each_load(&mut |access| touch(access, false));
        touch(place, true);
        out
    }
}
