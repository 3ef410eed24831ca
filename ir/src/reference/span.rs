//! Where indices lie while variables run over intervals: what a part of a program may write.

use std::collections::BTreeSet;

use crate::interp::{
    code::{AccessCode, BlockCode, IndexCode, LessCode, StmtCode},
    span::{Span, affine, combined},
};

const ANYTHING: Span = [i64::MIN, i64::MAX];

/// An interval that holds all values of an index.
fn span(index: &IndexCode, env: &[Span]) -> Span {
    let exact = |it: Option<Span>| it.unwrap_or(ANYTHING);
    match index {
        IndexCode::Slot(slot) => env[*slot as usize],
        IndexCode::Affine { constant, terms } => exact(affine(*constant, terms, env)),
        IndexCode::Element(..) => ANYTHING,
        IndexCode::Op(op, operands) => {
            let ([a, b], [c, d]) = (span(&operands[0], env), span(&operands[1], env));
            exact(combined(*op, [a, b], [c, d]))
        }
    }
}

/// Whether conditions may all hold.
fn may_hold(conditions: &[LessCode], env: &[Span]) -> bool {
    conditions.iter().all(|it| span(&it.lhs, env)[0] < span(&it.rhs, env)[1])
}

/// How many stores a statement runs at most.
pub(super) fn steps(code: &StmtCode, env: &mut [Span]) -> u64 {
    match code {
        StmtCode::Loop { slot, extent, body, .. } => {
            let [_, most] = span(extent, env);
            let Ok(count @ 1..) = u64::try_from(most) else { return 0 };
            env[*slot as usize] = [0, most - 1];
            count.saturating_mul(steps(body, env))
        }
        StmtCode::Block(block) => {
            enter(block, env);
            let init = block.init.as_ref().map_or(0, |it| steps(it, env));
            init.saturating_add(steps(&block.body, env))
        }
        StmtCode::Seq(stmts) => stmts.iter().map(|it| steps(it, env)).fold(0, u64::saturating_add),
        StmtCode::Store(..) => 1,
    }
}

/// Where the iterators of a block may be.
fn enter(block: &BlockCode, env: &mut [Span]) {
    for it in &block.iters {
        let ([low, high], [_, extent]) = (span(&it.binding, env), span(&it.extent, env));
        env[it.slot as usize] = [low.max(0), high.min(extent.saturating_sub(1))];
    }
}

/// Whether a statement may write one of the wanted elements.
pub(super) fn writes_wanted(code: &StmtCode, env: &mut [Span], wanted: &[BTreeSet<usize>]) -> bool {
    match code {
        StmtCode::Loop { slot, extent, body, .. } => {
            let [_, most] = span(extent, env);
            env[*slot as usize] = [0, most.saturating_sub(1)];
            most > 0 && writes_wanted(body, env, wanted)
        }
        StmtCode::Block(block) => {
            if !may_hold(&block.guards, env) {
                return false;
            }
            enter(block, env);
            let init = block.init.as_ref().is_some_and(|it| writes_wanted(it, env, wanted));
            init || writes_wanted(&block.body, env, wanted)
        }
        StmtCode::Seq(stmts) => stmts.iter().any(|it| writes_wanted(it, env, wanted)),
        StmtCode::Store(place, _) => meets(place, env, &wanted[place.buffer]),
    }
}

/// Whether an access may meet one of the elements at these offsets.
fn meets(place: &AccessCode, env: &[Span], wanted: &BTreeSet<usize>) -> bool {
    /// How many elements are looked at before the answer is yes.
    const PATIENCE: usize = 256;
    if wanted.is_empty() {
        return false;
    }
    let (mut low, mut high, mut sides) = (0, 0, Vec::with_capacity(place.subscripts.len()));
    for (index, size) in &place.subscripts {
        let [a, b] = span(index, env);
        let side = [a.max(0), b.min(size - 1)];
        if side[0] > side[1] {
            return false;
        }
        (low, high) = (low * size + side[0], high * size + side[1]);
        sides.push((side, *size));
    }
    let inside = |offset: usize| {
        let mut rest = i64::try_from(offset).expect("it is one of an element");
        sides.iter().rev().all(|([low, high], size)| {
            let at = rest.rem_euclid(*size);
            rest = rest.div_euclid(*size);
            (*low..=*high).contains(&at)
        })
    };
    let [low, high] = [low, high].map(|it: i64| usize::try_from(it).expect("it is one of an element"));
    wanted.range(low..=high).enumerate().any(|(n, it)| n >= PATIENCE || inside(*it))
}
