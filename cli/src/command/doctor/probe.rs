//! Questions that a process of its own answers: it loads libraries, asks a driver, runs a compiler.

use std::{fmt, time::Duration};

use codegen::device::{
    CPU_ABI_HEADER, CpuMachine, CudaMachine, DeviceError, Launch, Machine, MachineInfo, Program, cc, cublas,
    disasm, nvrtc,
};
use ir::Arch;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tuner::worker::{WorkerLimits, prepare};

/// What to find out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Probe {
    /// The C compiler: whether it makes a program that loads and computes. Gives [`Compiler`].
    Compiler,
    /// The processor and what it can do. Gives a [`MachineInfo`].
    Processor,
    /// NVRTC, and whether it compiles. Gives [`Nvrtc`].
    Nvrtc,
    /// cuBLAS. Gives its path.
    Cublas,
    /// What prints machine code as text. Gives its path.
    Disassembler,
    /// A GPU by its number. Gives a [`MachineInfo`].
    Gpu(u32),
}

/// What the process prints.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Found(Value),
    Refused { error: String, help: Option<String> },
}

/// What came of a probe.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Probed {
    Found(Value),
    /// It is not there, or does not do what it should.
    Refused {
        error: String,
        help: Option<String>,
    },
    /// The process said nothing for so long.
    Hung(Duration),
    /// The process ended without an answer, like this.
    Died(String),
}

/// A C compiler that works.
#[derive(Serialize, Deserialize)]
pub(super) struct Compiler {
    pub(super) command: Vec<String>,
    pub(super) version: String,
}

/// NVRTC.
#[derive(Serialize, Deserialize)]
pub(super) struct Nvrtc {
    pub(super) path: String,
    pub(super) version: (u32, u32),
    pub(super) archs: Vec<u32>,
    /// Why it does not compile, if it does not.
    pub(super) broken: Option<String>,
}

impl Probe {
    /// The word on the command line.
    pub(super) fn word(self) -> String {
        match self {
            Probe::Compiler => "compiler".to_owned(),
            Probe::Processor => "processor".to_owned(),
            Probe::Nvrtc => "nvrtc".to_owned(),
            Probe::Cublas => "cublas".to_owned(),
            Probe::Disassembler => "disassembler".to_owned(),
            Probe::Gpu(n) => format!("gpu:{n}"),
        }
    }

    pub(super) fn parse(word: &str) -> Result<Probe, String> {
        let gpu = word.strip_prefix("gpu:").and_then(|it| it.parse().ok()).map(Probe::Gpu);
        let plain = [Probe::Compiler, Probe::Processor, Probe::Nvrtc, Probe::Cublas, Probe::Disassembler];
        let found = gpu.or(plain.into_iter().find(|it| it.word() == word));
        found.ok_or_else(|| "there is no such probe".to_owned())
    }

    /// How long the process may take. A driver may have to be loaded and a GPU to be woken first.
    pub(super) fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Probe::Compiler | Probe::Processor | Probe::Nvrtc | Probe::Cublas | Probe::Disassembler => 30,
            Probe::Gpu(_) => 40,
        })
    }

    /// The work of the process.
    pub(super) fn answer(self) -> Answer {
        prepare(WorkerLimits::Measure);
        let found = match self {
            Probe::Compiler => compiler(),
            Probe::Processor => CpuMachine::open().map(|it| fact(it.info())),
            Probe::Nvrtc => nvrtc::find().map(|it| fact(&try_nvrtc(it))),
            Probe::Cublas => cublas::find().map(|it| json!(it.display().to_string())),
            Probe::Disassembler => disasm::find().map(|it| json!(it.path.display().to_string())),
            Probe::Gpu(n) => gpu(n).map(|it| fact(&it)),
        };
        match found {
            Ok(facts) => Answer::Found(facts),
            Err(err) => Answer::Refused { error: err.to_string(), help: err.help() },
        }
    }
}

fn fact(it: &impl Serialize) -> Value {
    serde_json::to_value(it).expect("facts are plain data")
}

impl Probed {
    /// The facts, or the words for why there are none, and what helps.
    pub(super) fn facts<T: for<'a> Deserialize<'a>>(self) -> Result<T, (String, Option<String>)> {
        match self {
            Probed::Found(it) => serde_json::from_value(it)
                .map_err(|err| (format!("the answer of the probe cannot be read: {err}"), None)),
            Probed::Refused { error, help } => Err((error, help)),
            Probed::Hung(_) | Probed::Died(_) => Err((self.to_string(), None)),
        }
    }
}

impl fmt::Display for Probed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Probed::Found(_) => f.write_str("found"),
            Probed::Refused { error, .. } => f.write_str(error),
            Probed::Hung(limit) => write!(f, "no answer within {} s", limit.as_secs()),
            Probed::Died(status) => write!(f, "asking for it ended the process that did ({status})"),
        }
    }
}

/// Compiles, loads and runs a program, as every measurement does.
fn compiler() -> Result<Value, DeviceError> {
    let compiler = cc::find()?;
    let source = format!(
        "{CPU_ABI_HEADER}
void doctor(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {{
  *(int64_t *)buffers[0] = dims[0] * dims[0];
}}
"
    );
    let binary = compiler.compile(&source)?;
    let mut machine = CpuMachine::open()?;
    let launch = Launch {
        kernel: "doctor".into(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        programmatic: false,
        maps: vec![],
        buffers: vec![0],
        dims: vec![12],
    };
    let program =
        machine.load(&Program { binary, launches: vec![launch], buffers: vec![8], zeroed: vec![] })?;
    let buffer = machine.alloc(8)?;
    machine.run(program, &[buffer], 1)?;
    let mut bytes = [0; 8];
    machine.download(buffer, &mut bytes)?;
    if i64::from_ne_bytes(bytes) != 144 {
        let reason = "a small program computed a wrong number".to_owned();
        return Err(DeviceError::Call { call: compiler.command.join(" "), reason });
    }
    Ok(fact(&Compiler { command: compiler.command, version: compiler.version }))
}

/// NVRTC reads a part of itself, its builtins, only when it compiles.
fn try_nvrtc(it: nvrtc::NvrtcInfo) -> Nvrtc {
    let arch = Arch { sm: it.archs.iter().copied().find(|it| *it >= 80).unwrap_or(80), suffix: None };
    let source = "extern \"C\" __global__ void doctor(int *out) { *out = threadIdx.x; }\n";
    let compiled = nvrtc::compile(source, "doctor.cu", &arch, &[]);
    Nvrtc {
        path: it.path.display().to_string(),
        version: it.version,
        archs: it.archs,
        broken: compiled.err().map(|err| err.to_string()),
    }
}

fn gpu(n: u32) -> Result<MachineInfo, DeviceError> {
    Ok(CudaMachine::open(n)?.info().clone())
}
