//! Kernels with one thing less.

use std::sync::Arc;

use ir::{For, Group, Instr, Kernel, Module, Op, Wait};

/// What is missing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum What {
    Barrier,
    Wait,
    /// The wait allows one group more to be under way.
    Weakened,
    Commit,
    Semaphore,
}

/// A module that lacks something.
pub(crate) struct Mutant {
    /// `barrier 2`: the second one in the text.
    pub(crate) name: String,
    pub(crate) what: What,
    pub(crate) module: Module,
}

impl What {
    pub(crate) fn plural(self) -> &'static str {
        match self {
            What::Barrier => "barriers",
            What::Wait => "waits",
            What::Weakened => "weaker waits",
            What::Commit => "commits",
            What::Semaphore => "turns",
        }
    }

    fn word(self) -> &'static str {
        match self {
            What::Barrier => "barrier",
            What::Wait => "wait",
            What::Weakened => "weaker wait",
            What::Commit => "commit",
            What::Semaphore => "turn",
        }
    }
}

/// All mutants of a module, in the order of its text.
pub(crate) fn mutants(module: &Module) -> Vec<Mutant> {
    let mut out: Vec<Mutant> = vec![];
    for (at, kernel) in module.kernels.iter().enumerate() {
        for (what, body) in lists(&kernel.body) {
            let mut module = module.clone();
            module.kernels[at] = Kernel { body, ..kernel.clone() };
            let number = out.iter().filter(|it| it.what == what).count() + 1;
            out.push(Mutant { name: format!("{} {number}", what.word()), what, module });
        }
    }
    out
}

/// The lists that lack something.
fn lists(ops: &[Op]) -> Vec<(What, Vec<Op>)> {
    let mut out = vec![];
    for (at, op) in ops.iter().enumerate() {
        let with = |new: Option<Op>| {
            let (before, after) = (&ops[..at], &ops[at + 1..]);
            before.iter().cloned().chain(new).chain(after.iter().cloned()).collect::<Vec<_>>()
        };
        match op {
            Op::Instr(Instr::Barrier(_), _) => out.push((What::Barrier, with(None))),
            Op::Instr(Instr::Semaphore(_), _) => out.push((What::Semaphore, with(None))),
            Op::Instr(Instr::Commit(Group::CpAsync), _) => out.push((What::Commit, with(None))),
            Op::Instr(Instr::Wait(it), _) => {
                out.push((What::Wait, with(None)));
                let weaker = Wait { in_flight: it.in_flight + 1, ..it.clone() };
                out.push((What::Weakened, with(Some(Instr::Wait(weaker).into()))));
            }
            Op::For(it) => out.extend(lists(&it.body).into_iter().map(|(what, body)| {
                let new = Op::For(Arc::new(For { body, ..For::clone(it) }));
                (what, with(Some(new)))
            })),
            Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => {
                let inner = lists(body).into_iter();
                let around = |body| op.clone().map_children(&mut |_| Vec::clone(&body));
                out.extend(inner.map(|(what, body)| (what, with(Some(around(body))))));
            }
            Op::Alloc(_) | Op::Instr(..) => {}
        }
    }
    out
}
