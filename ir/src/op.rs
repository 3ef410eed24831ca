//! `Op`: a statement of a kernel.

use std::sync::Arc;

use crate::{Access, Alloc, For, Index, Instr, Less, Mode, Name, Origin, Participants};

/// A statement of a kernel: structure, or an instruction. Thread axes are variables with the names of [`axis_var`](crate::axis_var).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Memory that exists for the rest of the list it stands in (`Shared`: one for the block, at the top).
    Alloc(Alloc),
    /// A loop.
    For(Arc<For>),
    /// A list of statements under conditions that must all hold.
    If(Vec<Less>, Vec<Op>),
    /// A list of statements for one thread of those that come to it together, the same one every time.
    Leader(Participants, Vec<Op>),
    /// A list of statements for the threads of a role: the top of a kernel that has roles is made of these and of allocations.
    Role(Name, Vec<Op>),
    /// What a thread does, and where that comes from.
    Instr(Instr, Origin),
}

/// From nowhere in particular.
impl From<Instr> for Op {
    fn from(it: Instr) -> Op {
        Op::Instr(it, Origin::default())
    }
}

impl Op {
    /// A sentence for the reader of the emitted source.
    pub fn comment(text: impl Into<String>, origin: Origin) -> Op {
        Op::Instr(Instr::Comment(text.into()), origin)
    }

    /// The instruction that it is, if it is one.
    pub const fn instr(&self) -> Option<&Instr> {
        match self {
            Op::Instr(it, _) => Some(it),
            Op::Alloc(_) | Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => None,
        }
    }

    /// Where the first instruction in or below comes from, if there is one.
    pub fn first_origin(&self) -> Option<&Origin> {
        match self {
            Op::Instr(_, origin) => Some(origin),
            Op::Alloc(_) => None,
            Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {
                self.children().iter().find_map(Op::first_origin)
            }
        }
    }

    /// Where all instructions in and below come from, if that is one place.
    pub fn common_origin(&self) -> Option<&Origin> {
        let first = self.first_origin()?;
        let mut is_common = true;
        self.walk(&mut |op| is_common &= !matches!(op, Op::Instr(_, origin) if origin != first));
        is_common.then_some(first)
    }

    /// The statements directly inside.
    pub fn children(&self) -> &[Op] {
        match self {
            Op::For(it) => &it.body,
            Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => body,
            Op::Alloc(_) | Op::Instr(..) => &[],
        }
    }

    /// The statement with the list inside it replaced by what `f` makes of it; one without a list as it is.
    #[must_use]
    pub fn map_children(self, f: &mut dyn FnMut(Vec<Op>) -> Vec<Op>) -> Op {
        match self {
            Op::For(it) => {
                let mut it = Arc::unwrap_or_clone(it);
                it.body = f(std::mem::take(&mut it.body));
                Op::For(Arc::new(it))
            }
            Op::If(conditions, body) => Op::If(conditions, f(body)),
            Op::Leader(of, body) => Op::Leader(of, f(body)),
            Op::Role(name, body) => Op::Role(name, f(body)),
            Op::Alloc(_) | Op::Instr(..) => self,
        }
    }

    /// Calls `f` with this statement and each one below it, outer before inner, in program order.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Op)) {
        f(self);
        self.children().iter().for_each(|op| op.walk(f));
    }

    /// The statement without the statements below it.
    #[must_use]
    pub fn head(&self) -> Op {
        match self {
            Op::For(it) => {
                let For { var, extent, kind, counters, independent, body: _ } = &**it;
                let (var, extent, counters) = (var.clone(), extent.clone(), counters.clone());
                let (kind, independent, body) = (*kind, *independent, vec![]);
                Op::For(Arc::new(For { var, extent, kind, counters, independent, body }))
            }
            Op::If(conditions, _) => Op::If(conditions.clone(), vec![]),
            Op::Leader(of, _) => Op::Leader(*of, vec![]),
            Op::Role(name, _) => Op::Role(name.clone(), vec![]),
            Op::Alloc(_) | Op::Instr(..) => self.clone(),
        }
    }

    /// Calls `f` with each instruction in or below, in program order.
    pub fn each_instr<'a>(&'a self, f: &mut dyn FnMut(&'a Instr)) {
        self.walk(&mut |op| op.instr().into_iter().for_each(&mut *f));
    }

    /// Calls `f` with each access to memory in or below, in program order.
    pub fn each_access<'a>(&'a self, f: &mut dyn FnMut(&'a Access, Mode)) {
        self.each_instr(&mut |it| it.each_access(f));
    }

    /// Calls `f` with each index expression in or below: of instructions, extents and conditions.
    pub fn each_index<'a>(&'a self, f: &mut dyn FnMut(&'a Index)) {
        self.walk(&mut |op| match op {
            Op::Instr(it, _) => it.each_index(f),
            Op::For(it) => f(&it.extent),
            Op::If(cond, _) => cond.iter().flat_map(|it| [&it.lhs, &it.rhs]).for_each(&mut *f),
            Op::Alloc(_) | Op::Leader(..) | Op::Role(..) => {}
        });
    }

    /// The statement with every access in it rewritten by `f`.
    #[must_use]
    pub fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Op {
        match self {
            Op::Instr(it, origin) => Op::Instr(it.map_accesses(f), origin.clone()),
            Op::Alloc(_) => self.clone(),
            Op::For(it) => {
                let body = it.body.iter().map(|op| op.map_accesses(f)).collect();
                Op::For(Arc::new(For { body, ..For::clone(it) }))
            }
            Op::If(..) | Op::Leader(..) | Op::Role(..) => {
                self.clone().map_children(&mut |body| body.iter().map(|op| op.map_accesses(f)).collect())
            }
        }
    }

    /// The statement with every index expression in it rewritten by `f`.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Op {
        match self {
            Op::Instr(it, origin) => Op::Instr(it.map_indices(f), origin.clone()),
            Op::Alloc(_) => self.clone(),
            Op::For(it) => Op::For(Arc::new(For {
                extent: f(&it.extent),
                body: it.body.iter().map(|op| op.map_indices(f)).collect(),
                ..For::clone(it)
            })),
            Op::If(cond, body) => Op::If(
                cond.iter().map(|it| Less::new(f(&it.lhs), f(&it.rhs))).collect(),
                body.iter().map(|op| op.map_indices(f)).collect(),
            ),
            Op::Leader(..) | Op::Role(..) => {
                self.clone().map_children(&mut |body| body.iter().map(|op| op.map_indices(f)).collect())
            }
        }
    }

    /// The statement with every variable in its indices replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Op {
        self.map_indices(&mut |index| index.subst(with))
    }
}
