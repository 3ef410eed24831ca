//! Finds the box that a touch sees where the same threads fill the slots: the last one for the place before it.

use ir::{Access, BulkCopy, Index, Instr, arith::Bounds};

use super::{
    error::{Outside, PhaseError},
    survey::{Survey, equal, load, settled},
    walk::{Search, View, Walk},
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
    let program = &ring.survey.programs[ring.reader];
    let mut out = vec![];
    for access in touched {
        let mut search =
            Source { ring, access, awaited: &awaited, numbers: &numbers, out: vec![], lost: false };
        Walk::new(program, &mut search).before(node, bounds, Passed { steps: 0, found: false });
        if search.lost || search.out.is_empty() {
            return Err(ring.outside(it, Outside::NotAwaited));
        }
        out.extend(search.out);
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

struct Source<'s, 'a> {
    ring: &'s Ring<'s, 'a>,
    access: &'s Access,
    /// How many phases have been waited for.
    awaited: &'s Index,
    /// Those of the boxes.
    numbers: &'s ByNode<Index>,
    out: Vec<i64>,
    lost: bool,
}

/// What a walk has passed.
#[derive(Clone, PartialEq, Eq)]
struct Passed {
    /// How many boxes for the buffer, and iterations of loops.
    steps: i64,
    /// Whether one of them is for the place.
    found: bool,
}

/// So many are looked at, more than there are slots and parts.
const MOST: i64 = 64;

impl Search for Source<'_, '_> {
    type State = Passed;

    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut Passed) {
        let Some((copy, _)) = load(it, self.ring.full.name) else { return };
        if copy.shared.first.buffer != self.access.buffer {
            return;
        }
        state.steps += 1;
        let place = Place { survey: self.ring.survey, slots: self.ring.full.slots };
        if !place.is_of(copy, self.access, view) {
            return;
        }
        state.found = true;
        let behind = (view.at_start(self.awaited) + -1) - view.shown(&self.numbers[&node]);
        match view.bounds.simplify(&settled(&view.bounds, &behind)).as_int() {
            Some(it) => self.out.push(it),
            None => self.lost = true,
        }
    }

    fn done(&self, state: &Passed) -> bool {
        self.lost || state.found
    }

    fn start(&mut self) {
        self.lost = true;
    }

    fn iteration(&mut self, state: &mut Passed) {
        state.steps += 1;
        self.lost |= state.steps > MOST;
    }

    fn lost(&mut self) {
        self.lost = true;
    }
}

struct Place<'s, 'a> {
    survey: &'s Survey<'a>,
    slots: i64,
}

impl Place<'_, '_> {
    /// Whether a box goes to the slot of an access: whether the subscripts are the same in which it has one element, or in a
    /// flat buffer those of the slot.
    fn is_of(&self, copy: &BulkCopy, access: &Access, view: &View) -> bool {
        let bounds = &view.bounds;
        let first = &copy.shared.first;
        if first.indices.len() == copy.shared.extents.len() {
            let mut all = first.indices.iter().zip(&copy.shared.extents).zip(&access.indices);
            return all
                .all(|((a, extent), b)| *extent != 1 || equal(bounds, &view.shown(a), &view.at_start(b)));
        }
        let shown = first.map_indices(&mut |it| view.shown(it));
        let own = access.map_indices(&mut |it| view.at_start(it));
        let slots = [&shown, &own].map(|it| self.survey.slot(it, &[], self.slots, bounds));
        matches!(slots, [Some(a), Some(b)] if equal(bounds, &a, &b))
    }
}
