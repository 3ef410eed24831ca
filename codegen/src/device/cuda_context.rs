//! The context that a caller works in: found, or made current for as long as a call takes.

#![expect(unsafe_code, reason = "the driver is called")]

use std::ptr;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUpointer_attribute_enum as PointerAttribute, CUresult,
};

use super::{
    DeviceError,
    cuda_driver::{check, device, require},
};

/// The context that is current while this lives.
pub(super) struct Entered {
    pub(super) context: CUcontext,
    /// Whether it was put on top of what the caller had.
    is_pushed: bool,
}

/// The context that is current, if it is of that device: everything that the caller has on the device is then of it.
pub(super) fn current(of: CUdevice) -> Option<Entered> {
    let (mut context, mut device) = (ptr::null_mut(), 0);
    // SAFETY: both are valid for writes.
    let is_there = unsafe {
        sys::cuCtxGetCurrent(&raw mut context) == CUresult::CUDA_SUCCESS
            && !context.is_null()
            && sys::cuCtxGetDevice(&raw mut device) == CUresult::CUDA_SUCCESS
    };
    (is_there && device == of).then_some(Entered { context, is_pushed: false })
}

/// Makes a context current.
pub(super) fn enter(context: CUcontext) -> Result<Entered, DeviceError> {
    // SAFETY: the context is alive.
    check("cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context) })?;
    Ok(Entered { context, is_pushed: true })
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.is_pushed {
            let mut context = ptr::null_mut();
            // SAFETY: it was pushed on this thread, and the handle is valid for writes.
            unsafe { sys::cuCtxPopCurrent_v2(&raw mut context) };
        }
    }
}

/// The primary context of a device, which the libraries of one process share. Whoever has it gives it back once.
pub(super) fn retain_primary(device: CUdevice) -> Result<CUcontext, DeviceError> {
    let mut context = ptr::null_mut();
    // SAFETY: the device exists, and the context is valid for writes.
    check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) })?;
    Ok(context)
}

/// The number of the GPU whose memory an address is in.
///
/// # Errors
/// [`DeviceError::Missing`] without a driver, [`DeviceError::Call`] for an address that the driver does not know.
pub fn device_of_address(address: usize) -> Result<u32, DeviceError> {
    require()?;
    device(0)?;
    let mut ordinal = 0i32;
    let which = PointerAttribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: the number is valid for writes; the address is only looked up.
    check("cuPointerGetAttribute", unsafe {
        sys::cuPointerGetAttribute((&raw mut ordinal).cast(), which, address as u64)
    })?;
    super::cuda_driver::natural("cuPointerGetAttribute", ordinal)
}
