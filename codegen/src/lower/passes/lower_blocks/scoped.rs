//! What holds at a place of the tree.

use std::collections::BTreeMap;

use ir::{Arrival, Index, Less, Name, Origin, ThreadAxis, Value, arith::Bounds};

/// Who comes to a place, as blocks that threads reduce together have to know it.
#[derive(Clone, Default)]
pub(super) struct Threads {
    /// The bound loops around, with their axes.
    pub(super) bound: Vec<(Name, ThreadAxis)>,
    /// What the threads fulfil that have something to bring, where narrower loops are around.
    pub(super) pending: Vec<Less>,
    /// Whether only some threads of a block come here.
    pub(super) is_divergent: bool,
}

/// Which of the threads that come to a place run what is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Led {
    /// Each of them.
    No,
    /// Waits are for the thread alone that starts products into tensor memory.
    Waits,
    /// One runs all of it.
    All,
}

/// What holds at a place of the tree.
#[derive(Clone)]
pub(super) struct Scoped {
    /// What iterators and bound loops stand for.
    pub(super) env: BTreeMap<Name, Index>,
    /// The axes that loops around are bound to.
    pub(super) under: Vec<ThreadAxis>,
    /// Who comes to blocks that threads reduce together.
    pub(super) threads: Threads,
    pub(super) bounds: Bounds,
    /// Whether stores are copies that may land later.
    pub(super) is_async: bool,
    /// Whether what is added to buffers that blocks meet in is added atomically.
    pub(super) adds: bool,
    /// For whom it is.
    pub(super) led: Led,
    /// Where instructions come from.
    pub(super) origin: Origin,
    /// The mbarrier that the copies of the copy engine count for: that of the last `expect` before them.
    pub(super) ring: Option<Arrival>,
}

impl Scoped {
    pub(super) fn resolve(&self, index: &Index) -> Index {
        self.bounds.simplify(&index.subst(&|name| self.env.get(name).cloned()))
    }

    /// The condition over kernel variables, or `None` where it always holds.
    pub(super) fn condition(&self, less: &Less) -> Option<Less> {
        let less = less.subst(&|name| self.env.get(name).cloned());
        (self.bounds.prove(&less) != Some(true)).then(|| self.bounds.simplify_less(&less))
    }

    pub(super) fn value(&self, value: &Value) -> Value {
        value.map_indices(&mut |it| self.resolve(it))
    }
}
