//! The functions of cuBLASLt, and what it writes.

#![expect(unsafe_code, reason = "the library is called")]

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
    sync::OnceLock,
};

use cudarc::{
    cublaslt::sys::{
        cublasLtMatmulDescAttributes_t as OperationAttribute,
        cublasLtMatmulPreferenceAttributes_t as PreferenceAttribute,
        cublasLtMatrixLayoutAttribute_t as LayoutAttribute,
    },
    driver::sys::{CUdeviceptr, CUstream},
};

use super::super::{
    DeviceError,
    cublas::{Status, StatusText, check},
    locate::{Wanted, symbol},
};

const CUBLAS_LT: Wanted = Wanted {
    what: "cuBLASLt (libcublasLt)",
    help: "`pip install nvidia-cublas` in an active virtual environment, or install a CUDA toolkit, or let \
           TILEWRIGHT_CUBLAS_DIR name the folder of libcublasLt.so",
    env: "TILEWRIGHT_CUBLAS_DIR",
    file: "libcublasLt.so",
    needs: &[],
    wheels: &["nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"],
    sonames: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
};

/// Whatever the library makes.
pub(super) type Handle = *mut c_void;

/// An algorithm, opaque but free to copy.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Algorithm(pub(super) [u64; 8]);

/// What the heuristic says of an algorithm: `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Heuristic {
    pub(super) algorithm: Algorithm,
    pub(super) workspace: usize,
    pub(super) state: Status,
    pub(super) waves: f32,
    pub(super) reserved: [c_int; 4],
}

#[rustfmt::skip]
type HeuristicFn = unsafe extern "C" fn(
    Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Heuristic, *mut c_int,
) -> Status;

#[rustfmt::skip]
type MatmulFn = unsafe extern "C" fn(
    Handle, Handle, *const c_void, CUdeviceptr, Handle, CUdeviceptr, Handle, *const c_void,
    CUdeviceptr, Handle, CUdeviceptr, Handle, *const Algorithm, CUdeviceptr, usize, CUstream,
) -> Status;

/// What gives such a thing back.
pub(super) type DestroyFn = unsafe extern "C" fn(Handle) -> Status;

/// The functions.
pub(super) struct Api {
    pub(super) status: StatusText,
    pub(super) version: unsafe extern "C" fn() -> usize,
    pub(super) create: unsafe extern "C" fn(*mut Handle) -> Status,
    pub(super) destroy: DestroyFn,
    pub(super) operation: unsafe extern "C" fn(*mut Handle, c_uint, c_uint) -> Status,
    pub(super) set_operation:
        unsafe extern "C" fn(Handle, OperationAttribute, *const c_void, usize) -> Status,
    pub(super) destroy_operation: DestroyFn,
    pub(super) layout: unsafe extern "C" fn(*mut Handle, c_uint, u64, u64, i64) -> Status,
    pub(super) set_layout: unsafe extern "C" fn(Handle, LayoutAttribute, *const c_void, usize) -> Status,
    pub(super) destroy_layout: DestroyFn,
    pub(super) preference: unsafe extern "C" fn(*mut Handle) -> Status,
    pub(super) set_preference:
        unsafe extern "C" fn(Handle, PreferenceAttribute, *const c_void, usize) -> Status,
    pub(super) destroy_preference: DestroyFn,
    pub(super) heuristic: HeuristicFn,
    pub(super) matmul: MatmulFn,
}

/// The library, looked for once.
pub(super) fn api() -> Result<&'static Api, DeviceError> {
    static FOUND: OnceLock<Result<Api, DeviceError>> = OnceLock::new();
    FOUND.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Api, DeviceError> {
    let (_, lib) = CUBLAS_LT.load()?;
    // SAFETY: the fields have the types of `cublasLt.h`; enumerations are unsigned there, device pointers are pointers,
    // and so are descriptors.
    unsafe {
        Ok(Api {
            status: symbol(lib, c"cublasLtGetStatusString")?,
            version: symbol(lib, c"cublasLtGetVersion")?,
            create: symbol(lib, c"cublasLtCreate")?,
            destroy: symbol(lib, c"cublasLtDestroy")?,
            operation: symbol(lib, c"cublasLtMatmulDescCreate")?,
            set_operation: symbol(lib, c"cublasLtMatmulDescSetAttribute")?,
            destroy_operation: symbol(lib, c"cublasLtMatmulDescDestroy")?,
            layout: symbol(lib, c"cublasLtMatrixLayoutCreate")?,
            set_layout: symbol(lib, c"cublasLtMatrixLayoutSetAttribute")?,
            destroy_layout: symbol(lib, c"cublasLtMatrixLayoutDestroy")?,
            preference: symbol(lib, c"cublasLtMatmulPreferenceCreate")?,
            set_preference: symbol(lib, c"cublasLtMatmulPreferenceSetAttribute")?,
            destroy_preference: symbol(lib, c"cublasLtMatmulPreferenceDestroy")?,
            heuristic: symbol(lib, c"cublasLtMatmulAlgoGetHeuristic")?,
            matmul: symbol(lib, c"cublasLtMatmul")?,
        })
    }
}

impl Api {
    pub(super) fn check(&self, call: &str, status: Status) -> Result<(), DeviceError> {
        // SAFETY: it is the library's own.
        unsafe { check(self.status, call, status) }
    }
}

/// A handle or descriptor with what destroys it.
pub(super) struct Owned {
    pub(super) handle: Handle,
    pub(super) destroy: DestroyFn,
}

impl Owned {
    /// Takes over what a call makes.
    pub(super) fn new(
        api: &Api,
        call: &str,
        destroy: DestroyFn,
        make: impl FnOnce(*mut Handle) -> Status,
    ) -> Result<Owned, DeviceError> {
        let mut handle = ptr::null_mut();
        api.check(call, make(&raw mut handle))?;
        Ok(Owned { handle, destroy })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the handle is alive and is not used afterwards.
        unsafe { (self.destroy)(self.handle) };
    }
}
