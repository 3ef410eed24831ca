//! The CPU's baseline: the `gemm` crate.

#![expect(unsafe_code, reason = "the crate takes pointers and strides")]

use gemm::Parallelism;
use ir::DType;

use super::{DeviceError, Gemm};

/// Refuses what the crate has no product for.
pub(super) fn check(it: &Gemm) -> Result<(), DeviceError> {
    match (it.input, it.output) {
        (DType::F32, DType::F32) | (DType::F64, DType::F64) | (DType::F16, DType::F16) => Ok(()),
        (input, output) => Err(DeviceError::Unsupported(format!(
            "the CPU's baseline has no product of {input} into {output}: it takes f32, f64 and f16, each into itself"
        ))),
    }
}

/// The sizes of A, B and C in bytes. `None` where they overflow.
pub(super) fn sizes(it: &Gemm) -> Option<[usize; 3]> {
    let size = |rows: usize, columns: usize, dtype: DType| {
        it.batch.checked_mul(rows)?.checked_mul(columns)?.checked_mul(dtype.bytes())
    };
    Some([size(it.m, it.k, it.input)?, size(it.k, it.n, it.input)?, size(it.m, it.n, it.output)?])
}

/// C = A·B.
///
/// # Safety
/// The pointers are aligned to 8 bytes and valid for the sizes of [`sizes`], C's for writes, and C overlaps neither
/// A nor B.
pub(super) unsafe fn run(it: &Gemm, a: *const u8, b: *const u8, c: *mut u8, threads: usize) {
    let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    // SAFETY: the caller's promise is the callee's demand.
    unsafe {
        match it.input {
            DType::F64 => products::<f64>(it, a.cast(), b.cast(), c.cast(), (0.0, 1.0), parallelism),
            DType::F16 => {
                let (zero, one) = (gemm::f16::ZERO, gemm::f16::ONE);
                products::<gemm::f16>(it, a.cast(), b.cast(), c.cast(), (zero, one), parallelism);
            }
            _ => products::<f32>(it, a.cast(), b.cast(), c.cast(), (0.0, 1.0), parallelism),
        }
    }
}

/// As [`run`], with the type known. `units` are its zero and one.
unsafe fn products<T: 'static + Copy>(
    it: &Gemm,
    a: *const T,
    b: *const T,
    c: *mut T,
    units: (T, T),
    parallelism: Parallelism,
) {
    let Gemm { batch, m, n, k, .. } = *it;
    let stride = |it: usize| isize::try_from(it).expect("sizes in bytes fit memory");
    let (across, down) = if it.b_transposed { (stride(k), 1) } else { (1, stride(n)) };
    for i in 0..batch {
        // SAFETY: matrix i of each operand lies inside it; the strides are those of row-major matrices.
        unsafe {
            let (a, b, c) = (a.add(i * m * k), b.add(i * k * n), c.add(i * m * n));
            let (zero, one) = units;
            #[rustfmt::skip]
            gemm::gemm(
                m, n, k,
                c, 1, stride(n), false,
                a, 1, stride(k),
                b, across, down,
                zero, one,
                false, false, false,
                parallelism,
            );
        }
    }
}
