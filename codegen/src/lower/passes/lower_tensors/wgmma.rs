//! Products of a warpgroup: accumulators in registers, factors as boxes of shared memory.

use ir::{
    Access, Block, Factor, Fence, Group, Index, Instr, IterKind, Less, Major, Matrix, Mechanism, Stmt,
    Storage, Tile, Wgmma,
    intrin::{Instruction, Intrinsic, Matched, Operand},
};

use crate::lower::LowerError;

use super::{At, Tensors};

/// What to do about a factor whose rows the hardware cannot read.
const ROWS: &str =
    "swizzle the buffer with the mode `auto`, and give its last dimension a multiple of 64 bytes";

/// What to do about a factor whose rows run along the wrong dimension.
const STORED: &str = "store what it copies with that dimension last: in the workload `matmul` with `layout: \"NT\"`, A m by k and B n by k";

/// The rows of the pattern by which the hardware permutes chunks of 16 bytes.
const PATTERN_ROWS: i64 = 8;

impl Tensors<'_> {
    /// The product of a block, waited for at once unless a pipeline sees to that.
    pub(super) fn wgmma(
        &self,
        intrinsic: &'static Intrinsic,
        found: &Matched,
        block: &Block,
        at: &At,
    ) -> Result<Stmt, LowerError> {
        let [sum, left, right] = found.operands.as_slice() else {
            unreachable!("a product has three operands")
        };
        let place = self.registers(sum, block, at)?;
        let Instruction::Wgmma { left: map, .. } = intrinsic.instruction else {
            unreachable!("the caller has asked")
        };
        let left = match map {
            Some(_) => Factor::Registers(self.registers(left, block, at)?),
            None => Factor::Shared(self.tile(intrinsic, left, [0, 1], block, at)?),
        };
        let right = self.tile(intrinsic, right, [1, 0], block, at)?;
        let starts = found.starts.then(|| first_of_reduction(block, at)).flatten();
        let product = Instr::Wgmma(Wgmma { intrinsic, place, left, right, starts });
        let (kind, fence) = ((Group::Wgmma, Mechanism::Wgmma), Instr::Fence(Fence::Wgmma));
        Ok(Tensors::waited_for(block, found, kind, Some(fence), product))
    }

    /// A factor in shared memory, given which of its dimensions the result has, too, and which is summed over.
    pub(super) fn tile(
        &self,
        intrinsic: &'static Intrinsic,
        operand: &Operand,
        [own, summed]: [usize; 2],
        block: &Block,
        at: &At,
    ) -> Result<Tile, LowerError> {
        let refused_with = |why: String, help: &'static str| LowerError::OperandLayout {
            block: block.name.clone(),
            buffer: operand.buffer.clone(),
            intrinsic: intrinsic.name,
            why,
            help,
        };
        let refused = |why: String| refused_with(why, ROWS);
        let buffer = &self.func.buffers[&operand.buffer];
        let storage = Storage::of(buffer);
        let last = buffer.shape.len() - 1;
        let indices: Vec<Index> = operand.base.iter().map(|it| at.resolve(it)).collect();
        let major = if operand.dims[summed] == last { Major::K } else { Major::Mn };
        let (contiguous, other) = if major == Major::K { (summed, own) } else { (own, summed) };
        if operand.dims[contiguous] != last || operand.dims[other] + 1 != last {
            return Err(refused("its tile is not in the last two dimensions".to_owned()));
        }
        let transposes = match intrinsic.instruction {
            Instruction::Wgmma { transposes, .. } => transposes,
            Instruction::Tcgen05(kind) => kind.transposes,
            _ => false,
        };
        if major == Major::Mn && !transposes {
            let why = format!(
                "it is of {}, and the dimension that is summed over has to be the last one but in types of two bytes",
                buffer.dtype
            );
            return Err(refused_with(why, STORED));
        }
        let Some(swizzle) = storage.swizzle.filter(|it| it.mode().is_some()) else {
            return Err(refused("its rows are not swizzled by a mode of the hardware".to_owned()));
        };
        let (span, bytes) = (swizzle.block_bytes(), storage.element_bytes());
        if !at.bounds.equal(&(storage.row() * bytes), &Index::int(span)) {
            let row = at.bounds.simplify(&(storage.row() * bytes));
            return Err(refused(format!("its rows have {row} bytes, and the swizzle spans {span}")));
        }
        let rows_start = &indices[operand.dims[other]];
        if !at.bounds.divides(PATTERN_ROWS, rows_start) {
            return Err(refused(format!("its tile begins in row `{rows_start}`, which is no multiple of 8")));
        }
        let start = &indices[last];
        let side = operand.tile[contiguous];
        let unit = if major == Major::K { side } else { (span / bytes).min(side) };
        let fits = major == Major::Mn && side % (span / bytes) == 0 || (span / bytes) % side == 0;
        if !fits || !at.bounds.divides(unit, start) {
            let why =
                format!("{side} elements from `{start}` on are cut by the span of {} elements", span / bytes);
            return Err(refused(why));
        }
        let panel = storage.panel().and_then(Index::as_int).map_or(16, |it| it * bytes);
        let leading = if major == Major::K { 16 } else { panel };
        let matrix = Some(Matrix { major, leading, stride: PATTERN_ROWS * span, swizzle: Some(swizzle) });
        let extents = operand.extents(indices.len());
        Ok(Tile { first: Access { buffer: operand.buffer.clone(), indices, lanes: 1 }, extents, matrix })
    }
}

/// The conditions under which all reduction iterators of a block are zero: none if they never are.
pub(super) fn first_of_reduction(block: &Block, at: &At) -> Option<Vec<Less>> {
    let mut out = Vec::new();
    for it in block.iters.iter().filter(|it| it.kind == IterKind::Reduce) {
        let first = Less::new(at.resolve(&Index::var(&it.var)), Index::int(1));
        match at.bounds.prove(&first) {
            Some(true) => {}
            Some(false) => return None,
            None => out.push(first),
        }
    }
    Some(out)
}
