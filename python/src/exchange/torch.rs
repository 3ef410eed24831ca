//! Tensors of PyTorch, by their methods.

use ir::DType;
use pyo3::{
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyType},
};
use tilewright::{CallError, Diagnostic, Place};

use super::{
    Array, Library,
    dlpack::Exchange,
    dtype::by_name,
    memory::{Told, tensor},
    unknown_type,
};
use crate::error::Result;

/// What of PyTorch is asked for in every call.
struct Torch {
    tensor: Py<PyType>,
    /// Its element types, each with ours.
    dtypes: Vec<(Py<PyAny>, DType)>,
    /// How it tells of its tensors in one call, where it is new enough.
    exchange: Option<Exchange>,
    /// From the number of a GPU to the handle of the stream that is current on it.
    current_stream: Py<PyAny>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

/// PyTorch, if this program has imported it; nothing imports it for our sake.
fn torch(py: Python<'_>) -> PyResult<Option<&'static Torch>> {
    if let Some(torch) = TORCH.get(py) {
        return Ok(Some(torch));
    }
    let loaded = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
    let Some(module) = loaded.get_item(intern!(py, "torch"))? else { return Ok(None) };
    // A module that is being imported lacks some of its names still.
    let Ok(class) = module.getattr(intern!(py, "Tensor")) else { return Ok(None) };
    let mut dtypes = vec![];
    for name in super::dtype::names() {
        if let (Ok(it), Some(dtype)) = (module.getattr(name), by_name(name)) {
            dtypes.push((it.unbind(), dtype));
        }
    }
    let Ok(current_stream) = py.import("tilewright._torch")?.getattr("current_stream") else {
        return Ok(None);
    };
    let made = Torch {
        exchange: Exchange::of(&class),
        tensor: class.cast_into::<PyType>()?.unbind(),
        dtypes,
        current_stream: current_stream.unbind(),
    };
    Ok(Some(TORCH.get_or_init(py, || made)))
}

/// A tensor, if it is one.
pub(super) fn read<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Array<'py>>> {
    let py = object.py();
    let Some(torch) = torch(py)? else { return Ok(None) };
    if !object.is_instance(torch.tensor.bind(py))? {
        return Ok(None);
    }
    let told = match torch.exchange {
        // Its methods tell better what is wrong.
        Some(exchange) => exchange.read(object).or_else(|_| told(object, torch))?,
        None => told(object, torch)?,
    };
    Ok(Some(Array { tensor: tensor(told)?, library: Library::Torch, stream: None, owner: object.clone() }))
}

/// What the methods of a tensor say.
fn told(object: &Bound<'_, PyAny>, torch: &Torch) -> Result<Told> {
    let py = object.py();
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let known = torch.dtypes.iter().find(|it| it.0.is(&dtype));
    let dtype = known.ok_or_else(|| unknown_type(&dtype.to_string()))?.1;
    let place = place(object)?;
    let is_row_major: bool = object.call_method0(intern!(py, "is_contiguous"))?.extract()?;
    let strides = (!is_row_major).then(|| object.call_method0(intern!(py, "stride"))?.extract::<Vec<i64>>());
    Ok(Told {
        dtype,
        shape: object.getattr(intern!(py, "shape"))?.extract()?,
        strides: strides.transpose()?,
        place,
        is_read_only: false,
        address: object.call_method0(intern!(py, "data_ptr"))?.extract()?,
    })
}

fn place(object: &Bound<'_, PyAny>) -> Result<Place> {
    let py = object.py();
    if object.getattr(intern!(py, "is_cuda"))?.is_truthy()? {
        return Ok(Place::Gpu(object.call_method0(intern!(py, "get_device"))?.extract()?));
    }
    if object.getattr(intern!(py, "is_cpu"))?.is_truthy()? {
        return Ok(Place::Cpu);
    }
    let title = format!("a tensor is on `{}`, where no kernel runs", object.getattr("device")?);
    Err(Diagnostic::usage(CallError::Device, title).into())
}

/// The handle of the stream that PyTorch works on at the moment.
pub(crate) fn current_stream(py: Python<'_>, ordinal: u32) -> PyResult<usize> {
    match torch(py)? {
        Some(Torch { exchange: Some(exchange), .. }) => exchange.stream(py, ordinal),
        Some(torch) => torch.current_stream.bind(py).call1((ordinal,))?.extract(),
        None => Ok(0),
    }
}
