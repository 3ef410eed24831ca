//! Data types of buffers and values.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The type of one element. `Tf32` is stored in four bytes; its low 13 mantissa bits are ignored by the hardware.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the field's own")]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    F16,
    Bf16,
    Tf32,
    F8e4m3,
    F8e5m2,
    /// Powers of two from 2^-127 to 2^127, by which blocks of narrower numbers are scaled (OCP Microscaling Formats, section 5.4.1): no sign, no zero, no infinity.
    F8e8m0,
    F32,
    F64,
}

impl DType {
    /// The largest finite number of a floating-point type; of others the largest `f64`, which is above all of theirs.
    pub fn largest_finite(self) -> f64 {
        match self {
            DType::F8e5m2 => 57344.0,
            // 2^127
            DType::F8e8m0 => f64::from_bits(0x47e0_0000_0000_0000),
            DType::F8e4m3 => 448.0,
            DType::F16 => 65504.0,
            // (2 - 2^-7) * 2^127 and (2 - 2^-10) * 2^127
            DType::Bf16 => f64::from_bits(0x47ef_e000_0000_0000),
            DType::Tf32 => f64::from_bits(0x47ef_fc00_0000_0000),
            DType::F32 => f64::from(f32::MAX),
            DType::F64
            | DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32 => f64::MAX,
        }
    }

    /// Every type, in declaration order.
    pub const ALL: [DType; 16] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::F16,
        DType::Bf16,
        DType::Tf32,
        DType::F8e4m3,
        DType::F8e5m2,
        DType::F8e8m0,
        DType::F32,
        DType::F64,
    ];

    /// The size of one element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::U32 | DType::Tf32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// The size of one element in bytes, to compute offsets with.
    #[expect(clippy::cast_possible_wrap, reason = "an element is a few bytes")]
    pub const fn bytes_i64(self) -> i64 {
        self.bytes() as i64
    }

    /// Whether values of this type are floating-point numbers.
    pub const fn is_float(self) -> bool {
        match self {
            DType::F16
            | DType::Bf16
            | DType::Tf32
            | DType::F8e4m3
            | DType::F8e5m2
            | DType::F8e8m0
            | DType::F32
            | DType::F64 => true,
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32 => false,
        }
    }

    /// The word in scripts and in the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::Tf32 => "tf32",
            DType::F8e4m3 => "f8e4m3",
            DType::F8e5m2 => "f8e5m2",
            DType::F8e8m0 => "f8e8m0",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        DType::ALL.into_iter().find(|it| it.as_str() == text).ok_or(())
    }
}
