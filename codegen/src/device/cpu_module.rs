//! Programs on a CPU: shared libraries, their functions, and a call of one.

#![expect(unsafe_code, reason = "libraries are loaded, and emitted C is called")]

use std::{
    error::Error as _,
    ffi::{CString, c_void},
    fs,
    io::Write as _,
    path::Path,
};

use libloading::Library;

use super::{
    DLOPEN, DeviceError, Launch,
    abi::{KernelFn, Runtime},
};

/// The functions of these names in a compiled program, and the library that they are alive in.
pub(super) fn load_functions<'a>(
    binary: &[u8],
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(Library, Vec<KernelFn>), DeviceError> {
    let library = open_bytes(binary)?;
    let functions = names.into_iter().map(|kernel| {
        let missing = |reason: String| DeviceError::Call { call: format!("dlsym {kernel}"), reason };
        let name = CString::new(kernel).map_err(|err| missing(err.to_string()))?;
        // SAFETY: every function that a program launches on a CPU has this type.
        let function = unsafe { library.get::<KernelFn>(name.as_bytes_with_nul()) };
        Ok(*function.map_err(|err| missing(err.to_string()))?)
    });
    let functions = functions.collect::<Result<_, DeviceError>>()?;
    Ok((library, functions))
}

/// Loads a shared library from its bytes, by way of a file that is gone afterwards.
fn open_bytes(bytes: &[u8]) -> Result<Library, DeviceError> {
    let failed = |call: &str, reason: String| DeviceError::Call { call: call.into(), reason };
    let file = tempfile::Builder::new().prefix("kernel-").suffix(".so").tempfile();
    let mut file = file.map_err(|err| failed("making a temporary file", err.to_string()))?;
    file.write_all(bytes).map_err(|err| failed("writing a temporary file", err.to_string()))?;
    let path =
        fs::canonicalize(file.path()).map_err(|err| failed("finding a temporary file", err.to_string()))?;
    // SAFETY: the library is C that we emitted; it has no initialisers.
    unsafe { Library::new(&path) }.map_err(|err| failed(DLOPEN, why(&err, &path)))
}

/// The system's own words, which the library keeps beside its own. The file has another name each time.
fn why(err: &libloading::Error, path: &Path) -> String {
    let words = err.source().map_or_else(|| err.to_string(), ToString::to_string);
    words.replace(&path.display().to_string(), "the compiled program")
}

/// A call of a kernel with its arguments.
pub(super) struct Prepared<'a> {
    function: KernelFn,
    buffers: Vec<*mut c_void>,
    dims: &'a [i64],
    runtime: *const Runtime,
}

// SAFETY: it is made on one thread and used on another of the pool while the first waits.
unsafe impl Sync for Prepared<'_> {}
// SAFETY: as above.
unsafe impl Send for Prepared<'_> {}

impl<'a> Prepared<'a> {
    /// The launch with buffers at these addresses.
    pub(super) fn new(
        function: KernelFn,
        launch: &'a Launch,
        all: &[*mut c_void],
        runtime: *const Runtime,
    ) -> Prepared<'a> {
        let buffers = launch.buffers.iter().map(|it| all[*it]).collect();
        Prepared { function, buffers, dims: &launch.dims, runtime }
    }

    pub(super) fn call(&self) {
        // SAFETY: the function is a kernel by our convention, and the buffers exist, are as large as the program
        // says and do not overlap; that the kernel stays inside them is what lowering proves.
        unsafe { (self.function)(self.buffers.as_ptr(), self.dims.as_ptr(), self.runtime) }
    }
}
