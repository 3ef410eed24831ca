//! Tensor memory: which columns each buffer gets, and what of shared memory it takes to have them.

use indexmap::IndexMap;
use ir::{Group, Kernel, Mbarriers, Name, Op, Scope, SyncKind};

/// The fewest columns that a block can ask for; more are powers of two (PTX ISA, `tcgen05.alloc`).
const LEAST_COLUMNS: i64 = 32;

/// The bytes of shared memory that the address of tensor memory is told in.
const ADDRESS_BYTES: i64 = 8;

/// What a kernel has of tensor memory.
#[derive(Debug)]
pub(crate) struct TensorMemory {
    /// The first column of each buffer, and how many it has.
    pub(crate) buffers: IndexMap<Name, [i64; 2]>,
    /// How many columns all of them take.
    pub(crate) columns: i64,
    /// How many groups of products there may be that nobody has waited for: each has an mbarrier that tells when it is over. None where that
    /// has no bound.
    pub(crate) groups: Option<i64>,
}

impl TensorMemory {
    /// That of a kernel, if it has any.
    pub(crate) fn of(kernel: &Kernel) -> Option<TensorMemory> {
        let (mut buffers, mut columns) = (IndexMap::new(), 0);
        for op in &kernel.body {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op
                    && it.scope == Scope::Tensor
                {
                    let width = (it.elements() + Scope::TENSOR_ROWS - 1) / Scope::TENSOR_ROWS;
                    buffers.insert(it.name.clone(), [columns, width]);
                    columns += width;
                }
            });
        }
        let mut groups = Groups::default();
        let is_bounded = groups.run(&kernel.body).is_some();
        (columns > 0).then_some(TensorMemory { buffers, columns, groups: is_bounded.then_some(groups.most) })
    }

    /// How many columns it asks for.
    pub(crate) fn allocated(&self) -> i64 {
        let power = self.columns.unsigned_abs().next_power_of_two();
        let power = i64::try_from(power).expect("a column has 128 elements, which i64 counts");
        power.max(LEAST_COLUMNS)
    }

    /// The bytes of shared memory that it takes: mbarriers, and behind them the address.
    pub(crate) const fn shared_bytes(&self) -> i64 {
        match self.groups {
            Some(groups) => groups * Mbarriers::BYTES + ADDRESS_BYTES,
            None => ADDRESS_BYTES,
        }
    }

    /// The buffers and their columns, the widest first.
    pub(crate) fn widths(&self) -> Vec<(Name, i64)> {
        let mut out: Vec<_> = self.buffers.iter().map(|(name, it)| (name.clone(), it[1])).collect();
        out.sort_by_key(|it| std::cmp::Reverse(it.1));
        out
    }
}

/// Counts groups that nobody has waited for, statement by statement.
#[derive(Default)]
struct Groups {
    open: i64,
    most: i64,
}

impl Groups {
    /// Goes through statements; nothing if a loop leaves more of them open with each iteration.
    fn run(&mut self, ops: &[Op]) -> Option<()> {
        for op in ops {
            match op {
                Op::For(it) => {
                    self.run(&it.body)?;
                    let once = self.open;
                    self.run(&it.body)?;
                    if self.open > once {
                        return None;
                    }
                }
                Op::Instr(it, _) => match it.sync() {
                    Some(SyncKind::Commit(Group::Tcgen05)) => self.open += 1,
                    Some(SyncKind::Wait(it)) if it.group == Group::Tcgen05 => {
                        self.open = self.open.min(it.in_flight.into());
                    }
                    _ => {}
                },
                op => self.run(op.children())?,
            }
            self.most = self.most.max(self.open);
        }
        Some(())
    }
}
