//! Reductions by the lanes of a warp: shuffles.

use ir::{BinaryOp, DType, Value, WarpReduce};

use super::{Printer, helper::Helper, types};

impl Printer<'_> {
    /// A call of the function that shuffles.
    pub(super) fn warp_reduce(&mut self, it: &WarpReduce) {
        let dtype = self.frame.memory[&it.place.buffer].0;
        let name = self.require(Helper::WarpReduce(it.op, dtype, it.width));
        let (place, operand) = (self.place(&it.place), self.value(&Value::Load(it.operand.clone()), 1));
        self.line(&format!("{place} = {name}({operand});"));
    }

    /// The function: a butterfly, from lanes that are far apart to neighbours. Only the lanes of a group wait for each other.
    pub(super) fn define_warp_reduce(
        &mut self,
        name: &str,
        op: BinaryOp,
        dtype: DType,
        width: u32,
    ) -> String {
        let of = self.require(Helper::Type(dtype, 1));
        let sum = if self.is_native(dtype, 1) && matches!(op, BinaryOp::Add | BinaryOp::Mul) {
            format!("x {} y", op.as_str())
        } else {
            let combine = self.require(Helper::Binary(op, dtype, 1));
            if self.has_operator(op, dtype, 1) {
                format!("x {} y", op.as_str())
            } else {
                format!("{combine}(x, y)")
            }
        };
        let mask = if width == 32 {
            "0xffffffffu".to_owned()
        } else {
            format!("{:#x}u << (tw_lane & {:#x}u)", (1_u64 << width) - 1, 32 - width)
        };
        let lane = if width == 32 {
            String::new()
        } else {
            "  unsigned int tw_lane;\n  asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(tw_lane));\n".to_owned()
        };
        // Shuffles know numbers of 4 and 8 bytes; of others the bits go, in the low ones of a word.
        let exchange = if dtype.bytes() >= 4 {
            format!("    {of} y = __shfl_xor_sync({mask}, x, at);\n")
        } else {
            let bits = types::unsigned(self.dialect, if dtype.bytes() == 1 { DType::U8 } else { DType::U16 });
            format!(
                "    {bits} bits = ({bits})__shfl_xor_sync({mask}, (unsigned int)*({bits} *)&x, at);\n    {of} y = *({of} *)&bits;\n"
            )
        };
        format!(
            "TW_INLINE {of} {name}({of} x) {{\n{lane}  #pragma unroll\n  for (int at = {}; at > 0; at /= 2) {{\n{exchange}    x = {sum};\n  }}\n  return x;\n}}\n",
            width / 2
        )
    }
}
