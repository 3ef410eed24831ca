//! The GPU's baseline at its best: cuBLASLt, with a choice of its algorithms. The products are those of
//! [`cublas_product`](super::cublas_product), computed in the same types and layouts.
//!
//! The library lies beside cuBLAS and is looked for in the same places. Its types are `cudarc`'s where the library only
//! reads them; what it writes is taken as numbers, for newer libraries write more than `cudarc` knows.

#![expect(unsafe_code, reason = "the library is called")]

mod api;

use std::{
    ffi::{c_int, c_uint},
    rc::Rc,
};

use cudarc::{
    cublas::sys::{cublasOperation_t as Operation, cudaDataType_t as DataType},
    cublaslt::sys::{
        cublasLtMatmulDescAttributes_t as OperationAttribute,
        cublasLtMatmulPreferenceAttributes_t as PreferenceAttribute,
        cublasLtMatrixLayoutAttribute_t as LayoutAttribute,
    },
    driver::sys::{self, CUdeviceptr, CUstream},
};

use super::{
    DeviceError,
    cublas::Status,
    cublas_product::{Arithmetic, Product},
    cuda_module::device_memory,
};
use api::{Algorithm, Api, Heuristic, Owned, api};

/// The memory that an algorithm may work in, as cuBLAS itself takes on Hopper.
const WORKSPACE: usize = 32 << 20;

/// `CUBLAS_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: Status = 15;

/// The library in a context, with its workspace.
pub(super) struct CublasLt {
    api: &'static Api,
    handle: Owned,
    workspace: CUdeviceptr,
}

/// A product with its layouts, the same for all of its algorithms.
struct LaidOut {
    product: Product,
    operation: Owned,
    /// Of B, A and C, for cuBLASLt counts by columns, where our C is its transpose: C' = B'·A'.
    layouts: [Owned; 3],
}

/// A product by one of the library's algorithms.
pub(super) struct Choice {
    /// The bytes of A, B and C.
    pub(super) bytes: [usize; 3],
    plan: Rc<LaidOut>,
    algorithm: Algorithm,
}

impl CublasLt {
    /// A handle in the current context.
    pub(super) fn new() -> Result<CublasLt, DeviceError> {
        let api = api()?;
        // SAFETY: the handle is valid for writes.
        let handle = Owned::new(api, "cublasLtCreate", api.destroy, |it| unsafe { (api.create)(it) })?;
        let workspace = device_memory(WORKSPACE)?;
        Ok(CublasLt { api, handle, workspace })
    }

    /// The version, `13.1.0`.
    pub(super) fn version(&self) -> String {
        // SAFETY: it takes nothing.
        let version = unsafe { (self.api.version)() };
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    /// The algorithms that the heuristic proposes for a product, best first and at most so many.
    pub(super) fn choices(&self, product: Product, most: usize) -> Result<Vec<Choice>, DeviceError> {
        let most = c_int::try_from(most.min(256)).expect("at most 256");
        if most == 0 {
            return Ok(vec![]);
        }
        let plan = Rc::new(LaidOut::new(self.api, product)?);
        let found = self.ask(&plan, most)?;
        let usable = found.iter().filter(|it| it.state == 0 && it.workspace <= WORKSPACE);
        let choices: Vec<_> = usable
            .map(|it| Choice { bytes: plan.product.bytes, plan: plan.clone(), algorithm: it.algorithm })
            .collect();
        if choices.is_empty() {
            let limits = plan.product.limits();
            let words = limits.unwrap_or_else(|| "cuBLASLt knows no algorithm for this product".into());
            return Err(DeviceError::Unsupported(words));
        }
        Ok(choices)
    }

    /// What the heuristic answers; nothing where the library cannot compute the product.
    fn ask(&self, plan: &LaidOut, most: c_int) -> Result<Vec<Heuristic>, DeviceError> {
        let api = self.api;
        let nothing =
            Heuristic { algorithm: Algorithm([0; 8]), workspace: 0, state: -1, waves: 0.0, reserved: [0; 4] };
        let mut found = vec![nothing; usize::try_from(most).expect("at least one")];
        let mut count = 0;
        let [b, a, c] = plan.layouts.each_ref().map(|it| it.handle);
        // SAFETY: descriptors and handle are alive, and there is room for as many answers as are asked for.
        unsafe {
            let destroy = api.destroy_preference;
            let call = "cublasLtMatmulPreferenceCreate";
            let preference = Owned::new(api, call, destroy, |it| (api.preference)(it))?;
            let (attribute, bytes) = (
                PreferenceAttribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                u64::try_from(WORKSPACE).expect("64 bits"),
            );
            let status = (api.set_preference)(
                preference.handle,
                attribute,
                (&raw const bytes).cast(),
                size_of_val(&bytes),
            );
            api.check("cublasLtMatmulPreferenceSetAttribute", status)?;
            let (handle, operation, preference) =
                (self.handle.handle, plan.operation.handle, preference.handle);
            let answers = found.as_mut_ptr();
            let status =
                (api.heuristic)(handle, operation, b, a, c, c, preference, most, answers, &raw mut count);
            if status == NOT_SUPPORTED {
                return Ok(vec![]);
            }
            api.check("cublasLtMatmulAlgoGetHeuristic", status)?;
        }
        let call = "cublasLtMatmulAlgoGetHeuristic".to_owned();
        let count = usize::try_from(count)
            .map_err(|_| DeviceError::Call { call, reason: format!("it found {count} algorithms") })?;
        found.truncate(count);
        Ok(found)
    }

    /// Starts C = A·B on a stream of the context.
    ///
    /// # Safety
    /// The addresses are of memory on the device, large enough for the matrices, C apart from A and B.
    pub(super) unsafe fn start(
        &self,
        it: &Choice,
        [a, b, c]: [CUdeviceptr; 3],
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        let [one, zero] = it.plan.product.arithmetic.scales();
        let [b_layout, a_layout, c_layout] = it.plan.layouts.each_ref().map(|it| it.handle);
        // SAFETY: the caller's promise is the callee's demand; the scales are on the host, as is the default. Products of
        // one machine run one after the other, so that they may share the workspace.
        #[rustfmt::skip]
        let status = unsafe {
            (self.api.matmul)(
                self.handle.handle, it.plan.operation.handle, one, b, b_layout, a, a_layout, zero,
                c, c_layout, c, c_layout, &raw const it.algorithm, self.workspace, WORKSPACE, stream,
            )
        };
        self.api.check("cublasLtMatmul", status)
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: the memory is ours and is not used afterwards.
        unsafe { sys::cuMemFree_v2(self.workspace) };
    }
}

impl LaidOut {
    fn new(api: &Api, product: Product) -> Result<LaidOut, DeviceError> {
        let [m, n, k] = product.sizes;
        let [stride_a, stride_b, stride_c] = product.strides;
        let (rows, columns) = if product.b_transposed { (k, n) } else { (n, k) };
        let layout = |dtype: DataType, rows: c_int, columns: c_int, stride: i64| {
            layout(api, dtype as c_uint, [rows, columns], product.batch, stride)
        };
        let layouts = [
            layout(product.input, rows, columns, stride_b)?,
            layout(product.input, k, m, stride_a)?,
            layout(product.output, n, m, stride_c)?,
        ];
        let operation = operation(api, &product)?;
        Ok(LaidOut { product, operation, layouts })
    }
}

/// What to compute: the first operand is our B. Scales of factors of eight bits are left out, and are then one.
fn operation(api: &Api, product: &Product) -> Result<Owned, DeviceError> {
    let (compute, scale) = (product.arithmetic.compute(), product.arithmetic.scale());
    let (destroy, call) = (api.destroy_operation, "cublasLtMatmulDescCreate");
    let transposed: i32 =
        if product.b_transposed { Operation::CUBLAS_OP_T as i32 } else { Operation::CUBLAS_OP_N as i32 };
    // SAFETY: the descriptor is valid for writes, then alive, and the attributes are numbers of 32 and of 8 bits.
    unsafe {
        let make = |it| (api.operation)(it, compute as c_uint, scale as c_uint);
        let operation = Owned::new(api, call, destroy, make)?;
        let status = (api.set_operation)(
            operation.handle,
            OperationAttribute::CUBLASLT_MATMUL_DESC_TRANSA,
            (&raw const transposed).cast(),
            size_of_val(&transposed),
        );
        api.check("cublasLtMatmulDescSetAttribute", status)?;
        if let Arithmetic::Narrow { fast } = product.arithmetic {
            let fast = i8::from(fast);
            let status = (api.set_operation)(
                operation.handle,
                OperationAttribute::CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                (&raw const fast).cast(),
                size_of_val(&fast),
            );
            api.check("cublasLtMatmulDescSetAttribute", status)?;
        }
        Ok(operation)
    }
}

/// Matrices of so many rows and columns, dense by columns and one after the other.
fn layout(
    api: &Api,
    dtype: c_uint,
    [rows, columns]: [c_int; 2],
    batch: c_int,
    stride: i64,
) -> Result<Owned, DeviceError> {
    let size = |it: c_int| u64::try_from(it).expect("sizes are positive");
    let (destroy, call) = (api.destroy_layout, "cublasLtMatrixLayoutCreate");
    // SAFETY: the descriptor is valid for writes, then alive, and the attributes are numbers of 32 and 64 bits.
    unsafe {
        let make = |it| (api.layout)(it, dtype, size(rows), size(columns), i64::from(rows));
        let layout = Owned::new(api, call, destroy, make)?;
        let count = LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
        let status = (api.set_layout)(layout.handle, count, (&raw const batch).cast(), size_of_val(&batch));
        api.check("cublasLtMatrixLayoutSetAttribute", status)?;
        let offset = LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
        let status =
            (api.set_layout)(layout.handle, offset, (&raw const stride).cast(), size_of_val(&stride));
        api.check("cublasLtMatrixLayoutSetAttribute", status)?;
        Ok(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Gemm;
    use ir::DType;
    use std::io::Write as _;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!((size_of::<Algorithm>(), size_of::<Heuristic>(), align_of::<Heuristic>()), (64, 96, 8));
        assert_eq!(std::mem::offset_of!(Heuristic, state), 72);
    }

    /// Descriptors need a library but no GPU.
    #[test]
    fn descriptors_are_made_where_the_library_is() {
        let api = match api() {
            Ok(it) => it,
            Err(err) => {
                return writeln!(std::io::stderr(), "skipped: descriptors of cuBLASLt: {err}")
                    .expect("stderr is open");
            }
        };
        let fast_sums = true;
        for (input, accumulator, output, b_transposed, batch) in [
            (DType::F32, DType::F32, DType::F32, false, 1),
            (DType::Bf16, DType::F32, DType::F32, true, 3),
            (DType::F64, DType::F64, DType::F64, true, 1),
            (DType::F16, DType::F16, DType::F16, false, 1),
            (DType::Tf32, DType::F32, DType::F32, true, 1),
            (DType::I8, DType::I32, DType::I32, true, 2),
            (DType::F8e4m3, DType::F32, DType::Bf16, true, 1),
        ] {
            let gemm = Gemm { batch, m: 5, n: 7, k: 11, input, accumulator, output, b_transposed, fast_sums };
            LaidOut::new(api, Product::new(&gemm).unwrap()).unwrap();
        }
    }
}
