//! Backwards from a statement through all that may have been done before it, the latest first.
//!
//! What surely was done changes what is looked for, a state, and may end the search: a wait, a barrier, a fence. What stands under a
//! condition that is not known to hold, or in a loop that may be empty, is shown, but changes nothing. A loop is gone
//! through from its last iteration on, until an iteration leaves the state as it was: those before it leave it so, too. So
//! the walk ends, and whoever is shown no harm has a proof for all trip counts.

use ir::{Index, Instr, Less, Name, Op, arith::Bounds};

use super::{error::PhaseError, program::Program};

/// So many iterations of a loop are gone back through, at most; who needs more is not answered.
const MOST_ITERATIONS: i64 = 40;

/// That a walk would have to go farther back than walks do.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooFar {
    /// How many there may be.
    pub(super) most: i64,
    /// Of what.
    pub(super) what: &'static str,
}

impl TooFar {
    /// So nothing is known of what the walk was about.
    pub(super) fn about(self, buffer: &Name) -> PhaseError {
        PhaseError::TooFar { buffer: buffer.clone(), most: self.most, what: self.what }
    }
}

/// Where a walk is: what loop variables stand for there, in terms of those at its start, and what is known.
#[derive(Clone)]
pub(super) struct View {
    /// What variables of loops that were gone back through stand for.
    values: Vec<(Name, Index)>,
    /// What loop variables at the start are, where the walk has come to a first iteration.
    fixed: Vec<(Name, Index)>,
    /// What is known.
    pub(super) bounds: Bounds,
}

impl View {
    /// An index of the statement that is shown.
    pub(super) fn shown(&self, index: &Index) -> Index {
        let value = |name: &Name| self.values.iter().rev().find(|it| it.0 == *name).map(|it| it.1.clone());
        self.at_start(&index.subst(&value))
    }

    /// An index of the statement that the walk began at.
    pub(super) fn at_start(&self, index: &Index) -> Index {
        index.subst(&|name| self.fixed.iter().find(|it| it.0 == *name).map(|it| it.1.clone()))
    }

    /// Whether a condition of the statement that is shown is known to hold.
    fn holds(&self, it: &Less) -> bool {
        self.bounds.prove(&Less::new(self.shown(&it.lhs), self.shown(&it.rhs))) == Some(true)
    }

    fn set(&mut self, var: &Name, value: Index) {
        self.values.push((var.clone(), value));
    }
}

/// What a walk looks for, and what it makes of what it is shown.
pub(super) trait Search {
    /// What has been found; [`Search::done`] where nothing before it matters.
    type State: Clone + PartialEq;

    /// Looks at an instruction.
    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut Self::State);

    /// Whether nothing before it matters.
    fn done(&self, state: &Self::State) -> bool;

    /// The program begins: nothing is before it.
    fn start(&mut self) {}

    /// Whether nothing in a loop is of interest, nor in which iteration of it the walk began: its iterations need not be told apart.
    fn is_beside(&self, node: usize) -> bool {
        let _ = node;
        false
    }

    /// It goes on in the iteration before.
    fn iteration(&mut self, state: &mut Self::State) {
        let _ = state;
    }

    /// Whether it has a limit of its own, and has come to that.
    fn too_far(&self, state: &Self::State) -> Option<TooFar> {
        let _ = state;
        None
    }
}

/// A walk through a program.
pub(super) struct Walk<'w, 'a, S: Search> {
    program: &'w Program<'a>,
    search: &'w mut S,
    /// How many names have been made for iterations of which nothing is known.
    fresh: usize,
    /// Why it ended before it was done.
    too_far: Option<TooFar>,
}

impl<'w, 'a, S: Search> Walk<'w, 'a, S> {
    pub(super) fn new(program: &'w Program<'a>, search: &'w mut S) -> Walk<'w, 'a, S> {
        Walk { program, search, fresh: 0, too_far: None }
    }

    /// Shows what may have been done before a statement.
    ///
    /// # Errors
    /// If that is too much to be shown all of it.
    pub(super) fn before(mut self, node: usize, bounds: &Bounds, state: S::State) -> Result<(), TooFar> {
        let view = View { values: vec![], fixed: vec![], bounds: bounds.clone() };
        self.back(node, 0, &view, state);
        self.too_far.map_or(Ok(()), Err)
    }

    /// Shows all that may have been done when the program ends.
    ///
    /// # Errors
    /// If that is too much to be shown all of it.
    pub(super) fn before_end(mut self, state: S::State) -> Result<(), TooFar> {
        let view = View { values: vec![], fixed: vec![], bounds: self.program.known().clone() };
        let roots = self.program.children(None).to_vec();
        let state = self.list(&roots, &view, state);
        if !self.is_over(&state) {
            self.search.start();
        }
        self.too_far.map_or(Ok(()), Err)
    }

    /// Whether nothing more is to be shown.
    fn is_over(&self, state: &S::State) -> bool {
        self.too_far.is_some() || self.search.done(state)
    }

    /// Goes on in the iteration before.
    fn iteration(&mut self, state: &mut S::State) {
        self.search.iteration(state);
        self.too_far = self.too_far.or_else(|| self.search.too_far(state));
    }

    fn give_up(&mut self) {
        self.too_far.get_or_insert(TooFar { most: MOST_ITERATIONS, what: "iterations of a loop" });
    }

    /// Goes back from a statement, whose innermost loop around was gone back through so many iterations.
    fn back(&mut self, node: usize, times: i64, view: &View, state: S::State) {
        let program = self.program;
        let state = self.list(program.earlier(node), view, state);
        if self.is_over(&state) {
            return;
        }
        let Some(parent) = program.parent(node) else {
            self.search.start();
            return;
        };
        let Op::For(it) = program.op(parent) else {
            self.back(parent, times, view, state);
            return;
        };
        if self.search.is_beside(parent) {
            self.back(parent, 0, view, state);
            return;
        }
        let var = view.shown(&Index::var(&it.var));
        if !program.orders(parent) {
            let any = self.any_below(&var, &it.var, view);
            self.list(program.children(Some(parent)), &any, state.clone());
            self.back(parent, 0, view, state);
            return;
        }
        // The first iteration, before which the loop had none.
        let mut first = view.clone();
        if let Some((name, value)) = zero_of(&var, &it.var) {
            first.fixed.push((name, value));
        }
        if view.bounds.prove(&Less::new(Index::int(0), var.clone())) != Some(true) {
            self.back(parent, 0, &first, state.clone());
        }
        // A later one, before which was another.
        if view.bounds.prove(&Less::new(var.clone(), Index::int(1))) == Some(true) {
            return;
        }
        if times >= MOST_ITERATIONS {
            self.give_up();
            return;
        }
        let mut later = view.clone();
        later.bounds.assume(&Less::new(Index::int(0), var.clone()));
        later.set(&it.var, &var + -1);
        let body = program.children(Some(parent));
        let mut next = self.list(body, &later, state.clone());
        self.iteration(&mut next);
        if self.is_over(&next) {
            return;
        }
        if next != state {
            let first = *body.first().expect("the walk began in it");
            self.back(first, times + 1, &later, next);
            return;
        }
        // Those before it leave the state as it was: any of them, and what is before the loop seen from any.
        let any = self.any_below(&var, &it.var, view);
        let next = self.list(body, &any, next);
        self.back(parent, 0, view, next);
    }

    /// In any iteration of a loop before one.
    fn any_below(&mut self, end: &Index, var: &Name, view: &View) -> View {
        self.fresh += 1;
        let any = Name::new(format!("{var}~{}", self.fresh));
        let mut out = view.clone();
        out.bounds.insert(&any, end);
        out.set(var, Index::var(&any));
        out
    }

    /// Goes back through a list.
    fn list(&mut self, nodes: &[usize], view: &View, mut state: S::State) -> S::State {
        for node in nodes.iter().rev() {
            if self.is_over(&state) {
                break;
            }
            state = self.statement(*node, view, state);
        }
        state
    }

    fn statement(&mut self, node: usize, view: &View, mut state: S::State) -> S::State {
        let program = self.program;
        let body = program.children(Some(node));
        match program.op(node) {
            Op::Alloc(_) => {}
            Op::Instr(it, _) => self.search.look(node, it, view, &mut state),
            Op::Leader(..) | Op::Role(..) => return self.list(body, view, state),
            Op::If(conditions, _) => {
                let mut inside = view.clone();
                let tells_no_threads = |it: &&Less| !program.tells_threads(it);
                for it in conditions.iter().filter(tells_no_threads) {
                    inside.bounds.assume(&Less::new(view.shown(&it.lhs), view.shown(&it.rhs)));
                }
                let surely = conditions.iter().all(|it| view.holds(it));
                let after = self.list(body, &inside, state.clone());
                if surely {
                    state = after;
                }
            }
            Op::For(it) => return self.finished(&it.var, &it.extent, node, view, state),
        }
        state
    }

    /// Goes back through a loop that has been run.
    fn finished(
        &mut self,
        var: &Name,
        extent: &Index,
        node: usize,
        view: &View,
        state: S::State,
    ) -> S::State {
        if self.search.is_beside(node) {
            return state;
        }
        let body = self.program.children(Some(node));
        let extent = view.shown(extent);
        if !self.program.orders(node) {
            let any = self.any_below(&extent, var, view);
            let after = self.list(body, &any, state.clone());
            // It may be empty.
            let runs = view.bounds.prove(&Less::new(Index::int(0), extent)) == Some(true);
            return if runs { after } else { state };
        }
        let (mut sure, mut running) = (state.clone(), state);
        for times in 0..MOST_ITERATIONS {
            // Whether there are more iterations than those.
            let left = &extent - &Index::int(times);
            let there_is = view.bounds.prove(&Less::new(Index::int(0), left.clone()));
            if there_is == Some(false) {
                return sure;
            }
            let mut inside = view.clone();
            inside.bounds.assume(&Less::new(Index::int(0), left.clone()));
            inside.set(var, &left + -1);
            let mut next = self.list(body, &inside, running.clone());
            self.iteration(&mut next);
            if next == running {
                let any = self.any_below(&left, var, &inside);
                self.list(body, &any, next);
                return sure;
            }
            running = next;
            if there_is == Some(true) {
                sure = running.clone();
            }
            if self.is_over(&running) {
                return sure;
            }
        }
        self.give_up();
        sure
    }
}

/// What a loop variable at the start of the walk is where `index` is zero: that variable less a constant.
fn zero_of(index: &Index, var: &Name) -> Option<(Name, Index)> {
    let less = Bounds::default().simplify(&(index - &Index::var(var))).as_int()?;
    Some((var.clone(), Index::int(-less)))
}
