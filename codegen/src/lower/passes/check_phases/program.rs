//! What each role of a kernel runs, as a tree whose statements know where they stand, who comes to them, and what is known there.

use ir::{Index, Instr, Kernel, Less, Name, Op, Participants, ThreadAxis, arith::Bounds, axis_var, intrin};

/// What the threads of a role run, or those of a block where all do the same.
pub(super) struct Program<'a> {
    /// The role; none where there are none.
    pub(super) role: Option<&'a Name>,
    /// The thread axes with their extents, `threadIdx.x` first.
    axes: Vec<(Name, i64)>,
    nodes: Vec<Node<'a>>,
    roots: Vec<usize>,
    /// What is known of dimensions, blocks and threads.
    known: Bounds,
}

struct Node<'a> {
    op: &'a Op,
    parent: Option<usize>,
    /// The place among the statements of its list.
    place: usize,
    children: Vec<usize>,
    /// Whether something in it orders anything.
    orders: bool,
}

/// The threads of a role that a statement is active for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ActiveThreads {
    /// All of them.
    All,
    /// Those of these numbers, where a condition tells threads apart.
    Only(Vec<i64>),
}

impl<'a> Program<'a> {
    /// The programs of a kernel: one a role, or one for all its threads.
    pub(super) fn all(kernel: &'a Kernel, known: &Bounds) -> Vec<Program<'a>> {
        if kernel.roles.is_empty() {
            let axes = kernel.launch.iter().filter(|it| it.0.is_thread());
            // No target has blocks of more threads.
            let axes = axes.map(|(axis, it)| (*axis, it.as_int().unwrap_or(1024))).collect();
            return vec![Program::new(None, axes, &kernel.body, known)];
        }
        let of_role = |op: &'a Op| match op {
            Op::Role(name, body) => {
                let axes = kernel.roles.get(name)?.axes.iter().map(|(axis, it)| (*axis, *it)).collect();
                Some(Program::new(Some(name), axes, body, known))
            }
            _ => None,
        };
        kernel.body.iter().filter_map(of_role).collect()
    }

    fn new(
        role: Option<&'a Name>,
        mut axes: Vec<(ThreadAxis, i64)>,
        body: &'a [Op],
        known: &Bounds,
    ) -> Program<'a> {
        axes.sort_by_key(|it| it.0 as usize);
        let axes: Vec<_> = axes.into_iter().map(|(axis, extent)| (axis_var(axis), extent)).collect();
        let mut known = known.clone();
        for (axis, extent) in &axes {
            known.insert(axis, &Index::int(*extent));
        }
        let mut out = Program { role, axes, nodes: vec![], roots: vec![], known };
        out.roots = out.list(body, None);
        out
    }

    fn list(&mut self, ops: &'a [Op], parent: Option<usize>) -> Vec<usize> {
        let mut out = Vec::with_capacity(ops.len());
        for (place, op) in ops.iter().enumerate() {
            let number = self.nodes.len();
            let orders = op.instr().is_some_and(|it| it.sync().is_some());
            self.nodes.push(Node { op, parent, place, children: vec![], orders });
            let children = self.list(op.children(), Some(number));
            self.nodes[number].orders |= children.iter().any(|it| self.nodes[*it].orders);
            self.nodes[number].children = children;
            out.push(number);
        }
        out
    }

    /// The instructions, in program order.
    pub(super) fn instrs(&self) -> impl Iterator<Item = (usize, &'a Instr)> {
        self.nodes.iter().enumerate().filter_map(|(number, it)| Some((number, it.op.instr()?)))
    }

    /// A statement.
    pub(super) fn op(&self, node: usize) -> &'a Op {
        self.nodes[node].op
    }

    /// Whether something in a statement orders anything.
    pub(super) fn orders(&self, node: usize) -> bool {
        self.nodes[node].orders
    }

    /// The statement around.
    pub(super) fn parent(&self, node: usize) -> Option<usize> {
        self.nodes[node].parent
    }

    /// The statements directly inside; those at the top without a statement.
    pub(super) fn children(&self, node: Option<usize>) -> &[usize] {
        node.map_or(&self.roots, |it| &self.nodes[it].children)
    }

    /// The statements before one in its list.
    pub(super) fn earlier(&self, node: usize) -> &[usize] {
        let it = &self.nodes[node];
        &self.children(it.parent)[..it.place]
    }

    /// The statements around one, innermost first.
    pub(super) fn around(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parent(node), |it| self.parent(*it))
    }

    /// What is known at a statement: of the loops around it, and the conditions that tell no threads apart.
    pub(super) fn bounds(&self, node: usize) -> Bounds {
        let mut out = self.known.clone();
        let around: Vec<_> = self.around(node).collect();
        for it in around.into_iter().rev() {
            match self.op(it) {
                Op::For(it) => out.insert(&it.var, &it.extent),
                Op::If(conditions, _) => {
                    conditions.iter().filter(|it| !self.tells_threads(it)).for_each(|it| out.assume(it));
                }
                Op::Alloc(_) | Op::Leader(..) | Op::Role(..) | Op::Instr(..) => {}
            }
        }
        out
    }

    /// What is known where the program ends.
    pub(super) fn known(&self) -> &Bounds {
        &self.known
    }

    /// Whether a condition is about threads.
    pub(super) fn tells_threads(&self, it: &Less) -> bool {
        let is_axis = |name: &Name| self.axes.iter().any(|it| it.0 == *name);
        it.lhs.any_var(&is_axis) || it.rhs.any_var(&is_axis)
    }

    /// Of whom one thread comes, if one does.
    pub(super) fn leader(&self, node: usize) -> Option<Participants> {
        let leaders = self.around(node).filter_map(|it| match self.op(it) {
            Op::Leader(of, _) => Some(*of),
            _ => None,
        });
        // Where there are roles, whoever leads the block is one of the role.
        let of_role = |it: Participants| if self.role.is_some() { it.min(Participants::Role) } else { it };
        leaders.last().map(of_role)
    }

    /// Whether one thread of a cluster does a statement for all its blocks.
    pub(super) fn is_led_for_cluster(&self, node: usize) -> bool {
        self.around(node).any(|it| matches!(self.op(it), Op::Leader(Participants::Cluster, _)))
    }

    /// For which threads a statement is active, leaders aside. `None` where that depends on more than the number of a thread.
    pub(super) fn active_threads(&self, node: usize) -> Option<ActiveThreads> {
        let all = self.around(node).filter_map(|it| match self.op(it) {
            Op::If(conditions, _) => Some(conditions),
            _ => None,
        });
        let conditions: Vec<_> = all.flatten().filter(|it| self.tells_threads(it)).collect();
        if conditions.is_empty() {
            return Some(ActiveThreads::All);
        }
        let mut out = vec![];
        for thread in 0..self.threads() {
            let value = |name: &Name| self.coordinate(name, thread);
            let holds = |it: &&Less| Some(it.lhs.eval(&value)? < it.rhs.eval(&value)?);
            let holds: Option<Vec<bool>> = conditions.iter().map(holds).collect();
            out.extend(holds?.iter().all(|it| *it).then_some(thread));
        }
        Some(ActiveThreads::Only(out))
    }

    /// How often an instruction is done where it is active for these threads: once by each leader.
    pub(super) fn times(&self, node: usize, active: &ActiveThreads) -> i64 {
        let teams = |size: i64| match active {
            ActiveThreads::All => (self.threads() + size - 1) / size,
            ActiveThreads::Only(threads) => {
                let mut teams: Vec<_> = threads.iter().map(|it| it / size).collect();
                teams.dedup();
                i64::try_from(teams.len()).expect("a block has few threads")
            }
        };
        match self.leader(node) {
            None | Some(Participants::Thread) => teams(1),
            Some(Participants::Warp) => teams(intrin::WARP),
            Some(Participants::Warpgroup) => teams(intrin::WARPGROUP),
            Some(Participants::Role | Participants::Block | Participants::Cluster) => {
                teams(self.threads().max(1))
            }
        }
    }

    fn threads(&self) -> i64 {
        self.axes.iter().map(|it| it.1).product()
    }

    /// What a thread has on an axis.
    fn coordinate(&self, name: &Name, thread: i64) -> Option<i64> {
        let mut rest = thread;
        for (axis, extent) in &self.axes {
            if axis == name {
                return Some(rest % extent);
            }
            rest /= extent;
        }
        None
    }

    /// What messages call it.
    pub(super) fn name(&self) -> Option<Name> {
        self.role.cloned()
    }
}
