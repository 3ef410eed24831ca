//! Conversions that a C cast does not do: narrow floats, saturation and rounding.

use ir::{DType, Feature};

use super::{
    Dialect, Printer,
    helper::{Helper, converts_in_lanes},
    types,
    value::is_plain_cast,
    words,
};

impl Printer<'_> {
    /// The definition of a conversion function.
    pub(super) fn define_cast(&mut self, to: DType, from: DType, lanes: u32) -> String {
        let target = self.require(Helper::Type(to, lanes));
        let source = self.require(Helper::Type(from, lanes));
        let name = format!("{}_of_{}", prefix(to, lanes), prefix(from, lanes).trim_start_matches("tw_"));
        let head = format!("TW_INLINE {target} {name}({source} a) {{");
        if lanes == 1 {
            let body = self.scalar_cast(to, from);
            return format!("{head}{body}}}\n");
        }
        if self.dialect.is_c() {
            let is_float_to_int = from.is_float() && !to.is_float();
            if is_plain_cast(from, to) && !is_float_to_int && from != DType::Tf32 {
                return format!("{head} return __builtin_convertvector(a, {target}); }}\n");
            }
            if let Some(body) = self.lanes_of_narrow(to, from, lanes) {
                return format!("{head}{body}}}\n");
            }
        }
        if let Some(words) = self.words_of_bytes(to, from, lanes) {
            let body = words::halves_of_bytes(from, &target, words, 0);
            return format!("TW_INLINE {target} {name}(const {source} &a) {{{body}}}\n");
        }
        let result = self.cast_text(to, from, 1, &self.lane("a"));
        self.lanewise(&name, (to, lanes), &[("a", &source)], &result)
    }

    /// How many words so many bytes fill that become halves.
    pub(super) fn words_of_bytes(&self, to: DType, from: DType, lanes: u32) -> Option<usize> {
        words::words(self.dialect, from, lanes).filter(|_| to == DType::F16 && from.bytes() == 1)
    }

    /// The definition of a conversion that takes a number away, too.
    pub(super) fn define_halves_less(
        &mut self,
        name: &str,
        (from, lanes): (DType, u32),
        less: u32,
    ) -> String {
        let [target, source] = [DType::F16, from].map(|it| self.require(Helper::Type(it, lanes)));
        let body = words::halves_of_bytes(from, &target, lanes as usize / 4, less);
        format!("TW_INLINE {target} {name}(const {source} &a) {{{body}}}\n")
    }

    fn scalar_cast(&mut self, to: DType, from: DType) -> String {
        let of = types::scalar(self.dialect, to);
        let emulated = types::is_emulated;
        match (to, from) {
            (DType::F32, _) if emulated(from) => self.widen(from),
            (_, DType::F32) if emulated(to) || to == DType::Tf32 => self.narrow(to),
            (_, DType::F64) if emulated(to) || to == DType::Tf32 => self.narrow_twice(to),
            // Up to 16 bits an integer is an f32 exactly.
            _ if (emulated(to) || to == DType::Tf32) && !from.is_float() && from.bytes() <= 2 => {
                format!(" return {}; ", self.cast_text(to, DType::F32, 1, "(float)a"))
            }
            (_, DType::I32 | DType::U32) if (emulated(to) || to == DType::Tf32) && !self.dialect.is_c() => {
                self.narrow_integer(to, from)
            }
            // An integer may be wider than f32 is precise; it is rounded once, to the type asked for.
            _ if (emulated(to) || to == DType::Tf32) && !from.is_float() => {
                format!(" return {}; ", self.cast_text(to, DType::F64, 1, "(double)a"))
            }
            _ if emulated(from)
                || (from == DType::Tf32 && emulated(to))
                || emulated(to)
                || to == DType::Tf32 =>
            {
                let through = self.cast_text(DType::F32, from, 1, "a");
                format!(" return {}; ", self.cast_text(to, DType::F32, 1, &through))
            }
            (DType::Bool, _) => " return a != 0; ".to_owned(),
            _ if from.is_float() && !to.is_float() => saturating(of, to),
            _ => format!(" return ({of})a; "),
        }
    }

    /// f32 of a narrower float.
    fn widen(&mut self, from: DType) -> String {
        let bits = if self.dialect.is_c() { "a" } else { "a.bits" };
        let unsigned = types::unsigned32(self.dialect);
        if let (DType::F16, Dialect::Cuda(_)) = (from, self.dialect) {
            return "\n  float r;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(a.bits));\n  return r;\n".to_owned();
        }
        let float = self.require(Helper::FloatOfBits);
        let as_bits = self.require(Helper::BitsOfFloat);
        match from {
            DType::Bf16 => format!(" return {float}(({unsigned}){bits} << 16); "),
            DType::F8e5m2 => {
                let half = types::scalar(self.dialect, DType::F16);
                let name = self.require(Helper::Cast { to: DType::F32, from: DType::F16, lanes: 1 });
                let of = types::scalar(self.dialect, DType::U16);
                let value = format!("({of})(({unsigned}){bits} << 8)");
                let value = if self.dialect.is_c() {
                    format!("({half}){value}")
                } else {
                    format!("{half}{{{value}}}")
                };
                format!(" return {name}({value}); ")
            }
            // The least has no place among the normal numbers of f32.
            DType::F8e8m0 => format!(
                "\n  const {unsigned} b = {bits}, r = b == 0xffu ? 0x7fc00000u : b == 0u ? 0x400000u : b << 23;\n  \
                 return {float}(r);\n"
            ),
            // The exponent's bias is put right by a product, which normalises subnormals as well.
            DType::F8e4m3 => format!(
                "\n  const {unsigned} m = {bits} & 0x7fu, s = ({unsigned})({bits} & 0x80u) << 24;\n  \
                 const {unsigned} r = m == 0x7fu ? 0x7fc00000u : {as_bits}({float}(m << 20) * 0x1p120f);\n  \
                 return {float}(s | r);\n"
            ),
            _ => format!(
                "\n  const {unsigned} m = {bits} & 0x7fffu, s = ({unsigned})({bits} & 0x8000u) << 16;\n  \
                 const {unsigned} r = {as_bits}({float}(m << 13) * 0x1p112f);\n  \
                 return {float}(s | (m > 0x7bffu ? r | 0x7f800000u : r));\n"
            ),
        }
    }

    /// A narrower float of f32, rounded to nearest even.
    fn narrow(&mut self, to: DType) -> String {
        let of = types::scalar(self.dialect, to);
        let instruction = match (to, self.dialect) {
            (DType::F16, Dialect::Cuda(_)) => Some("cvt.rn.f16.f32"),
            (DType::Bf16, it) if it.has(Feature::ConvertBf16) => Some("cvt.rn.bf16.f32"),
            _ => None,
        };
        if let Some(it) = instruction {
            return format!(
                "\n  {of} r;\n  asm(\"{it} %0, %1;\" : \"=h\"(r.bits) : \"f\"(a));\n  return r;\n"
            );
        }
        let unsigned = types::unsigned32(self.dialect);
        let (bits, float) = (self.require(Helper::BitsOfFloat), self.require(Helper::FloatOfBits));
        let head = format!("\n  const {unsigned} u = {bits}(a), m = u & 0x7fffffffu;\n");
        let rest = match to {
            DType::Tf32 => {
                return format!(
                    "{head}  const {unsigned} r = m > 0x7f800000u ? u : (u + 0xfffu + ((u >> 13) & 1u)) & ~0x1fffu;\n  \
                     return {float}(r);\n"
                );
            }
            DType::Bf16 => format!(
                "  const {unsigned} r = m > 0x7f800000u ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;\n"
            ),
            // Half of the way to the next power of two is nearer to that.
            DType::F8e8m0 => format!(
                "  const {unsigned} n = m < 0x800000u ? m >= 0x600000u : (m + 0x400000u) >> 23;\n  \
                 const {unsigned} r = m > 0x7f800000u ? 0xffu : n > 0xfeu ? 0xfeu : n;\n"
            ),
            _ => narrow_float(&Narrow::of(to), unsigned, &bits, &float),
        };
        let (cast, result) = (types::unsigned(self.dialect, to), format!("{head}{rest}"));
        if self.dialect.is_c() {
            format!("{result}  return ({of})r;\n")
        } else {
            format!("{result}  return {of}{{({cast})r}};\n")
        }
    }

    /// A narrow float of f64 through f32, which keeps as its last bit whether anything was cut off.
    fn narrow_twice(&mut self, to: DType) -> String {
        let unsigned = types::unsigned32(self.dialect);
        let (bits, float) = (self.require(Helper::BitsOfFloat), self.require(Helper::FloatOfBits));
        let name = self.require(Helper::Cast { to, from: DType::F32, lanes: 1 });
        format!(
            "\n  {unsigned} u = {bits}((float)a);\n  const double r = (double)(float)a;\n  \
             u -= r == r && (r < 0 ? r < a : r > a);\n  u |= r == r && (double){float}(u) != a;\n  \
             return {name}({float}(u));\n"
        )
    }

    /// The same of an integer of 32 bits in CUDA, which has a conversion that cuts off, without numbers of 64 bits: those are slow, and take registers for two.
    fn narrow_integer(&mut self, to: DType, from: DType) -> String {
        let name = self.require(Helper::Cast { to, from: DType::F32, lanes: 1 });
        let (cut, of) =
            if from == DType::I32 { ("__int2float_rz", "int") } else { ("__uint2float_rz", "unsigned int") };
        format!(
            "\n  const float f = {cut}(a);\n  \
             return {name}(__uint_as_float(__float_as_uint(f) | (unsigned int)(({of})f != a)));\n"
        )
    }

    /// f32 of f16 or bf16, or back, all lanes at once.
    fn lanes_of_narrow(&mut self, to: DType, from: DType, lanes: u32) -> Option<String> {
        let narrow = match (to, from) {
            (DType::F32, it) | (it, DType::F32) if converts_in_lanes(it) => it,
            _ => return None,
        };
        let wide = self.require(Helper::Type(DType::U32, lanes));
        let single = self.require(Helper::Type(DType::F32, lanes));
        let target = self.require(Helper::Type(to, lanes));
        let widened = format!("\n  const {wide} u = __builtin_convertvector(a, {wide});\n");
        let narrowed = format!("  return __builtin_convertvector(r, {target});\n");
        Some(match (to, narrow) {
            (DType::F32, DType::Bf16) => format!("{widened}  return ({single})(u << 16);\n"),
            (DType::F32, _) => format!(
                "{widened}  const {wide} m = u & 0x7fffu, r = ({wide})(({single})(m << 13) * 0x1p112f);\n  \
                 const {wide} top = ({wide})(m > 0x7bffu) & 0x7f800000u;\n  \
                 return ({single})(((u & 0x8000u) << 16) | r | top);\n"
            ),
            (_, DType::Bf16) => format!(
                "\n  const {wide} u = ({wide})a, nan = ({wide})((u & 0x7fffffffu) > 0x7f800000u);\n  \
                 const {wide} n = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;\n  \
                 const {wide} r = (nan & ((u >> 16) | 0x40u)) | (~nan & n);\n{narrowed}"
            ),
            _ => format!(
                "\n  const {wide} u = ({wide})a, m = u & 0x7fffffffu;\n  \
                 const {wide} small = ({wide})(m < 0x38800000u), big = ({wide})(m > 0x47800000u);\n  \
                 const {wide} nan = ({wide})(m > 0x7f800000u);\n  \
                 const {wide} n = (m - 0x38000000u + 0xfffu + ((m >> 13) & 1u)) >> 13;\n  \
                 const {wide} s = ({wide})(({single})m + 0.5f) - 0x3f000000u;\n  \
                 const {wide} v = (small & s) | (~small & ((big & 0x7c00u) | (~big & n)));\n  \
                 const {wide} r = ((u >> 16) & 0x8000u) | (nan & 0x7e00u) | (~nan & v);\n{narrowed}"
            ),
        })
    }
}

/// A float of at most 16 bits, by numbers on its and f32's bits.
struct Narrow {
    /// The bits of f32 that are cut off.
    shift: u32,
    /// How far the sign moves right.
    sign: u32,
    /// The least normal number, as f32.
    least: u32,
    /// A power of two whose last place in f32 is that of the subnormals.
    magic: u32,
    /// The greatest f32 that does not become `beyond`.
    greatest: u32,
    /// The result above that.
    beyond: u32,
    /// The result for a NaN.
    nan: u32,
}

impl Narrow {
    fn of(dtype: DType) -> Narrow {
        match dtype {
            DType::F8e4m3 => Narrow {
                shift: 20,
                sign: 24,
                least: 0x3c80_0000,
                magic: 0x4680_0000,
                greatest: 0x43e0_0000,
                beyond: 0x7e,
                nan: 0x7f,
            },
            DType::F8e5m2 => Narrow {
                shift: 21,
                sign: 24,
                least: 0x3880_0000,
                magic: 0x4300_0000,
                greatest: 0x4760_0000,
                beyond: 0x7b,
                nan: 0x7f,
            },
            _ => Narrow {
                shift: 13,
                sign: 16,
                least: 0x3880_0000,
                magic: 0x3f00_0000,
                greatest: 0x4780_0000,
                beyond: 0x7c00,
                nan: 0x7e00,
            },
        }
    }
}

/// Rounds a normal result by adding to the bits, a subnormal one by adding a power of two to the number.
fn narrow_float(it: &Narrow, unsigned: &str, bits: &str, float: &str) -> String {
    let Narrow { shift, sign, least, magic, greatest, beyond, nan } = it;
    let (half, top) = ((1u32 << (shift - 1)) - 1, 0x8000_0000_u32 >> sign);
    let zero = least - (1 << 23); // The least normal number has exponent 1 in the narrow type.
    format!(
        "  const {unsigned} n = (m - {zero:#x}u + {half:#x}u + ((m >> {shift}) & 1u)) >> {shift};\n  \
         const {unsigned} s = {bits}({float}(m) + {float}({magic:#x}u)) - {magic:#x}u;\n  \
         const {unsigned} v = m > 0x7f800000u ? {nan:#x}u : m > {greatest:#x}u ? {beyond:#x}u : m < {least:#x}u ? s : n;\n  \
         const {unsigned} r = ((u >> {sign}) & {top:#x}u) | v;\n"
    )
}

/// A float cut off to an integer; what is out of range becomes the nearest integer, a NaN zero.
fn saturating(of: &str, to: DType) -> String {
    let (low, high): (f64, f64) = match to {
        DType::I8 => (-128.0, 127.0),
        DType::I16 => (-32768.0, 32767.0),
        DType::I32 => (-2_147_483_648.0, 2_147_483_647.0),
        DType::U8 => (0.0, 255.0),
        DType::U16 => (0.0, 65535.0),
        DType::U32 => (0.0, 4_294_967_295.0),
        _ => {
            return format!(
                " return a != a ? 0 : a <= -0x1p63 ? ({of})(-0x7fffffffffffffffLL - 1)\n    \
                 : a >= 0x1p63 ? ({of})0x7fffffffffffffffLL : ({of})a; "
            );
        }
    };
    format!(" return a != a ? 0 : a <= {low:?} ? ({of}){low} : a >= {high:?} ? ({of}){high} : ({of})a; ")
}

fn prefix(dtype: DType, lanes: u32) -> String {
    if lanes == 1 { format!("tw_{dtype}") } else { format!("tw_{dtype}x{lanes}") }
}
