//! Reducers: what a block combines, and with what it starts.

use crate::{Access, BinaryOp, Block, Stmt, Store, Value};

/// A block of the form `place = place op term`, with `op` associative and commutative but for rounding: a sum, product, minimum or
/// maximum of its terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reducer {
    /// Where the result goes.
    pub place: Access,
    /// What combines terms; it has an identity ([`BinaryOp::identity`]).
    pub op: BinaryOp,
    /// What one iteration adds to the result.
    pub term: Value,
}

impl Reducer {
    /// The reducer that a block is, if its body is one store and that is one.
    pub fn of(block: &Block) -> Option<Reducer> {
        let Stmt::Store(store) = &block.body else { return None };
        Self::of_store(store)
    }

    /// The reducer that a store is, if it is one.
    pub fn of_store(store: &Store) -> Option<Reducer> {
        let Value::Binary(op, a, b) = &store.value else { return None };
        if !matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max) {
            return None;
        }
        let own = Value::Load(store.place.clone());
        let term = if **a == own { b } else { a };
        let mut others = 0;
        term.each_load(&mut |it| others += usize::from(it.buffer == store.place.buffer));
        let matches = (**a == own || **b == own) && others == 0;
        matches.then(|| Reducer { place: store.place.clone(), op: *op, term: Value::clone(term) })
    }

    /// `place = place op term`.
    pub fn combining(&self, term: Value) -> Stmt {
        Stmt::store(self.place.clone(), self.combined(term))
    }

    /// `place op term`.
    pub fn combined(&self, term: Value) -> Value {
        Value::binary(self.op, Value::Load(self.place.clone()), term)
    }
}
