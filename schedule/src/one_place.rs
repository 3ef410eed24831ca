//! The one place at which a block uses a buffer, with the conditions under which it does, and the copy that it uses instead.

use std::sync::Arc;

use ir::{
    Access, Block, BlockAttrs, DType, Func, Index, Iter, IterKind, Less, Literal, Name, Stmt, Value,
    arith::Bounds,
};

use crate::nest;

/// Where a block uses a buffer, and the conditions of that.
pub(crate) struct OnePlace {
    pub(crate) access: Access,
    /// Where they do not hold, a read has no element.
    pub(crate) under: Vec<Less>,
}

impl OnePlace {
    /// The one place, if the block uses the buffer at all, or why there are several.
    pub(crate) fn of(
        block: &Block,
        buffer: &Name,
        is_written: bool,
    ) -> Result<Option<OnePlace>, &'static str> {
        let mut uses = Uses { buffer, is_written, found: None, why: None };
        block.init.iter().chain([&block.body]).for_each(|it| uses.stmt(it));
        uses.why.map_or(Ok(uses.found), Err)
    }

    /// Whether its subscripts or conditions have a variable of which `is` holds.
    pub(crate) fn mentions(&self, is: &dyn Fn(&Name) -> bool) -> bool {
        self.access.indices.iter().any(|it| it.any_var(is))
            || self.under.iter().any(|it| it.lhs.any_var(is) || it.rhs.any_var(is))
    }
}

/// What is found of the uses of a buffer.
struct Uses<'a> {
    buffer: &'a Name,
    is_written: bool,
    found: Option<OnePlace>,
    /// Why there is no one place.
    why: Option<&'static str>,
}

impl Uses<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        stmt.each_store(&mut |store| {
            self.access(&store.place, &[]);
            self.value(&store.value, &mut vec![]);
        });
    }

    fn value(&mut self, value: &Value, under: &mut Vec<Less>) {
        match value {
            Value::Const(_) | Value::Index(..) => {}
            Value::Load(it) => self.access(it, under),
            Value::Cast(_, a) | Value::Unary(_, a) => self.value(a, under),
            Value::Binary(_, a, b) => [a, b].into_iter().for_each(|it| self.value(it, under)),
            Value::Where(cond, a, b) => [cond, a, b].into_iter().for_each(|it| self.value(it, under)),
            Value::Select(cond, then, other) => {
                let before = under.len();
                under.extend(cond.iter().cloned());
                self.value(then, under);
                under.truncate(before);
                let mut is_read = false;
                other.each_load(&mut |it| is_read |= it.buffer == *self.buffer);
                if is_read && !self.is_written {
                    self.why = Some("it is read where a condition does not hold");
                }
            }
        }
    }

    fn access(&mut self, access: &Access, under: &[Less]) {
        if access.buffer != *self.buffer {
            return;
        }
        // What the block has written itself is there under any condition.
        let under = if self.is_written { &[] } else { under };
        match &self.found {
            None => self.found = Some(OnePlace { access: access.clone(), under: under.to_vec() }),
            Some(it) if it.access != *access => self.why = Some("it is used at several places"),
            Some(it) if it.under != under => self.why = Some("it is read under several conditions"),
            Some(_) => {}
        }
    }
}

/// The dimensions of the copy: iterators of the copy, and those of the block that they stand for.
pub(crate) struct Dims {
    iters: Vec<Iter>,
    pub(crate) own: Vec<Index>,
}

impl Dims {
    /// Those of a place, first the one that its subscripts end with soonest.
    pub(crate) fn of(func: &Func, block: &Block, place: &OnePlace) -> Dims {
        let mut used: Vec<&Iter> =
            block.iters.iter().filter(|it| place.mentions(&|name| *name == it.var)).collect();
        let last = |it: &&Iter| {
            place.access.indices.iter().rposition(|index| index.any_var(&|name| *name == it.var))
        };
        used.sort_by_key(last);
        let own = used.iter().map(|it| Index::var(&it.var)).collect();
        let iters = used.into_iter().enumerate().map(|(n, it)| {
            Iter::new(&nest::iterator(func, n), it.extent.clone(), IterKind::Spatial, Index::int(0))
        });
        Dims { iters: iters.collect(), own }
    }

    /// The shape of the copy.
    pub(crate) fn shape(&self) -> Vec<Index> {
        self.iters.iter().map(|it| it.extent.clone()).collect()
    }

    /// The copy of what is used, or back to where that belongs.
    pub(crate) fn copy(
        &self,
        func: &Func,
        name: &Name,
        (dtype, is_written): (DType, bool),
        place: &OnePlace,
    ) -> Stmt {
        let places: Vec<Index> = self.iters.iter().map(|it| Index::var(&it.var)).collect();
        let there = |name: &Name| {
            let at = self.own.iter().position(|it| it.as_var() == Some(name))?;
            Some(places[at].clone())
        };
        let outside = place.access.subst(&there);
        let inside = Access::new(name, places.clone());
        let body = if is_written {
            Stmt::store(outside, Value::Load(inside))
        } else if place.under.is_empty() {
            Stmt::store(inside, Value::Load(outside))
        } else {
            let under = place.under.iter().map(|it| it.subst(&there)).collect();
            let zero = Value::Const(Literal::zero(dtype));
            Stmt::store(inside, Value::Select(under, Arc::new(Value::Load(outside)), Arc::new(zero)))
        };
        let attrs = BlockAttrs::default();
        let (name, iters) = (name.clone(), self.iters.clone());
        let block = Block { name, iters, guards: vec![], attrs, init: None, body };
        nest::place(func, block, &vec![None; self.iters.len()], &Bounds::of_dims(func))
    }
}

/// Makes uses of a buffer uses of the copy, without the conditions that the copy makes needless.
pub(crate) fn redirect(stmt: &mut Stmt, from: &Name, to: &Access, is_written: bool) {
    stmt.walk_mut(&mut |it| {
        if let Stmt::Store(store) = it {
            let store = Arc::make_mut(store);
            store.value = redirected(&store.value, from, to, is_written);
            if store.place.buffer == *from {
                store.place = to.clone();
            }
        }
        true
    });
}

fn redirected(value: &Value, from: &Name, to: &Access, is_written: bool) -> Value {
    let inside = |it: &Arc<Value>| Arc::new(redirected(it, from, to, is_written));
    match value {
        Value::Const(_) | Value::Index(..) => value.clone(),
        Value::Load(it) => Value::Load(if it.buffer == *from { to.clone() } else { it.clone() }),
        Value::Cast(dtype, a) => Value::Cast(*dtype, inside(a)),
        Value::Unary(op, a) => Value::Unary(*op, inside(a)),
        Value::Binary(op, a, b) => Value::Binary(*op, inside(a), inside(b)),
        Value::Where(cond, a, b) => Value::Where(inside(cond), inside(a), inside(b)),
        Value::Select(cond, a, b) => {
            let then = inside(a);
            // The copy is zero where the conditions of the read do not hold, and zero of any type is zero.
            if !is_written && is_copy(&then, to) && is_zero(b) {
                return Value::clone(&then);
            }
            Value::Select(cond.clone(), then, inside(b))
        }
    }
}

/// Whether it is an element of the copy, perhaps of another type.
fn is_copy(value: &Value, copy: &Access) -> bool {
    match value {
        Value::Load(it) => it == copy,
        Value::Cast(_, a) => is_copy(a, copy),
        Value::Const(_)
        | Value::Index(..)
        | Value::Unary(..)
        | Value::Binary(..)
        | Value::Select(..)
        | Value::Where(..) => false,
    }
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Const(it) if *it == Literal::zero(it.dtype))
}
