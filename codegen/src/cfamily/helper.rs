//! Helpers: the types and functions that emitted source uses beyond its language, defined only where used.

use ir::{BinaryOp, DType, UnaryOp};

use super::{
    Dialect, Printer, across,
    builtin::{builtin_binary, builtin_unary},
    copy, integer,
    ptx::Ptx,
    tcgen05::{self, TensorProduct},
    types,
    value::has_relation,
    value::is_plain_cast,
    wgmma::Product,
    words,
};

/// Something that the emitted source may need a definition of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Helper {
    /// A type of some lanes.
    Type(DType, u32),
    /// One value in all lanes.
    Splat(DType, u32),
    /// An operation on one operand.
    Unary(UnaryOp, DType, u32),
    /// An operation on two operands.
    Binary(BinaryOp, DType, u32),
    /// A shift of all lanes by one number.
    ShiftAll(BinaryOp, DType, u32),
    /// Bytes as f16, less a number.
    HalvesLess(DType, u32, u32),
    /// In each lane one of two values, by a third.
    Where(DType, u32),
    /// A conversion.
    Cast { to: DType, from: DType, lanes: u32 },
    /// A quotient of indices rounded down; of 64 bits where true.
    FloorDiv(bool),
    /// The remainder that belongs to it.
    FloorMod(bool),
    /// The smaller of two indices.
    IndexMin(bool),
    /// The larger of two indices.
    IndexMax(bool),
    /// The bits of a float.
    BitsOfFloat,
    /// The float of some bits.
    FloatOfBits,
    /// A copy from global to shared memory that lands later; with a condition where it is not bare.
    CopyAsync { bytes: usize, is_bare: bool },
    /// An instruction.
    Ptx(Ptx),
    /// A product of a warpgroup.
    Wgmma(Product),
    /// A product into tensor memory.
    Tcgen05(TensorProduct),
    /// An intrinsic that loads so many columns of elements of a type from there.
    TensorLoad(&'static str, DType, u32),
    /// An addition to adjacent elements of global memory that no other thread comes between.
    AtomicAdd(DType, u32),
    /// The beginning of a block's turn.
    Acquire,
    /// The end of it.
    Release,
    /// A tensor intrinsic on elements of a type.
    Tensor(&'static str, DType),
    /// A reduction by groups of so many lanes.
    WarpReduce(BinaryOp, DType, u32),
}

/// The type in which an emulated type computes: integers have no exponential function of their own.
fn compute_type(dtype: DType) -> DType {
    if dtype.is_float() { DType::F32 } else { DType::F64 }
}

fn suffix(dtype: DType, lanes: u32) -> String {
    if lanes == 1 { dtype.to_string() } else { format!("{dtype}x{lanes}") }
}

impl Printer<'_> {
    /// The name by which a helper is used; defines it, and what it needs, at its first use.
    pub(super) fn require(&mut self, helper: Helper) -> String {
        let name = self.helper_name(helper);
        if !self.prelude.contains_key(&helper) {
            let text = self.define(helper);
            self.prelude.insert(helper, text);
        }
        name
    }

    fn helper_name(&self, helper: Helper) -> String {
        let index = |stem: &str, wide: bool| {
            if wide && !self.dialect.is_c() { format!("tw_{stem}64") } else { format!("tw_{stem}") }
        };
        match helper {
            Helper::Type(dtype, lanes) => types::vector(self.dialect, dtype, lanes),
            Helper::Splat(dtype, lanes) => format!("tw_splat_{}", suffix(dtype, lanes)),
            Helper::Unary(op, dtype, lanes) => match builtin_unary(self.dialect, op, dtype) {
                Some(name) if lanes == 1 => name,
                _ if op == UnaryOp::Neg => format!("tw_neg_{}", suffix(dtype, lanes)),
                _ => format!("tw_{}_{}", op.as_str(), suffix(dtype, lanes)),
            },
            Helper::Binary(op, dtype, lanes) => match builtin_binary(self.dialect, op, dtype) {
                Some(name) if lanes == 1 => name.to_owned(),
                _ if self.has_operator(op, dtype, lanes) => format!("operator{}", op.as_str()),
                _ => format!("tw_{}_{}", op.word(), suffix(dtype, lanes)),
            },
            Helper::ShiftAll(op, dtype, lanes) => format!("tw_{}_all_{}", op.word(), suffix(dtype, lanes)),
            Helper::HalvesLess(from, lanes, less) => {
                format!("tw_{}_of_{}_less_{less}", suffix(DType::F16, lanes), suffix(from, lanes))
            }
            Helper::Where(dtype, lanes) => format!("tw_where_{}", suffix(dtype, lanes)),
            Helper::Cast { to, from, lanes } => {
                format!("tw_{}_of_{}", suffix(to, lanes), suffix(from, lanes))
            }
            Helper::FloorDiv(wide) => index("floordiv", wide),
            Helper::FloorMod(wide) => index("floormod", wide),
            Helper::IndexMin(wide) => index("min", wide),
            Helper::IndexMax(wide) => index("max", wide),
            Helper::BitsOfFloat if !self.dialect.is_c() => "__float_as_uint".to_owned(),
            Helper::FloatOfBits if !self.dialect.is_c() => "__uint_as_float".to_owned(),
            Helper::BitsOfFloat => "tw_bits_of_f32".to_owned(),
            Helper::FloatOfBits => "tw_f32_of_bits".to_owned(),
            Helper::CopyAsync { bytes, is_bare: true } => format!("tw_copy_async_{bytes}"),
            Helper::CopyAsync { bytes, is_bare: false } => format!("tw_copy_async_or_zero_{bytes}"),
            Helper::Ptx(it) => it.name(),
            Helper::Wgmma(it) => it.name(),
            Helper::Tcgen05(it) => it.name(),
            Helper::TensorLoad(name, dtype, columns) => format!("tw_{name}_{dtype}_{columns}"),
            Helper::AtomicAdd(dtype, lanes) => format!("tw_atomic_add_{}", suffix(dtype, lanes)),
            Helper::Acquire => "tw_acquire".to_owned(),
            Helper::Release => "tw_release".to_owned(),
            Helper::Tensor(name, dtype) if name.starts_with("ldmatrix") || name.starts_with("stmatrix") => {
                format!("tw_{name}_{dtype}")
            }
            Helper::Tensor(name, _) => format!("tw_{name}"),
            Helper::WarpReduce(op, dtype, width) => format!("tw_warp_reduce_{}_{dtype}_{width}", op.word()),
        }
    }

    fn define(&mut self, helper: Helper) -> String {
        match helper {
            Helper::Type(dtype, 1) if types::is_emulated(dtype) => types::define_scalar(self.dialect, dtype),
            Helper::Type(_, 1) => String::new(),
            Helper::Type(dtype, lanes) => {
                self.require(Helper::Type(dtype, 1));
                types::define_vector(self.dialect, dtype, lanes)
            }
            Helper::Splat(dtype, lanes) => self.define_splat(dtype, lanes),
            Helper::Unary(op, dtype, lanes) => self.define_unary(op, dtype, lanes),
            Helper::Binary(op, dtype, lanes) => self.define_binary(op, dtype, lanes),
            Helper::ShiftAll(op, dtype, lanes) => {
                let (name, of) = (self.helper_name(helper), self.require(Helper::Type(dtype, lanes)));
                words::define_shift(&name, op, (dtype, &of), dtype.bytes() * lanes as usize / 4)
            }
            Helper::HalvesLess(from, lanes, less) => {
                self.define_halves_less(&self.helper_name(helper), (from, lanes), less)
            }
            Helper::Where(dtype, lanes) => self.define_where(dtype, lanes),
            Helper::Cast { to, from, lanes } => self.define_cast(to, from, lanes),
            Helper::FloorDiv(wide) => self.define_index(helper, wide, "a / b - (a % b < 0)"),
            Helper::FloorMod(wide) => self.define_index(helper, wide, "a % b + (a % b < 0 ? b : 0)"),
            Helper::IndexMin(wide) => self.define_index(helper, wide, "a < b ? a : b"),
            Helper::IndexMax(wide) => self.define_index(helper, wide, "a > b ? a : b"),
            Helper::BitsOfFloat | Helper::FloatOfBits if !self.dialect.is_c() => String::new(),
            Helper::BitsOfFloat => reinterpret("uint32_t", "tw_bits_of_f32", "float"),
            Helper::FloatOfBits => reinterpret("float", "tw_f32_of_bits", "uint32_t"),
            Helper::CopyAsync { bytes, is_bare } => {
                copy::define_copy(&self.helper_name(helper), bytes, is_bare)
            }
            Helper::Ptx(it) => self.define_ptx(it),
            Helper::Wgmma(it) => self.define_wgmma(it),
            Helper::Tcgen05(it) => tcgen05::define_product(it),
            Helper::TensorLoad(_, dtype, columns) => {
                self.define_tensor_load(&self.helper_name(helper), dtype, columns)
            }
            Helper::AtomicAdd(dtype, lanes) => {
                self.define_atomic_add(&self.helper_name(helper), dtype, lanes)
            }
            Helper::Acquire => across::define_acquire(&self.helper_name(helper)),
            Helper::Release => across::define_release(&self.helper_name(helper)),
            Helper::WarpReduce(op, dtype, width) => {
                self.define_warp_reduce(&self.helper_name(helper), op, dtype, width)
            }
            Helper::Tensor(intrinsic, dtype) => match ir::intrin::find(intrinsic) {
                Some(it) => self.define_tensor(&self.helper_name(helper), it, dtype),
                None => String::new(),
            },
        }
    }

    fn define_index(&mut self, helper: Helper, wide: bool, result: &str) -> String {
        let (name, of) = (self.helper_name(helper), self.index_type(wide));
        format!("TW_INLINE {of} {name}({of} a, {of} b) {{ return {result}; }}\n")
    }

    fn define_splat(&mut self, dtype: DType, lanes: u32) -> String {
        let (name, of) =
            (self.helper_name(Helper::Splat(dtype, lanes)), self.require(Helper::Type(dtype, lanes)));
        let element = types::scalar(self.dialect, dtype);
        let all = vec!["a"; lanes as usize].join(", ");
        let all = if self.dialect.is_c() { format!("({of}){{{all}}}") } else { format!("{of}{{{{{all}}}}}") };
        format!("TW_INLINE {of} {name}({element} a) {{ return {all}; }}\n")
    }

    fn define_unary(&mut self, op: UnaryOp, dtype: DType, lanes: u32) -> String {
        let helper = Helper::Unary(op, dtype, lanes);
        if lanes == 1 && builtin_unary(self.dialect, op, dtype).is_some() {
            return String::new();
        }
        let name = self.helper_name(helper);
        let of = self.require(Helper::Type(dtype, lanes));
        if lanes > 1 && !(self.dialect.is_c() && converts_in_lanes(dtype)) {
            let result = self.unary_text(op, dtype, 1, &self.lane("a"));
            return self.lanewise(&name, (dtype, lanes), &[("a", &of)], &result);
        }
        if (op, dtype) == (UnaryOp::Exp2, DType::F32) && !self.dialect.is_c() {
            // The library's function is this instruction and three more, for results below the normal numbers.
            let text =
                "\n  float r;\n  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : \"f\"(a));\n  return r;\n";
            return format!("TW_INLINE {of} {name}({of} a) {{{text}}}\n");
        }
        let result = match (op, dtype) {
            (UnaryOp::Rsqrt, DType::F32) => "1.0f / __builtin_sqrtf(a)".to_owned(),
            (UnaryOp::Rsqrt, DType::F64) => "1.0 / __builtin_sqrt(a)".to_owned(),
            (UnaryOp::Neg, _) if !dtype.is_float() => {
                format!("({of})(0 - ({})a)", integer::arithmetic_unsigned(self.dialect, dtype))
            }
            (UnaryOp::Abs, _) if !dtype.is_float() => {
                format!("a < 0 ? ({of})(0 - ({})a) : a", integer::arithmetic_unsigned(self.dialect, dtype))
            }
            _ => {
                let through = compute_type(dtype);
                let a = self.cast_text(through, dtype, lanes, "a");
                let inner = self.unary_text(op, through, lanes, &a);
                self.cast_text(dtype, through, lanes, &inner)
            }
        };
        format!("TW_INLINE {of} {name}({of} a) {{ return {result}; }}\n")
    }

    fn define_binary(&mut self, op: BinaryOp, dtype: DType, lanes: u32) -> String {
        let helper = Helper::Binary(op, dtype, lanes);
        if lanes == 1 && builtin_binary(self.dialect, op, dtype).is_some() {
            return String::new();
        }
        let name = self.helper_name(helper);
        let of = self.require(Helper::Type(dtype, lanes));
        let to = self.require(Helper::Type(op.result(dtype), lanes));
        if op == BinaryOp::DotE2m1x2 && lanes == 1 {
            return integer::define_dot_e2m1x2(&name, &of, &to);
        }
        if let Some(words) = words::words(self.dialect, dtype, lanes).filter(|_| op.is_bitwise()) {
            return words::define_bits(&name, op, &of, words);
        }
        let blended = op.is_extremum() && matches!(dtype, DType::F32 | DType::F64);
        if lanes > 1 && self.dialect.is_c() && blended {
            return self.define_blend(op, dtype, lanes);
        }
        let in_lanes = self.dialect.is_c() && converts_in_lanes(dtype) && !op.is_comparison();
        if lanes > 1 && !in_lanes {
            let result = self.binary_text(op, dtype, 1, (&self.lane("a"), &self.lane("b")));
            return self.lanewise(&name, (op.result(dtype), lanes), &[("a", &of), ("b", &of)], &result);
        }
        if let (Dialect::Cuda(_), DType::F16, Some(word)) = (self.dialect, dtype, half_instruction(op)) {
            return format!(
                "TW_INLINE {to} {name}({of} a, {of} b) {{\n  {of} r;\n  asm(\"{word} %0, %1, %2;\" : \"=h\"(r.bits) : \"h\"(a.bits), \
                 \"h\"(b.bits));\n  return r;\n}}\n"
            );
        }
        let result = if blended {
            let sign = if op == BinaryOp::Min { "<" } else { ">" };
            format!("a {sign} b || b != b ? a : b")
        } else if dtype.is_float() {
            let a = self.cast_text(DType::F32, dtype, lanes, "a");
            let b = self.cast_text(DType::F32, dtype, lanes, "b");
            let result = self.binary_text(op, DType::F32, lanes, (&a, &b));
            self.cast_text(op.result(dtype), op.result(DType::F32), lanes, &result)
        } else {
            integer::binary(self.dialect, op, dtype)
        };
        format!("TW_INLINE {to} {name}({of} a, {of} b) {{ return {result}; }}\n")
    }

    /// One of two elements in each lane.
    fn define_where(&mut self, dtype: DType, lanes: u32) -> String {
        let name = self.helper_name(Helper::Where(dtype, lanes));
        let [of, cond] = [dtype, DType::Bool].map(|it| self.require(Helper::Type(it, lanes)));
        let result = format!("{} ? {} : {}", self.lane("c"), self.lane("a"), self.lane("b"));
        self.lanewise(&name, (dtype, lanes), &[("c", &cond), ("a", &of), ("b", &of)], &result)
    }

    /// The smaller or the larger of floats in lanes; of a number and a NaN it is the number.
    fn define_blend(&mut self, op: BinaryOp, dtype: DType, lanes: u32) -> String {
        let name = self.helper_name(Helper::Binary(op, dtype, lanes));
        let of = self.require(Helper::Type(dtype, lanes));
        let bits = if dtype == DType::F32 { DType::I32 } else { DType::I64 };
        let mask = self.require(Helper::Type(bits, lanes));
        let sign = if op == BinaryOp::Min { "<" } else { ">" };
        format!(
            "TW_INLINE {of} {name}({of} a, {of} b) {{\n  const {mask} first = (a {sign} b) | (b != b);\n  \
             return ({of})((first & ({mask})a) | (~first & ({mask})b));\n}}\n"
        )
    }

    /// The text of an operation on two operands that are already text.
    fn binary_text(&mut self, op: BinaryOp, dtype: DType, lanes: u32, (a, b): (&str, &str)) -> String {
        if has_relation(op, dtype, lanes) {
            return format!("({a} {} {b})", op.as_str());
        }
        if op.is_arithmetic() && self.is_native(dtype, lanes) {
            return format!("{a} {} {b}", op.as_str());
        }
        let name = self.require(Helper::Binary(op, dtype, lanes));
        if self.has_operator(op, dtype, lanes) {
            return format!("{a} {} {b}", op.as_str());
        }
        format!("{name}({a}, {b})")
    }

    fn unary_text(&mut self, op: UnaryOp, dtype: DType, lanes: u32, a: &str) -> String {
        if op == UnaryOp::Neg && self.is_native(dtype, lanes) {
            return format!("-{a}");
        }
        format!("{}({a})", self.require(Helper::Unary(op, dtype, lanes)))
    }

    /// The text of a conversion of an operand that is already text.
    pub(super) fn cast_text(&mut self, to: DType, from: DType, lanes: u32, a: &str) -> String {
        if to == from || (lanes == 1 && to == DType::F32 && from == DType::Tf32) {
            a.to_owned()
        } else if lanes == 1 && is_plain_cast(from, to) {
            format!("({})({a})", types::scalar(self.dialect, to))
        } else {
            format!("{}({a})", self.require(Helper::Cast { to, from, lanes }))
        }
    }

    /// One lane of a vector variable, in the loop that [`Printer::lanewise`] makes.
    pub(super) fn lane(&self, variable: &str) -> String {
        if self.dialect.is_c() { format!("{variable}[l]") } else { format!("{variable}.at[l]") }
    }

    /// A function that computes its lanes one by one.
    pub(super) fn lanewise(
        &mut self,
        name: &str,
        (dtype, lanes): (DType, u32),
        params: &[(&str, &str)],
        result: &str,
    ) -> String {
        let of = self.require(Helper::Type(dtype, lanes));
        let params: Vec<_> = params.iter().map(|(name, of)| format!("{of} {name}")).collect();
        let unroll = if self.dialect.is_c() { "" } else { "  #pragma unroll\n" };
        format!(
            "TW_INLINE {of} {name}({}) {{\n  {of} r;\n{unroll}  for (int l = 0; l < {lanes}; ++l) {} = {result};\n  \
             return r;\n}}\n",
            params.join(", "),
            self.lane("r"),
        )
    }

    /// Whether the dialect gives an operation its usual sign by overloading it for our type.
    pub(super) fn has_operator(&self, op: BinaryOp, dtype: DType, lanes: u32) -> bool {
        let is_struct = types::is_emulated(dtype) || (dtype.is_float() && lanes > 1);
        !self.dialect.is_c() && is_struct && op.is_arithmetic()
    }
}

/// Whether lanes of the type become lanes of f32 with a few instructions on all of them.
pub(super) fn converts_in_lanes(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16)
}

/// The instruction that rounds once, as computing in f32 and rounding to f16 does: f32 has more than twice the bits.
fn half_instruction(op: BinaryOp) -> Option<&'static str> {
    match op {
        BinaryOp::Add => Some("add.rn.f16"),
        BinaryOp::Sub => Some("sub.rn.f16"),
        BinaryOp::Mul => Some("mul.rn.f16"),
        _ => None,
    }
}

fn reinterpret(to: &str, name: &str, from: &str) -> String {
    format!(
        "TW_INLINE {to} {name}({from} a) {{\n  {to} r;\n  __builtin_memcpy(&r, &a, sizeof r);\n  return r;\n}}\n"
    )
}
