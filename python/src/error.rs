//! Diagnostics as exceptions.

use pyo3::{IntoPyObjectExt, prelude::*, sync::PyOnceLock, types::PyType};
use tilewright::Diagnostic;

/// An error on its way to Python: one of tilewright's, or one that Python raised.
#[derive(Debug)]
pub(crate) enum Error {
    /// What the library refuses.
    Refused(Box<Diagnostic>),
    /// What Python raised in a call of ours.
    Raised(PyErr),
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl From<Diagnostic> for Error {
    fn from(err: Diagnostic) -> Error {
        Error::Refused(Box::new(err))
    }
}

impl From<PyErr> for Error {
    fn from(err: PyErr) -> Error {
        Error::Raised(err)
    }
}

impl From<Error> for PyErr {
    fn from(err: Error) -> PyErr {
        match err {
            Error::Raised(err) => err,
            Error::Refused(err) => Python::attach(|py| raised(py, &err).unwrap_or_else(|other| other)),
        }
    }
}

/// `tilewright.Error` of a diagnostic.
fn raised(py: Python<'_>, err: &Diagnostic) -> PyResult<PyErr> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "tilewright._error", "Error")?;
    let arguments = (err.to_string(), err.code().to_string(), err.message(), err.data().to_string())
        .into_bound_py_any(py)?;
    let value = class.call1(arguments.cast_into()?)?;
    Ok(PyErr::from_value(value))
}
