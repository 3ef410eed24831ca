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
    known: RefCell<Vec<Known>>,
}

/// For a buffer and the blocks that use it, the number of the loop for which it holds.
type Known = (Name, Vec<usize>, Option<usize>);

impl<'a> DeeperCover<'a> {
    /// Nothing is known yet.
    pub(super) fn new(func: &'a Func, nests: &'a [Nest<'a>]) -> DeeperCover<'a> {
        DeeperCover { func, nests, known: RefCell::default() }
    }

    /// Whether the innermost parallel loop around these users of a buffer shows that in one iteration of the loop of
    /// number `level`, which is around it or the same, the first of them writes all that the others touch.
    pub(super) fn holds(&self, buffer: &Name, users: &[usize], level: usize) -> bool {
        let known = self.known.borrow().iter().find(|it| it.0 == *buffer && it.1 == users).map(|it| it.2);
        let holds_at = known.unwrap_or_else(|| {
            let found = self.found(buffer, users);
            self.known.borrow_mut().push((buffer.clone(), users.to_vec(), found));
            found
        });
        holds_at.is_some_and(|at| at >= level)
    }

    /// The innermost parallel loop around the users, if it is so in one iteration of that.
    fn found(&self, buffer: &Name, users: &[usize]) -> Option<usize> {
        let first = &self.nests[users[0]];
        let others: Vec<_> = users[1..].iter().map(|n| &self.nests[*n]).collect();
        let shared = others.iter().map(|it| first.shared_loops(it)).min().unwrap_or(0);
        let at = first.loops[..shared].iter().rposition(|it| is_parallel(it.kind))?;
        uncovered(self.func, at + 1, first, &others, buffer).is_none().then_some(at)
    }
}
