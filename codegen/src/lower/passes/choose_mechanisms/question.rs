//! What a mechanism is asked, and what it answers.

use std::sync::Arc;

use ir::{Func, Loop, Name, Stmt, Target};

/// Why a mechanism cannot do a component: a clause, and what to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Obstacle {
    pub(crate) reason: String,
    pub(crate) change: &'static str,
}

impl Obstacle {
    pub(crate) fn new(reason: impl Into<String>, change: &'static str) -> Obstacle {
        Obstacle { reason: reason.into(), change }
    }
}

/// A component that asks for a mechanism, with what stands around it.
pub(crate) struct Question<'a> {
    pub(crate) func: &'a Func,
    pub(crate) target: &'a Target,
    /// The loops from the outermost to the pipelined one.
    pub(crate) around: &'a [&'a Loop],
    pub(crate) component: &'a Component,
    /// Whether the script insists on a mechanism.
    pub(crate) is_forced: bool,
    /// All components of the loop.
    pub(crate) all: &'a [Component],
}

/// A statement of a pipelined loop.
pub(crate) struct Component {
    /// The name by which the annotations call it.
    pub(crate) name: Name,
    pub(crate) body: Stmt,
    pub(crate) stage: i64,
    pub(crate) writes: Vec<Name>,
    pub(crate) reads: Vec<Name>,
}

/// Puts another statement in the place of one component of a loop.
pub(crate) fn replace_component(func: &mut Func, var: &Name, block: &Name, f: impl FnOnce(&Stmt) -> Stmt) {
    func.replace_loop(var, |mut old| {
        if let Stmt::Seq(stmts) = &mut old.body
            && let Some(stmt) = stmts.iter_mut().find(|it| it.blocks().iter().any(|it| it.name == *block))
        {
            *stmt = f(stmt);
        }
        Stmt::Loop(Arc::new(old))
    });
}
