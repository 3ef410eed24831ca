//! The products that cuBLAS and cuBLASLt compute for a baseline, in the libraries' terms.
//!
//! | inputs | accumulator | output | the libraries' name |
//! | --- | --- | --- | --- |
//! | f32 | f32 | f32 | `COMPUTE_32F`: neither TF32 nor an emulation |
//! | f64 | f64 | f64 | `COMPUTE_64F` |
//! | f16 | f32 | f16, f32 | `COMPUTE_32F` |
//! | f16 | f16 | f16 | `COMPUTE_16F` |
//! | bf16 | f32 | bf16, f32 | `COMPUTE_32F` |
//! | tf32 | f32 | f32 | `COMPUTE_32F_FAST_TF32` on f32, whose lowest bits are zero already, so that nothing is rounded |
//! | i8 | i32 | i32 | `COMPUTE_32I`, by cuBLASLt alone: see [`Product::limits`] |
//! | f8e4m3 | f32 | bf16, f16, f32 | `COMPUTE_32F` with and without `FAST_ACCUM`, scales of one, by cuBLASLt alone |
//!
//! Of two factors that are both f8e5m2 they have no product (cuBLAS's documentation, `cublasLtMatmul`, the table of FP8 kernels).

use std::{
    ffi::{c_int, c_longlong, c_void},
    ptr,
};

use cudarc::cublas::sys::{cublasComputeType_t as Compute, cudaDataType_t as DataType};
use ir::DType;

use super::{DeviceError, Gemm, cpu_gemm};

/// A product in cuBLAS's terms.
pub(super) struct Product {
    /// The bytes of A, B and C.
    pub(super) bytes: [usize; 3],
    /// m, n and k.
    pub(super) sizes: [c_int; 3],
    /// The elements of one A, one B and one C.
    pub(super) strides: [c_longlong; 3],
    pub(super) batch: c_int,
    pub(super) b_transposed: bool,
    pub(super) input: DataType,
    pub(super) output: DataType,
    pub(super) arithmetic: Arithmetic,
}

/// What products are added up in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    Half,
    Single,
    /// In f32 of factors that are TF32.
    Tensor,
    /// In f32 of factors of eight bits, or `fast` and partly in what the matrix units have for them.
    Narrow {
        fast: bool,
    },
    Double,
    Integer,
}

/// One and zero, in each type that a product is computed in.
static HALF: [u16; 2] = [0x3c00, 0];
static SINGLE: [f32; 2] = [1.0, 0.0];
static DOUBLE: [f64; 2] = [1.0, 0.0];
static INTEGER: [i32; 2] = [1, 0];

impl Arithmetic {
    fn of(it: &Gemm) -> Option<Arithmetic> {
        match (it.input, it.accumulator, it.output) {
            (DType::F32, DType::F32, DType::F32)
            | (DType::F16, DType::F32, DType::F16 | DType::F32)
            | (DType::Bf16, DType::F32, DType::Bf16 | DType::F32) => Some(Arithmetic::Single),
            (DType::F64, DType::F64, DType::F64) => Some(Arithmetic::Double),
            (DType::F16, DType::F16, DType::F16) => Some(Arithmetic::Half),
            (DType::Tf32, DType::F32, DType::F32) => Some(Arithmetic::Tensor),
            (DType::I8, DType::I32, DType::I32) => Some(Arithmetic::Integer),
            (DType::F8e4m3, DType::F32, DType::Bf16 | DType::F16 | DType::F32) => {
                Some(Arithmetic::Narrow { fast: it.fast_sums })
            }
            _ => None,
        }
    }

    /// Whether cuBLASLt alone computes it, or alone says at once whether it can.
    pub(super) const fn is_of_lt(self) -> bool {
        matches!(self, Arithmetic::Integer | Arithmetic::Narrow { .. })
    }

    /// The type of computation.
    pub(super) const fn compute(self) -> Compute {
        match self {
            Arithmetic::Half => Compute::CUBLAS_COMPUTE_16F,
            Arithmetic::Single | Arithmetic::Narrow { .. } => Compute::CUBLAS_COMPUTE_32F,
            Arithmetic::Tensor => Compute::CUBLAS_COMPUTE_32F_FAST_TF32,
            Arithmetic::Double => Compute::CUBLAS_COMPUTE_64F,
            Arithmetic::Integer => Compute::CUBLAS_COMPUTE_32I,
        }
    }

    /// The type of the two scales.
    pub(super) const fn scale(self) -> DataType {
        match self {
            Arithmetic::Half => DataType::CUDA_R_16F,
            Arithmetic::Single | Arithmetic::Tensor | Arithmetic::Narrow { .. } => DataType::CUDA_R_32F,
            Arithmetic::Double => DataType::CUDA_R_64F,
            Arithmetic::Integer => DataType::CUDA_R_32I,
        }
    }

    /// Where one and zero lie, in that type.
    pub(super) fn scales(self) -> [*const c_void; 2] {
        match self {
            Arithmetic::Half => HALF.each_ref().map(|it| ptr::from_ref(it).cast()),
            Arithmetic::Single | Arithmetic::Tensor | Arithmetic::Narrow { .. } => {
                SINGLE.each_ref().map(|it| ptr::from_ref(it).cast())
            }
            Arithmetic::Double => DOUBLE.each_ref().map(|it| ptr::from_ref(it).cast()),
            Arithmetic::Integer => INTEGER.each_ref().map(|it| ptr::from_ref(it).cast()),
        }
    }
}

impl Product {
    /// Refuses what the libraries have no product for.
    pub(super) fn new(it: &Gemm) -> Result<Product, DeviceError> {
        let refuse = |why: String| Err(DeviceError::Unsupported(why));
        let Some((arithmetic, (input, output))) =
            Arithmetic::of(it).zip(data_type(it.input).zip(data_type(it.output)))
        else {
            let Gemm { input, output, accumulator, .. } = it;
            return refuse(format!(
                "cuBLAS has no product of {input} into {output}, accumulated in {accumulator}"
            ));
        };
        let size = |it: usize| c_int::try_from(it).ok();
        let bytes = cpu_gemm::sizes(it).zip(size(it.m).zip(size(it.n)).zip(size(it.k)));
        let Some(((bytes, ((m, n), k)), batch)) = bytes.zip(size(it.batch)) else {
            return refuse("cuBLAS takes matrices of at most 2147483647 rows and columns".into());
        };
        let stride = |rows: c_int, columns: c_int| c_longlong::from(rows) * c_longlong::from(columns);
        Ok(Product {
            bytes,
            sizes: [m, n, k],
            strides: [stride(m, k), stride(k, n), stride(m, n)],
            batch,
            b_transposed: it.b_transposed,
            input,
            output,
            arithmetic,
        })
    }

    /// Why the matrix units for types of eight bits cannot compute this product; the libraries only say that they do not.
    ///
    /// They want both factors by rows of k (in the libraries' words: the first transposed, the second not). Of integers rows are
    /// whole 4 bytes, and so many columns; of floats both are multiples of 16 (cuBLAS's documentation, `cublasLtMatmul`).
    pub(super) fn limits(&self) -> Option<String> {
        let (what, unit) = match self.arithmetic {
            Arithmetic::Integer => ("8-bit integers", 4),
            Arithmetic::Narrow { .. } => ("8-bit floats", 16),
            Arithmetic::Half | Arithmetic::Single | Arithmetic::Tensor | Arithmetic::Double => return None,
        };
        let [_, n, k] = self.sizes;
        let words = if !self.b_transposed {
            format!("it wants B stored n by k for {what} (layout NT)")
        } else if n % unit != 0 || k % unit != 0 {
            format!("it wants n and k to be multiples of {unit} for {what}; they are {n} and {k}")
        } else {
            return None;
        };
        Some(format!("cuBLASLt does not compute this product: {words}"))
    }
}

/// The type of a matrix: TF32 is f32 to the libraries.
fn data_type(dtype: DType) -> Option<DataType> {
    match dtype {
        DType::F16 => Some(DataType::CUDA_R_16F),
        DType::Bf16 => Some(DataType::CUDA_R_16BF),
        DType::Tf32 | DType::F32 => Some(DataType::CUDA_R_32F),
        DType::F64 => Some(DataType::CUDA_R_64F),
        DType::I8 => Some(DataType::CUDA_R_8I),
        DType::I32 => Some(DataType::CUDA_R_32I),
        DType::F8e4m3 => Some(DataType::CUDA_R_8F_E4M3),
        DType::F8e5m2 => Some(DataType::CUDA_R_8F_E5M2),
        DType::Bool | DType::I16 | DType::I64 | DType::U8 | DType::U16 | DType::U32 | DType::F8e8m0 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gemm(input: DType, accumulator: DType, output: DType) -> Gemm {
        Gemm { batch: 1, m: 6, n: 8, k: 12, input, accumulator, output, b_transposed: true, fast_sums: false }
    }

    #[test]
    fn types_that_there_are_products_of() {
        let all = DType::ALL;
        let mut found = vec![];
        for input in all {
            for accumulator in all {
                for output in all {
                    if let Ok(it) = Product::new(&gemm(input, accumulator, output)) {
                        found.push(format!("{input} {accumulator} {output}: {:?}", it.arithmetic));
                    }
                }
            }
        }
        let expected = [
            "i8 i32 i32: Integer",
            "f16 f16 f16: Half",
            "f16 f32 f16: Single",
            "f16 f32 f32: Single",
            "bf16 f32 bf16: Single",
            "bf16 f32 f32: Single",
            "tf32 f32 f32: Tensor",
            "f8e4m3 f32 f16: Narrow { fast: false }",
            "f8e4m3 f32 bf16: Narrow { fast: false }",
            "f8e4m3 f32 f32: Narrow { fast: false }",
            "f32 f32 f32: Single",
            "f64 f64 f64: Double",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn floats_of_eight_bits_have_limits_and_two_ways() {
        let all = gemm(DType::F8e4m3, DType::F32, DType::Bf16);
        let limits = |n, k, b_transposed| Product::new(&Gemm { n, k, b_transposed, ..all }).unwrap().limits();
        assert_eq!(limits(16, 32, true), None);
        assert!(limits(16, 32, false).unwrap().contains("8-bit floats (layout NT)"));
        assert!(limits(8, 32, true).unwrap().contains("multiples of 16 for 8-bit floats; they are 8 and 32"));
        let ways = all.ways().into_iter().map(|(_, it)| Product::new(&it).unwrap().arithmetic);
        assert!(ways.eq([true, false].map(|fast| Arithmetic::Narrow { fast })));
        assert_eq!(gemm(DType::F16, DType::F32, DType::F16).ways().len(), 1);
    }

    #[test]
    fn integers_have_limits() {
        let limits = |n, k, b_transposed| {
            let it = Gemm { n, k, b_transposed, ..gemm(DType::I8, DType::I32, DType::I32) };
            Product::new(&it).unwrap().limits()
        };
        assert_eq!(limits(8, 12, true), None);
        assert!(limits(8, 12, false).unwrap().contains("layout NT"));
        assert!(limits(7, 12, true).unwrap().contains("7 and 12"));
        assert!(limits(8, 13, true).unwrap().contains("8 and 13"));
        assert!(Product::new(&gemm(DType::F16, DType::F32, DType::F16)).unwrap().limits().is_none());
    }
}
