//! Lets loops over tiles run in groups of rows.

use std::sync::Arc;

use ir::{
    Block, Func, Index, Iter, Loop, Name, Raster, Stmt, arith::Bounds, pipeline::is_pipeline,
    region::bounds_of,
};

/// ```text
/// for bid in 0..24 @blockIdx.x #{rasterize: {columns: 4, group: 4}}
///   block C(vi: 6 = bid floordiv 4, vj: 4 = bid mod 4)
///     C[vi, vj] = A[vi] * B[vj]
/// ->
/// for bid in 0..24 @blockIdx.x
///   block C(vi: 6 = min(bid, 16) floordiv 16*4 + min(bid, 16) mod 4 + (max(bid, 16) - 16) mod 2, …)
///     C[vi, vj] = A[vi] * B[vj]
/// ```
///
/// The schedule has proved that the iterations may run in any order, and everything before this has proved what it had to of rows and
/// columns that are digits of the number of a tile. What they become here would be opaque to proofs. So an order that the loop is not
/// made for, or that is asked of a pipeline, is left out: it costs speed and nothing else.
pub(crate) fn rasterize(mut func: Func) -> Func {
    let asked = func.loops().into_iter().filter(|it| it.attrs.raster.is_some());
    let asked: Vec<Name> = asked.map(|it| it.var.clone()).collect();
    for var in asked {
        let path = func.path_to_loop(&var).expect("it is one of the program's");
        let bounds = bounds_of(&func, &path[..path.len() - 1]);
        let before = func.clone();
        func.replace_loop(&var, |mut old: Loop| {
            let raster = old.attrs.raster.take().filter(|_| !is_pipeline(&old));
            let iteration = Index::var(&var);
            if let Some(raster) = raster
                && let Some(rows) = rows(raster, &old.extent, &bounds)
            {
                let tile = raster.tile(&iteration, &rows);
                Order { func: &before, raster, number: &var, rows, tile }.rewrite(&mut old.body);
            }
            Stmt::Loop(Arc::new(old))
        });
    }
    func
}

/// How many rows there are in a loop over all tiles; `None` where it is not proved to have whole rows.
fn rows(raster: Raster, extent: &Index, bounds: &Bounds) -> Option<Index> {
    let columns = Index::int(raster.columns);
    let rows = bounds.simplify(&extent.floor_div(&columns));
    bounds.equal(extent, &(&rows * &columns)).then_some(rows)
}

/// The order of a loop.
struct Order<'a> {
    func: &'a Func,
    raster: Raster,
    /// The loop, which numbers tiles row by row.
    number: &'a Name,
    /// How many rows of tiles there are.
    rows: Index,
    /// The row and the column of the tile that an iteration is for.
    tile: (Index, Index),
}

impl Order<'_> {
    fn rewrite(&self, stmt: &mut Stmt) {
        stmt.walk_mut(&mut |stmt| {
            if let Stmt::Block(it) = stmt {
                let block = self.with_digits(Block::clone(it));
                *stmt = Stmt::Block(Arc::new(block));
            }
            true
        });
        *stmt = stmt.map_indices(&mut |it| self.raster.renumbered(it, self.number, &self.tile));
    }

    /// A block that takes the number of a tile, taking its row and column instead: what is inside stays as simple as it was.
    fn with_digits(&self, block: Block) -> Block {
        let Some(at) = block.iters.iter().position(|it| it.binding.as_var() == Some(self.number)) else {
            return block;
        };
        let Iter { var, kind, .. } = block.iters[at].clone();
        let number = Index::var(self.number);
        let columns = Index::int(self.raster.columns);
        let digits = [
            ("row", self.rows.clone(), number.floor_div(&columns)),
            ("column", columns.clone(), number.floor_mod(&columns)),
        ];
        let iters = digits.map(|(stem, extent, binding)| {
            let var = Name::fresh(&format!("{var}_{stem}"), |it| self.func.is_taken(it));
            Iter { var, extent, kind, binding }
        });
        let tile = (Index::var(&iters[0].var), Index::var(&iters[1].var));
        let mut block = block.map_inside(&mut |it| self.raster.renumbered(it, &var, &tile));
        block.iters.splice(at..=at, iters);
        block
    }
}
