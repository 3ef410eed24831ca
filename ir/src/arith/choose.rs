//! The cheapest form of an index to emit.

use egg::{EGraph, Extractor, Id, RecExpr};
use indexmap::IndexSet;

use super::{
    Bounds,
    rules::{Cost, Intervals, Node, VarNumber, own_cost, saturate},
};
use crate::{Index, IndexKind};

/// The cheapest equal form of an index to emit, found by egg under node and iteration limits, never a clock.
///
/// The index itself stays where nothing is cheaper than it.
#[must_use]
pub fn cheapest(index: &Index, bounds: &Bounds) -> Index {
    let normal = bounds.simplify(index);
    let mut all = Vec::new();
    terms(&normal, &mut all);
    let (head, tail) = all.split_at(unsettled(&all));
    let best = match head {
        [] => normal.clone(),
        [first, rest @ ..] => {
            let head = rest.iter().fold((*first).clone(), |out, it| &out + *it);
            tail.iter().fold(extract(&head, bounds), |out, it| &out + *it)
        }
    };
    if cost(index) < cost(&best) { index.clone() } else { best }
}

/// What an index costs to compute: an addition 2, a multiplication 3, a division 20 (by a power of two 2), a leaf 1.
pub fn cost(index: &Index) -> u64 {
    let two = |a: &Index, b: &Index| cost(a).saturating_add(cost(b));
    let none = [Id::from(0); 2];
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => 1,
        IndexKind::Add(a, b) => own_cost(&Node::Add(none), None).saturating_add(two(a, b)),
        IndexKind::Mul(a, b) => own_cost(&Node::Mul(none), None).saturating_add(two(a, b)),
        IndexKind::FloorDiv(a, b) => own_cost(&Node::Div(none), b.as_int()).saturating_add(two(a, b)),
        IndexKind::FloorMod(a, b) => own_cost(&Node::Mod(none), b.as_int()).saturating_add(two(a, b)),
        IndexKind::Min(a, b) => own_cost(&Node::Min(none), None).saturating_add(two(a, b)),
        IndexKind::Max(a, b) => own_cost(&Node::Max(none), None).saturating_add(two(a, b)),
        IndexKind::Xor(a, b) => own_cost(&Node::Xor(none), None).saturating_add(two(a, b)),
        // A load.
        IndexKind::Element(_, at, _) => cost(at).saturating_add(20),
    }
}

/// The terms of a sum, from left to right.
fn terms<'a>(index: &'a Index, out: &mut Vec<&'a Index>) {
    if let IndexKind::Add(a, b) = index.kind() {
        terms(a, out);
        terms(b, out);
    } else {
        out.push(index);
    }
}

/// How many terms at the head of a normal form a rule might change: up to the last one that has a quotient and
/// remainder, or a factor, in common with another, or such terms inside. The others need not be shown to egg.
fn unsettled(terms: &[&Index]) -> usize {
    let parts: Vec<_> = terms.iter().map(|it| stride(it)).collect();
    let is_settled = |at: usize| {
        let (core, factor) = parts[at];
        let apart = |other: &(&Index, Option<&Index>)| {
            let same_factor = factor.is_some() && factor == other.1;
            !same_factor && !are_partners(core, other.0)
        };
        parts.iter().enumerate().all(|(it, other)| it == at || apart(other)) && is_settled_inside(terms[at])
    };
    (0..terms.len()).rev().find(|at| !is_settled(*at)).map_or(0, |it| it + 1)
}

/// A term as `core*factor`.
fn stride(term: &Index) -> (&Index, Option<&Index>) {
    match term.kind() {
        IndexKind::Mul(core, factor) => (core, Some(factor)),
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::Add(..)
        | IndexKind::FloorDiv(..)
        | IndexKind::FloorMod(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => (term, None),
    }
}

/// Whether these are the quotient and the remainder of one division.
fn are_partners(a: &Index, b: &Index) -> bool {
    match (a.kind(), b.kind()) {
        (IndexKind::FloorDiv(a, c), IndexKind::FloorMod(b, d))
        | (IndexKind::FloorMod(a, c), IndexKind::FloorDiv(b, d)) => a == b && c == d,
        _ => false,
    }
}

fn is_settled_inside(term: &Index) -> bool {
    match term.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) | IndexKind::Element(..) => true,
        IndexKind::Add(..) => {
            let mut inner = Vec::new();
            terms(term, &mut inner);
            unsettled(&inner) == 0
        }
        IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::FloorMod(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b) => is_settled_inside(a) && is_settled_inside(b),
    }
}

fn extract(index: &Index, bounds: &Bounds) -> Index {
    let mut leaves = IndexSet::new();
    each_leaf(index, &mut |leaf| {
        leaves.insert(leaf.clone());
    });
    let ranges = leaves.iter().map(|it| bounds.range_of_leaf(it)).collect();
    let mut egraph = EGraph::new(Intervals(ranges));
    let root = add(&mut egraph, index, &leaves);
    saturate(&mut egraph);
    let (_, best) = Extractor::new(&egraph, Cost(&egraph)).find_best(root);
    read(&best, &leaves)
}

/// Calls `f` with each variable and each element of an input: what no rule looks into.
fn each_leaf(index: &Index, f: &mut dyn FnMut(&Index)) {
    match index.kind() {
        IndexKind::Int(_) => {}
        IndexKind::Var(_) | IndexKind::Element(..) => f(index),
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::FloorDiv(a, b)
        | IndexKind::FloorMod(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b) => [a, b].into_iter().for_each(|it| each_leaf(it, f)),
    }
}

fn add(egraph: &mut EGraph<Node, Intervals>, index: &Index, leaves: &IndexSet<Index>) -> Id {
    let mut two = |a: &Index, b: &Index| [add(egraph, a, leaves), add(egraph, b, leaves)];
    let node = match index.kind() {
        IndexKind::Int(value) => Node::Int(value),
        IndexKind::Var(_) | IndexKind::Element(..) => {
            let slot = leaves.get_index_of(index).and_then(|it| u32::try_from(it).ok());
            Node::Var(VarNumber(slot.expect("every leaf was numbered")))
        }
        IndexKind::Add(a, b) => Node::Add(two(a, b)),
        IndexKind::Mul(a, b) => Node::Mul(two(a, b)),
        IndexKind::FloorDiv(a, b) => Node::Div(two(a, b)),
        IndexKind::FloorMod(a, b) => Node::Mod(two(a, b)),
        IndexKind::Min(a, b) => Node::Min(two(a, b)),
        IndexKind::Max(a, b) => Node::Max(two(a, b)),
        IndexKind::Xor(a, b) => Node::Xor(two(a, b)),
    };
    egraph.add(node)
}

fn read(expr: &RecExpr<Node>, leaves: &IndexSet<Index>) -> Index {
    let mut out: Vec<Index> = Vec::new();
    for node in expr {
        let at = |id: &Id| &out[usize::from(*id)];
        let index = match node {
            Node::Int(value) => Index::int(*value),
            Node::Var(slot) => leaves[slot.0 as usize].clone(),
            Node::Add([a, b]) => at(a) + at(b),
            Node::Mul([a, b]) => at(a) * at(b),
            Node::Div([a, b]) => at(a).floor_div(at(b)),
            Node::Mod([a, b]) => at(a).floor_mod(at(b)),
            Node::Min([a, b]) => at(a).minimum(at(b)),
            Node::Max([a, b]) => at(a).maximum(at(b)),
            Node::Xor([a, b]) => at(a).xor(at(b)),
        };
        out.push(index);
    }
    out.pop().expect("an expression has a root")
}
