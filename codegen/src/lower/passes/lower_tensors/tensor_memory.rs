//! Products into tensor memory, and what warpgroups load from there.

use ir::{
    Access, Block, Group, Index, Instr, Major, Mechanism, Scope, Stmt, Tcgen05, TensorOp, Tile,
    intrin::{Intrinsic, Matched, Operand},
};

use crate::lower::{LowerError, analysis::pairs};

use super::{At, Tensors, instruction, lane, wgmma::first_of_reduction};

impl Tensors<'_> {
    /// The product of a block, waited for at once unless a pipeline sees to that.
    pub(super) fn tcgen05(
        &self,
        intrinsic: &'static Intrinsic,
        found: &Matched,
        block: &Block,
        at: &At,
    ) -> Result<Stmt, LowerError> {
        let [sum, left, right] = found.operands.as_slice() else {
            unreachable!("a product has three operands")
        };
        let first = tensor_access(sum, block, at)?;
        let mut extents = vec![1; first.indices.len()];
        for (dim, size) in sum.dims.iter().zip(&sum.tile) {
            extents[*dim] = *size;
        }
        let place = Tile { first, extents, matrix: None };
        let left = self.tile(intrinsic, left, [0, 1], block, at)?;
        let mut factor = self.tile(intrinsic, right, [1, 0], block, at)?;
        if intrinsic.is_of_pair() {
            self.halve(&mut factor, right, block)?;
        }
        let starts = found.starts.then(|| first_of_reduction(block, at)).flatten();
        let product =
            Instr::Tcgen05(Box::new(Tcgen05 { intrinsic, sum: place, left, right: factor, starts }));
        let kind = (Group::Tcgen05, Mechanism::Tcgen05);
        Ok(Tensors::waited_for(block, found, kind, None, product))
    }

    /// What a block of a pair has of the right factor: half of its columns, which have to be all that the buffer has.
    fn halve(&self, tile: &mut Tile, operand: &Operand, block: &Block) -> Result<(), LowerError> {
        let dim = operand.dims[1];
        let buffer = &self.func.buffers[&operand.buffer];
        let (columns, first) = (operand.tile[1], &tile.first.indices[dim]);
        let half = columns / pairs::BLOCKS;
        // Where they are contiguous, a block has whole rows of the swizzle's pattern.
        let swizzle = tile.matrix.filter(|it| it.major == Major::Mn).and_then(|it| it.swizzle);
        let panel = swizzle.map_or(1, |it| it.block_bytes() / buffer.dtype.bytes_i64());
        let is_whole = buffer.shape[dim].as_int() == Some(columns) && first.as_int() == Some(0);
        let refused = |why: String| Err(LowerError::Pair { block: block.name.clone(), why, help: WHOLE });
        let name = &operand.buffer;
        if !is_whole {
            return refused(format!("`{name}` has other columns than the {columns} of a product"));
        }
        if half % panel != 0 {
            return refused(format!(
                "half of the {columns} columns of `{name}` cuts rows of {panel} elements"
            ));
        }
        tile.extents[dim] = half;
        self.halved.borrow_mut().insert(operand.buffer.clone(), dim);
        Ok(())
    }

    /// Columns of tensor memory to the registers of a warpgroup: each lane has a row.
    pub(super) fn tensor_load(
        &self,
        intrinsic: &'static Intrinsic,
        found: &Matched,
        block: &Block,
        at: &At,
    ) -> Result<Stmt, LowerError> {
        let [to, from] = found.operands.as_slice() else { unreachable!("a copy has two operands") };
        let place = self.registers(to, block, at)?;
        let mut operand = tensor_access(from, block, at)?;
        operand.lanes = place.lanes;
        let row = from.dims[0];
        operand.indices[row] = at.bounds.simplify(&(operand.indices[row].clone() + lane()));
        Ok(instruction(TensorOp { intrinsic, place, operands: vec![operand] }))
    }

    /// Refuses a block that touches tensor memory without an intrinsic for that.
    pub(super) fn expect_no_tensor_memory(&self, block: &Block) -> Result<(), LowerError> {
        let all = block.reads().into_iter().chain(block.writes()).map(|it| &it.buffer);
        let found = all.into_iter().find(|it| self.func.buffers[*it].scope == Scope::Tensor);
        found.map_or(Ok(()), |buffer| {
            let (block, buffer) = (block.name.clone(), buffer.clone());
            Err(LowerError::TensorMemoryTouched { block, buffer })
        })
    }
}

/// What helps where a pair cannot share a right factor.
const WHOLE: &str = "let one product have all columns that are copied at a time: 128 or 256 of them where they are contiguous";

/// Where a tile of tensor memory begins: in the last two dimensions of its buffer, at a multiple of 128 rows.
fn tensor_access(operand: &Operand, block: &Block, at: &At) -> Result<Access, LowerError> {
    let indices: Vec<Index> = operand.base.iter().map(|it| at.resolve(it)).collect();
    let last = indices.len() - 1;
    if operand.dims != [last.wrapping_sub(1), last] {
        let (block, buffer) = (block.name.clone(), operand.buffer.clone());
        return Err(LowerError::TensorMemoryTile { block, buffer });
    }
    let (index, tile) = (indices[operand.dims[0]].clone(), Scope::TENSOR_ROWS);
    if !at.bounds.divides(tile, &index) {
        let (block, buffer) = (block.name.clone(), operand.buffer.clone());
        return Err(LowerError::TileAlignment { block, buffer, index, tile });
    }
    Ok(Access { buffer: operand.buffer.clone(), indices, lanes: 1 })
}
