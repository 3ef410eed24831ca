//! Element types by the names that other libraries have for them.

use ir::DType;

/// The types that arrays may have, by the name that NumPy, `ml_dtypes`, PyTorch and JAX share.
const NAMES: [(&str, DType); 15] = [
    ("bool", DType::Bool),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("float16", DType::F16),
    ("bfloat16", DType::Bf16),
    ("float8_e4m3fn", DType::F8e4m3),
    ("float8_e5m2", DType::F8e5m2),
    ("float8_e8m0fnu", DType::F8e8m0),
    ("float32", DType::F32),
    ("float64", DType::F64),
];

/// The type of that name.
pub(crate) fn by_name(name: &str) -> Option<DType> {
    NAMES.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// The name of a type; that of tf32 is that of what it is stored as.
pub(crate) fn name(of: DType) -> &'static str {
    let stored = if of == DType::Tf32 { DType::F32 } else { of };
    NAMES.iter().find(|it| it.1 == stored).expect("every stored type has a name").0
}

/// The type of an array interface's `typestr`, such as `<f4`; of two bytes or more in the order of this machine.
pub(super) fn by_typestr(text: &str) -> Option<DType> {
    let (order, rest) = text.split_at_checked(1)?;
    let foreign = if cfg!(target_endian = "little") { ">" } else { "<" };
    let name = match rest {
        "b1" => "bool",
        "i1" => "int8",
        "u1" => "uint8",
        _ if order == foreign => return None,
        "i2" => "int16",
        "i4" => "int32",
        "i8" => "int64",
        "u2" => "uint16",
        "u4" => "uint32",
        "f2" => "float16",
        "f4" => "float32",
        "f8" => "float64",
        _ => return None,
    };
    by_name(name)
}

/// The type of DLPack's code and bits.
pub(super) fn by_dlpack(code: u8, bits: u8) -> Option<DType> {
    Some(match (code, bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (1, 16) => DType::U16,
        (1, 32) => DType::U32,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::Bf16,
        (6, 8) => DType::Bool,
        (10, 8) => DType::F8e4m3,
        (12, 8) => DType::F8e5m2,
        (14, 8) => DType::F8e8m0,
        _ => return None,
    })
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|it| it.0)
}
