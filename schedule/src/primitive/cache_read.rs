use ir::{
    Block, Buffer, Func, Name, Stmt,
    region::{self, Way},
};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    nest::{self, Spot},
};

/// Reads a buffer through a copy in another memory.
///
/// ```text
/// cache_read(block: "C", buffer: "A", scope: "shared")
///
/// for i in 0..n { C[i] = f(A[i]) }
/// ->
/// for A_shared_0 in 0..n { A_shared[A_shared_0] = A[A_shared_0] }
/// for i in 0..n { C[i] = f(A_shared[i]) }
/// ```
///
/// The new block and buffer are named `{buffer}_{scope}` (then `…2`, `…3`) unless `name` says otherwise; the
/// loops of the copy are `{name}_0`, `{name}_1`, one a dimension. Every block that reads the buffer reads the copy
/// from then on, or only those in `readers` if given. The copy is placed before its first reader, after all
/// writers of the buffer, and in the loop of the writers where only some readers are in that too; move it with `compute_at`. It has the shape of the buffer; lowering shrinks it to what
/// is used at once. Unlike TVM's, the copy keeps loops of one iteration, so that names do not depend on sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRead {
    /// A block that reads the buffer.
    pub block: Name,
    /// The buffer.
    pub buffer: Name,
    /// The memory of the copy: `global`, `shared`, `fragment` or `local`.
    pub scope: Name,
    /// The blocks that shall read the copy; all readers if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<Vec<Name>>,
    /// The name of the copy, in place of `{buffer}_{scope}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
}

impl Primitive for CacheRead {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let scope = state.expect_scope(&self.scope)?;
        let source = state.expect_buffer(&self.buffer)?.clone();
        expect_reads(state, &self.block, &self.buffer)?;
        let readers = self.readers(state)?;
        let name = match &self.name {
            Some(name) => state.expect_fresh(name).map(|()| name.clone())?,
            None => Name::nth(&format!("{}_{scope}", self.buffer, scope = scope.as_str()), |it| {
                state.func.is_taken(it)
            }),
        };
        let spot = spot(&state.func, &self.buffer, &readers)?;

        let old = state.func.clone();
        let func = &mut state.func;
        func.buffers.insert(name.clone(), Buffer::temp(source.dtype, source.shape.clone(), scope));
        func.map_blocks(&mut |block| {
            if readers.contains(&block.name) {
                redirect(&mut block.body, &self.buffer, &name);
                block.init.iter_mut().for_each(|init| redirect(init, &self.buffer, &name));
            }
        });
        let copy = copy(func, &self.buffer, &name, &readers, &spot);
        nest::insert(func, &spot, copy);
        crate::moved::expect_covered(&old, func, &name)?;
        Ok(())
    }
}

impl CacheRead {
    fn readers(&self, state: &ScheduleState) -> Result<Vec<Name>, ScheduleError> {
        let Some(readers) = &self.readers else {
            return Ok(state.func.readers(&self.buffer).iter().map(|it| it.name.clone()).collect());
        };
        readers.iter().try_for_each(|it| expect_reads(state, it, &self.buffer))?;
        let mut all = vec![self.block.clone()];
        all.extend(readers.iter().filter(|it| **it != self.block).cloned());
        Ok(all)
    }
}

fn expect_reads(state: &ScheduleState, block: &Name, buffer: &Name) -> Result<(), ScheduleError> {
    let it = state.expect_block(block)?;
    let mut reads: Vec<Name> = it.reads().into_iter().map(|it| it.buffer.clone()).collect();
    let writes: Vec<Name> = it.writes().into_iter().map(|it| it.buffer.clone()).collect();
    reads.dedup();
    if !reads.contains(buffer) {
        // A reduction reads what it writes, which this step would refuse as well.
        reads.retain(|it| !writes.contains(it));
        return Err(BlockError::DoesNotRead { block: block.clone(), buffer: buffer.clone(), reads }.into());
    }
    if writes.contains(buffer) {
        return Err(BlockError::ReadsItself { block: block.clone(), buffer: buffer.clone() }.into());
    }
    Ok(())
}

/// Before the first reader and after whatever writes the buffer.
fn spot(func: &Func, buffer: &Name, readers: &[Name]) -> Result<Spot, BlockError> {
    let writers = names(&func.writers(buffer));
    nest::between(func, &writers, readers).map_err(|(block, other)| BlockError::OutOfOrder {
        block,
        other,
        buffer: buffer.clone(),
    })
}

fn names(blocks: &[&Block]) -> Vec<Name> {
    blocks.iter().map(|it| it.name.clone()).collect()
}

/// The copy of what the readers of the new buffer touch at the spot; where readers are elsewhere too, of all that is
/// written there.
fn copy(func: &Func, source: &Name, name: &Name, readers: &[Name], spot: &Spot) -> Stmt {
    let shape = &func.buffers[source].shape;
    let fixed = nest::path(func, spot.within.as_ref());
    let children = nest::children(func, spot.within.as_ref());
    let is_inside = |reader: &Name| nest::span(&children, std::slice::from_ref(reader)).is_some();
    let (blocks, buffer, way) = if readers.iter().all(is_inside) {
        (readers.to_vec(), name, Way::Read)
    } else {
        (names(&func.writers(source)), source, Way::Write)
    };
    let regions = blocks
        .iter()
        .filter_map(|it| Some(region::touched_below(func, func.find_block(it)?, buffer, fixed.len(), way)));
    let bounds = region::bounds_of(func, &fixed);
    let region = regions.reduce(|a, b| region::union(&a, &b, shape, &bounds)).unwrap_or_default();
    nest::copy(func, name, source, name, &clip(region, shape, &bounds), &bounds)
}

/// A region reaching past the buffer on constant sides (padding) becomes the whole dimension.
fn clip(region: region::Region, shape: &[ir::Index], bounds: &ir::arith::Bounds) -> region::Region {
    let clipped = region.into_iter().zip(shape).map(|(range, size)| {
        let zero = ir::Index::int(0);
        let whole = bounds.at_most(&range.min, &zero) && bounds.at_most(size, &(&range.min + &range.extent));
        if whole { region::Range::new(zero, size.clone()) } else { range }
    });
    clipped.collect()
}

/// Makes loads of one buffer loads of another.
pub(crate) fn redirect(stmt: &mut Stmt, from: &Name, to: &Name) {
    stmt.walk_mut(&mut |it| {
        if let Stmt::Store(store) = it {
            let store = std::sync::Arc::make_mut(store);
            store.value = store.value.map_loads(&mut |access| {
                let buffer = if access.buffer == *from { to.clone() } else { access.buffer.clone() };
                ir::Value::Load(ir::Access { buffer, ..access.clone() })
            });
        }
        true
    });
}
