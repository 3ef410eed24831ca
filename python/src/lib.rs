//! The part of the Python package `tilewright` that is Rust: it finds the memory of arrays and calls the library `tilewright`, which has
//! all that is not about Python.
//!
//! Whatever a caller gives that cannot be used is a `tilewright.Error`, which prints as the command line's errors do.

mod convert;
mod error;
mod exchange;
mod kernel;
mod replay;
mod results;
mod tune;
mod verbs;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _tilewright {
    #[pymodule_export]
    use crate::{
        kernel::Kernel,
        replay::replay,
        tune::tune,
        verbs::{auto, auto_script, check, codes, compile, serve_worker, show},
    };
}
