//! What a library of products is asked for.

use ir::DType;
use serde::{Deserialize, Serialize};

/// A matrix product for a vendor library to run as the baseline: C\[m,n\] = A·B, row-major.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the sentence above and the field's names say it")]
pub struct Gemm {
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The type of A and B: f32, f64, f16, bf16, tf32, i8 or f8e4m3.
    pub input: DType,
    /// The type that products are added up in: f32, and f64 for f64, i32 for i8; f16 may be added up in f16.
    pub accumulator: DType,
    /// The type of C: that of the accumulator or that of the inputs.
    pub output: DType,
    /// Whether B is stored as \[n,k\].
    pub b_transposed: bool,
    /// Whether sums of products of eight-bit floats may stay in the matrix units, which have fewer bits for them than f32, instead
    /// of being added up in f32 every now and then. It says nothing of other types.
    pub fast_sums: bool,
}

impl Gemm {
    /// The products that a library has to be asked for, the one that is usually faster first, each with what tells it from the others:
    /// two of eight-bit floats, one of other types.
    pub fn ways(&self) -> Vec<(&'static str, Gemm)> {
        let way = |fast_sums| Gemm { fast_sums, ..*self };
        match self.input {
            DType::F8e4m3 | DType::F8e5m2 => {
                vec![(", fast accumulation", way(true)), (", full accumulation", way(false))]
            }
            _ => vec![("", way(false))],
        }
    }
}
