//! Finds the box that a touch sees where the same threads fill the slots: the last one for the place before it.

use std::collections::BTreeSet;

use ir::{Access, Fill, Index, Instr, Op, arith::Bounds};

use super::{
    error::{Outside, PhaseError},
    survey::{Survey, equal, fill, settled},
    walk::{Search, TooFar, View, Walk},
    windows::{ByNode, Ring},
};

/// How many waits before the last one that for the box was, for each box that a touch may see; below zero where nobody has waited for it.
pub(super) fn source(
    ring: &Ring<'_, '_>,
    node: usize,
    it: &Instr,
    bounds: &Bounds,
) -> Result<Vec<i64>, PhaseError> {
    let mut touched = vec![];
    it.each_effect(&mut |effect| {
        if ring.buffers.contains(&&effect.access.buffer) {
            touched.push(effect.access);
        }
    });
    let awaited = ring.awaited(node, it, bounds)?;
    let uses = &ring.full.uses[ring.filler];
    let numbers: ByNode<Index> = uses.loads.iter().map(|it| (it.node, &it.number + -1)).collect();
    let program = &ring.survey.programs[ring.filler];
    let around = uses.loads.iter().flat_map(|it| program.around(it.node)).collect();
    let mut out = vec![];
    for access in touched {
        let slot = slot(ring, access, bounds);
        let (awaited, numbers, around) = (&awaited, &numbers, &around);
        let mut search = Source { ring, access, slot, awaited, numbers, around, out: vec![], lost: false };
        let walked =
            Walk::new(program, &mut search).before(node, bounds, Progress { iterations: 0, found: false });
        // Without an answer so far there may be none, or one that is farther back.
        if search.lost || walked.is_ok() && search.out.is_empty() {
            return Err(ring.outside(it, Outside::NotAwaited));
        }
        walked.map_err(|it| it.about(&access.buffer))?;
        out.extend(search.out);
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// What says in which slot an access is.
fn slot(ring: &Ring<'_, '_>, access: &Access, bounds: &Bounds) -> Vec<Index> {
    if let [_] = &*access.indices {
        return ring.survey.slot(access, &[], ring.full.slots, bounds).into_iter().collect();
    }
    let program = &ring.survey.programs[ring.filler];
    let loads = ring.full.uses[ring.filler].loads.iter();
    let boxes: Vec<_> = loads
        .filter_map(|it| fill(program.op(it.node).instr()?, ring.full.name))
        .filter(|it| it.place.buffer == access.buffer)
        .collect();
    let is_compared = |dim: usize| boxes.iter().any(|it| it.extents.get(dim) == Some(&1));
    let dims = access.indices.iter().enumerate().filter(|(dim, _)| is_compared(*dim));
    dims.map(|(_, it)| it.clone()).collect()
}

struct Source<'s, 'a> {
    ring: &'s Ring<'s, 'a>,
    access: &'s Access,
    /// What says which slot that is in.
    slot: Vec<Index>,
    /// How many phases have been waited for.
    awaited: &'s Index,
    /// Those of the boxes.
    numbers: &'s ByNode<Index>,
    /// What stands around them.
    around: &'s BTreeSet<usize>,
    out: Vec<i64>,
    lost: bool,
}

/// How far a walk has come.
#[derive(Clone, PartialEq, Eq)]
struct Progress {
    /// How many iterations it has gone back through, of whatever loops.
    iterations: i64,
    /// Whether a box for the place has come.
    found: bool,
}

/// So many iterations are gone back through in all, at most. Walks that never find the same twice would have no other end where loops are
/// inside each other.
const MOST_IN_ALL: i64 = 256;

impl Search for Source<'_, '_> {
    type State = Progress;

    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut Progress) {
        let Some(fill) = fill(it, self.ring.full.name) else { return };
        if fill.place.buffer != self.access.buffer {
            return;
        }
        let place = Place { survey: self.ring.survey, slots: self.ring.full.slots };
        if !place.is_of(&fill, self.access, view) {
            return;
        }
        state.found = true;
        let behind = (view.at_start(self.awaited) + -1) - view.shown(&self.numbers[&node]);
        match view.bounds.simplify(&settled(&view.bounds, &behind)).as_int() {
            Some(it) => self.out.push(it),
            None => self.lost = true,
        }
    }

    fn done(&self, state: &Progress) -> bool {
        self.lost || state.found
    }

    fn start(&mut self) {
        self.lost = true;
    }

    fn is_beside(&self, node: usize) -> bool {
        let Op::For(it) = self.ring.survey.programs[self.ring.filler].op(node) else { return false };
        let mut asked = self.slot.iter().chain([self.awaited]);
        !self.around.contains(&node) && !asked.any(|index| index.any_var(&|name| *name == it.var))
    }

    fn iteration(&mut self, state: &mut Progress) {
        state.iterations += 1;
    }

    fn too_far(&self, state: &Progress) -> Option<TooFar> {
        (state.iterations > MOST_IN_ALL)
            .then_some(TooFar { most: MOST_IN_ALL, what: "iterations of all loops" })
    }
}

struct Place<'s, 'a> {
    survey: &'s Survey<'a>,
    slots: i64,
}

impl Place<'_, '_> {
    /// Whether a box goes to the slot of an access: whether the subscripts are the same in which it has one element, or in a
    /// flat buffer those of the slot.
    fn is_of(&self, fill: &Fill<'_>, access: &Access, view: &View) -> bool {
        let bounds = &view.bounds;
        let first = fill.place;
        if first.indices.len() == fill.extents.len() {
            let mut all = first.indices.iter().zip(fill.extents).zip(&access.indices);
            return all
                .all(|((a, extent), b)| *extent != 1 || equal(bounds, &view.shown(a), &view.at_start(b)));
        }
        let shown = first.map_indices(&mut |it| view.shown(it));
        let own = access.map_indices(&mut |it| view.at_start(it));
        let slots = [&shown, &own].map(|it| self.survey.slot(it, &[], self.slots, bounds));
        matches!(slots, [Some(a), Some(b)] if equal(bounds, &a, &b))
    }
}
