use indexmap::IndexMap;
use ir::{Name, RASTERIZE, Raster};
use serde::{Deserialize, Serialize};

use super::{Fuse, Primitive, Reorder, Split, annotate_loop};
use crate::{
    Number, ScheduleError, ScheduleState,
    check::{chain::is_only_child, independent::expect_reorderable},
};

/// Makes one loop over tiles of two loops, in groups of rows: column by column inside a group.
///
/// ```text
/// rasterize(outer: "by", inner: "bx", group: 8, into: "bid")
///
/// for by in 0..16 { for bx in 0..n { s } }
/// ->
/// for bid in 0..16*n { s[by := bid floordiv n*8 * 8 + bid mod 8, bx := bid floordiv 8 mod n] }
/// ```
///
/// Bound to `blockIdx.x`, tiles that run at the same time then lie in a square, not in a row, and find more of what
/// they read in the cache. The inner loop has to be all that the outer one contains and of constant extent; the outer extent may be
/// symbolic. There are as many iterations as tiles, and no conditions. A group of all rows or more is all of them, where their number is known.
///
/// ```text
/// for by in 0..m { for bx in 0..n { s } }
/// ->
/// for bid in 0..m*n #{rasterize: {columns: n, group: 8}} { s[by := bid floordiv n, bx := bid mod n] }
/// ```
///
/// Where the group does not divide the rows, the last group has those that are left. The order is noted on the loop then, which counts
/// tiles row by row; lowering numbers them anew. Such a loop is not split, fused or reordered any more, as others with annotations are not.
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
        let Some(columns) = inner.extent.as_int() else {
            return Err(ScheduleError::UnknownExtent { name: other });
        };
        if self.into != self.outer && self.into != self.inner {
            state.expect_fresh(&self.into)?;
        }
        let group = self.group.get()?;
        if group < 1 {
            return Err(ScheduleError::FactorNotPositive { name, factor: group });
        }
        expect_reorderable(state, &[outer, inner])?;
        let rows = outer.extent.as_int();
        let group = rows.map_or(group, |rows| group.min(rows)).max(1);

        if rows.is_some_and(|rows| rows % group == 0) {
            return self.in_whole_groups(state, group);
        }
        self.fuse(state, vec![self.outer.clone(), self.inner.clone()])?;
        // Groups of one row, and of one column, come in the order of the tiles.
        if group > 1 && columns > 1 {
            annotate_loop(state, &self.into, RASTERIZE, |it| it.raster = Some(Raster { columns, group }))?;
        }
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![&mut self.group]
    }
}

impl Rasterize {
    fn in_whole_groups(&self, state: &mut ScheduleState, rows: i64) -> Result<(), ScheduleError> {
        let fresh = |stem: &str| Name::nth(stem, |it| state.func.is_taken(it) || *it == self.into);
        let (groups, row) = (fresh(&format!("{}_group", self.outer)), fresh(&format!("{}_row", self.outer)));
        let into = IndexMap::from([(groups.clone(), None), (row.clone(), Some(Number::Int(rows)))]);
        Split { target: self.outer.clone(), into, overlap: false }.apply(state)?;
        Reorder { order: vec![groups.clone(), self.inner.clone(), row.clone()] }.apply(state)?;
        self.fuse(state, vec![groups, self.inner.clone(), row])
    }

    fn fuse(&self, state: &mut ScheduleState, loops: Vec<Name>) -> Result<(), ScheduleError> {
        Fuse { loops, into: self.into.clone() }.apply(state)
    }
}
