//! Sums of products over a block's iterators, as padding sees them.
//!
//! An *einsum* here is a block of one store, each access of which has an iterator of the block alone in each
//! dimension, or, of an input, any subscript that no padded iterator is in (heads that share one: `h floordiv 4`), or of which it is known how
//! far it runs (tiles of rows: `i floordiv 128`). Padding makes iterators run further than the data, over zeros: elements beyond it are never read, and a
//! reduction must not notice them. So a block that reduces over a padded iterator has to add products of which every
//! factor is zero there.

use ir::{Access, BinaryOp, Block, DType, Index, Iter, IterKind, Name, Stmt, UnaryOp, Value};

use crate::TileError;

/// A block that can be padded.
pub(crate) struct Einsum<'a> {
    pub(crate) block: &'a Block,
    /// What it writes.
    pub(crate) place: &'a Access,
    /// What it reads beside that, each buffer once, in order.
    pub(crate) reads: Vec<&'a Access>,
    value: &'a Value,
}

impl<'a> Einsum<'a> {
    /// The block as an einsum, where `may_be` tells of a subscript of what is read that is not an iterator whether it may be padded. Refuses what
    /// is none.
    pub(crate) fn of(
        block: &'a Block,
        dtype: &dyn Fn(&Name) -> Option<DType>,
        may_be: &dyn Fn(&Access, &Index) -> bool,
    ) -> Result<Einsum<'a>, TileError> {
        let not = |why| TileError::NotAnEinsum { block: block.name.clone(), why };
        let Stmt::Store(store) = &block.body else {
            return Err(not("its body is not one assignment"));
        };
        if !block.guards.is_empty() {
            return Err(not("it is guarded; pad it before its loops are split"));
        }
        let place = &store.place;
        expect_plain(block, place, &|_| false)?;
        let mut all = Vec::new();
        store.value.each_load(&mut |it| all.push(it));
        let mut reads: Vec<&Access> = Vec::new();
        for access in all.into_iter().filter(|it| *it != place) {
            expect_plain(block, access, &|index| may_be(access, index))?;
            match reads.iter().find(|it| it.buffer == access.buffer) {
                None => reads.push(access),
                Some(it) if *it == access => {}
                Some(_) => return Err(not("it reads a buffer at two places; `cache_read` it once for each")),
            }
        }
        if reads.iter().any(|it| it.buffer == place.buffer) {
            return Err(not("it reads other elements of what it writes"));
        }
        if any(&store.value, &|it| matches!(it, Value::Select(..))) {
            return Err(not("it reads under conditions of its own, as a block does that pads already"));
        }
        let is_float = |it: &Value| it.dtype(dtype).is_some_and(DType::is_float);
        if any(&store.value, &|it| matches!(it, Value::Binary(BinaryOp::Div, ..)) && !is_float(it)) {
            return Err(not("it divides integers, and padding is zero"));
        }
        let einsum = Einsum { block, place, reads, value: &store.value };
        einsum.expect_init()?;
        Ok(einsum)
    }

    /// A reduction starts from a constant of its own; anything else does not read what it writes.
    fn expect_init(&self) -> Result<(), TileError> {
        let not = |why| Err(TileError::NotAnEinsum { block: self.block.name.clone(), why });
        let reduces = self.block.iters.iter().any(|it| it.kind == IterKind::Reduce);
        let mut reads_own = false;
        self.value.each_load(&mut |it| reads_own |= it == self.place);
        match &self.block.init {
            None if reduces => not("its init is decomposed; pad it before that"),
            None if reads_own => not("it updates what it writes in place"),
            None => Ok(()),
            Some(Stmt::Store(init)) if matches!(init.value, Value::Const(_)) && init.place == *self.place => {
                Ok(())
            }
            Some(_) => not("its init is not one constant"),
        }
    }

    /// Zeros beyond the end of `iter` leave the result as it is, where `ends` tells of inputs that have it in no subscript alone whether they
    /// end where it does.
    pub(crate) fn expect_neutral(
        &self,
        iter: &Iter,
        ends: &dyn Fn(&Access) -> bool,
    ) -> Result<(), TileError> {
        if iter.kind == IterKind::Spatial {
            return Ok(());
        }
        let error =
            |why| TileError::NotNeutral { block: self.block.name.clone(), iter: iter.var.clone(), why };
        let Value::Binary(BinaryOp::Add, a, b) = self.value else {
            return Err(error("it is no sum"));
        };
        let own = |value: &Value| matches!(value, Value::Load(it) if it == self.place);
        let term = match (own(a), own(b)) {
            (true, false) => b,
            (false, true) => a,
            (true, true) | (false, false) => return Err(error("it is no sum")),
        };
        factors(term, &|it| it.indices.iter().any(|it| it.as_var() == Some(&iter.var)) || ends(it))
            .map_err(error)
    }
}

/// Every factor of a product is zero where an iterator is beyond the data, of which `ends` tells of each load; or why not.
fn factors(term: &Value, ends: &dyn Fn(&Access) -> bool) -> Result<(), &'static str> {
    match term {
        Value::Load(access) if ends(access) => Ok(()),
        Value::Load(_) => Err("a factor does not depend on it, and zero times infinity is no number"),
        Value::Cast(_, a) | Value::Unary(UnaryOp::Neg | UnaryOp::Abs, a) => factors(a, ends),
        Value::Binary(op, a, b) if op.is_product() => factors(a, ends).and_then(|()| factors(b, ends)),
        Value::Const(_)
        | Value::Index(..)
        | Value::Unary(..)
        | Value::Binary(..)
        | Value::Select(..)
        | Value::Where(..) => Err("what it adds up is not a product of loads"),
    }
}

/// Each subscript is an iterator of the block, no two the same, or another one that may be what it is.
fn expect_plain(block: &Block, access: &Access, may_be: &dyn Fn(&Index) -> bool) -> Result<(), TileError> {
    for (n, index) in access.indices.iter().enumerate() {
        let iter = index.as_var().and_then(|it| block.find_iter(it));
        let is_other = iter.is_none() && may_be(index);
        if !is_other && (iter.is_none() || access.indices[..n].contains(index)) {
            let (block, buffer) = (block.name.clone(), access.buffer.clone());
            return Err(TileError::NotAnIterator { block, buffer, index: index.clone() });
        }
    }
    Ok(())
}

/// Whether a value, or one in it, is of a kind.
fn any(value: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    is(value)
        || match value {
            Value::Const(_) | Value::Load(_) | Value::Index(..) => false,
            Value::Cast(_, a) | Value::Unary(_, a) => any(a, is),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => any(a, is) || any(b, is),
            Value::Where(cond, a, b) => [cond, a, b].into_iter().any(|it| any(it, is)),
        }
}
