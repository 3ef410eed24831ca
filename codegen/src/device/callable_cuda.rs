//! A program that GPUs run on memory of its caller's, in the caller's context and on the caller's stream.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{
    mem,
    sync::{Mutex, PoisonError},
    thread::{self, ThreadId},
};

use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdeviceptr, CUstream};

use super::{
    Borrowed, DeviceError, Program, Stream,
    callable::check_memory,
    cuda_context::{Entered, current, enter, retain_primary},
    cuda_driver::{check, describe_device, device},
    cuda_launch::Prepared,
    cuda_module::{Kernels, device_memory},
};

/// A program on GPUs, loaded into each context that it is called in. Calls return before their work has ended.
pub struct CudaCallable {
    binary: Vec<u8>,
    contexts: Mutex<Vec<Context>>,
}

/// The program in a context.
struct Context {
    ordinal: u32,
    device: CUdevice,
    handle: CUcontext,
    /// Whether it is the primary context of its device, which this keeps alive. Others end without saying so.
    is_primary: bool,
    kernels: Kernels,
    /// Temporaries by the stream that uses them, so that calls on two streams do not meet in them.
    temporaries: Vec<(Owner, Vec<(CUdeviceptr, usize)>)>,
}

/// A stream, and the thread where its handle means another one in each.
type Owner = (Stream, Option<ThreadId>);

// SAFETY: the handles are the driver's, which any thread may use; a lock is around all of them.
unsafe impl Send for Context {}

impl CudaCallable {
    /// Machine code to be loaded when it is called. That it fits a GPU is the caller's to check, by [`cuda_arch`].
    pub fn new(binary: Vec<u8>) -> CudaCallable {
        CudaCallable { binary, contexts: Mutex::default() }
    }

    /// Starts the launches of a program that was made of the same module at some sizes, on the memory of its inputs and outputs, which is of that GPU.
    /// Where a context of the GPU is current it runs in that, else in the primary one.
    ///
    /// Temporaries are taken at the first call on a stream, which therefore must not be one that is recorded.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] for other memory than the program needs; what the driver says.
    pub fn start(
        &self,
        program: &Program,
        memory: &[Borrowed],
        ordinal: u32,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        check_memory(program, memory)?;
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, _entered) = self.enter(&mut contexts, program, ordinal)?;
        let context = &mut contexts[at];
        let mut all: Vec<CUdeviceptr> = memory.iter().map(|it| it.start as CUdeviceptr).collect();
        if all.len() < program.buffers.len() {
            let spare = context.spare(stream);
            take(spare, program, all.len(), stream.0 as CUstream)?;
            all.extend(spare.iter().map(|it| it.0));
        }
        for ((function, _), launch) in context.kernels.functions.iter().zip(&program.launches) {
            let mut prepared = Prepared::new(*function, launch, &all)?;
            let params = prepared.params();
            prepared.start(&params, stream.0 as CUstream)?;
        }
        Ok(())
    }

    /// Makes a context of the GPU current, and says where the program in it is.
    fn enter(
        &self,
        contexts: &mut Vec<Context>,
        program: &Program,
        ordinal: u32,
    ) -> Result<(usize, Entered), DeviceError> {
        let known = contexts.iter().find(|it| it.ordinal == ordinal).map(|it| it.device);
        let device = known.map_or_else(|| device(ordinal), Ok)?;
        let found = current(device);
        if let Some(entered) = found {
            if let Some(at) = contexts.iter().position(|it| it.handle == entered.context) {
                return Ok((at, entered));
            }
            let primary = retain_primary(device)?;
            let is_primary = primary == entered.context;
            if !is_primary {
                // SAFETY: it was retained above.
                unsafe { sys::cuDevicePrimaryCtxRelease_v2(device) };
            }
            let kernels = Kernels::load(device, &self.binary, program)?;
            return Ok(remember(
                contexts,
                Context::new(ordinal, device, &entered, is_primary, kernels),
                entered,
            ));
        }
        if let Some(at) = contexts.iter().position(|it| it.ordinal == ordinal && it.is_primary) {
            return Ok((at, enter(contexts[at].handle)?));
        }
        let entered = enter(retain_primary(device)?)?;
        let kernels = Kernels::load(device, &self.binary, program)?;
        Ok(remember(contexts, Context::new(ordinal, device, &entered, true, kernels), entered))
    }
}

impl Context {
    fn new(ordinal: u32, device: CUdevice, entered: &Entered, is_primary: bool, kernels: Kernels) -> Context {
        Context { ordinal, device, handle: entered.context, is_primary, kernels, temporaries: vec![] }
    }

    /// The temporaries of a stream.
    fn spare(&mut self, stream: Stream) -> &mut Vec<(CUdeviceptr, usize)> {
        let owner = (stream, (stream == Stream::PER_THREAD).then(|| thread::current().id()));
        let at = self.temporaries.iter().position(|it| it.0 == owner).unwrap_or_else(|| {
            self.temporaries.push((owner, vec![]));
            self.temporaries.len() - 1
        });
        &mut self.temporaries[at].1
    }
}

fn remember(contexts: &mut Vec<Context>, it: Context, entered: Entered) -> (usize, Entered) {
    contexts.push(it);
    (contexts.len() - 1, entered)
}

/// Makes temporaries large enough for a program. What has to hold zeros does when this returns, and every run leaves it so.
fn take(
    spare: &mut Vec<(CUdeviceptr, usize)>,
    program: &Program,
    first: usize,
    stream: CUstream,
) -> Result<(), DeviceError> {
    for (at, bytes) in program.buffers.iter().enumerate().skip(first) {
        let here = at - first;
        if spare.get(here).is_some_and(|it| it.1 >= *bytes) {
            continue;
        }
        let start = device_memory(*bytes)?;
        if program.zeroed.contains(&at) {
            // SAFETY: the memory was taken above and has so many bytes; the stream is the caller's.
            check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(start, 0, (*bytes).max(1), stream) })?;
        }
        match spare.get_mut(here) {
            Some(old) => {
                let (old, _) = mem::replace(old, (start, *bytes));
                // SAFETY: the memory is ours, and nothing is started on it any more; the driver waits for what still uses it.
                unsafe { sys::cuMemFree_v2(old) };
            }
            None => spare.push((start, *bytes)),
        }
    }
    Ok(())
}

impl Drop for CudaCallable {
    fn drop(&mut self) {
        let contexts = self.contexts.get_mut().unwrap_or_else(PoisonError::into_inner);
        for it in contexts.drain(..).filter(|it| it.is_primary) {
            let Ok(entered) = enter(it.handle) else { continue };
            for (start, _) in it.temporaries.iter().flat_map(|it| &it.1) {
                // SAFETY: the memory is ours; the driver waits for work that uses it.
                unsafe { sys::cuMemFree_v2(*start) };
            }
            it.kernels.unload();
            drop(entered);
            // SAFETY: it was retained when the program was loaded.
            unsafe { sys::cuDevicePrimaryCtxRelease_v2(it.device) };
        }
    }
}

/// The architecture to compile for to use all of a GPU.
///
/// # Errors
/// [`DeviceError::Missing`] without a driver or a GPU, [`DeviceError::Unsupported`] for a number too high.
pub fn cuda_arch(ordinal: u32) -> Result<String, DeviceError> {
    Ok(describe_device(device(ordinal)?)?.arch)
}

/// Waits until the work on a stream of a GPU has ended.
///
/// # Errors
/// What the driver says, of the work too.
pub fn wait_for(ordinal: u32, stream: Stream) -> Result<(), DeviceError> {
    let device = device(ordinal)?;
    let primary = current(device).is_none().then(|| retain_primary(device)).transpose()?;
    let entered = primary.map(enter).transpose()?;
    // SAFETY: the stream is the caller's and alive.
    let done = check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream.0 as CUstream) });
    drop(entered);
    if primary.is_some() {
        // SAFETY: it was retained above.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(device) };
    }
    done
}
