//! Tensor intrinsics, with the accesses of each lane.

use ir::{TensorOp, intrin::Instruction};

use super::Compiler;
use crate::vgpu::{VgpuError, align, program::Elements, tensor::TensorCode};

impl Compiler<'_> {
    /// An intrinsic at work.
    pub(super) fn tensor(
        &mut self,
        TensorOp { intrinsic, operands, .. }: &TensorOp,
    ) -> Result<TensorCode, VgpuError> {
        let wanted = match intrinsic.instruction {
            Instruction::Mma { .. } => 3,
            Instruction::Ldmatrix { .. } | Instruction::Stmatrix { .. } => 1,
            Instruction::Wgmma { .. } | Instruction::Lanes(_) => 0,
        };
        let kernel = &self.kernel.name;
        let error = || VgpuError::Tensor { kernel: kernel.clone(), intrinsic: intrinsic.name };
        if operands.len() != wanted || wanted == 0 {
            return Err(error());
        }
        let align = align::of_operand(intrinsic.instruction);
        let operand = |it| Ok(Elements { align, ..self.place(it, false)? });
        let operands = operands.iter().map(operand).collect::<Result<Vec<_>, _>>()?;
        let dtype = self.buffers[operands[0].buffer].dtype;
        // Of other types, the instruction would have no meaning: `.trans` takes 2 bytes for an element.
        if !intrinsic.types.is_empty() && !intrinsic.types.contains(&dtype) {
            return Err(VgpuError::Tensor { kernel: self.kernel.name.clone(), intrinsic: intrinsic.name });
        }
        Ok(TensorCode::new(intrinsic, operands, dtype))
    }
}
