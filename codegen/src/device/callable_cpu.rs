//! A program that this machine's processor runs on memory of its caller's.

use std::{
    ffi::c_void,
    sync::{Mutex, PoisonError},
};

use libloading::Library;

use super::{
    DeviceError, Program,
    abi::KernelFn,
    callable::{Borrowed, check_memory},
    cpu_memory::Memory,
    cpu_module::{Prepared, load_functions},
    cpu_pool,
};

/// A program on this machine's processor, which any number of threads may call at a time.
pub struct CpuCallable {
    /// In the order of the launches.
    functions: Vec<KernelFn>,
    threads: usize,
    /// Temporaries that no call has at the moment, a set for each call that was under way at once.
    spare: Mutex<Vec<Vec<Memory>>>,
    /// Keeps the functions alive; dropped after them.
    _library: Library,
}

impl CpuCallable {
    /// Loads machine code with these functions, in the order of its launches. Its parallel loops run on so many threads, 0 for one a core, which it shares with all others in this process that
    /// ask for as many.
    pub fn load(binary: &[u8], kernels: &[String], threads: usize) -> Result<CpuCallable, DeviceError> {
        let (library, functions) = load_functions(binary, kernels.iter().map(String::as_str))?;
        Ok(CpuCallable { functions, threads, spare: Mutex::default(), _library: library })
    }

    /// Calls it with the launches of a program that was made of the same module at some sizes, on the memory of its inputs and outputs, and waits.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for other memory than the program needs, [`DeviceError::Call`] where memory or threads cannot be had.
    pub fn call(&self, program: &Program, memory: &[Borrowed]) -> Result<(), DeviceError> {
        check_memory(program, memory)?;
        let spare = self.temporaries(&program.buffers[memory.len()..])?;
        let given = memory.iter().map(|it| it.start as *mut c_void);
        let all: Vec<_> = given.chain(spare.iter().map(|it| it.start.cast())).collect();
        let pool = cpu_pool::shared(self.threads)?;
        let runtime = pool.runtime();
        let calls = self.functions.iter().zip(&program.launches);
        let calls: Vec<_> =
            calls.map(|(it, launch)| Prepared::new(*it, launch, &all, &raw const runtime)).collect();
        pool.install(|| calls.iter().for_each(Prepared::call));
        if !spare.is_empty() {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
        }
        Ok(())
    }

    /// Temporaries of these sizes or more. Those that hold zeros before a call do so after it.
    fn temporaries(&self, sizes: &[usize]) -> Result<Vec<Memory>, DeviceError> {
        if sizes.is_empty() {
            return Ok(vec![]);
        }
        let found = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let fits = |it: &Vec<Memory>| it.iter().zip(sizes).all(|(it, size)| it.bytes >= *size);
        match found.filter(fits) {
            Some(found) => Ok(found),
            None => sizes.iter().map(|it| Memory::new(*it)).collect(),
        }
    }
}
