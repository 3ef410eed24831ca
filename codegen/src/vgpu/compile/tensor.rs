//! Tensor intrinsics, with the accesses of each lane.

use ir::{TensorOp, WarpReduce, intrin::Instruction};

use super::Compiler;
use crate::vgpu::{
    VgpuError, align,
    program::{Code, Elements},
    tensor::TensorCode,
    warp_reduce::WarpReduceCode,
};

impl Compiler<'_> {
    /// An intrinsic at work.
    pub(super) fn tensor(
        &mut self,
        TensorOp { intrinsic, operands, .. }: &TensorOp,
    ) -> Result<TensorCode, VgpuError> {
        let wanted = match intrinsic.instruction {
            Instruction::Mma { .. } => 3,
            Instruction::Ldmatrix { .. } | Instruction::Stmatrix { .. } | Instruction::TensorLoad(_) => 1,
            Instruction::Wgmma { .. }
            | Instruction::Tcgen05(_)
            | Instruction::TensorCopy
            | Instruction::Lanes(_) => 0,
        };
        let kernel = &self.kernel.name;
        let error = || VgpuError::Tensor { kernel: kernel.clone(), intrinsic: intrinsic.name };
        if operands.len() != wanted || wanted == 0 {
            return Err(error());
        }
        let align = align::of_operand(intrinsic.instruction);
        let from_tensor = matches!(intrinsic.instruction, Instruction::TensorLoad(_));
        let operand = |it| {
            if from_tensor { self.columns(it) } else { Ok(Elements { align, ..self.place(it, false)? }) }
        };
        let operands = operands.iter().map(operand).collect::<Result<Vec<_>, _>>()?;
        let dtype = self.buffers[operands[0].buffer].dtype;
        // Of other types, the instruction would have no meaning: `.trans` takes 2 bytes for an element.
        if !intrinsic.types.is_empty() && !intrinsic.types.contains(&dtype) {
            return Err(VgpuError::Tensor { kernel: self.kernel.name.clone(), intrinsic: intrinsic.name });
        }
        Ok(TensorCode::new(intrinsic, operands, dtype))
    }

    /// A reduction by lanes.
    pub(super) fn warp_reduce(&mut self, site: u32, it: &WarpReduce) -> Result<Code, VgpuError> {
        let (place, operand) = (self.place(&it.place, true)?, self.place(&it.operand, false)?);
        let (word, dtype) = (it.word(), self.buffers[place.buffer].dtype);
        let code = WarpReduceCode { word, op: it.op, dtype, width: it.width, operand };
        Ok(Code::WarpReduce(site, place, Box::new(code)))
    }
}
