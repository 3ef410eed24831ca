//! An NVIDIA GPU as a [`Machine`]: one context, one stream, times from events.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{collections::BTreeMap, ffi::CString, ptr};

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute_enum as Attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute_enum as FunctionAttribute, CUmodule, CUstream,
};

use super::{
    BufferId, DeviceError, Gemm, Launch, Machine, MachineInfo, Program, ProgramId,
    cublas::{Cublas, Product},
    cuda_driver::{attribute, check, describe_device, device, elapsed_ms},
    cuda_launch::{Prepared, check_launch},
};

/// An NVIDIA GPU. Programs are cubins, or PTX that the driver translates.
///
/// An error [`DeviceError::Lost`] ends it: the driver then fails every later call of this process, so measurements
/// belong in a process that may be replaced.
pub struct CudaMachine {
    info: MachineInfo,
    device: CUdevice,
    context: CUcontext,
    stream: CUstream,
    events: [CUevent; 2],
    buffers: BTreeMap<u32, (CUdeviceptr, usize)>,
    next_buffer: u32,
    programs: Vec<Loaded>,
    cublas: Option<Cublas>,
    flush: Option<(CUdeviceptr, usize)>,
}

enum Loaded {
    Kernels { module: CUmodule, functions: Vec<(CUfunction, Launch)>, sizes: Vec<usize> },
    Gemm(Product),
}

impl CudaMachine {
    /// The GPU of a number, counted from 0.
    ///
    /// # Errors
    /// [`DeviceError::Missing`] without a driver or a GPU, [`DeviceError::Unsupported`] for a number too high.
    pub fn open(ordinal: u32) -> Result<CudaMachine, DeviceError> {
        let device = device(ordinal)?;
        let info = describe_device(device)?;
        let mut context = ptr::null_mut();
        // SAFETY: the device exists, and the context is valid for writes.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&raw mut context, device)
        })?;
        // From here on, dropping gives back what was made: null handles are passed over.
        let mut machine = CudaMachine {
            info,
            device,
            context,
            stream: ptr::null_mut(),
            events: [ptr::null_mut(); 2],
            buffers: BTreeMap::new(),
            next_buffer: 0,
            programs: vec![],
            cublas: None,
            flush: None,
        };
        machine.enter()?;
        // SAFETY: the handles are valid for writes. The stream must wait for the default one (flag 0): a copy from
        // pageable memory returns once its last part is staged, and a stream apart from it would start a kernel
        // whose first results that part then overwrites. Events with flag 0 have timing.
        unsafe {
            check("cuStreamCreate", sys::cuStreamCreate(&raw mut machine.stream, 0))?;
            for event in &mut machine.events {
                check("cuEventCreate", sys::cuEventCreate(event, 0))?;
            }
        }
        Ok(machine)
    }

    /// How many blocks of each launch a multiprocessor holds, as the driver computes it.
    ///
    /// # Errors
    /// As for running.
    pub fn resident_blocks(&self, program: ProgramId) -> Result<Vec<u32>, DeviceError> {
        self.enter()?;
        let Loaded::Kernels { functions, .. } = self.program(program)? else { return Ok(vec![]) };
        let blocks = functions.iter().map(|(function, launch)| {
            let threads = launch.block.iter().product::<u32>().cast_signed();
            let shared = usize::try_from(launch.shared_bytes).expect("32 bits fit");
            let mut blocks = 0;
            // SAFETY: the function is loaded, and the number is valid for writes.
            check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
                sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, *function, threads, shared)
            })?;
            Ok(blocks.cast_unsigned())
        });
        blocks.collect()
    }

    /// Makes the context that of the calling thread.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is alive.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn program(&self, id: ProgramId) -> Result<&Loaded, DeviceError> {
        let found = usize::try_from(id.0).ok().and_then(|it| self.programs.get(it));
        found.ok_or_else(|| DeviceError::Unsupported(format!("there is no program {}", id.0)))
    }

    fn buffer(&self, id: BufferId) -> Result<(CUdeviceptr, usize), DeviceError> {
        let found = self.buffers.get(&id.0).copied();
        found.ok_or_else(|| DeviceError::Unsupported(format!("there is no buffer {}", id.0)))
    }

    /// The addresses of a program's buffers, once their number and sizes are right.
    fn addresses(&self, ids: &[BufferId], sizes: &[usize]) -> Result<Vec<CUdeviceptr>, DeviceError> {
        super::check_buffers(ids, sizes, |id| Ok(self.buffer(id)?.1))?;
        ids.iter().map(|it| Ok(self.buffer(*it)?.0)).collect()
    }

    fn push(&mut self, loaded: Loaded) -> ProgramId {
        self.programs.push(loaded);
        ProgramId(u32::try_from(self.programs.len() - 1).expect("fewer than 2^32 programs"))
    }

    /// The function of a launch, ready for the memory and threads it asks for.
    fn function(
        &self,
        module: CUmodule,
        program: &Program,
        launch: &Launch,
    ) -> Result<CUfunction, DeviceError> {
        let name = &launch.kernel;
        let text = CString::new(&**name).map_err(|err| DeviceError::Call {
            call: "cuModuleGetFunction".into(),
            reason: err.to_string(),
        })?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with zero, and the function is valid for writes.
        check(&format!("cuModuleGetFunction for `{name}`"), unsafe {
            sys::cuModuleGetFunction(&raw mut function, module, text.as_ptr())
        })?;
        let threads =
            function_attribute(function, FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let fixed = function_attribute(function, FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let most = attribute(self.device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        check_launch(launch, threads, fixed, most)?;

        // One kernel may stand in several launches: its limit is that of the largest.
        let same = program.launches.iter().filter(|it| it.kernel == *name);
        let shared = same.map(|it| it.shared_bytes).max().unwrap_or(0);
        if shared + fixed > 48 * 1024 {
            let limit = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is loaded.
            check(&format!("cuFuncSetAttribute for `{name}`"), unsafe {
                sys::cuFuncSetAttribute(function, limit, shared.cast_signed())
            })?;
        }
        Ok(function)
    }

    /// Starts `calls` rounds between the two events, waits, and gives the seconds. `names` says what ran.
    fn time(
        &self,
        calls: u32,
        names: &str,
        start: impl Fn() -> Result<(), DeviceError>,
    ) -> Result<f64, DeviceError> {
        let [begin, end] = self.events;
        // SAFETY: events and stream are alive.
        unsafe {
            check("cuEventRecord", sys::cuEventRecord(begin, self.stream))?;
            let started = (0..calls).try_for_each(|_| start());
            let recorded = check("cuEventRecord", sys::cuEventRecord(end, self.stream));
            // Waits even if a launch was refused, so that nothing runs on when the error is seen.
            let waited = check(&format!("running {names}"), sys::cuEventSynchronize(end));
            started.and(recorded).and(waited)?;
        }
        Ok(f64::from(elapsed_ms(begin, end)?) / 1e3)
    }
}

impl Machine for CudaMachine {
    fn info(&self) -> &MachineInfo {
        &self.info
    }

    fn load(&mut self, program: &Program) -> Result<ProgramId, DeviceError> {
        self.enter()?;
        super::check_program(program)?;
        let mut image = program.binary.clone();
        // PTX is text, which must end with zero; after a cubin a zero does no harm.
        image.push(0);
        let mut module = ptr::null_mut();
        // SAFETY: the image is a cubin or PTX that ends with zero, and the module is valid for writes.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut module, image.as_ptr().cast()) })?;
        let functions = program.launches.iter().map(|launch| {
            let function = self.function(module, program, launch)?;
            Ok((function, launch.clone()))
        });
        match functions.collect::<Result<_, DeviceError>>() {
            Ok(functions) => {
                Ok(self.push(Loaded::Kernels { module, functions, sizes: program.buffers.clone() }))
            }
            Err(err) => {
                // SAFETY: the module is loaded, and nobody has its functions.
                unsafe { sys::cuModuleUnload(module) };
                Err(err)
            }
        }
    }

    fn load_gemm(&mut self, gemm: &Gemm) -> Result<ProgramId, DeviceError> {
        self.enter()?;
        let product = Product::new(gemm)?;
        if self.cublas.is_none() {
            let cublas = Cublas::new(self.stream)?;
            self.info.versions.push(("cuBLAS".into(), cublas.version()?));
            self.cublas = Some(cublas);
        }
        Ok(self.push(Loaded::Gemm(product)))
    }

    fn alloc(&mut self, bytes: usize) -> Result<BufferId, DeviceError> {
        self.enter()?;
        let start = device_memory(bytes)?;
        let id = self.next_buffer;
        self.next_buffer += 1;
        self.buffers.insert(id, (start, bytes));
        Ok(BufferId(id))
    }

    fn free(&mut self, buffer: BufferId) {
        if let Some((start, _)) = self.buffers.remove(&buffer.0) {
            // SAFETY: the memory is ours, and no work that could use it is under way between calls.
            let _: Result<(), _> =
                self.enter().and_then(|()| check("cuMemFree", unsafe { sys::cuMemFree_v2(start) }));
        }
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        let (start, size) = self.buffer(buffer)?;
        super::check_copy(bytes.len(), size)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: both sides hold that many bytes.
        check("cuMemcpyHtoD", unsafe { sys::cuMemcpyHtoD_v2(start, bytes.as_ptr().cast(), bytes.len()) })
    }

    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        let (start, size) = self.buffer(buffer)?;
        super::check_copy(bytes.len(), size)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: both sides hold that many bytes.
        check("cuMemcpyDtoH", unsafe { sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), start, bytes.len()) })
    }

    fn run(&mut self, program: ProgramId, buffers: &[BufferId], calls: u32) -> Result<f64, DeviceError> {
        self.enter()?;
        match self.program(program)? {
            Loaded::Kernels { functions, sizes, .. } => {
                let all = self.addresses(buffers, sizes)?;
                let mut launches: Vec<_> = functions
                    .iter()
                    .map(|(function, launch)| Prepared::new(*function, launch, &all))
                    .collect();
                let params: Vec<_> = launches.iter_mut().map(Prepared::params).collect();
                let names: Vec<_> = functions.iter().map(|it| format!("`{}`", it.1.kernel)).collect();
                self.time(calls, &names.join(", "), || {
                    let mut each = launches.iter().zip(&params);
                    each.try_for_each(|(launch, params)| launch.start(params, self.stream))
                })
            }
            Loaded::Gemm(product) => {
                let all = self.addresses(buffers, &product.bytes)?;
                let operands = <[_; 3]>::try_from(all).expect("three sizes were checked");
                let cublas = self.cublas.as_ref().expect("made when the product was loaded");
                self.time(calls, "the matrix product of cuBLAS", || {
                    // SAFETY: number, sizes and distinctness of the buffers were checked.
                    unsafe { cublas.start(product, operands) }
                })
            }
        }
    }

    fn flush_cache(&mut self) -> Result<(), DeviceError> {
        self.enter()?;
        let (start, bytes) = if let Some(it) = self.flush {
            it
        } else {
            let bytes = (2 * self.info.cache_bytes).max(128 << 20);
            *self.flush.insert((device_memory(bytes)?, bytes))
        };
        // SAFETY: the memory is ours and so large; the stream is alive.
        unsafe {
            check("cuMemsetD8Async", sys::cuMemsetD8Async(start, 0x5a, bytes, self.stream))?;
            check("cuStreamSynchronize", sys::cuStreamSynchronize(self.stream))
        }
    }

    fn set_threads(&mut self, _threads: usize) {}
}

impl Drop for CudaMachine {
    fn drop(&mut self) {
        // After `Lost` these fail, and there is nothing to do about it.
        if self.enter().is_err() {
            return;
        }
        self.cublas = None;
        // SAFETY: each handle is alive or null, and is not used afterwards.
        unsafe {
            for loaded in &self.programs {
                match loaded {
                    Loaded::Kernels { module, .. } => drop(sys::cuModuleUnload(*module)),
                    Loaded::Gemm(_) => {}
                }
            }
            for (start, _) in self.buffers.values().chain(&self.flush) {
                sys::cuMemFree_v2(*start);
            }
            for event in self.events.iter().filter(|it| !it.is_null()) {
                sys::cuEventDestroy_v2(*event);
            }
            if !self.stream.is_null() {
                sys::cuStreamDestroy_v2(self.stream);
            }
            sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

fn function_attribute(function: CUfunction, which: FunctionAttribute) -> Result<u32, DeviceError> {
    let mut value = 0;
    // SAFETY: the function is loaded, and the value is valid for writes.
    check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&raw mut value, which, function) })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Memory on the device of the current context, aligned to at least 256 bytes.
fn device_memory(bytes: usize) -> Result<CUdeviceptr, DeviceError> {
    let mut start = 0;
    // SAFETY: the address is valid for writes. None of no size is allowed.
    let result = unsafe { sys::cuMemAlloc_v2(&raw mut start, bytes.max(1)) };
    check(&format!("taking {bytes} bytes of GPU memory"), result)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_gpu_is_an_answer() {
        match CudaMachine::open(0) {
            Ok(machine) => assert!(machine.info().arch.starts_with("sm_")),
            Err(err) => {
                assert!(matches!(err, DeviceError::Missing { .. } | DeviceError::Call { .. }), "{err:?}");
            }
        }
    }
}
