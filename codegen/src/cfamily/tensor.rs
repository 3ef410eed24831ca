//! Tensor intrinsics: inline PTX on the registers of a lane.

use ir::{
    Access, DType, TensorOp,
    intrin::{Instruction, Intrinsic, LaneMap},
};

use super::{Printer, helper::Helper, names::identifier, types};

impl Printer<'_> {
    /// A store of what an intrinsic computes: a call of a function that holds the instruction.
    pub(super) fn tensor(&mut self, it: &TensorOp) {
        let TensorOp { intrinsic, place, operands } = it;
        if matches!(intrinsic.instruction, Instruction::TensorLoad(_)) {
            return self.tensor_load(it);
        }
        let dtype = |it: &Access| self.frame.memory[&it.buffer].0;
        let of = dtype(operands.last().expect("an intrinsic computes from something"));
        let name = self.require(Helper::Tensor(intrinsic.name, of));
        let stores = matches!(intrinsic.instruction, Instruction::Stmatrix { .. });
        let mut parameters = vec![if stores { self.address(place) } else { self.element_address(place) }];
        for it in operands {
            let shared = matches!(intrinsic.instruction, Instruction::Ldmatrix { .. });
            parameters.push(if shared { self.address(it) } else { self.element_address(it) });
        }
        self.line(&format!("{name}({});", parameters.join(", ")));
    }

    pub(super) fn element_address(&mut self, access: &Access) -> String {
        let name = identifier(&access.buffer).into_owned();
        if self.frame.registers.contains_key(&access.buffer) {
            return format!("&{name}");
        }
        let at = access.indices.first().map_or_else(|| "0".to_owned(), |it| self.index(it));
        format!("&{name}[{at}]")
    }

    /// The function that holds an intrinsic's instruction; `of` is the type of its right operand.
    pub(super) fn define_tensor(&mut self, name: &str, intrinsic: &Intrinsic, of: DType) -> String {
        self.require(Helper::Type(of, 1));
        let element = types::scalar(self.dialect, of);
        match intrinsic.instruction {
            Instruction::Ldmatrix { matrices, transposed } => {
                define_ldmatrix(name, element, matrices as usize, transposed)
            }
            Instruction::Stmatrix { matrices, transposed } => {
                define_stmatrix(name, element, matrices as usize, transposed)
            }
            Instruction::Mma { opcode, c, a, b } => {
                let accumulated = accumulator(intrinsic);
                self.require(Helper::Type(accumulated, 1));
                let sum = types::scalar(self.dialect, accumulated);
                let count = |map: &LaneMap, dtype: DType| {
                    usize::try_from(map.elements()).expect("a lane has some") * dtype.bytes() / 4
                };
                let counts = [count(c, accumulated), count(a, of), count(b, of)];
                define_mma(name, opcode, [sum, element], accumulated, counts)
            }
            // They have helpers of their own.
            Instruction::Wgmma { .. }
            | Instruction::Tcgen05(_)
            | Instruction::TensorCopy
            | Instruction::TensorLoad(_)
            | Instruction::Lanes(_) => String::new(),
        }
    }
}

/// The type that a product is added up in.
fn accumulator(intrinsic: &Intrinsic) -> DType {
    let func = ir::text::parse(intrinsic.description).expect("descriptions are programs");
    func.buffers.first().expect("the output is first").1.dtype
}

/// A matrix load reads shared memory, which the compiler must have written before.
fn define_ldmatrix(name: &str, element: &str, count: usize, transposed: bool) -> String {
    let trans = if transposed { ".trans" } else { "" };
    let (outputs, registers) = (numbered(0, count), register_list("=r", "to", count));
    format!(
        "TW_INLINE void {name}({element} *out, const {element} *row) {{\n  \
         unsigned int *to = (unsigned int *)out;\n  \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{outputs}}}, [%{count}];\"\n               \
         : {registers}\n               \
         : \"r\"((unsigned int)__cvta_generic_to_shared(row)) : \"memory\");\n}}\n"
    )
}

/// A matrix store writes shared memory behind the compiler's back.
fn define_stmatrix(name: &str, element: &str, count: usize, transposed: bool) -> String {
    let trans = if transposed { ".trans" } else { "" };
    let inputs = (1..=count).map(|it| format!("%{it}")).collect::<Vec<_>>().join(", ");
    let registers = register_list("r", "from", count);
    format!(
        "TW_INLINE void {name}({element} *row, const {element} *in) {{\n  \
         const unsigned int *from = (const unsigned int *)in;\n  \
         asm volatile(\"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%0], {{{inputs}}};\"\n               \
         :: \"r\"((unsigned int)__cvta_generic_to_shared(row)), {registers}\n               \
         : \"memory\");\n}}\n"
    )
}

fn define_mma(
    name: &str,
    opcode: &str,
    [sum, element]: [&str; 2],
    accumulated: DType,
    [c, a, b]: [usize; 3],
) -> String {
    let (of, constraint) = if accumulated == DType::F32 { ("float", "f") } else { ("unsigned int", "r") };
    let d_list = register_list(&format!("={constraint}"), "to", c);
    let c_list = register_list(constraint, "sum", c);
    let (a_list, b_list) = (register_list("r", "left", a), register_list("r", "right", b));
    let operands = [numbered(0, c), numbered(c, a), numbered(c + a, b), numbered(c + a + b, c)];
    let operands = operands.map(|it| format!("{{{it}}}")).join(", ");
    format!(
        "TW_INLINE void {name}({sum} *out, const {sum} *c, const {element} *a, const {element} *b) {{\n  \
         {of} *to = ({of} *)out;\n  \
         const {of} *sum = (const {of} *)c;\n  \
         const unsigned int *left = (const unsigned int *)a, *right = (const unsigned int *)b;\n  \
         asm(\"{opcode} {operands};\"\n      \
         : {d_list}\n      \
         : {a_list}, {b_list}, {c_list});\n}}\n"
    )
}

/// `%0, %1, …`.
pub(super) fn numbered(from: usize, count: usize) -> String {
    (from..from + count).map(|it| format!("%{it}")).collect::<Vec<_>>().join(", ")
}

/// `"r"(x[0]), "r"(x[1]), …`.
pub(super) fn register_list(constraint: &str, of: &str, count: usize) -> String {
    (0..count).map(|it| format!("\"{constraint}\"({of}[{it}])")).collect::<Vec<_>>().join(", ")
}
