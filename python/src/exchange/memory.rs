//! Addresses that other libraries tell, as memory that kernels may use.

#![expect(
    unsafe_code,
    reason = "that addresses and handles are what they are said to be is for their owners to know"
)]

use codegen::device::{Borrowed, Stream};
use ir::DType;
use tilewright::{Diagnostic, Place, Tensor};

use super::strange;

/// What a library says of an array of its own.
pub(super) struct Told {
    pub(super) dtype: DType,
    pub(super) shape: Vec<i64>,
    /// In elements; none for row-major.
    pub(super) strides: Option<Vec<i64>>,
    pub(super) place: Place,
    pub(super) is_read_only: bool,
    pub(super) address: usize,
}

/// The array with its memory. With strides it begins with its first element, and only where these are row-major is all of it used.
pub(super) fn tensor(told: Told) -> Result<Tensor, Diagnostic> {
    let Told { dtype, shape, strides, place, is_read_only, address } = told;
    let elements = shape.iter().try_fold(1usize, |all, it| all.checked_mul(usize::try_from(*it).ok()?));
    let bytes = elements.and_then(|it| it.checked_mul(dtype.bytes()));
    let bytes = bytes.ok_or_else(|| strange("its extents are not those of memory"))?;
    if address == 0 && bytes > 0 {
        return Err(strange("it has no address"));
    }
    // SAFETY: the library that owns the array says that so many bytes are there, and the caller's reference to the array keeps them
    // there; a kernel checks strides, alignment and what it must not write before it uses them.
    let memory = unsafe { Borrowed::new(address, bytes) };
    Ok(Tensor { dtype, shape, strides, place, is_read_only, memory })
}

/// A stream by the number that its library has for it.
pub(crate) fn stream_of_handle(handle: usize) -> Stream {
    // SAFETY: the handle is what its library, or the caller by the argument `stream`, says is one.
    unsafe { Stream::new(handle) }
}
