//! Scans: reductions whose every result takes the terms up to its own place.

use crate::{Block, Index, Iter, IterKind, Less, Literal, Loop, Name, Reducer, Value};

/// A block of the form `Y[i, j] += select(k <= j, X[i, k], 0)`, with `<`, `>=` or `>` as well, where `k` goes as far as `j`.
///
/// A scan of one operator is a *prefix sum* in the literature, whatever the operator (Blelloch, *Prefix sums and their applications*,
/// 1990). It is inclusive where an element counts itself, and it goes backward where `k >= j` or `k > j` chooses its terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scan {
    /// What is combined, and where to.
    pub reducer: Reducer,
    /// The iterator of the dimension that is scanned.
    pub along: Name,
    /// The iterator of the terms, the only one that is reduced over.
    pub over: Name,
    /// What is combined, at `over`.
    pub term: Value,
    /// What changes nothing, and is combined where there is no term.
    pub identity: Literal,
    /// Whether a result takes the terms behind it.
    pub is_backward: bool,
    /// Whether a result takes the term at its own place.
    pub is_inclusive: bool,
}

impl Scan {
    /// The scan that a block is, if it is one.
    pub fn of(block: &Block) -> Option<Scan> {
        let reducer = Reducer::of(block)?;
        let mut terms = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
        let (Some(over), None) = (terms.next(), terms.next()) else { return None };
        let Value::Select(conds, term, otherwise) = &reducer.term else { return None };
        let Value::Const(identity) = **otherwise else { return None };
        if reducer.op.identity(identity.dtype) != Some(identity) {
            return None;
        }
        let (along, order) =
            block.iters.iter().find_map(|along| Some((along, Order::of(conds, along, over)?)))?;
        let rest: Vec<Less> = conds.iter().filter(|it| **it != order.cond).cloned().collect();
        Some(Scan {
            along: along.var.clone(),
            over: over.var.clone(),
            term: Self::chosen(rest, Value::clone(term), identity),
            identity,
            is_backward: order.is_backward,
            is_inclusive: order.is_inclusive,
            reducer,
        })
    }

    /// Whether each result follows from the one before it: the terms are the same for all results.
    pub fn has_same_terms(&self) -> bool {
        let mut depends = false;
        self.term.each_index(&mut |it| depends |= it.any_var(&|var| *var == self.along));
        !depends
    }

    /// The condition under which a result at `along` takes the term at `over`, in the order of this scan.
    pub fn takes(&self, over: &Name, along: &Name, is_inclusive: bool) -> Less {
        precedes(over, along, self.is_backward, is_inclusive)
    }

    /// `term` where the conditions hold, and what changes nothing elsewhere.
    pub fn chosen(conds: Vec<Less>, term: Value, identity: Literal) -> Value {
        if conds.is_empty() {
            return term;
        }
        Value::Select(conds, term.into(), Value::Const(identity).into())
    }
}

/// In which order a scan goes, and whether it counts its own place.
struct Order {
    cond: Less,
    is_backward: bool,
    is_inclusive: bool,
}

impl Order {
    /// The order between two iterators that one of the conditions says.
    fn of(conds: &[Less], along: &Iter, over: &Iter) -> Option<Order> {
        if along.kind != IterKind::Spatial || along.extent != over.extent {
            return None;
        }
        let orders = [(false, true), (false, false), (true, true), (true, false)];
        orders.into_iter().find_map(|(is_backward, is_inclusive)| {
            let cond = precedes(&over.var, &along.var, is_backward, is_inclusive);
            conds.contains(&cond).then_some(Order { cond, is_backward, is_inclusive })
        })
    }
}

fn precedes(over: &Name, along: &Name, is_backward: bool, is_inclusive: bool) -> Less {
    let (first, second) = if is_backward { (along, over) } else { (over, along) };
    Less::new(Index::var(first), Index::var(second) + Index::int(i64::from(is_inclusive)))
}

/// Whether a loop is that over the terms of a scan, of which a running sum takes one a result.
pub(crate) fn is_over_terms(it: &Loop) -> bool {
    let [block] = it.body.blocks()[..] else { return false };
    let over = block.iters.iter().find(|iter| iter.binding.as_var() == Some(&it.var));
    let scan = Scan::of(block).filter(Scan::has_same_terms);
    scan.zip(over).is_some_and(|(scan, over)| scan.over == over.var)
}
