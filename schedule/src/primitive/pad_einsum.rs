use std::{fmt, sync::Arc};

use indexmap::IndexMap;
use ir::{
    Access, Block, BlockAttrs, Buffer, Func, Index, IndexKind, Iter, IterKind, Less, Literal, Loop, Name,
    Role, Scope, Stmt, Value, arith::Bounds,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor, value::MapAccessDeserializer},
};

use crate::{
    BlockError, Number, Primitive, ScheduleError, ScheduleState, TileError,
    check::once::expect_all_points,
    einsum::Einsum,
    iterators::{iterator, own_loop},
    nest::{self, Spot},
    ron_text::Unique,
};

/// Lets a sum of products run over whole tiles: pads its iterators to multiples, over copies of its inputs with zeros.
///
/// ```text
/// pad_einsum(block: "C", padding: {"i": 16, "k": 8})
///
/// for i in 0..m { for k in 0..60 { C[i] += A[i, k] * x[k] } }
/// ->
/// for A_pad_0 in 0..M { for A_pad_1 in 0..64 { A_pad[v0, v1] = select(v0 < m && v1 < 60, A[v0, v1], 0) } }
/// for x_pad_0 in 0..64 { x_pad[v0] = select(v0 < 60, x[v0], 0) }
/// for i in 0..M { for k in 0..64 { C_pad[i] += A_pad[i, k] * x_pad[k] } }
/// for C_unpad_0 in 0..m { C[v0] = C_pad[v0] }        where M = ceil(m / 16) * 16
/// ```
///
/// `padding` is a map from iterators, or the loops that drive them, to what their extents become multiples of, or a
/// list with a number for each iterator as in TVM. The copies and the temporary result are always made, also where
/// sizes fit, so that the names in a script do not depend on sizes: `{buffer}_pad` for each input, `{block}_pad` for the result, and
/// `{block}_unpad` for the block that writes it back. Conditions that always hold are left out. Move the copies with
/// `compute_at` and the write-back with `reverse_compute_at`. Each subscript has to be an iterator alone, or, of an input, one that no padded iterator is in or
/// that is known to run from zero on however far these run (a tile of rows, `i floordiv 128`), and a reduction over a padded iterator a sum of products that all have that
/// iterator as a subscript, or such a one by which they end where it ends. Pad before loops are split.
///
/// With `edge: true`, copies repeat the last element (as NumPy's mode `edge` does) where an iterator that is not summed over runs further: nobody reads
/// what is computed of it, and no condition stands in the way of a vector. What is summed over ends with zeros even so.
///
/// Copies in `reuse`, which an earlier step made for another block, are read in place of new ones where these would be the same: a factor that two
/// products share.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PadEinsum {
    /// The block.
    pub block: Name,
    /// What the extents of its iterators become multiples of.
    pub padding: Padding,
    /// Padded copies that are there already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reuse: Vec<Name>,
    /// Whether the last element is repeated in place of zeros, where no sum has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
}

/// Paddings by name, or one for each iterator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum Padding {
    /// By iterator, or by the loop that drives it; the others stay as they are.
    Map(IndexMap<Name, Number>),
    /// One for each iterator, in order.
    List(Vec<Number>),
}

impl Primitive for PadEinsum {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        let func = &state.func;
        let factors = self.factors(&block)?;
        let mut padded = Padded::new(func, &block, &factors, self.edge);
        // Of a temporary, what no subscript reads may not be there.
        let is_input = |name: &Name| func.buffers.get(name).is_some_and(|it| it.role == Role::Input);
        let may_be = |access: &Access, index: &Index| {
            is_input(&access.buffer) && (!padded.is_in(index) || padded.reach(index).is_some())
        };
        let einsum = Einsum::of(&block, &|name| func.dtype_of(name), &may_be)?;
        let loops: Vec<Loop> = func
            .loops_of(&self.block)
            .expect("the block is one of the program's")
            .into_iter()
            .cloned()
            .collect();
        if let Some(it) = loops.iter().find(|it| it.body.blocks().len() > 1) {
            let (block, loop_name) = (self.block.clone(), it.var.clone());
            return Err(BlockError::NotAlone { block, loop_name }.into());
        }
        for (iter, factor) in block.iters.iter().zip(&factors) {
            let own = own_loop(&block, iter, &loops)?;
            if *factor > 1 {
                state.expect_plain_loop(own)?;
                einsum.expect_neutral(iter, &|access| padded.ends(access, iter))?;
            }
        }

        padded.known = self.known(state, &einsum, &padded)?;

        padded.rewrite(&mut state.func, &einsum, &loops);
        Ok(())
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        match &mut self.padding {
            Padding::Map(map) => map.values_mut().collect(),
            Padding::List(list) => list.iter_mut().collect(),
        }
    }
}

impl PadEinsum {
    /// The copy that is there already, for each input that has one.
    fn known(
        &self,
        state: &ScheduleState,
        einsum: &Einsum<'_>,
        padded: &Padded,
    ) -> Result<IndexMap<Name, Name>, ScheduleError> {
        let mut known = IndexMap::new();
        for copy in &self.reuse {
            state.expect_buffer(copy)?;
            let found = einsum.reads.iter().find(|it| padded.is_copy(einsum.block, it, copy));
            let not = || TileError::NotItsPadding { block: self.block.clone(), buffer: copy.clone() };
            known.insert(found.ok_or_else(not)?.buffer.clone(), copy.clone());
        }
        Ok(known)
    }

    /// The number for each iterator.
    fn factors(&self, block: &Block) -> Result<Vec<i64>, ScheduleError> {
        let mut factors = vec![1; block.iters.len()];
        match &self.padding {
            Padding::List(list) if list.len() == factors.len() => {
                for (factor, number) in factors.iter_mut().zip(list) {
                    *factor = number.get()?;
                }
            }
            Padding::List(list) => {
                let (block, given, iters) = (self.block.clone(), list.len(), factors.len());
                return Err(TileError::PaddingCount { block, given, iters }.into());
            }
            Padding::Map(map) => {
                let mut seen: Vec<usize> = Vec::new();
                for (name, number) in map {
                    let at = iterator(block, name)?;
                    if seen.contains(&at) {
                        return Err(ScheduleError::NamedTwice { name: name.clone() });
                    }
                    seen.push(at);
                    factors[at] = number.get()?;
                }
            }
        }
        let most = i64::from(i32::MAX);
        match block.iters.iter().zip(&factors).find(|(_, factor)| !(1..=most).contains(*factor)) {
            None => Ok(factors),
            Some((iter, padding)) => {
                let (block, iter, padding) = (self.block.clone(), iter.var.clone(), *padding);
                Err(TileError::PaddingRange { block, iter, padding }.into())
            }
        }
    }
}

/// The program before, and how far iterators will run.
struct Padded {
    func: Func,
    extents: IndexMap<Name, Index>,
    /// The iterators that may run further than before.
    names: Vec<Name>,
    bounds: Bounds,
    /// Whether copies repeat the last element where no sum has it.
    edge: bool,
    /// The copies that are there already, by what they are of.
    known: IndexMap<Name, Name>,
}

impl Padded {
    fn new(func: &Func, block: &Block, factors: &[i64], edge: bool) -> Padded {
        let bounds = Bounds::of_dims(func);
        let all = || block.iters.iter().zip(factors);
        let extents = all().map(|(iter, factor)| {
            let by = Index::int(*factor);
            (iter.var.clone(), bounds.simplify(&(iter.extent.ceil_div(&by) * by)))
        });
        let extents = extents.collect();
        let names = all().filter(|it| *it.1 > 1).map(|it| it.0.var.clone()).collect();
        Padded { func: func.clone(), extents, names, bounds, edge, known: IndexMap::new() }
    }

    /// Whether a padded iterator is in a subscript.
    fn is_in(&self, index: &Index) -> bool {
        index.any_var(&|it| self.names.contains(it))
    }

    /// How many values a subscript has that is not an iterator, from zero on; nothing where that is not known.
    fn reach(&self, index: &Index) -> Option<Index> {
        let mut bounds = self.bounds.clone();
        self.extents.iter().for_each(|(var, extent)| bounds.insert(var, extent));
        match (bounds.interval(index), index.kind()) {
            ((Some(0..), Some(most)), _) => Some(Index::int(most + 1)),
            (_, IndexKind::FloorDiv(a, b)) => {
                let extent = a.as_var().and_then(|it| self.extents.get(it))?;
                b.as_int().filter(|it| *it > 0)?;
                Some(self.bounds.simplify(&extent.ceil_div(b)))
            }
            _ => None,
        }
    }

    /// Whether an input ends where an iterator does: its copy has zeros in all tiles beyond.
    fn ends(&self, access: &Access, iter: &Iter) -> bool {
        let shape = &self.func.buffers[&access.buffer].shape;
        access.indices.iter().zip(shape).any(|(index, size)| match index.kind() {
            IndexKind::FloorDiv(a, b) if a.as_var() == Some(&iter.var) => {
                let end = iter.extent.floor_div(b) + Index::int(1);
                self.bounds.prove(&Less::new(size.clone(), end)) == Some(true)
            }
            _ => false,
        })
    }

    fn rewrite(&self, func: &mut Func, einsum: &Einsum<'_>, loops: &[Loop]) {
        let Einsum { block, place, reads, .. } = einsum;
        let mut renamed: Vec<(Name, Name)> = Vec::new();
        let mut copies = Vec::new();
        for access in reads.iter().copied().chain([*place]) {
            if let Some(copy) = self.known.get(&access.buffer) {
                renamed.push((access.buffer.clone(), copy.clone()));
                continue;
            }
            let stem = if access == *place { &block.name } else { &access.buffer };
            let name = Name::nth(&format!("{stem}_pad"), |it| func.is_taken(it));
            let shape = (0..access.indices.len()).map(|n| self.extent(access, n)).collect();
            let dtype = self.func.buffers[&access.buffer].dtype;
            func.buffers.insert(name.clone(), Buffer::temp(dtype, shape, Scope::Global));
            if access != *place {
                copies.push(self.pad(block, access, &name));
            }
            renamed.push((access.buffer.clone(), name));
        }
        let result = &renamed[renamed.len() - 1].1;
        let last = self.unpad(func, block, place, result);

        for it in loops {
            if let Some(iter) = block.iters.iter().find(|iter| iter.binding.as_var() == Some(&it.var)) {
                let extent = self.extents[&iter.var].clone();
                func.replace_loop(&it.var, |it| Stmt::Loop(Arc::new(Loop { extent, ..it })));
            }
        }
        let new = |access: &Access| {
            let to = renamed.iter().find(|it| it.0 == access.buffer);
            Access { buffer: to.map_or_else(|| access.buffer.clone(), |it| it.1.clone()), ..access.clone() }
        };
        func.replace_block(&block.name, |mut it| {
            it.iters.iter_mut().for_each(|iter| iter.extent = self.extents[&iter.var].clone());
            it.init = it.init.map(|init| init.map_accesses(&mut |access| new(access)));
            it.body = it.body.map_accesses(&mut |access| new(access));
            Stmt::Block(Arc::new(it))
        });
        let children = nest::children(func, None);
        let (at, _) = nest::span(&children, std::slice::from_ref(&block.name)).unwrap_or_default();
        nest::insert(func, &Spot { within: None, at: at + 1 }, last);
        nest::insert(func, &Spot { within: None, at }, Stmt::seq(copies));
    }

    /// How far a subscript will run: as the iterator that it is, or as iterators say that are in it; all that there is where none of them is padded.
    fn extent(&self, access: &Access, dim: usize) -> Index {
        let index = &access.indices[dim];
        let of_iter = index.as_var().and_then(|it| self.extents.get(it)).cloned();
        let of_iters = || self.reach(index).filter(|_| self.is_in(index));
        of_iter.or_else(of_iters).unwrap_or_else(|| self.func.buffers[&access.buffer].shape[dim].clone())
    }

    /// Whether a buffer is what the padded copy of an input would be, whole before the block runs.
    fn is_copy(&self, block: &Block, access: &Access, copy: &Name) -> bool {
        let func = &self.func;
        let [old] = func.writers(copy)[..] else { return false };
        let made = self.pad(block, access, copy);
        let Some(new) = made.blocks().into_iter().next() else { return false };
        let renamed = |name: &Name| {
            let at = old.iters.iter().position(|it| it.var == *name)?;
            new.iters.get(at).map(|it| Index::var(&it.var))
        };
        let extents = |it: &Block| it.iters.iter().map(|it| it.extent.clone()).collect::<Vec<_>>();
        let is_same =
            extents(old) == extents(new) && old.init.is_none() && old.body.subst(&renamed) == new.body;
        let children = nest::children(func, None);
        let at = |name: &Name| nest::span(&children, std::slice::from_ref(name)).map(|it| it.0);
        is_same && at(&old.name) < at(&block.name) && expect_all_points(func, old).is_ok()
    }

    /// The copy of an input, zero beyond what the block used of it, or what is at the edge.
    fn pad(&self, block: &Block, access: &Access, name: &Name) -> Stmt {
        let mut bounds = self.bounds.clone();
        let (mut iters, mut from, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        for (n, index) in access.indices.iter().enumerate() {
            let (var, extent) = (nest::iterator(&self.func, n), self.extent(access, n));
            bounds.insert(&var, &extent);
            let iter = index.as_var().and_then(|it| block.find_iter(it));
            let all = || self.func.buffers[&access.buffer].shape[n].clone();
            let used = iter.map_or_else(all, |it| it.extent.clone());
            let (at, less) = (Index::var(&var), Less::new(Index::var(&var), used.clone()));
            let is_inside = bounds.prove(&less) == Some(true);
            let repeats = self.edge && iter.is_some_and(|it| it.kind == IterKind::Spatial);
            from.push(if is_inside || !repeats { at } else { at.minimum(&(used - 1)) });
            if !is_inside && !repeats {
                inside.push(less);
            }
            iters.push(Iter::new(&var, extent, IterKind::Spatial, Index::int(0)));
        }
        let places: Vec<Index> = iters.iter().map(|it| Index::var(&it.var)).collect();
        let load = Value::load(&access.buffer, from.iter().map(|it| bounds.simplify(it)).collect::<Vec<_>>());
        let zero = Value::Const(Literal::zero(self.func.buffers[&access.buffer].dtype));
        let value =
            if inside.is_empty() { load } else { Value::Select(inside, Arc::new(load), Arc::new(zero)) };
        self.nest(&self.func, name, iters, Stmt::store(Access::new(name, places), value))
    }

    /// The copy of the result back to where it belongs.
    fn unpad(&self, func: &Func, block: &Block, place: &Access, from: &Name) -> Stmt {
        let name = Name::nth(&format!("{}_unpad", block.name), |it| func.is_taken(it));
        let iters = place.indices.iter().enumerate().map(|(n, index)| {
            let used = index.as_var().and_then(|it| block.find_iter(it)).map(|it| it.extent.clone());
            let extent = used.unwrap_or_else(|| index.clone());
            Iter::new(&nest::iterator(func, n), extent, IterKind::Spatial, Index::int(0))
        });
        let iters: Vec<Iter> = iters.collect();
        let places: Vec<Index> = iters.iter().map(|it| Index::var(&it.var)).collect();
        let copy = Stmt::store(Access::new(&place.buffer, places.clone()), Value::load(from, places));
        self.nest(func, &name, iters, copy)
    }

    /// A block of that body, run for its whole domain.
    fn nest(&self, func: &Func, name: &Name, iters: Vec<Iter>, body: Stmt) -> Stmt {
        let whole = vec![None; iters.len()];
        let attrs = BlockAttrs::default();
        let block = Block { name: name.clone(), iters, guards: vec![], attrs, init: None, body };
        nest::place(func, block, &whole, &self.bounds)
    }
}

impl<'de> Deserialize<'de> for Padding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Padding, D::Error> {
        deserializer.deserialize_any(PaddingVisitor)
    }
}

struct PaddingVisitor;

impl<'de> Visitor<'de> for PaddingVisitor {
    type Value = Padding;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from iterators to numbers, or a list of numbers")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Padding, A::Error> {
        Unique::deserialize(MapAccessDeserializer::new(map)).map(|it| Padding::Map(it.0))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Padding, A::Error> {
        let mut list = Vec::new();
        while let Some(number) = seq.next_element()? {
            list.push(number);
        }
        Ok(Padding::List(list))
    }
}
