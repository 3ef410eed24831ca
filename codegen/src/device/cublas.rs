//! The GPU's baseline: `cublasGemmStridedBatchedEx`, for the products of `cublas_product.rs`.
//!
//! cuBLAS is found like NVRTC (see [`nvrtc`](super::nvrtc)): `TILEWRIGHT_CUBLAS_DIR`, the usual folders, the wheel
//! `nvidia-cublas` or the one that PyTorch brings. The types are `cudarc`'s; the functions are looked up here, for it
//! searches by bare name and panics when it finds none.

#![expect(unsafe_code, reason = "the library is called")]

use std::{
    ffi::{CStr, c_char, c_int, c_longlong, c_void},
    path::PathBuf,
    ptr,
    sync::OnceLock,
};

use cudarc::{
    cublas::sys::{
        cublasComputeType_t as Compute, cublasGemmAlgo_t as Algo, cublasMath_t as Math,
        cublasOperation_t as Operation, cudaDataType_t as DataType,
    },
    driver::sys::{CUdeviceptr, CUstream},
};

use super::{
    DeviceError,
    cublas_product::Product,
    locate::{Wanted, symbol},
};

const CUBLAS: Wanted = Wanted {
    what: "cuBLAS (libcublas)",
    help: "`pip install nvidia-cublas` in an active virtual environment, or install a CUDA toolkit, or let \
           TILEWRIGHT_CUBLAS_DIR name the folder of libcublas.so",
    env: "TILEWRIGHT_CUBLAS_DIR",
    file: "libcublas.so",
    needs: &["libcublasLt.so"],
    wheels: &["nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"],
    sonames: &["libcublas.so.13", "libcublas.so.12", "libcublas.so"],
};

type Handle = *mut c_void;

/// Statuses are taken as numbers: newer libraries have more of them than `cudarc` knows.
pub(super) type Status = c_int;

#[rustfmt::skip]
type GemmFn = unsafe extern "C" fn(
    Handle, Operation, Operation, c_int, c_int, c_int, *const c_void,
    CUdeviceptr, DataType, c_int, c_longlong, CUdeviceptr, DataType, c_int, c_longlong, *const c_void,
    CUdeviceptr, DataType, c_int, c_longlong, c_int, Compute, Algo,
) -> Status;

struct Api {
    path: PathBuf,
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    destroy: unsafe extern "C" fn(Handle) -> Status,
    set_stream: unsafe extern "C" fn(Handle, CUstream) -> Status,
    set_math: unsafe extern "C" fn(Handle, Math) -> Status,
    version: unsafe extern "C" fn(Handle, *mut c_int) -> Status,
    status: StatusText,
    gemm: GemmFn,
}

fn api() -> Result<&'static Api, DeviceError> {
    static FOUND: OnceLock<Result<Api, DeviceError>> = OnceLock::new();
    FOUND.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Api, DeviceError> {
    let (path, lib) = CUBLAS.load()?;
    // SAFETY: the fields have the types of `cublas_v2.h`; device pointers are pointers to C.
    unsafe {
        Ok(Api {
            path,
            create: symbol(lib, c"cublasCreate_v2")?,
            destroy: symbol(lib, c"cublasDestroy_v2")?,
            set_stream: symbol(lib, c"cublasSetStream_v2")?,
            set_math: symbol(lib, c"cublasSetMathMode")?,
            version: symbol(lib, c"cublasGetVersion_v2")?,
            status: symbol(lib, c"cublasGetStatusString")?,
            gemm: symbol(lib, c"cublasGemmStridedBatchedEx")?,
        })
    }
}

/// Where cuBLAS is; needs no GPU.
///
/// # Errors
/// [`DeviceError::Missing`] with what to install.
pub fn find() -> Result<PathBuf, DeviceError> {
    Ok(api()?.path.clone())
}

impl Api {
    fn check(&self, call: &str, status: Status) -> Result<(), DeviceError> {
        // SAFETY: it is the library's own.
        unsafe { check(self.status, call, status) }
    }
}

/// The library's word for a status.
pub(super) type StatusText = unsafe extern "C" fn(Status) -> *const c_char;

/// A status as ours.
///
/// # Safety
/// The function is one of cuBLAS or cuBLASLt for this.
pub(super) unsafe fn check(words: StatusText, call: &str, status: Status) -> Result<(), DeviceError> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the answer is null or a text that lives as long as the library.
    let reason = unsafe {
        let text = words(status);
        if text.is_null() {
            format!("status {status}")
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    Err(DeviceError::Call { call: call.into(), reason })
}

/// A handle on one stream.
pub(super) struct Cublas {
    api: &'static Api,
    handle: Handle,
}

impl Cublas {
    /// A handle for a stream of the current context.
    pub(super) fn new(stream: CUstream) -> Result<Cublas, DeviceError> {
        let api = api()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is valid for writes, and the stream is alive.
        unsafe {
            api.check("cublasCreate", (api.create)(&raw mut handle))?;
            let cublas = Cublas { api, handle };
            api.check("cublasSetStream", (api.set_stream)(handle, stream))?;
            // The default neither rounds f32 to TF32 nor emulates it with bf16; a product that wants TF32 says so.
            api.check("cublasSetMathMode", (api.set_math)(handle, Math::CUBLAS_DEFAULT_MATH))?;
            Ok(cublas)
        }
    }

    /// The version, `13.1.0`.
    pub(super) fn version(&self) -> Result<String, DeviceError> {
        let mut version = 0;
        // SAFETY: the version is valid for writes.
        self.api.check("cublasGetVersion", unsafe { (self.api.version)(self.handle, &raw mut version) })?;
        Ok(format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100))
    }

    /// Starts C = A·B on the stream.
    ///
    /// # Safety
    /// The addresses are of memory on the device, large enough for the matrices, C apart from A and B.
    pub(super) unsafe fn start(&self, it: &Product, [a, b, c]: [CUdeviceptr; 3]) -> Result<(), DeviceError> {
        let scales = it.arithmetic.scales();
        let [m, n, k] = it.sizes;
        let [stride_a, stride_b, stride_c] = it.strides;
        // cuBLAS counts by columns, where our C is its transpose: C' = B'·A'.
        let (operation, b_rows) =
            if it.b_transposed { (Operation::CUBLAS_OP_T, k) } else { (Operation::CUBLAS_OP_N, n) };
        // SAFETY: the caller's promise is the callee's demand; the scales are on the host, as is the default.
        #[rustfmt::skip]
        let status = unsafe {
            (self.api.gemm)(
                self.handle, operation, Operation::CUBLAS_OP_N, n, m, k, scales[0],
                b, it.input, b_rows, stride_b, a, it.input, k, stride_a, scales[1],
                c, it.output, n, stride_c, it.batch, it.arithmetic.compute(), Algo::CUBLAS_GEMM_DFALT,
            )
        };
        self.api.check("cublasGemmStridedBatchedEx", status)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle is alive and is not used afterwards.
        unsafe { (self.api.destroy)(self.handle) };
    }
}
