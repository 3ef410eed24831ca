//! What this processor is and what it can do, the latter measured.

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use super::{
    DeviceError, Launch, Machine as _, MachineInfo, Program, abi::CPU_ABI_HEADER, cc, cpu::CpuMachine,
};

/// The model, as the system names it.
pub(super) fn model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |key: &str| {
        let line = text.lines().find(|it| it.split(':').next().is_some_and(|it| it.trim() == key))?;
        Some(line.split_once(':')?.1.trim().to_owned()).filter(|it| !it.is_empty())
    };
    let name = field("model name").or_else(|| field("Hardware")).or_else(|| field("uarch"));
    name.unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

/// The cores this process may run on, two threads of one core counted once.
pub(super) fn cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    let siblings = cpu_dirs("topology/thread_siblings_list");
    if siblings.is_empty() { allowed } else { allowed.min(siblings.len()) }
}

/// The last-level cache in bytes; 32 MiB where the system does not tell.
pub(super) fn cache_bytes() -> usize {
    let read = |index: usize, what: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok()
    };
    let sizes = (0..8).filter_map(|index| {
        let level: u32 = read(index, "level")?.trim().parse().ok()?;
        let size = read(index, "size")?;
        let kib: usize = size.trim().strip_suffix('K')?.parse().ok()?;
        Some((level, kib * 1024))
    });
    sizes.max().map_or(32 << 20, |it| it.1)
}

/// The different contents of a file over all processors.
fn cpu_dirs(file: &str) -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    entries.filter_map(|it| fs::read_to_string(it.path().join(file)).ok()).collect()
}

/// Everything about this processor. Takes about a fifth of a second, for the two figures are measured: the compute
/// figure is the best of several short runs of independent fused multiply-adds on one core, times the cores, which is
/// an upper bound where a core is faster alone; the memory figure is the best of several passes of `a = b + s * c` over
/// arrays of twice the last-level cache on all threads, counting one write and two reads. Other programs that run
/// meanwhile lower both.
pub(super) fn measure() -> MachineInfo {
    let compiler = cc::find();
    let version = compiler.as_ref().ok().map(|it| it.version.clone());
    let peaks = compiler.and_then(|it| it.compile(&source())).and_then(|it| {
        let mut machine = CpuMachine::bare(0)?;
        let flops = flops_of_one_core(&mut machine, &it)?;
        Ok((flops, bytes_per_second(&mut machine, &it)?))
    });
    let (flops, bytes) = peaks.ok().unzip();
    let units = cores();
    MachineInfo {
        name: model(),
        arch: "cpu".into(),
        units: u32::try_from(units).expect("a machine has thousands of cores at most"),
        peak_f32_gflops: flops.map(|it| it * units as f64 / 1e9),
        peak_gb_per_s: bytes.map(|it| it / 1e9),
        cache_bytes: cache_bytes(),
        id: None,
        versions: version.into_iter().map(|it| ("cc".into(), it)).collect(),
    }
}

/// Twelve chains hide the latency of two units of four or five cycles, and fit sixteen registers with two operands.
const CHAINS: usize = 12;

fn source() -> String {
    let chains = |text: &dyn Fn(usize) -> String| (0..CHAINS).map(text).collect::<String>();
    let starts = chains(&|i| format!("  v a{i} = x * {i}.0f;\n"));
    let steps = chains(&|i| format!("    a{i} = a{i} * x + y;\n"));
    let sum = chains(&|i| format!(" + a{i}"));
    format!(
        "{CPU_ABI_HEADER}
#if defined(__AVX512F__)
enum {{ BYTES = 64 }};
#elif defined(__AVX__)
enum {{ BYTES = 32 }};
#else
enum {{ BYTES = 16 }};
#endif
typedef float v __attribute__((vector_size(BYTES)));

void tw_lanes(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {{
  *(float *)buffers[0] = (float)(BYTES / sizeof(float));
}}

void tw_fma(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {{
  float *p = buffers[0];
  v x = {{0}}, y = {{0}};
  x += p[0];
  y += p[1];
{starts}  for (int64_t i = 0; i < dims[0]; ++i) {{
{steps}  }}
  v sum = y{sum};
  p[2] = sum[0];
}}

struct triad {{ float *a; const float *b, *c; int64_t n; }};
static void triad_part(void *ctx, int64_t i) {{
  const struct triad *t = ctx;
  float *restrict a = t->a + i * t->n;
  const float *restrict b = t->b + i * t->n, *restrict c = t->c + i * t->n;
  for (int64_t j = 0; j < t->n; ++j) a[j] = b[j] + 3.0f * c[j];
}}
void tw_triad(void *const *buffers, const int64_t *dims, const tw_runtime *rt) {{
  struct triad t = {{buffers[0], buffers[1], buffers[2], dims[1]}};
  rt->parallel(rt, dims[0], triad_part, &t);
}}
"
    )
}

fn program(binary: &[u8], kernel: &str, buffers: Vec<usize>, dims: Vec<i64>) -> Program {
    let used = (0..buffers.len()).collect();
    let launch = Launch {
        kernel: kernel.into(),
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
        programmatic: false,
        maps: vec![],
        buffers: used,
        dims,
    };
    Program { binary: binary.to_vec(), launches: vec![launch], buffers, zeroed: vec![] }
}

fn flops_of_one_core(machine: &mut CpuMachine, binary: &[u8]) -> Result<f64, DeviceError> {
    let scratch = machine.alloc(256)?;
    let lanes = machine.load(&program(binary, "tw_lanes", vec![256], vec![]))?;
    machine.run(lanes, &[scratch], 1)?;
    let mut floats = [0; 4];
    machine.download(scratch, &mut floats)?;
    let lanes = f64::from(f32::from_ne_bytes(floats));

    // The chains settle near 1: no denormals, no overflow.
    machine.upload(scratch, [0.5f32, 0.5].map(f32::to_ne_bytes).as_flattened())?;
    let steps = 100_000;
    let chains = machine.load(&program(binary, "tw_fma", vec![256], vec![steps]))?;
    let flops = 2.0 * lanes * CHAINS as f64 * steps as f64;
    let best = best_of(Duration::from_millis(20), || machine.run(chains, &[scratch], 1))?;
    machine.free(scratch);
    Ok(flops / best)
}

fn bytes_per_second(machine: &mut CpuMachine, binary: &[u8]) -> Result<f64, DeviceError> {
    let threads = machine.threads();
    let bytes = (2 * cache_bytes()).clamp(32 << 20, 256 << 20);
    let each = bytes / 4 / threads;
    let dims = [threads, each].map(|it| i64::try_from(it).expect("at most 2^28"));
    let buffers = [machine.alloc(bytes)?, machine.alloc(bytes)?, machine.alloc(bytes)?];
    let triad = machine.load(&program(binary, "tw_triad", vec![bytes; 3], dims.to_vec()))?;
    let best = best_of(Duration::from_millis(80), || machine.run(triad, &buffers, 1))?;
    for it in buffers {
        machine.free(it);
    }
    Ok((3 * 4 * threads * each) as f64 / best)
}

/// The best time of as many runs as fit the time, at least five.
fn best_of(time: Duration, mut run: impl FnMut() -> Result<f64, DeviceError>) -> Result<f64, DeviceError> {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 5 || begin.elapsed() < time {
        best = best.min(run()?);
        runs += 1;
    }
    Ok(best.max(1e-9))
}
