//! Devices: what runs a compiled program. The one interface that measurement and worker processes use.
//!
//! A [`Machine`] owns memory and loaded programs and hands out small handles, so that the same calls can later
//! travel to a worker process. `unsafe` lives in the modules below and nowhere else in tilewright.

mod abi;
mod callable;
mod callable_cpu;
mod callable_cuda;
pub mod cc;
mod cpu;
mod cpu_gemm;
mod cpu_info;
mod cpu_memory;
mod cpu_module;
mod cpu_pool;
pub mod cublas;
mod cublas_lt;
mod cublas_product;
mod cuda;
mod cuda_clock;
mod cuda_context;
mod cuda_driver;
mod cuda_graph;
mod cuda_launch;
mod cuda_module;
mod cuda_wait;
pub mod disasm;
mod gemm;
mod locate;
pub mod nvrtc;
mod peak;
mod resources;
mod tensor_map;

pub use abi::CPU_ABI_HEADER;
pub use callable::{Borrowed, Stream};
pub use callable_cpu::CpuCallable;
pub use callable_cuda::{CudaCallable, cuda_arch, wait_for};
pub use cpu::CpuMachine;
pub use cpu_pool::MOST_THREADS;
pub use cuda::CudaMachine;
pub use cuda_context::device_of_address;
pub use gemm::Gemm;
pub use resources::{Limit, Occupancy, Resources, occupancy, parse_log};
pub use tensor_map::{DriverWord, MapWords};

use serde::{Deserialize, Serialize};

/// A buffer on a machine. Valid until freed or until the machine is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct BufferId(pub u32);

/// A program loaded on a machine. Valid until the machine is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ProgramId(pub u32);

/// A program ready to load: machine code and how to launch it. Symbolic dimensions have their values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// A cubin or PTX for CUDA, a shared library for the CPU.
    pub binary: Vec<u8>,
    /// The launches, in order.
    pub launches: Vec<Launch>,
    /// The size of each global buffer in bytes: inputs and outputs in parameter order, then workspace.
    pub buffers: Vec<usize>,
    /// Which of them, by number, hold zeros before the first run; every run leaves them so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zeroed: Vec<usize>,
}

/// One kernel launch (on a CPU: one call).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// The name of the function in the binary.
    pub kernel: String,
    /// Blocks on x, y, z; ones on a CPU.
    pub grid: [u32; 3],
    /// Threads on x, y, z; ones on a CPU.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Whether it starts before what is ahead of it in the stream has ended: the function waits for that by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
    /// The tensor maps that the function takes first, each by value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<MapSpec>,
    /// Which of the program's buffers the function takes, in order.
    pub buffers: Vec<usize>,
    /// The symbolic dimensions, which the function takes after the buffers as 64-bit integers.
    pub dims: Vec<i64>,
}

/// A tensor in a buffer as the copy engine of a GPU sees it. Dimensions are in the order of their strides, the innermost last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MapSpec {
    /// Its name in the kernel, for messages.
    pub name: String,
    /// Which of the program's buffers it starts with.
    pub buffer: usize,
    /// The type of the elements.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dtype: ir::DType,
    /// How many elements there are in each dimension.
    pub dims: Vec<u64>,
    /// The bytes between neighbours in each dimension; in the last, those of an element.
    pub strides: Vec<u64>,
    /// How many elements a box has in each dimension.
    pub tile: Vec<u32>,
    /// The bytes of the rows that a swizzle permutes chunks within, in shared memory; zero for none.
    pub swizzle: u32,
}

/// A program as a part of a sequence of programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The program.
    pub program: ProgramId,
    /// Which of the buffers of the sequence it takes, in its own order.
    pub buffers: Vec<usize>,
}

/// Programs that run one after the other, as one.
struct Sequence {
    parts: Vec<Part>,
    /// The bytes of each buffer.
    sizes: Vec<usize>,
}

/// What a machine is, for records, rooflines and `doctor`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineInfo {
    /// The model, as the system names it.
    pub name: String,
    /// `cpu`, or the CUDA architecture to compile for (`sm_90a`).
    pub arch: String,
    /// Cores, or multiprocessors.
    pub units: u32,
    /// The most f32 operations per second with all units at their highest clock, in GFLOPS, without matrix units.
    /// Computed from the clock on a GPU, measured on one core and multiplied on a CPU. `None` where it cannot be told.
    pub peak_f32_gflops: Option<f64>,
    /// The most bytes per second to and from main or device memory, in GB/s. Computed from clock and bus width on a
    /// GPU, measured on all cores of a CPU. `None` where it cannot be told.
    pub peak_gb_per_s: Option<f64>,
    /// The last-level cache (L2 on a GPU) in bytes. Flushing writes twice this.
    pub cache_bytes: usize,
    /// The versions of driver, compiler and libraries, name and version.
    pub versions: Vec<(String, String)>,
    /// What tells a GPU from all others, those of its model too, as `nvidia-smi -L` begins it: `GPU-5c1f2a3b`. A processor has
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What went wrong on a machine or while preparing one.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DeviceError {
    /// A library that is loaded at run time is not there.
    #[error("{what} was not found")]
    Missing {
        /// What is missing, in words: `the CUDA driver (libcuda)`.
        what: String,
        /// How to get it.
        help: String,
    },
    /// A compiler is there and does not work.
    #[error("{what} ran and failed: {status}")]
    Broken {
        /// What was run, in words.
        what: String,
        /// How it ended, and the first line of what it said.
        status: String,
        /// What to do about it.
        help: String,
    },
    /// The compiler refused the source: a bug in tilewright unless the target is wrong.
    #[error("{compiler} refused the emitted source:\n{log}")]
    Compile {
        /// Which compiler.
        compiler: String,
        /// What it printed.
        log: String,
    },
    /// A call of a driver or library failed.
    #[error("{call} failed: {reason}")]
    Call {
        /// The call, in the library's own name.
        call: String,
        /// The library's own word.
        reason: String,
    },
    /// A call failed in a way that no later call in this process recovers from: a kernel read or wrote where it
    /// must not, or trapped. The process must be started anew.
    #[error("{call} failed and the device is lost to this process: {reason}")]
    Lost {
        /// The call that reported it; the cause is a kernel that ran before.
        call: String,
        /// The library's own word.
        reason: String,
    },
    /// A program did not end in the time that [`Machine::set_deadline`] allows. On a GPU it may still run: the process
    /// must be started anew.
    #[error("{what} did not end within {seconds} s")]
    Hang {
        /// What ran.
        what: String,
        /// The deadline.
        seconds: f64,
    },
    /// The machine cannot do what was asked.
    #[error("{0}")]
    Unsupported(String),
}

/// The call that loads a compiled program.
const DLOPEN: &str = "dlopen";

ir::codes!(DeviceError {
    Missing = 3001,
    Compile = 3002,
    Call = 3003,
    Lost = 3004,
    Hang = 3005,
    Unsupported = 3006,
    Broken = 3007,
});

impl DeviceError {
    /// What to do about it, if there is one thing to say.
    pub fn help(&self) -> Option<String> {
        match self {
            DeviceError::Missing { help, .. } | DeviceError::Broken { help, .. } => Some(help.clone()),
            // How the C libraries say that the folder's file system lets no program run.
            DeviceError::Call { call, reason }
                if call == DLOPEN && (reason.contains("map segment") || reason.contains("not permitted")) =>
            {
                let words = "the temporary folder may be mounted so that programs in it do not run (noexec): \
                             `export TMPDIR=$HOME/tmp && mkdir -p $TMPDIR`";
                Some(words.into())
            }
            DeviceError::Lost { .. } => Some("start the process again; its GPU memory is gone".into()),
            DeviceError::Hang { .. } => Some("start the process again; the program may still run".into()),
            DeviceError::Compile { .. } | DeviceError::Call { .. } | DeviceError::Unsupported(_) => None,
        }
    }
}

/// A machine that runs programs. Calls block until their work is done.
pub trait Machine {
    /// What it is.
    fn info(&self) -> &MachineInfo;

    /// Loads a program.
    fn load(&mut self, program: &Program) -> Result<ProgramId, DeviceError>;

    /// Prepares the vendor library's matrix product, which then runs as a program over buffers A, B, C.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where the library has no such product, [`DeviceError::Missing`] where there
    /// is no library.
    fn load_gemm(&mut self, gemm: &Gemm) -> Result<ProgramId, DeviceError>;

    /// Takes memory, aligned to 256 bytes, contents undefined.
    fn alloc(&mut self, bytes: usize) -> Result<BufferId, DeviceError>;

    /// Gives memory back.
    fn free(&mut self, buffer: BufferId);

    /// Copies to the start of a buffer.
    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies from the start of a buffer.
    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Runs a program `calls` times back to back and gives the time of all calls in seconds: device events on a
    /// GPU, the monotonic clock on a CPU. `buffers` has one entry for each of the program's buffers.
    fn run(&mut self, program: ProgramId, buffers: &[BufferId], calls: u32) -> Result<f64, DeviceError>;

    /// Overwrites a buffer of twice the last-level cache, so that the next run starts cold.
    fn flush_cache(&mut self) -> Result<(), DeviceError>;

    /// Limits the CPU threads that programs use, 0 for all, to no more than [`MOST_THREADS`]. A GPU ignores it.
    fn set_threads(&mut self, threads: usize);

    /// How long one call of [`Machine::run`] may take, in seconds; none for ever. Where a machine cannot stop waiting,
    /// as on a CPU, it ignores it, and whoever started the process has to end it.
    fn set_deadline(&mut self, _seconds: Option<f64>) {}

    /// The clock of the multiprocessors right now, in MHz, from counters that a small kernel reads; none where it
    /// cannot be told.
    fn clock_mhz(&mut self) -> Option<f64> {
        None
    }

    /// The vendor library's ways to compute a product, at most so many, its own first choice first. Each runs like
    /// the program of [`Machine::load_gemm`].
    ///
    /// # Errors
    /// As for [`Machine::load_gemm`].
    fn load_gemm_choices(&mut self, gemm: &Gemm, _most: usize) -> Result<Vec<ProgramId>, DeviceError> {
        Ok(vec![self.load_gemm(gemm)?])
    }

    /// Joins programs to one that runs them in this order on buffers of these sizes in bytes. They stay programs of their
    /// own: the sequence ends to work when one of them is unloaded.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where a part takes a buffer that the sequence has not.
    fn load_sequence(&mut self, _parts: &[Part], _sizes: &[usize]) -> Result<ProgramId, DeviceError> {
        Err(DeviceError::Unsupported("this machine has no sequences of programs".into()))
    }

    /// Forgets a program; its handle is then invalid.
    fn unload(&mut self, _program: ProgramId) {}
}

/// Refuses a program whose parts do not fit together.
fn check_program(program: &Program) -> Result<(), DeviceError> {
    for launch in &program.launches {
        let taken = launch.maps.iter().map(|it| it.buffer).chain(launch.buffers.iter().copied());
        if let Some(bad) = taken.into_iter().find(|it| *it >= program.buffers.len()) {
            let (kernel, count) = (&launch.kernel, program.buffers.len());
            return Err(DeviceError::Unsupported(format!(
                "`{kernel}` takes buffer {bad} of a program with {count}"
            )));
        }
    }
    Ok(())
}

impl Sequence {
    /// Refuses parts that take what is not there. Whether what they take is large enough is seen when they run.
    fn new(parts: &[Part], sizes: &[usize]) -> Result<Sequence, DeviceError> {
        let taken = parts.iter().flat_map(|it| &it.buffers);
        if let Some(bad) = taken.copied().find(|it| *it >= sizes.len()) {
            let count = sizes.len();
            return Err(DeviceError::Unsupported(format!(
                "a part takes buffer {bad} of a sequence with {count}"
            )));
        }
        Ok(Sequence { parts: parts.to_vec(), sizes: sizes.to_vec() })
    }
}

impl Part {
    /// The buffers of the part among those of its sequence.
    fn of(&self, all: &[BufferId]) -> Vec<BufferId> {
        self.buffers.iter().map(|it| all[*it]).collect()
    }
}

/// Refuses buffers that are not as many, as large and as distinct as a program needs.
fn check_buffers(
    ids: &[BufferId],
    sizes: &[usize],
    size_of: impl Fn(BufferId) -> Result<usize, DeviceError>,
) -> Result<(), DeviceError> {
    if ids.len() != sizes.len() {
        let (needed, got) = (sizes.len(), ids.len());
        return Err(DeviceError::Unsupported(format!("the program takes {needed} buffers, not {got}")));
    }
    for (n, (id, needed)) in ids.iter().zip(sizes).enumerate() {
        let got = size_of(*id)?;
        if got < *needed {
            let words = format!("the program's buffer {n} needs {needed} bytes; buffer {} has {got}", id.0);
            return Err(DeviceError::Unsupported(words));
        }
        if ids[..n].contains(id) {
            let words = format!("buffer {} is passed twice; the program's buffers must not overlap", id.0);
            return Err(DeviceError::Unsupported(words));
        }
    }
    Ok(())
}

/// Refuses a copy of more than a buffer holds.
fn check_copy(bytes: usize, buffer: usize) -> Result<(), DeviceError> {
    if bytes <= buffer {
        return Ok(());
    }
    Err(DeviceError::Unsupported(format!("a copy of {bytes} bytes does not fit a buffer of {buffer}")))
}
