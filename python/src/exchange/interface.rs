//! Arrays by `__array_interface__` and `__cuda_array_interface__`.

use codegen::device::device_of_address;
use ir::DType;
use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyType},
};
use tilewright::{Diagnostic, Place};

use super::{
    Array, Library,
    dtype::{by_name, by_typestr},
    memory::{Told, tensor},
    strange, unknown_type,
};
use crate::error::Result;

/// An array of NumPy, if it is one.
pub(super) fn read_numpy<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Array<'py>>> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    if !object.is_instance(NDARRAY.import(py, "numpy", "ndarray")?)? {
        return Ok(None);
    }
    let interface =
        object.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>().map_err(PyErr::from)?;
    let typestr = text(&interface, "typestr")?;
    // Types of `ml_dtypes` are bytes without a meaning in the interface, and have a name.
    let dtype = if let Some(it) = by_typestr(&typestr) {
        it
    } else {
        let name = object.getattr("dtype")?.getattr("name")?.extract::<String>()?;
        let is_ours = name.starts_with("bfloat") || name.starts_with("float8");
        by_name(&name).filter(|_| is_ours).ok_or_else(|| unknown_type(&name))?
    };
    Ok(Some(array(object, &interface, dtype, &|_| Ok(Place::Cpu), Library::Numpy)?))
}

/// Any other array in the memory of this process that has the interface.
pub(super) fn read_host<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Array<'py>>> {
    let Some(interface) = interface(object, "__array_interface__")? else { return Ok(None) };
    let typestr = text(&interface, "typestr")?;
    let dtype = by_typestr(&typestr).ok_or_else(|| unknown_type(&typestr))?;
    Ok(Some(array(object, &interface, dtype, &|_| Ok(Place::Cpu), Library::Numpy)?))
}

/// An array on a GPU that has the interface.
pub(super) fn read_cuda<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Array<'py>>> {
    let Some(interface) = interface(object, "__cuda_array_interface__")? else { return Ok(None) };
    let typestr = text(&interface, "typestr")?;
    // What the interface has no word for comes by DLPack.
    let Some(dtype) = by_typestr(&typestr) else { return Ok(None) };
    let place = |address: usize| {
        // An empty array has no address.
        let ordinal = if address == 0 { 0 } else { device_of_address(address)? };
        Ok(Place::Gpu(ordinal))
    };
    let stream = interface.get_item("stream")?.filter(|it| !it.is_none());
    let stream = stream.map(|it| it.extract()).transpose()?;
    // Who names no stream, as JAX, has to be asked to wait for the one in use, which DLPack can.
    if stream.is_none() && object.hasattr(intern!(object.py(), "__dlpack__"))? {
        return Ok(None);
    }
    Ok(Some(Array { stream, ..array(object, &interface, dtype, &place, Library::Cuda)? }))
}

fn interface<'py>(object: &Bound<'py, PyAny>, name: &str) -> Result<Option<Bound<'py, PyDict>>> {
    match object.getattr_opt(name)? {
        Some(it) => Ok(Some(it.cast_into::<PyDict>().map_err(PyErr::from)?)),
        None => Ok(None),
    }
}

/// An entry that has to be there.
fn entry<'py>(interface: &Bound<'py, PyDict>, name: &str) -> Result<Bound<'py, PyAny>> {
    let found = interface.get_item(name)?;
    Ok(found.ok_or_else(|| strange(&format!("its interface lacks `{name}`")))?)
}

fn text(interface: &Bound<'_, PyDict>, name: &str) -> Result<String> {
    Ok(entry(interface, name)?.extract()?)
}

fn array<'py>(
    object: &Bound<'py, PyAny>,
    interface: &Bound<'py, PyDict>,
    dtype: DType,
    place: &dyn Fn(usize) -> std::result::Result<Place, Diagnostic>,
    library: Library,
) -> Result<Array<'py>> {
    let (address, is_read_only): (usize, bool) = entry(interface, "data")?.extract()?;
    let strides = interface.get_item("strides")?.filter(|it| !it.is_none());
    let strides = strides.map(|it| it.extract::<Vec<i64>>()).transpose()?;
    let bytes = dtype.bytes_i64();
    let in_elements = |it: &i64| (it % bytes == 0).then_some(it / bytes);
    let strides = strides.map(|it| {
        let all: Option<Vec<_>> = it.iter().map(in_elements).collect();
        all.ok_or_else(|| strange("its strides are no multiples of an element"))
    });
    let told = Told {
        dtype,
        shape: entry(interface, "shape")?.extract()?,
        strides: strides.transpose()?,
        place: place(address)?,
        is_read_only,
        address,
    };
    Ok(Array { tensor: tensor(told)?, library, stream: None, owner: object.clone() })
}
