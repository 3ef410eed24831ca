use indexmap::IndexMap;
use ir::Name;
use serde::{Deserialize, Serialize};

use super::{Fuse, Primitive, Reorder, Split};
use crate::{
    Number, ScheduleError, ScheduleState,
    check::{chain::is_only_child, independent::expect_reorderable},
};

/// Makes one loop over tiles of two loops, in groups of rows: column by column inside a group.
///
/// ```text
/// rasterize(outer: "by", inner: "bx", group: 8, into: "bid")
///
/// for by in 0..m { for bx in 0..n { s } }
/// ->
/// for bid in 0..ceil(m/8)*n*8 { s[by := bid floordiv n*8 * 8 + bid mod 8, bx := bid floordiv 8 mod n] if by < m }
/// ```
///
/// Bound to `blockIdx.x`, tiles that run at the same time then lie in a square, not in a row, and find more of what
/// they read in the cache. It is `split`, `reorder` and `fuse` in one step: the inner loop has to be all that the outer
/// one contains and of constant extent; the outer extent may be symbolic. Where the group does not divide it, the
/// blocks are guarded. A group of all rows or more is all of them, where their number is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rasterize {
    /// The loop over rows of tiles.
    pub outer: Name,
    /// The loop over tiles in a row.
    pub inner: Name,
    /// How many rows are in a group.
    pub group: Number,
    /// The name of the loop to make.
    pub into: Name,
}

impl Primitive for Rasterize {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let outer = state.expect_plain_loop(&self.outer)?;
        let inner = state.expect_plain_loop(&self.inner)?;
        let (name, other) = (self.outer.clone(), self.inner.clone());
        if !is_only_child(outer, &self.inner) {
            return Err(ScheduleError::NotNested { outer: name, inner: other });
        }
        if inner.extent.any_var(&|var| *var == self.outer) {
            return Err(ScheduleError::DependentExtent { name: other, on: name });
        }
        if inner.extent.as_int().is_none() {
            return Err(ScheduleError::UnknownExtent { name: other });
        }
        if self.into != self.outer && self.into != self.inner {
            state.expect_fresh(&self.into)?;
        }
        let group = self.group.get()?;
        if group < 1 {
            return Err(ScheduleError::FactorNotPositive { name, factor: group });
        }
        expect_reorderable(state, &[outer, inner])?;
        let rows = outer.extent.as_int().map_or(group, |rows| group.min(rows));

        let fresh = |stem: &str| Name::nth(stem, |it| state.func.is_taken(it) || *it == self.into);
        let (groups, row) = (fresh(&format!("{}_group", self.outer)), fresh(&format!("{}_row", self.outer)));
        let into = IndexMap::from([(groups.clone(), None), (row.clone(), Some(Number::Int(rows)))]);
        Split { target: self.outer.clone(), into, overlap: false }.apply(state)?;
        Reorder { order: vec![groups.clone(), self.inner.clone(), row.clone()] }.apply(state)?;
        let loops = vec![groups, self.inner.clone(), row];
        Fuse { loops, into: self.into.clone() }.apply(state)
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![&mut self.group]
    }
}
