//! What one parallel loop shows of those around it.

use std::cell::RefCell;

use ir::{Func, Name, region::Nest};

use crate::check::independent::{is_parallel, uncovered};

/// What is found out about the innermost parallel loops holds for those around them: where each iteration of a loop writes
/// what it uses, so does each iteration of a loop around it.
pub(super) struct DeeperCover<'a> {
    func: &'a Func,
    /// All blocks of the program.
    nests: &'a [Nest<'a>],
    /// The answers, by the buffer and the blocks that use it.
    known: RefCell<Vec<(Name, Vec<usize>, bool)>>,
}

impl<'a> DeeperCover<'a> {
    /// Nothing is known yet.
    pub(super) fn new(func: &'a Func, nests: &'a [Nest<'a>]) -> DeeperCover<'a> {
        DeeperCover { func, nests, known: RefCell::default() }
    }

    /// Whether in one iteration of the innermost parallel loop around these users of a buffer, the first of them writes
    /// all that the others touch.
    pub(super) fn holds(&self, buffer: &Name, users: &[usize]) -> bool {
        if let Some(known) = self.known.borrow().iter().find(|it| it.0 == *buffer && it.1 == users) {
            return known.2;
        }
        let first = &self.nests[users[0]];
        let others: Vec<_> = users[1..].iter().map(|n| &self.nests[*n]).collect();
        let shared = others.iter().map(|it| first.shared_loops(it)).min().unwrap_or(0);
        let level = first.loops[..shared].iter().rposition(|it| is_parallel(it.kind));
        let holds = level.is_some_and(|at| uncovered(self.func, at + 1, first, &others, buffer).is_none());
        self.known.borrow_mut().push((buffer.clone(), users.to_vec(), holds));
        holds
    }
}
