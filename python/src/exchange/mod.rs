//! The memory of arrays of other libraries, found without a copy.
//!
//! Tensors of PyTorch are asked by their methods, which is what costs least in every call; arrays of NumPy by `__array_interface__`;
//! all others by `__cuda_array_interface__` where it names a stream, and then by DLPack, which can be asked to wait for one and has
//! types that the interfaces lack.

mod dlpack;
mod dtype;
mod interface;
mod memory;
mod torch;

use pyo3::prelude::*;
use tilewright::{CallError, Diagnostic, Tensor};

use crate::error::Result;
pub(crate) use dtype::name as dtype_name;
pub(crate) use memory::stream_of_handle;
pub(crate) use torch::current_stream;

/// An array with its memory.
pub(crate) struct Array<'py> {
    pub(crate) tensor: Tensor,
    /// Whose it is.
    pub(crate) library: Library,
    /// The stream that fills it, where its library says so.
    pub(crate) stream: Option<usize>,
    /// What keeps its memory alive until the call has begun.
    pub(crate) owner: Bound<'py, PyAny>,
}

/// The library of an array, which decides on what stream kernels run and who makes results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Library {
    Torch,
    Numpy,
    /// One with `__cuda_array_interface__`.
    Cuda,
    /// One with DLPack alone, which may give memory back while a kernel still runs.
    Dlpack,
}

impl<'py> Array<'py> {
    /// The memory of an object. What a GPU has yet to write there is waited for by work on that stream.
    pub(crate) fn of(object: &Bound<'py, PyAny>, stream: Option<usize>) -> Result<Array<'py>> {
        if let Some(it) = torch::read(object)? {
            return Ok(it);
        }
        if let Some(it) = interface::read_numpy(object)? {
            return Ok(it);
        }
        if let Some(it) = interface::read_cuda(object)? {
            return Ok(it);
        }
        if let Some(it) = dlpack::read(object, stream)? {
            return Ok(it);
        }
        if let Some(it) = interface::read_host(object)? {
            return Ok(it);
        }
        let title = format!("an object of {} is no array", object.get_type());
        let help = "arrays have `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`: those of NumPy, PyTorch, CuPy and JAX do";
        Err(Diagnostic::usage(CallError::Exchange, title).help(help.to_owned()).into())
    }
}

/// Refuses elements that no kernel knows.
fn unknown_type(what: &str) -> Diagnostic {
    let title = format!("elements of type {what} are not those of any kernel");
    let help = "there are bool, int8 to int64, uint8 to uint32, float16 to float64, bfloat16, float8_e4m3fn, float8_e5m2 and float8_e8m0fnu, \
                in the byte order of this machine";
    Diagnostic::usage(CallError::ElementType, title).help(help.to_owned())
}

/// Refuses an array whose own words about itself do not make sense.
fn strange(what: &str) -> Diagnostic {
    Diagnostic::usage(CallError::Exchange, format!("an array gives no access to its memory: {what}"))
}
