//! Products into tensor memory, the scales of their factors there, and what warpgroups load from there.

use ir::{
    Access, Block, Group, Index, Instr, Major, Matrix, Mechanism, Scope, Stmt, Storage, Tcgen05, TensorOp,
    Tile,
    intrin::{Instruction, Intrinsic, Matched, Operand},
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
        let (sum, left, right, scales) = match found.operands.as_slice() {
            [sum, left, right] => (sum, left, right, None),
            [sum, left, of_left, right, of_right] => (sum, left, right, Some([of_left, of_right])),
            _ => unreachable!("a product has two factors, with or without scales"),
        };
        let first = tensor_access(sum, block, at)?;
        let extents = sum.extents(first.indices.len());
        let place = Tile { first, extents, matrix: None };
        let left = self.tile(intrinsic, left, [0, 1], block, at)?;
        let mut factor = self.tile(intrinsic, right, [1, 0], block, at)?;
        if intrinsic.is_of_pair() {
            self.halve(&mut factor, right, block)?;
        }
        let starts = found.starts.then(|| first_of_reduction(block, at)).flatten();
        let operands = match scales {
            None => vec![left, factor],
            Some([of_left, of_right]) => {
                let [of_left, of_right] = [of_left, of_right].map(|it| self.scales(intrinsic, it, block, at));
                vec![left, of_left?, factor, of_right?]
            }
        };
        let product = Instr::Tcgen05(Box::new(Tcgen05 { intrinsic, place, operands, starts }));
        let kind = (Group::Tcgen05, Mechanism::Tcgen05);
        Ok(Tensors::waited_for(block, found, kind, None, product))
    }

    /// The scales of a factor in tensor memory: one of each of its rows of the four that are copied together, the first or last two, or all four.
    fn scales(
        &self,
        intrinsic: &'static Intrinsic,
        operand: &Operand,
        block: &Block,
        at: &At,
    ) -> Result<Tile, LowerError> {
        let tile = self.scale_tile(intrinsic, operand, block, at)?;
        let last = tile.first.indices.len() - 1;
        let number = &tile.first.indices[last];
        let Instruction::Tcgen05(kind) = intrinsic.instruction else { unreachable!("it is a product") };
        let (most, count) = (SCALES_OF_ROW - kind.scales_of_row(), kind.scales_of_row());
        if let (Some(0..), Some(last)) = at.bounds.interval(number)
            && last <= most
            && at.bounds.divides(count, number)
        {
            return Ok(tile);
        }
        let why = match count {
            1 => format!("its scale `{number}` of each row is none of the four that are copied together"),
            _ => format!(
                "its {count} scales from `{number}` on of each row are not those that are copied together"
            ),
        };
        Err(refused_scales(intrinsic, operand, block, why))
    }

    /// A tile of scales as they are copied, 32 rows of 16 bytes, or of the part of it that one product reads.
    fn scale_tile(
        &self,
        intrinsic: &'static Intrinsic,
        operand: &Operand,
        block: &Block,
        at: &At,
    ) -> Result<Tile, LowerError> {
        let buffer = &self.func.buffers[&operand.buffer];
        let rank = buffer.shape.len();
        let one_tile = [Scope::SCALE_ROWS, SCALE_BYTES].map(Index::int);
        // Tiles of more rows stand side by side.
        let is_beside = |dims: &[usize]| match dims {
            [row, byte] => [row + 2, byte + 1] == [rank; 2],
            [tile, row, byte] => {
                [row + 2, byte + 1] == [rank; 2]
                    && buffer.shape[tile + 1..*row].iter().all(|it| it.as_int() == Some(1))
            }
            _ => false,
        };
        if !buffer.shape.ends_with(&one_tile) || !is_beside(&operand.dims) {
            let why = "its last two dimensions are not 32 rows of 16 scales".to_owned();
            return Err(refused_scales(intrinsic, operand, block, why));
        }
        let indices = operand.base.iter().map(|it| at.resolve(it)).collect();
        let first = Access { buffer: operand.buffer.clone(), indices, lanes: 1 };
        Ok(Tile { first, extents: operand.extents(rank), matrix: None })
    }

    /// A copy of scales from shared to tensor memory.
    pub(super) fn tensor_copy(
        &self,
        intrinsic: &'static Intrinsic,
        found: &Matched,
        block: &Block,
        at: &At,
    ) -> Result<Stmt, LowerError> {
        let [to, from] = found.operands.as_slice() else { unreachable!("a copy has two operands") };
        let place = self.scale_tile(intrinsic, to, block, at)?;
        let mut operand = self.scale_tile(intrinsic, from, block, at)?;
        let storage = Storage::of(&self.func.buffers[&from.buffer]);
        let is_dense = storage.strides.iter().rev().nth(1).and_then(Index::as_int) == Some(SCALE_BYTES);
        if !is_dense || storage.swizzle.is_some() {
            let why = "its rows of 16 bytes are not one behind the other in shared memory".to_owned();
            return Err(refused_scales(intrinsic, from, block, why));
        }
        // Eight rows are a core matrix (PTX ISA, *Canonical layouts*).
        let stride = 8 * SCALE_BYTES;
        operand.matrix = Some(Matrix { major: Major::K, leading: SCALE_BYTES, stride, swizzle: None });
        let (operands, starts) = (vec![operand], None);
        let copy = Instr::Tcgen05(Box::new(Tcgen05 { intrinsic, place, operands, starts }));
        Ok(Tensors::waited_for(block, found, (Group::Tcgen05, Mechanism::Tcgen05), None, copy))
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

/// The scales of a row of 32 that are copied together, of a byte each: four of each of four rows of a factor.
const SCALE_BYTES: i64 = 16;
const SCALES_OF_ROW: i64 = 4;

fn refused_scales(
    intrinsic: &'static Intrinsic,
    operand: &Operand,
    block: &Block,
    why: String,
) -> LowerError {
    let (block, buffer) = (block.name.clone(), operand.buffer.clone());
    LowerError::OperandLayout { block, buffer, intrinsic: intrinsic.name, why, help: SCALES }
}

/// How scales lie.
const SCALES: &str = "let the workload have scales as cuBLAS has them, tiles of [rows / 128, blocks / 4, 32, 16], the scale of row `i` and block `b` at \
                      [i floordiv 128, b floordiv 4, i mod 32, i floordiv 32 mod 4 * 4 + b mod 4], and copy whole tiles of the last two dimensions";

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
