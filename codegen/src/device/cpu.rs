//! This machine's processor as a [`Machine`].

#![expect(unsafe_code, reason = "emitted C and the matrix product are called on raw memory")]

use std::{collections::BTreeMap, ffi::c_void, sync::OnceLock, time::Instant};

use libloading::Library;

use super::{
    BufferId, DeviceError, Gemm, Launch, Machine, MachineInfo, Part, Program, ProgramId, Sequence,
    abi::{KernelFn, Runtime},
    cpu_gemm, cpu_info,
    cpu_memory::Memory,
    cpu_module::{Prepared, load_functions},
    cpu_pool::Pool,
};

/// This machine's processor. Programs are shared libraries of C, see [`CPU_ABI_HEADER`](super::CPU_ABI_HEADER).
pub struct CpuMachine {
    pool: Pool,
    info: OnceLock<MachineInfo>,
    buffers: BTreeMap<u32, Memory>,
    next_buffer: u32,
    /// By their handles. None for those that were unloaded: a handle never comes back.
    programs: Vec<Option<Loaded>>,
    flush: Option<Memory>,
}

enum Loaded {
    Kernels {
        calls: Vec<(KernelFn, Launch)>,
        sizes: Vec<usize>,
        /// Keeps the functions alive; dropped after them.
        _library: Library,
    },
    Gemm(Gemm, [usize; 3]),
    Sequence(Sequence),
}

impl CpuMachine {
    /// The machine with all its threads. Needs no compiler: programs come compiled.
    ///
    /// # Errors
    /// [`DeviceError::Call`] if threads cannot be started.
    pub fn open() -> Result<CpuMachine, DeviceError> {
        CpuMachine::bare(0)
    }

    pub(super) fn bare(threads: usize) -> Result<CpuMachine, DeviceError> {
        Ok(CpuMachine {
            pool: Pool::new(threads)?,
            info: OnceLock::new(),
            buffers: BTreeMap::new(),
            next_buffer: 0,
            programs: vec![],
            flush: None,
        })
    }

    /// How many threads programs use.
    pub fn threads(&self) -> usize {
        self.pool.threads
    }

    fn push(&mut self, loaded: Loaded) -> ProgramId {
        self.programs.push(Some(loaded));
        ProgramId(u32::try_from(self.programs.len() - 1).expect("fewer than 2^32 programs"))
    }

    fn memory(&self, id: BufferId) -> Result<&Memory, DeviceError> {
        self.buffers
            .get(&id.0)
            .ok_or_else(|| DeviceError::Unsupported(format!("there is no buffer {}", id.0)))
    }

    /// The addresses of a program's buffers, once their number and sizes are right.
    fn addresses(&self, ids: &[BufferId], sizes: &[usize]) -> Result<Vec<*mut c_void>, DeviceError> {
        super::check_buffers(ids, sizes, |id| Ok(self.memory(id)?.bytes))?;
        ids.iter().map(|it| Ok(self.memory(*it)?.start.cast())).collect()
    }
}

impl CpuMachine {
    /// Adds what a call of a program does.
    fn add_tasks<'a>(
        &'a self,
        program: ProgramId,
        buffers: &[BufferId],
        runtime: *const Runtime,
        tasks: &mut Vec<Task<'a>>,
    ) -> Result<(), DeviceError> {
        let loaded = usize::try_from(program.0).ok().and_then(|it| self.programs.get(it)?.as_ref());
        let loaded =
            loaded.ok_or_else(|| DeviceError::Unsupported(format!("there is no program {}", program.0)))?;
        match loaded {
            Loaded::Kernels { calls: kernels, sizes, .. } => {
                let all = self.addresses(buffers, sizes)?;
                tasks.extend(
                    kernels.iter().map(|(function, launch)| {
                        Task::Kernel(Prepared::new(*function, launch, &all, runtime))
                    }),
                );
            }
            Loaded::Gemm(gemm, sizes) => {
                tasks.push(Task::Gemm(gemm, Operands(self.addresses(buffers, sizes)?)));
            }
            Loaded::Sequence(Sequence { parts, sizes }) => {
                super::check_buffers(buffers, sizes, |id| Ok(self.memory(id)?.bytes))?;
                for part in parts {
                    self.add_tasks(part.program, &part.of(buffers), runtime, tasks)?;
                }
            }
        }
        Ok(())
    }
}

impl Machine for CpuMachine {
    /// The first call measures, which takes about a fifth of a second.
    fn info(&self) -> &MachineInfo {
        self.info.get_or_init(cpu_info::measure)
    }

    fn load(&mut self, program: &Program) -> Result<ProgramId, DeviceError> {
        super::check_program(program)?;
        let names = program.launches.iter().map(|it| it.kernel.as_str());
        let (library, functions) = load_functions(&program.binary, names)?;
        let calls = functions.into_iter().zip(program.launches.iter().cloned()).collect();
        Ok(self.push(Loaded::Kernels { calls, sizes: program.buffers.clone(), _library: library }))
    }

    fn load_gemm(&mut self, gemm: &Gemm) -> Result<ProgramId, DeviceError> {
        cpu_gemm::check(gemm)?;
        let sizes = cpu_gemm::sizes(gemm)
            .ok_or_else(|| DeviceError::Unsupported("the matrices are larger than memory can be".into()))?;
        Ok(self.push(Loaded::Gemm(*gemm, sizes)))
    }

    fn alloc(&mut self, bytes: usize) -> Result<BufferId, DeviceError> {
        let memory = Memory::new(bytes)?;
        let id = self.next_buffer;
        self.next_buffer += 1;
        self.buffers.insert(id, memory);
        Ok(BufferId(id))
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer.0);
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), DeviceError> {
        super::check_copy(bytes.len(), self.memory(buffer)?.bytes)?;
        let memory = self.buffers.get_mut(&buffer.0).expect("found above");
        memory.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let memory = self.memory(buffer)?;
        super::check_copy(bytes.len(), memory.bytes)?;
        bytes.copy_from_slice(&memory.as_slice()[..bytes.len()]);
        Ok(())
    }

    fn run(&mut self, program: ProgramId, buffers: &[BufferId], calls: u32) -> Result<f64, DeviceError> {
        let runtime = self.pool.runtime();
        let mut tasks = Vec::new();
        self.add_tasks(program, buffers, &raw const runtime, &mut tasks)?;
        let threads = self.pool.threads;
        Ok(self.pool.install(|| time(calls, || tasks.iter().for_each(|it| it.call(threads)))))
    }

    fn load_sequence(&mut self, parts: &[Part], sizes: &[usize]) -> Result<ProgramId, DeviceError> {
        let sequence = Sequence::new(parts, sizes)?;
        Ok(self.push(Loaded::Sequence(sequence)))
    }

    fn flush_cache(&mut self) -> Result<(), DeviceError> {
        let flush = match self.flush.take() {
            Some(it) => it,
            None => Memory::new(2 * cpu_info::cache_bytes())?,
        };
        let flush = self.flush.insert(flush);
        // Each thread writes a part, so that the caches of every core are overwritten and not only one's.
        let part = flush.bytes.div_ceil(self.pool.threads).max(1);
        let bytes = flush.as_mut_slice();
        let value = bytes[0].wrapping_add(1);
        if self.pool.threads == 1 {
            bytes.fill(value);
            return Ok(());
        }
        self.pool.install(|| {
            rayon::scope(|scope| {
                bytes.chunks_mut(part).for_each(|it| scope.spawn(move |_| it.fill(value)));
            });
        });
        Ok(())
    }

    fn set_threads(&mut self, threads: usize) {
        // A pool that cannot be started leaves the one there is: the number is a limit.
        if let Ok(pool) = Pool::new(threads) {
            self.pool = pool;
        }
    }

    fn unload(&mut self, program: ProgramId) {
        let place = usize::try_from(program.0).ok().and_then(|it| self.programs.get_mut(it));
        place.and_then(Option::take);
    }
}

/// The seconds that so many calls take.
fn time(calls: u32, mut call: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..calls).for_each(|_| call());
    begin.elapsed().as_secs_f64()
}

/// A piece of a program.
enum Task<'a> {
    Kernel(Prepared<'a>),
    Gemm(&'a Gemm, Operands),
}

impl Task<'_> {
    fn call(&self, threads: usize) {
        match self {
            Task::Kernel(it) => it.call(),
            Task::Gemm(gemm, operands) => operands.multiply(gemm, threads),
        }
    }
}

/// The addresses of A, B and C.
struct Operands(Vec<*mut c_void>);

// SAFETY: it is made on one thread and used on another of the pool while the first waits.
unsafe impl Sync for Operands {}

impl Operands {
    fn multiply(&self, gemm: &Gemm, threads: usize) {
        let [a, b, c] = self.0[..] else { unreachable!("three sizes were checked") };
        // SAFETY: the sizes were checked, and no buffer stands twice in the list.
        unsafe { cpu_gemm::run(gemm, a.cast(), b.cast(), c.cast(), threads) }
    }
}
