//! Arrays by DLPack.
//!
//! The capsule is kept until the call has begun and never renamed, so that its own destructor calls the producer's deleter.

#![expect(unsafe_code, reason = "a capsule holds a structure of C")]

use std::{
    ffi::{CStr, c_int, c_void},
    ptr, slice,
};

use pyo3::{
    exceptions::PyTypeError,
    intern,
    prelude::*,
    types::{PyCapsule, PyDict},
};
use tilewright::{CallError, Diagnostic, Place};

use super::{
    Array, Library,
    dtype::by_dlpack,
    memory::{Told, tensor},
    strange, unknown_type,
};
use crate::error::Result;

/// `DLDevice` and what follows it in `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct DlVersioned {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: DlTensor,
}

/// The names of capsules that nobody has taken yet.
const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;

/// `kDLCUDA`.
const CUDA: i32 = 2;

/// The version of the protocol that this reads. Versions with the same first number have the same structures.
const MAJOR: u32 = 1;

/// An array of whatever has the protocol. What is under way on its memory is ordered before work on a stream.
pub(super) fn read<'py>(object: &Bound<'py, PyAny>, stream: Option<usize>) -> Result<Option<Array<'py>>> {
    let py = object.py();
    if object.getattr_opt(intern!(py, "__dlpack__"))?.is_none() {
        return Ok(None);
    }
    let (device, id): (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    // In DLPack's numbers, in which 1 is the default one.
    let is_of_gpu = matches!(place(device, id)?, Place::Gpu(_));
    let capsule = capsule(object, is_of_gpu.then(|| stream.filter(|it| *it != 0).unwrap_or(1)))?;
    let told = of_capsule(&capsule)?;
    let array =
        Array { tensor: tensor(told)?, library: Library::Dlpack, stream: None, owner: capsule.into_any() };
    Ok(Some(array))
}

fn place(device: i32, id: i32) -> std::result::Result<Place, Diagnostic> {
    let unknown = || {
        let title = format!("an array is on device {id} of DLPack's type {device}, where no kernel runs");
        Diagnostic::usage(CallError::Device, title)
    };
    match device {
        // Memory of the process, and such that is pinned for a GPU.
        1 | 3 => Ok(Place::Cpu),
        // Memory of a GPU, and such that moves by itself.
        CUDA | 13 => u32::try_from(id).map(Place::Gpu).map_err(|_| unknown()),
        _ => Err(unknown()),
    }
}

/// Asks for the capsule. On a GPU the producer hears of the stream.
fn capsule<'py>(object: &Bound<'py, PyAny>, stream: Option<usize>) -> Result<Bound<'py, PyCapsule>> {
    let py = object.py();
    let arguments = PyDict::new(py);
    if let Some(stream) = stream {
        arguments.set_item("stream", stream)?;
    }
    let newer = arguments.copy()?;
    newer.set_item("max_version", (MAJOR, 0))?;
    let name = intern!(py, "__dlpack__");
    let made = match object.call_method(name, (), Some(&newer)) {
        // Producers before version 1 know no `max_version`.
        Err(err) if err.is_instance_of::<PyTypeError>(py) => object.call_method(name, (), Some(&arguments)),
        made => made,
    };
    Ok(made?.cast_into::<PyCapsule>().map_err(PyErr::from)?)
}

/// What is in a capsule.
fn of_capsule(capsule: &Bound<'_, PyCapsule>) -> Result<Told> {
    if capsule.is_valid_checked(Some(VERSIONED)) {
        let pointer = capsule.pointer_checked(Some(VERSIONED))?.cast::<DlVersioned>();
        // SAFETY: a capsule of that name holds this structure, whose first words are the version whatever comes behind them, and the
        // capsule lives longer than the reference.
        let (major, whole) = unsafe { ((*pointer.as_ptr()).major, &*pointer.as_ptr()) };
        if major != MAJOR {
            return Err(strange(&format!("it has version {major} of DLPack")).into());
        }
        return Ok(told(&whole.tensor, whole.flags & READ_ONLY != 0)?);
    }
    let pointer = capsule.pointer_checked(Some(PLAIN))?.cast::<DlTensor>();
    // SAFETY: a capsule of that name holds this structure first, and lives longer than the reference.
    Ok(told(unsafe { &*pointer.as_ptr() }, false)?)
}

/// What a structure says, of an array that is alive.
fn told(it: &DlTensor, is_read_only: bool) -> std::result::Result<Told, Diagnostic> {
    let dtype = by_dlpack(it.code, it.bits).filter(|_| it.lanes == 1);
    let dtype =
        dtype.ok_or_else(|| unknown_type(&format!("{} of {} bits x {}", it.code, it.bits, it.lanes)))?;
    let rank = usize::try_from(it.ndim).map_err(|_| strange("it has a negative number of dimensions"))?;
    let numbers = |start: *const i64| {
        if rank == 0 || start.is_null() {
            return None;
        }
        // SAFETY: the structure says that there are as many as the array has dimensions.
        Some(unsafe { slice::from_raw_parts(start, rank) }.to_vec())
    };
    let offset = usize::try_from(it.byte_offset).map_err(|_| strange("it begins past all memory"))?;
    let shape = match numbers(it.shape) {
        None if rank > 0 => return Err(strange("it has no extents")),
        shape => shape.unwrap_or_default(),
    };
    let address =
        (it.data as usize).checked_add(offset).ok_or_else(|| strange("it begins past all memory"))?;
    let place = place(it.device_type, it.device_id)?;
    Ok(Told { dtype, shape, strides: numbers(it.strides), place, is_read_only, address })
}

/// `DLPackExchangeAPI`: functions of a library that tell of its arrays in one call of C, as PyTorch has them from 2.10 on.
#[repr(C)]
struct DlExchange {
    major: u32,
    minor: u32,
    previous: *const c_void,
    allocate: *const c_void,
    export: *const c_void,
    import: *const c_void,
    tensor: Option<unsafe extern "C" fn(object: *mut c_void, out: *mut DlTensor) -> c_int>,
    stream: Option<unsafe extern "C" fn(device_type: c_int, id: i32, out: *mut *mut c_void) -> c_int>,
}

/// These functions of a library.
#[derive(Clone, Copy)]
pub(super) struct Exchange(&'static DlExchange);

// SAFETY: it is read only, and its functions are called by whoever has the interpreter.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

impl Exchange {
    /// Those of a class of arrays, if it has them in a version that is known here.
    pub(super) fn of(class: &Bound<'_, PyAny>) -> Option<Exchange> {
        let found = class.getattr_opt("__dlpack_c_exchange_api__").ok()??;
        let capsule = found.cast_into::<PyCapsule>().ok()?;
        let pointer = capsule.pointer_checked(Some(c"dlpack_exchange_api")).ok()?.cast::<DlExchange>();
        // SAFETY: a capsule of that name holds this structure, which its library keeps as long as the process lives. Where its first
        // number is another, nothing else of it is read.
        let api = unsafe { ((*pointer.as_ptr()).major == MAJOR).then(|| &*pointer.as_ptr()) }?;
        (api.tensor.is_some() && api.stream.is_some()).then_some(Exchange(api))
    }

    /// What the library says of an array of its own.
    pub(super) fn read(self, object: &Bound<'_, PyAny>) -> Result<Told> {
        let function = self.0.tensor.expect("it was there when this was made");
        let mut out = DlTensor {
            data: ptr::null_mut(),
            device_type: 0,
            device_id: 0,
            ndim: 0,
            code: 0,
            bits: 0,
            lanes: 0,
            shape: ptr::null(),
            strides: ptr::null(),
            byte_offset: 0,
        };
        // SAFETY: the object is of the class that the function is for, this thread has the interpreter, and the structure is valid for
        // writes. What it points to is the array's, which is alive.
        if unsafe { function(object.as_ptr().cast(), &raw mut out) } != 0 {
            return Err(PyErr::fetch(object.py()).into());
        }
        Ok(told(&out, false)?)
    }

    /// The handle of the stream that the library works on, on a GPU.
    pub(super) fn stream(self, py: Python<'_>, ordinal: u32) -> PyResult<usize> {
        let function = self.0.stream.expect("it was there when this was made");
        let mut out = ptr::null_mut();
        let id = i32::try_from(ordinal)?;
        // SAFETY: this thread has the interpreter, and the handle is valid for writes.
        match unsafe { function(CUDA, id, &raw mut out) } {
            0 => Ok(out as usize),
            _ => Err(PyErr::fetch(py)),
        }
    }
}
