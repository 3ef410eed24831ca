//! The names and definitions of element and vector types in each dialect.

use ir::DType;

use super::{Dialect, words};

/// The C type that an element is stored and computed in, or the name of the wrapper type that emulates it.
pub(super) fn scalar(dialect: Dialect, dtype: DType) -> &'static str {
    let c = dialect.is_c();
    match dtype {
        DType::Bool | DType::U8 if c => "uint8_t",
        DType::Bool | DType::U8 => "unsigned char",
        DType::I8 if c => "int8_t",
        DType::I8 => "signed char",
        DType::I16 if c => "int16_t",
        DType::I16 => "short",
        DType::I32 if c => "int32_t",
        DType::I32 => "int",
        DType::I64 if c => "int64_t",
        DType::I64 => "long long",
        DType::U16 if c => "uint16_t",
        DType::U16 => "unsigned short",
        DType::U32 => unsigned32(dialect),
        DType::F16 => "tw_f16",
        DType::Bf16 => "tw_bf16",
        DType::F8e4m3 => "tw_f8e4m3",
        DType::F8e5m2 => "tw_f8e5m2",
        DType::F8e8m0 => "tw_f8e8m0",
        DType::Tf32 | DType::F32 => "float",
        DType::F64 => "double",
    }
}

/// Whether the dialect has no such type and computes on bits instead.
pub(super) fn is_emulated(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0)
}

/// The type of `lanes` adjacent elements.
pub(super) fn vector(dialect: Dialect, dtype: DType, lanes: u32) -> String {
    if lanes == 1 { scalar(dialect, dtype).to_owned() } else { format!("tw_{dtype}x{lanes}") }
}

/// The unsigned type of 32 bits.
pub(super) fn unsigned32(dialect: Dialect) -> &'static str {
    if dialect.is_c() { "uint32_t" } else { "unsigned int" }
}

/// The unsigned type of the same size as an integer type.
pub(super) fn unsigned(dialect: Dialect, dtype: DType) -> &'static str {
    match dtype.bytes() {
        1 => scalar(dialect, DType::U8),
        2 => scalar(dialect, DType::U16),
        4 => unsigned32(dialect),
        _ if dialect.is_c() => "uint64_t",
        _ => "unsigned long long",
    }
}

/// The definition of a wrapper type; nothing for a type that the dialect has.
pub(super) fn define_scalar(dialect: Dialect, dtype: DType) -> String {
    let name = scalar(dialect, dtype);
    let bits = unsigned(dialect, dtype);
    if dialect.is_c() {
        format!("typedef {bits} {name};\n")
    } else {
        format!("struct {name} {{ {bits} bits; }};\n")
    }
}

/// The definition of a vector type.
///
/// In C it may start at any element and may alias the elements; in CUDA C++ it is aligned to its size, which is
/// what makes the compiler move it with one instruction.
pub(super) fn define_vector(dialect: Dialect, dtype: DType, lanes: u32) -> String {
    let (name, element) = (vector(dialect, dtype, lanes), scalar(dialect, dtype));
    let bytes = dtype.bytes() * lanes as usize;
    if dialect.is_c() {
        let align = dtype.bytes();
        format!(
            "typedef {element} {name} __attribute__((vector_size({bytes}), aligned({align}), may_alias));\n"
        )
    } else if let Some(words) = words::words(dialect, dtype, lanes) {
        format!(
            "struct __align__({bytes}) {name} {{ union {{ {element} at[{lanes}]; unsigned int words[{words}]; }}; }};\n"
        )
    } else {
        format!("struct __align__({bytes}) {name} {{ {element} at[{lanes}]; }};\n")
    }
}
