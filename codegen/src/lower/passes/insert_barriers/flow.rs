//! What statements do to the barriers before and after them.

use ir::{For, Index, Less, Op};

use crate::lower::analysis::kernel_accesses::KernelAccess;

/// A statement with the barriers in it.
#[derive(Clone)]
pub(crate) struct Item {
    /// The statement.
    pub(crate) op: Op,
    /// What it does to barriers before and after it.
    pub(crate) flow: Flow,
}

/// What a statement does to barriers before and after it.
#[derive(Clone, Default)]
pub(crate) struct Flow {
    /// The touches before its first barrier.
    pub(crate) before: Vec<KernelAccess>,
    /// The touches after its last barrier.
    pub(crate) after: Vec<KernelAccess>,
    /// Whether all threads surely meet in it.
    pub(crate) meets: bool,
}

impl Flow {
    /// This, then that.
    pub(crate) fn then(&mut self, next: &Flow) {
        let add = |to: &mut Vec<KernelAccess>, from: &[KernelAccess]| {
            for it in from {
                if !to.contains(it) {
                    to.push(it.clone());
                }
            }
        };
        if !self.meets {
            add(&mut self.before, &next.before);
        }
        if next.meets {
            self.after.clear();
        }
        add(&mut self.after, &next.after);
        self.meets |= next.meets;
    }

    /// All threads meet.
    pub(crate) fn barrier() -> Flow {
        Flow { meets: true, ..Flow::default() }
    }

    /// A loop over this body, each of whose iterations has a barrier: what comes before the first one is in the
    /// first iteration, what comes after the last in the last.
    pub(super) fn around(mut self, it: &For) -> Flow {
        if self.meets {
            let var = Index::var(&it.var);
            let first = Less::new(var.clone(), Index::int(1));
            let last = Less::new(&it.extent - &Index::int(2), var);
            self.before = self.before.into_iter().map(|touch| touch.where_holds(&it.var, &first)).collect();
            self.after = self.after.into_iter().map(|touch| touch.where_holds(&it.var, &last)).collect();
        }
        self
    }
}
