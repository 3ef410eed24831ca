//! A job handler that breaks the programs of chosen screens.

use std::{fs, io, path::PathBuf, process};

use codegen::device::{CPU_ABI_HEADER, DeviceError, Launch, Program, cc, nvrtc};
use ir::{Role, Target};
use tilewright_tuner::{
    build::Problem,
    log::{ErrorKind, Stage, TrialError},
    protocol::{Binary, Hello, Outcome, Task},
    worker::{Device, DeviceHandler, JobHandler, WorkerLimits, claim_output, prepare, serve},
};

/// What is done instead of a screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    OutOfBounds,
    Loop,
    Trap,
    Misaligned,
    Wrong,
    Nothing,
    Panic,
    Exit,
}

const WORDS: [(&str, Fault); 8] = [
    ("oob", Fault::OutOfBounds),
    ("loop", Fault::Loop),
    ("trap", Fault::Trap),
    ("misaligned", Fault::Misaligned),
    ("wrong", Fault::Wrong),
    ("nothing", Fault::Nothing),
    ("panic", Fault::Panic),
    ("exit", Fault::Exit),
];

/// The job handler of production, and the faults to inject.
struct FaultyHandler {
    inner: DeviceHandler,
    faults: Vec<(Fault, u64)>,
    state: PathBuf,
}

/// Runs the worker; the error is about the arguments or the input.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (mut device, mut faults, mut state) = (Device::Cuda(0), vec![], None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--device" => device = Device::parse(value()?).ok_or("--device is a number, or cpu")?,
            "--compile-only" => device = Device::None,
            "--fault" => faults.push(fault(value()?)?),
            "--state" => state = Some(PathBuf::from(value()?)),
            _ => return Err(format!("there is no `{argument}`")),
        }
    }
    let state = state.ok_or("--state FILE is needed: it counts the screens")?;
    prepare(if device == Device::None { WorkerLimits::Compile } else { WorkerLimits::Measure });
    let mut output = claim_output().map_err(|err| err.to_string())?;
    let mut handler = FaultyHandler { inner: DeviceHandler::new(device), faults, state };
    serve(io::stdin(), &mut output, &mut handler).map_err(|err| err.to_string())
}

/// Reads `oob@5`.
fn fault(text: &str) -> Result<(Fault, u64), String> {
    let words = || format!("`{text}` is no fault, such as oob@5");
    let (kind, number) = text.split_once('@').ok_or_else(words)?;
    let kind = WORDS.iter().find(|it| it.0 == kind).ok_or_else(words)?.1;
    Ok((kind, number.parse().map_err(|_| words())?))
}

impl FaultyHandler {
    /// The number of a screen, from 1.
    fn count(&self) -> io::Result<u64> {
        let before = fs::read_to_string(&self.state).ok().and_then(|it| it.trim().parse().ok());
        let number = before.unwrap_or(0u64) + 1;
        fs::write(&self.state, number.to_string())?;
        Ok(number)
    }
}

impl JobHandler for FaultyHandler {
    fn hello(&mut self) -> Hello {
        Hello { tool: "faulty worker".to_owned(), ..self.inner.hello() }
    }

    fn perform(&mut self, task: &Task) -> Result<Outcome, TrialError> {
        let Task::Screen { problem, how, .. } = task else { return self.inner.perform(task) };
        let failed = |err: &dyn ToString| TrialError::new(Stage::Run, ErrorKind::Internal, &err.to_string());
        let number = self.count().map_err(|err| failed(&err))?;
        let Some((fault, _)) = self.faults.iter().find(|it| it.1 == number).copied() else {
            return self.inner.perform(task);
        };
        assert!(fault != Fault::Panic, "this is what was asked for");
        if fault == Fault::Exit {
            process::exit(3);
        }
        let program = spoiled(self.inner.problem(problem)?, fault).map_err(|err| failed(&err))?;
        let (problem, how) = (problem.clone(), how.clone());
        self.inner.perform(&Task::Screen { problem, program: Binary::of(&program), how })
    }
}

/// A program with the buffers of a problem that does something else.
fn spoiled(problem: &Problem, fault: Fault) -> Result<Program, DeviceError> {
    let func = &problem.case.func;
    let params: Vec<_> = func.buffers.values().filter(|it| it.role != Role::Temp).collect();
    let bytes = |it: &&&ir::Buffer| {
        let sizes = it.shape.iter().map(|it| it.eval(&|dim| problem.case.dims.get(dim).copied()));
        let count =
            sizes.map(|it| it.and_then(|it| usize::try_from(it).ok()).unwrap_or(0)).product::<usize>();
        count * it.dtype.bytes()
    };
    let buffers: Vec<usize> = params.iter().map(|it| bytes(&it)).collect();
    let output = params.iter().position(|it| it.role == Role::Output).unwrap_or(0);
    let size = buffers[output];
    let (binary, grid, block) = match &problem.target {
        Target::Cpu => (cc::find()?.compile(&c_source(fault, size))?, [1; 3], [1; 3]),
        Target::Cuda(arch) => {
            let compiled = nvrtc::compile(&cuda_source(fault, size), "faulty.cu", arch, &[])?;
            (compiled.cubin, [256, 1, 1], [256, 1, 1])
        }
    };
    let kernel = "faulty".to_owned();
    let launch = Launch {
        kernel,
        grid,
        block,
        shared_bytes: 0,
        programmatic: false,
        maps: vec![],
        buffers: vec![output],
        dims: vec![],
    };
    Ok(Program { binary, launches: vec![launch], buffers, zeroed: vec![] })
}

fn c_source(fault: Fault, size: usize) -> String {
    let body = match fault {
        Fault::OutOfBounds => "out[1ll << 46] = 1;",
        Fault::Loop => "for (;;) (void)out[0];",
        Fault::Trap => "abort();",
        Fault::Misaligned => "*(volatile int *)(out + 1) = 1;",
        Fault::Wrong => "for (int64_t i = 0; i < size; i++) out[i] = 0x3f;",
        Fault::Nothing | Fault::Panic | Fault::Exit => "",
    };
    format!(
        "{CPU_ABI_HEADER}
extern void abort(void);
void faulty(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {{
  const int64_t size = {size};
  volatile unsigned char *out = buffers[0];
  (void)dims, (void)rt, (void)size, (void)out;
  {body}
}}
"
    )
}

fn cuda_source(fault: Fault, size: usize) -> String {
    let body = match fault {
        Fault::OutOfBounds => "out[1ull << 44] = 1;",
        // The condition never holds, which the compiler cannot know of memory that may change.
        Fault::Loop => "while (out[0] != 1 || out[0] != 2) { }",
        Fault::Trap => "asm volatile(\"trap;\");",
        Fault::Misaligned => "*(volatile int *)(out + 1) = 1;",
        Fault::Wrong => {
            "for (unsigned long long i = blockIdx.x * 256ull + threadIdx.x; i < size; i += 65536) out[i] = 0x3f;"
        }
        Fault::Nothing | Fault::Panic | Fault::Exit => "",
    };
    format!(
        "extern \"C\" __global__ void faulty(volatile unsigned char *out) {{
  const unsigned long long size = {size}ull;
  (void)size;
  {body}
}}
"
    )
}
