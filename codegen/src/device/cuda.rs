//! An NVIDIA GPU as a [`Machine`]: one context, one stream, times from events.

#![expect(unsafe_code, reason = "the driver is called")]

use std::{collections::BTreeMap, ffi::c_void, mem, ptr};

use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdeviceptr};

use super::{
    BufferId, DeviceError, Gemm, Machine, MachineInfo, Part, Program, ProgramId, Sequence,
    cublas::Cublas,
    cublas_lt::{Choice, CublasLt},
    cublas_product::Product,
    cuda_clock::Clock,
    cuda_driver::{check, describe_device, device},
    cuda_launch::Prepared,
    cuda_module::{Kernels, device_memory},
    cuda_wait::Timer,
};

/// An NVIDIA GPU. Programs are cubins, or PTX that the driver translates.
///
/// An error [`DeviceError::Lost`] ends it: the driver then fails every later call of this process, so measurements
/// belong in a process that may be replaced. So does [`DeviceError::Hang`]: what hangs keeps the device, so that the
/// driver would wait for ever, and every later call is refused with the same words instead. Dropping waits neither;
/// only the end of the process, best by SIGKILL, ends such a program.
pub struct CudaMachine {
    info: MachineInfo,
    device: CUdevice,
    context: CUcontext,
    timer: Timer,
    buffers: BTreeMap<u32, (CUdeviceptr, usize)>,
    next_buffer: u32,
    /// By their handles. None for those that were unloaded: a handle never comes back.
    programs: Vec<Option<Loaded>>,
    cublas: Option<Cublas>,
    cublas_lt: Option<CublasLt>,
    /// None before the first question, and an error where the kernel cannot be loaded.
    clock: Option<Result<Clock, DeviceError>>,
    flush: Option<(CUdeviceptr, usize)>,
    /// What hangs, once something does.
    hung: Option<DeviceError>,
}

enum Loaded {
    Kernels(Kernels),
    Gemm(Product),
    Choice(Choice),
    Sequence(Sequence),
}

/// What is started at once.
enum Piece<'a> {
    Kernel(Prepared<'a>),
    Gemm(&'a Product, [CUdeviceptr; 3]),
    Choice(&'a Choice, [CUdeviceptr; 3]),
}

impl Piece<'_> {
    /// Where the arguments of a kernel lie, as long as the piece does.
    fn params(&mut self) -> Vec<*mut c_void> {
        match self {
            Piece::Kernel(it) => it.params(),
            Piece::Gemm(..) | Piece::Choice(..) => vec![],
        }
    }
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
            timer: Timer::empty(),
            buffers: BTreeMap::new(),
            next_buffer: 0,
            programs: vec![],
            cublas: None,
            cublas_lt: None,
            clock: None,
            flush: None,
            hung: None,
        };
        machine.enter()?;
        machine.timer.make()?;
        Ok(machine)
    }

    /// How many blocks of each launch a multiprocessor holds, as the driver computes it.
    ///
    /// # Errors
    /// As for running.
    pub fn resident_blocks(&self, program: ProgramId) -> Result<Vec<u32>, DeviceError> {
        self.enter()?;
        let Loaded::Kernels(kernels) = self.program(program)? else { return Ok(vec![]) };
        let blocks = kernels.functions.iter().map(|(function, launch)| {
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

    /// Makes the context that of the calling thread. Refuses once something hangs.
    fn enter(&self) -> Result<(), DeviceError> {
        if let Some(hang) = &self.hung {
            return Err(hang.clone());
        }
        // SAFETY: the context is alive.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn program(&self, id: ProgramId) -> Result<&Loaded, DeviceError> {
        let found = usize::try_from(id.0).ok().and_then(|it| self.programs.get(it)?.as_ref());
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
        self.programs.push(Some(loaded));
        ProgramId(u32::try_from(self.programs.len() - 1).expect("fewer than 2^32 programs"))
    }

    /// Runs a program that [`Machine::run`] may run.
    fn timed(&self, program: ProgramId, buffers: &[BufferId], calls: u32) -> Result<f64, DeviceError> {
        let calls = usize::try_from(calls).expect("32 bits fit");
        let mut pieces = Vec::new();
        let mut names = Vec::new();
        self.add_pieces(program, buffers, &mut pieces, &mut names)?;
        let params: Vec<_> = pieces.iter_mut().map(Piece::params).collect();
        self.timer.time(calls, pieces.len(), &names.join(", "), |at| match &pieces[at] {
            Piece::Kernel(launch) => launch.start(&params[at], self.timer.stream),
            Piece::Gemm(product, operands) => {
                let cublas = self.cublas.as_ref().expect("made when the product was loaded");
                // SAFETY: number, sizes and distinctness of the buffers were checked.
                unsafe { cublas.start(product, *operands) }
            }
            Piece::Choice(choice, operands) => {
                let cublas = self.cublas_lt.as_ref().expect("made when the product was loaded");
                // SAFETY: number, sizes and distinctness of the buffers were checked.
                unsafe { cublas.start(choice, *operands, self.timer.stream) }
            }
        })
    }

    /// Adds what a call of a program starts, and what that is called.
    fn add_pieces<'a>(
        &'a self,
        program: ProgramId,
        buffers: &[BufferId],
        pieces: &mut Vec<Piece<'a>>,
        names: &mut Vec<String>,
    ) -> Result<(), DeviceError> {
        match self.program(program)? {
            Loaded::Kernels(kernels) => {
                let all = self.addresses(buffers, &kernels.sizes)?;
                for (function, launch) in &kernels.functions {
                    pieces.push(Piece::Kernel(Prepared::new(*function, launch, &all)?));
                }
                names.push(kernels.names());
            }
            Loaded::Gemm(product) => {
                pieces.push(Piece::Gemm(product, self.operands(buffers, &product.bytes)?));
                names.push("the matrix product of cuBLAS".to_owned());
            }
            Loaded::Choice(choice) => {
                pieces.push(Piece::Choice(choice, self.operands(buffers, &choice.bytes)?));
                names.push("a matrix product of cuBLASLt".to_owned());
            }
            Loaded::Sequence(Sequence { parts, sizes }) => {
                self.addresses(buffers, sizes)?;
                for part in parts {
                    self.add_pieces(part.program, &part.of(buffers), pieces, names)?;
                }
            }
        }
        Ok(())
    }

    /// The addresses of A, B and C, once their number and sizes are right.
    fn operands(&self, ids: &[BufferId], sizes: &[usize; 3]) -> Result<[CUdeviceptr; 3], DeviceError> {
        let all = self.addresses(ids, sizes)?;
        Ok(<[_; 3]>::try_from(all).expect("three sizes were checked"))
    }
}

impl Machine for CudaMachine {
    fn info(&self) -> &MachineInfo {
        &self.info
    }

    fn load(&mut self, program: &Program) -> Result<ProgramId, DeviceError> {
        self.enter()?;
        super::check_program(program)?;
        let kernels = Kernels::load(self.device, &program.binary, program)?;
        Ok(self.push(Loaded::Kernels(kernels)))
    }

    fn load_gemm(&mut self, gemm: &Gemm) -> Result<ProgramId, DeviceError> {
        self.enter()?;
        let product = Product::new(gemm)?;
        if product.arithmetic.is_of_lt() {
            let choices = self.load_gemm_choices(gemm, 1)?;
            return Ok(*choices.first().expect("there is at least one, or an error"));
        }
        if self.cublas.is_none() {
            let cublas = Cublas::new(self.timer.stream)?;
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
        let timed = self.timed(program, buffers, calls);
        if let Err(hang @ DeviceError::Hang { .. }) = &timed {
            self.hung = Some(hang.clone());
        }
        timed
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
            check("cuMemsetD8Async", sys::cuMemsetD8Async(start, 0x5a, bytes, self.timer.stream))?;
            check("cuStreamSynchronize", sys::cuStreamSynchronize(self.timer.stream))
        }
    }

    fn set_threads(&mut self, _threads: usize) {}

    fn set_deadline(&mut self, seconds: Option<f64>) {
        self.timer.deadline = seconds;
    }

    fn clock_mhz(&mut self) -> Option<f64> {
        self.enter().ok()?;
        let clock = self.clock.get_or_insert_with(Clock::new).as_ref().ok()?;
        let mhz = clock.mhz(&self.timer);
        if let Err(hang @ DeviceError::Hang { .. }) = &mhz {
            self.hung = Some(hang.clone());
        }
        mhz.ok()?
    }

    fn load_gemm_choices(&mut self, gemm: &Gemm, most: usize) -> Result<Vec<ProgramId>, DeviceError> {
        self.enter()?;
        let product = Product::new(gemm)?;
        if self.cublas_lt.is_none() {
            let cublas = CublasLt::new()?;
            self.info.versions.push(("cuBLASLt".into(), cublas.version()));
            self.cublas_lt = Some(cublas);
        }
        let cublas = self.cublas_lt.as_ref().expect("made above");
        let choices = cublas.choices(product, most)?;
        Ok(choices.into_iter().map(|it| self.push(Loaded::Choice(it))).collect())
    }

    fn load_sequence(&mut self, parts: &[Part], sizes: &[usize]) -> Result<ProgramId, DeviceError> {
        self.enter()?;
        let sequence = Sequence::new(parts, sizes)?;
        Ok(self.push(Loaded::Sequence(sequence)))
    }

    fn unload(&mut self, program: ProgramId) {
        let place = usize::try_from(program.0).ok().and_then(|it| self.programs.get_mut(it));
        let Some(Loaded::Kernels(kernels)) = place.and_then(Option::take) else { return };
        // After `Lost` or `Hang` the module stays: the driver would fail or wait, and the process ends anyway.
        if self.enter().is_ok() {
            kernels.unload();
        }
    }
}

impl Drop for CudaMachine {
    fn drop(&mut self) {
        // After `Lost` these fail, and there is nothing to do about it. After `Hang` they would wait.
        if self.enter().is_err() {
            mem::forget((self.cublas.take(), self.cublas_lt.take()));
            return;
        }
        self.cublas = None;
        self.cublas_lt = None;
        if let Some(Ok(clock)) = self.clock.take() {
            clock.destroy();
        }
        for loaded in self.programs.drain(..).flatten() {
            match loaded {
                Loaded::Kernels(kernels) => kernels.unload(),
                Loaded::Gemm(_) | Loaded::Choice(_) | Loaded::Sequence(_) => {}
            }
        }
        for (start, _) in self.buffers.values().chain(&self.flush) {
            // SAFETY: the memory is ours and is not used afterwards.
            unsafe { sys::cuMemFree_v2(*start) };
        }
        self.timer.destroy();
        // SAFETY: it was retained when the machine was opened.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
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
