use std::sync::Arc;

use ir::{
    Access, Block, BlockAttrs, Buffer, Func, Index, Iter, IterKind, Less, Name, Scope, Stmt, Value,
    arith::Bounds,
};
use serde::{Deserialize, Serialize};

use crate::{Number, Primitive, ScheduleError, ScheduleState, nest, scan::ScanNest};

/// Cuts a scan into tiles: what each tile comes to, a scan of that, and scans within tiles, which go on from there.
///
/// ```text
/// decompose_scan(loop: "k", tile: 4)
///
/// for i { for j in 0..n { for k in 0..n { Y[i, j] += select(k <= j, X[i, k], 0) } } }
/// ->
/// for i .. { for j .. in 0..n/4 { for k .. in 0..4 { Y_aggregate[i, j] += X[i, j*4 + k] } } }
/// for i .. { for j .. in 0..n/4 { for k .. in 0..n/4 { Y_carry[i, j] += select(k < j, Y_aggregate[i, k], 0) } } }
/// for i .. { for j .. in 0..n/4 { for j_in .. in 0..4 { for k .. in 0..4 {
///   Y_within[i, j, j_in] += select(k <= j_in, X[i, j*4 + k], 0) } } } }
/// for i { for j in 0..n { Y[i, j] = Y_carry[i, j floordiv 4] + Y_within[i, j floordiv 4, j mod 4] } }
/// ```
///
/// So tiles run in parallel (*reduce-then-scan*; Blelloch, *Prefix sums and their applications*). `{block}_carry` is an exclusive scan,
/// which can be decomposed again, or computed by `rolling_scan`; so can `{block}_within`. The loops of the new blocks are those of the old one with
/// `_aggregate`, `_carry` and `_within` behind; the last block keeps the names.
///
/// The block must be a sum, product, minimum or maximum alone in its nest, whose terms are chosen by `k <= j`, `k < j`,
/// `k >= j` or `k > j`, where `j` is a loop as long as `k` on which the terms do not depend.
/// Floating-point results change by rounding, since the order of the reduction does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecomposeScan {
    /// The reduction loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// How many elements a tile has.
    pub tile: Number,
}

impl Primitive for DecomposeScan {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let tile = self.tile.get()?;
        if tile < 1 {
            return Err(ScheduleError::FactorNotPositive { name: self.target.clone(), factor: tile });
        }
        if tile > i64::from(i32::MAX) {
            return Err(ScheduleError::FactorsTooLarge { name: self.target.clone() });
        }
        let nest = ScanNest::of(state, &self.target)?;
        let tiled = Tiled::new(&state.func, &nest, tile);
        let nests = Stmt::seq([tiled.aggregate(), tiled.carry(), tiled.within(), tiled.last()]);
        let buffers = tiled.buffers();
        state.func.buffers.extend(buffers);
        state.func.replace_loop(&nest.loops[0].var, |_| nests);
        Ok(())
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![&mut self.tile]
    }
}

/// What follows what in the name of a block: what tiles come to, what was before them, and what is within.
const PARTS: [&str; 3] = ["aggregate", "carry", "within"];

/// What the new nests are made of.
struct Tiled<'a> {
    func: &'a Func,
    nest: &'a ScanNest,
    tile: i64,
    /// How many tiles there are.
    tiles: Index,
    /// Whether the last tile may have fewer elements.
    is_ragged: bool,
    /// The new blocks, which are called as their buffers.
    names: [Name; 3],
    /// The loop over the elements of a tile, and the iterator.
    inner: (Name, Name),
}

impl<'a> Tiled<'a> {
    fn new(func: &'a Func, nest: &'a ScanNest, tile: i64) -> Tiled<'a> {
        let extent = &nest.along.extent;
        let fresh = |stem: String| Name::nth(&stem, |it| func.is_taken(it));
        let inner = fresh(format!("{}_in", ScanNest::loop_of(&nest.along)));
        let inner_iter =
            Name::fresh(&format!("{}_in", nest.along.var), |it| nest.block.find_iter(it).is_some());
        Tiled {
            func,
            nest,
            tile,
            tiles: Bounds::default().simplify(&extent.ceil_div(&Index::int(tile))),
            is_ragged: extent.as_int().is_none_or(|it| it % tile != 0),
            names: PARTS.map(|it| fresh(format!("{}_{it}", nest.block.name))),
            inner: (inner, inner_iter),
        }
    }

    /// The name of a loop of a new block. Those of different loops and parts differ.
    fn loop_name(&self, of: &Name, part: &str) -> Name {
        Name::nth(&format!("{of}_{part}"), |it| self.func.is_taken(it))
    }

    fn buffers(&self) -> [(Name, Buffer); 3] {
        [0, 1, 2].map(|at| {
            let mut shape = self.nest.other_extents();
            shape.push(self.tiles.clone());
            shape.extend((at == 2).then_some(Index::int(self.tile)));
            (self.names[at].clone(), Buffer::temp(self.nest.scan.identity.dtype, shape, Scope::Global))
        })
    }

    /// A reduction of `term` for each tile, or for each element of each tile.
    fn reduction(&self, at: usize, is_for_each: bool, over: &Index, term: Value) -> Stmt {
        let nest = self.nest;
        let mut domain: Vec<(&Name, &Name, &Index)> =
            nest.others.iter().map(|it| (ScanNest::loop_of(it), &it.var, &it.extent)).collect();
        domain.push((ScanNest::loop_of(&nest.along), &nest.along.var, &self.tiles));
        let inner = Index::int(self.tile);
        domain.extend(is_for_each.then_some((&self.inner.0, &self.inner.1, &inner)));
        let place = Access::new(&self.names[at], domain.iter().map(|it| Index::var(it.1)).collect());
        let spatial = domain.len();
        domain.push((ScanNest::loop_of(&nest.over), &nest.over.var, over));
        let mut loops = Vec::new();
        let mut iters = Vec::new();
        for (n, (old, var, extent)) in domain.into_iter().enumerate() {
            let name = self.loop_name(old, PARTS[at]);
            let kind = if n < spatial { IterKind::Spatial } else { IterKind::Reduce };
            iters.push(Iter::new(var, extent.clone(), kind, Index::var(&name)));
            loops.push((name, extent.clone()));
        }
        let block = Block {
            name: self.names[at].clone(),
            iters,
            guards: vec![],
            attrs: BlockAttrs::default(),
            init: Some(Stmt::store(place.clone(), Value::Const(nest.scan.identity))),
            body: Stmt::store(place.clone(), Value::binary(nest.scan.reducer.op, Value::Load(place), term)),
        };
        nest::wrap(&loops, Stmt::Block(Arc::new(block)))
    }

    /// The term of an element of a tile, where the conditions hold and there is one.
    fn term(&self, mut conds: Vec<Less>) -> Value {
        let over = &self.nest.over.var;
        let at = Index::var(&self.nest.along.var) * Index::int(self.tile) + Index::var(over);
        let term = self.nest.scan.term.subst(&|var| (var == over).then(|| at.clone()));
        conds.extend(self.is_ragged.then(|| Less::new(at.clone(), self.nest.along.extent.clone())));
        self.nest.chosen(conds, term)
    }

    fn aggregate(&self) -> Stmt {
        self.reduction(0, false, &Index::int(self.tile), self.term(vec![]))
    }

    fn carry(&self) -> Stmt {
        let (nest, over) = (self.nest, &self.nest.over.var);
        let mut indices = nest.other_indices();
        indices.push(Index::var(over));
        let is_before = nest.scan.takes(over, &nest.along.var, false);
        let term = nest.chosen(vec![is_before], Value::load(&self.names[0], indices));
        self.reduction(1, false, &self.tiles, term)
    }

    fn within(&self) -> Stmt {
        let is_taken = self.nest.scan.takes(&self.nest.over.var, &self.inner.1, self.nest.scan.is_inclusive);
        self.reduction(2, true, &Index::int(self.tile), self.term(vec![is_taken]))
    }

    /// What was before the tile combined with what is before the element within it, under the old names.
    fn last(&self) -> Stmt {
        let (nest, along) = (self.nest, Index::var(&self.nest.along.var));
        let tile = Index::int(self.tile);
        let mut indices = nest.other_indices();
        indices.push(along.floor_div(&tile));
        let carry = Value::load(&self.names[1], indices.clone());
        indices.push(along.floor_mod(&tile));
        let within = Value::load(&self.names[2], indices);
        let spatial = nest.block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        let sum = Value::binary(nest.scan.reducer.op, carry, within);
        let block = Block {
            iters: spatial.clone().cloned().collect(),
            init: None,
            body: Stmt::store(nest.scan.reducer.place.clone(), sum),
            ..nest.block.clone()
        };
        let loops = spatial.map(|it| (ScanNest::loop_of(it).clone(), it.extent.clone()));
        nest::wrap(&loops.collect::<Vec<_>>(), Stmt::Block(Arc::new(block)))
    }
}
