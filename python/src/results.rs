//! Results in the library of an input, and what a kernel takes and makes as Python values.

use ir::IndexKind;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyTuple};
use tilewright::{Parameter, Place};

/// A result for the caller, of PyTorch.
pub(crate) fn torch_empty<'py>(
    like: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyTuple>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    EMPTY.import(like.py(), "tilewright._torch", "empty")?.call1((like, shape, dtype))
}

/// A result for the caller, of the library of an array, or of NumPy.
pub(crate) fn empty<'py>(
    like: Option<&Bound<'py, PyAny>>,
    place: Place,
    shape: &Bound<'py, PyTuple>,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ordinal = match place {
        Place::Cpu => None,
        Place::Gpu(at) => Some(at),
    };
    EMPTY.import(shape.py(), "tilewright._arrays", "empty")?.call1((like, shape, dtype, ordinal))
}

/// Results as arrays of the library of an input.
pub(crate) fn handed_over<'py>(
    like: &Bound<'py, PyAny>,
    results: Vec<Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let hand_over = like.py().import("tilewright._arrays")?.getattr("hand_over")?;
    results.into_iter().map(|it| hand_over.call1((like, it))).collect()
}

/// Parameters as `tilewright.Array`s.
pub(crate) fn described<'py>(py: Python<'py>, all: &[Parameter]) -> PyResult<Bound<'py, PyTuple>> {
    let class = py.import("tilewright._arrays")?.getattr("Array")?;
    let one = |it: &Parameter| {
        let extent = |it: &ir::Index| match it.kind() {
            IndexKind::Int(it) => Ok(it.into_pyobject(py)?.into_any()),
            _ => Ok::<_, PyErr>(it.to_string().into_pyobject(py)?.into_any()),
        };
        let shape = it.shape.iter().map(extent).collect::<PyResult<Vec<_>>>()?;
        class.call1((it.name.as_str(), it.dtype.as_str(), PyTuple::new(py, shape)?))
    };
    PyTuple::new(py, all.iter().map(one).collect::<PyResult<Vec<_>>>()?)
}
