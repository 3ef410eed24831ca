//! Loop-invariant code motion: each part of an index is computed once a turn of the innermost loop that changes it.
//!
//! Indices are composed: an iterator is the affine form of the loops around its block that its binding is, and so
//! are the subscripts over iterators and the offset that they make together. A form is kept in a slot by its
//! prefixes, a loop at a time (`base + factor * variable`), and equal prefixes share a slot, so that a turn of the
//! innermost loop costs one such step for each form that it changes. Quotients, remainders and elements of tables are
//! kept as if they were variables of the loop that changes them.
//!
//! What is computed ahead must not fail, for it may be that it is never asked for. So only that is kept whose
//! value is proved by interval arithmetic to exist for all turns of the loops around it. Checks of domains and bounds are left
//! out where they are proved to hold, each other check is at its place: the first fault of a program stays the first.

mod form;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use super::{
    code::{AccessCode, BlockCode, IndexCode, IndexOp, IterCode, LessCode, Let, StmtCode, ValueCode},
    span::{Span, affine, combined},
};
use form::Form;

/// What is known of an index that always has a value.
struct Known {
    form: Form,
    /// Where its values are at the statement at hand.
    span: Span,
}

/// What a value that is no affine form is computed of.
#[derive(PartialEq, Eq, Hash)]
enum Derived {
    Op(IndexOp, [u32; 2]),
    /// A table by its address, and the position.
    Element(*const i64, u32),
}

struct Hoist {
    /// What each slot of the resolved program is, once it is in scope.
    slots: Vec<Form>,
    /// Where the values of such a slot are at the statement at hand, behind the checks of the blocks around it.
    here: Vec<Span>,
    /// Where the values of a slot are over all turns of the loops around it.
    spans: Vec<Span>,
    /// What the environment holds before the run.
    env: Vec<i64>,
    /// What each scope around the statement at hand keeps, from the outside: the program, loops and blocks.
    scopes: Vec<Vec<Let>>,
    /// The slots that hold forms. Those of scopes that are closed are not met again, for slots belong to one scope.
    forms: FxHashMap<Form, u32>,
    derived: FxHashMap<Derived, u32>,
}

/// Moves what loops do not change out of them. Also gives the contents of the environment before the run, which had `slots` slots.
pub(super) fn hoist(code: StmtCode, slots: usize) -> (StmtCode, Vec<i64>) {
    let mut hoist = Hoist {
        slots: vec![Form::constant(0); slots],
        here: vec![[0, 0]; slots],
        spans: vec![[0, 0]; slots],
        env: vec![0; slots],
        scopes: vec![vec![]],
        forms: FxHashMap::default(),
        derived: FxHashMap::default(),
    };
    let code = hoist.stmt(code);
    (code, hoist.env)
}

impl Hoist {
    fn stmt(&mut self, code: StmtCode) -> StmtCode {
        match code {
            StmtCode::Loop { name, slot, extent, body, .. } => {
                let (extent, span) = self.index(extent);
                let last = span.map_or(i64::MAX, |it| it[1]).saturating_sub(1);
                self.scopes.push(vec![]);
                self.vary(slot, [0, last.max(0)]);
                let body = Box::new(self.stmt(*body));
                StmtCode::Loop { name, slot, extent, lets: self.leave(), body }
            }
            StmtCode::Block(it) => StmtCode::Block(Box::new(self.block(*it))),
            StmtCode::Seq(stmts) => StmtCode::Seq(stmts.into_iter().map(|it| self.stmt(it)).collect()),
            StmtCode::Store(place, value) => {
                let value = self.value(value);
                StmtCode::Store(self.access(place), value)
            }
        }
    }

    fn leave(&mut self) -> Box<[Let]> {
        self.scopes.pop().expect("each scope is left once").into()
    }

    /// Declares a slot that the turns of the innermost scope change.
    fn vary(&mut self, slot: u32, span: Span) {
        self.set(slot, Form::slot(self.scopes.len() - 1, slot), span);
        self.spans[slot as usize] = span;
    }

    fn set(&mut self, slot: u32, form: Form, span: Span) {
        self.slots[slot as usize] = form;
        self.here[slot as usize] = span;
    }

    fn block(&mut self, block: BlockCode) -> BlockCode {
        let BlockCode { name, guards, iters, init, body, .. } = block;
        let guards = self.conditions(guards);
        let mut checked = Vec::new();
        let mut free = Vec::new();
        for it in iters {
            let known = self.known(&it.binding);
            let (extent, extents) = self.index(it.extent);
            let [low, high] = known.as_ref().map_or([i64::MIN, i64::MAX], |it| it.span);
            let holds = low >= 0 && extents.is_some_and(|it| high < it[0]);
            let last = extents.map_or(i64::MAX, |it| it[1]).saturating_sub(1).min(high);
            let span = [low.max(0), last.max(low.max(0))];
            let starts_anew = it.is_reduce && init.is_some() && span != [0, 0];
            let slot = it.slot;
            if !holds || starts_anew {
                let (binding, _) = self.index(it.binding);
                checked.push(IterCode { extent, binding, ..it });
            }
            match known {
                Some(it) => self.set(slot, it.form, span),
                None => free.push((slot, span)),
            }
        }
        self.scopes.push(vec![]);
        for (slot, span) in free {
            self.vary(slot, span);
        }
        let init = init.map(|it| self.stmt(it));
        let body = self.stmt(body);
        BlockCode { name, guards, iters: checked, lets: self.leave(), init, body }
    }

    fn value(&mut self, code: ValueCode) -> ValueCode {
        match code {
            ValueCode::Const(_) | ValueCode::Carried => code,
            ValueCode::Load(access) => ValueCode::Load(self.access(access)),
            ValueCode::Index(dtype, index) => ValueCode::Index(dtype, self.index(index).0),
            ValueCode::Cast(from, to, a) => ValueCode::Cast(from, to, Box::new(self.value(*a))),
            ValueCode::Unary(op, dtype, a) => ValueCode::Unary(op, dtype, Box::new(self.value(*a))),
            ValueCode::Binary(op, dtype, operands) => {
                ValueCode::Binary(op, dtype, Box::new(operands.map(|it| self.value(it))))
            }
            ValueCode::Select(conditions, operands) => {
                let conditions = self.conditions(conditions);
                ValueCode::Select(conditions, Box::new(operands.map(|it| self.value(it))))
            }
            ValueCode::Where(operands) => ValueCode::Where(Box::new(operands.map(|it| self.value(it)))),
        }
    }

    /// Conditions without those that always hold.
    fn conditions(&mut self, conditions: Box<[LessCode]>) -> Box<[LessCode]> {
        let mut out = Vec::new();
        for it in conditions {
            let ((lhs, a), (rhs, b)) = (self.index(it.lhs), self.index(it.rhs));
            let holds = a.zip(b).is_some_and(|([_, most], [least, _])| most < least);
            if !holds {
                out.push(LessCode { lhs, rhs });
            }
        }
        out.into()
    }

    /// An access with its offset as its only subscript, where all subscripts are proved to be within bounds.
    fn access(&mut self, access: AccessCode) -> AccessCode {
        let AccessCode { buffer, subscripts } = access;
        let len = subscripts.iter().map(|it| it.1).product();
        if let Some(offset) = self.offset(&subscripts) {
            return AccessCode { buffer, subscripts: Box::new([(IndexCode::Slot(self.keep(offset)), len)]) };
        }
        let subscripts = subscripts.into_iter().map(|(it, size)| (self.index(it).0, size)).collect();
        AccessCode { buffer, subscripts }
    }

    fn offset(&mut self, subscripts: &[(IndexCode, i64)]) -> Option<Form> {
        let mut offset = Form::constant(0);
        for (index, size) in subscripts {
            let Known { form, span: [low, high] } = self.known(index)?;
            if low < 0 || high >= *size {
                return None;
            }
            offset = form.plus(*size, &offset)?;
        }
        offset.span(&self.spans)?;
        Some(offset)
    }

    /// An index with what can be kept of it in slots, and where its values are, if it always has one.
    fn index(&mut self, code: IndexCode) -> (IndexCode, Option<Span>) {
        if let Some(Known { form, span }) = self.known(&code) {
            return (IndexCode::Slot(self.keep(form)), Some(span));
        }
        let code = match code {
            IndexCode::Slot(_) => code,
            // The same sums as before, for it is one of them that may overflow.
            IndexCode::Affine { constant, terms } => {
                let kept = |(factor, slot)| (factor, self.keep(self.slots[slot as usize].clone()));
                IndexCode::Affine { constant, terms: terms.into_iter().map(kept).collect() }
            }
            IndexCode::Element(table, at) => IndexCode::Element(table, Box::new(self.index(*at).0)),
            IndexCode::Op(op, operands) => IndexCode::Op(op, Box::new(operands.map(|it| self.index(it).0))),
        };
        (code, None)
    }

    /// What is known of an index, if it has a value in all turns of the loops around it.
    fn known(&mut self, code: &IndexCode) -> Option<Known> {
        match code {
            IndexCode::Slot(slot) => {
                let at = *slot as usize;
                Some(Known { form: self.slots[at].clone(), span: self.here[at] })
            }
            IndexCode::Affine { constant, terms } => {
                let mut form = Form::constant(*constant);
                for (factor, slot) in terms {
                    form = form.plus(*factor, &self.slots[*slot as usize])?;
                }
                let span = both(affine(*constant, terms, &self.here)?, form.span(&self.spans)?);
                Some(Known { form, span })
            }
            IndexCode::Element(table, at) => {
                let at = self.known(at)?;
                let [low, high] = at.form.span(&self.spans)?;
                usize::try_from(low).ok()?;
                table.get(usize::try_from(high).ok()?)?;
                let span = [*table.iter().min()?, *table.iter().max()?];
                let scope = at.form.scope();
                let at = self.keep(at.form);
                let code = IndexCode::Element(table.clone(), Box::new(IndexCode::Slot(at)));
                Some(self.derive(Derived::Element(table.as_ptr(), at), code, scope, span, span))
            }
            IndexCode::Op(op, operands) => {
                let [a, b] = [self.known(&operands[0])?, self.known(&operands[1])?];
                self.combined(*op, a, b)
            }
        }
    }

    fn combined(&mut self, op: IndexOp, a: Known, b: Known) -> Option<Known> {
        let anywhere = combined(op, a.form.span(&self.spans)?, b.form.span(&self.spans)?)?;
        let here = combined(op, a.span, b.span).map_or(anywhere, |it| both(it, anywhere));
        let sum = match op {
            IndexOp::Add => a.form.clone().plus(1, &b.form),
            IndexOp::Mul if a.form.terms.is_empty() => Form::constant(0).plus(a.form.constant, &b.form),
            IndexOp::Mul if b.form.terms.is_empty() => Form::constant(0).plus(b.form.constant, &a.form),
            _ => None,
        };
        if let Some((form, span)) = sum.and_then(|it| it.span(&self.spans).map(|span| (it, span))) {
            return Some(Known { form, span: both(here, span) });
        }
        let scope = a.form.scope().max(b.form.scope());
        let slots = [self.keep(a.form), self.keep(b.form)];
        let code = IndexCode::Op(op, Box::new(slots.map(IndexCode::Slot)));
        Some(self.derive(Derived::Op(op, slots), code, scope, anywhere, here))
    }

    /// Keeps a value that is proved to exist as if it were a variable of a scope.
    fn derive(&mut self, key: Derived, value: IndexCode, scope: usize, anywhere: Span, here: Span) -> Known {
        if scope == 0 {
            let value = value.eval(&self.env).expect("it is proved to have a value");
            return Known { form: Form::constant(value), span: [value; 2] };
        }
        let slot = if let Some(slot) = self.derived.get(&key) {
            *slot
        } else {
            let slot = self.declare(0, anywhere);
            self.derived.insert(key, slot);
            self.scopes[scope].push(Let::Index { slot, value });
            slot
        };
        Known { form: Form::slot(scope, slot), span: here }
    }

    /// The slot that holds a form.
    fn keep(&mut self, form: Form) -> u32 {
        if let (0, [only]) = (form.constant, form.terms.as_slice())
            && only.factor == 1
        {
            return only.slot;
        }
        if let Some(slot) = self.forms.get(&form) {
            return *slot;
        }
        let mut base = form.clone();
        let slot = match base.terms.pop() {
            None => self.declare(form.constant, [form.constant; 2]),
            Some(last) => {
                let base = self.keep(base);
                let slot = self.declare(0, [0, 0]);
                self.scopes[last.scope].push(Let::Step { slot, base, factor: last.factor, by: last.slot });
                slot
            }
        };
        self.forms.insert(form, slot);
        slot
    }

    /// A new slot.
    fn declare(&mut self, before: i64, span: Span) -> u32 {
        self.env.push(before);
        self.spans.push(span);
        u32::try_from(self.env.len() - 1).expect("a program in memory has fewer than 2^32 indices")
    }
}

/// What two intervals have in common that hold the same values.
fn both(a: Span, b: Span) -> Span {
    let low = a[0].max(b[0]);
    // They have nothing in common where no value is ever asked for.
    [low, a[1].min(b[1]).max(low)]
}
