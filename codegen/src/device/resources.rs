//! What a compiled CUDA kernel needs, and how many blocks of it a multiprocessor holds.

use std::fmt;

use ir::{Arch, Caps};
use serde::{Deserialize, Serialize};

/// What one kernel needs, as ptxas tells.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resources {
    /// The name of the kernel.
    pub kernel: String,
    /// Registers of each thread.
    pub registers: u32,
    /// The stack frame of each thread in bytes: arrays that did not become registers, and spills.
    pub stack_bytes: u32,
    /// Bytes of registers that each thread writes to memory for want of registers.
    pub spill_store_bytes: u32,
    /// Bytes of such registers that each thread reads back.
    pub spill_load_bytes: u32,
    /// Shared memory of each block in bytes, the part that is fixed in the source.
    pub static_shared_bytes: u32,
    /// Hardware barriers of each block.
    pub barriers: u32,
    /// Constant memory in bytes, the parameters included.
    pub constant_bytes: u32,
    /// What ptxas warned of, such as `Potential Performance Loss`, in its words.
    pub warnings: Vec<String>,
}

/// What keeps more blocks from being resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Limit {
    Registers,
    Shared,
    Threads,
    Blocks,
    Barriers,
}

/// How full a multiprocessor gets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Occupancy {
    /// The blocks that are resident together. Zero: not even one fits, and a launch fails.
    pub blocks: u32,
    /// Their warps.
    pub warps: u32,
    /// The warps that a multiprocessor can hold.
    pub max_warps: u32,
    /// What keeps more blocks out; several where they are equally tight.
    pub limited_by: Vec<Limit>,
}

/// How many blocks of `threads` threads a multiprocessor holds, each with `dynamic_shared` bytes on top of what the
/// kernel declares. `None` for an architecture whose limits are not known here.
///
/// The rules are those of NVIDIA's `cuda_occupancy.h`. Registers are given to warps in units, out of equal partitions; a
/// launch is refused unless the block would fit with its warps rounded up to a multiple of the partitions. Shared memory
/// is given in units, too, and the system keeps some of it for each block.
pub fn occupancy(it: &Resources, threads: u32, dynamic_shared: u32, arch: &Arch) -> Option<Occupancy> {
    let caps = arch.known_caps()?;
    let block_warps = threads.max(1).div_ceil(Arch::WARP);
    let by_barriers = match (caps.barriers_per_sm, it.barriers) {
        (None, _) | (_, 0) => u32::MAX,
        (Some(all), barriers) => all / barriers,
    };
    let by_threads = if threads > Arch::MAX_THREADS { 0 } else { caps.warps_per_sm / block_warps };

    let bounds = [
        (Limit::Registers, by_registers(it.registers, block_warps, caps)),
        (Limit::Shared, by_shared(i64::from(it.static_shared_bytes) + i64::from(dynamic_shared), caps)),
        (Limit::Threads, by_threads),
        (Limit::Blocks, caps.blocks_per_sm),
        (Limit::Barriers, by_barriers),
    ];
    let blocks = bounds.iter().map(|it| it.1).min().expect("there are five");
    let limited_by = bounds.iter().filter(|it| it.1 == blocks).map(|it| it.0).collect();
    Some(Occupancy { blocks, warps: blocks * block_warps, max_warps: caps.warps_per_sm, limited_by })
}

/// How many blocks of so many warps the registers are enough for.
fn by_registers(registers: u32, block_warps: u32, caps: &Caps) -> u32 {
    if registers > caps.registers_per_thread {
        return 0;
    }
    let of_warp = (registers.max(1) * Arch::WARP).next_multiple_of(caps.register_unit);
    let most_warps = Arch::MAX_THREADS / Arch::WARP;
    let assumed = block_warps.min(most_warps).next_multiple_of(caps.partitions);
    if of_warp * assumed > caps.registers_per_block {
        return 0;
    }
    caps.partitions * (caps.registers_per_sm / caps.partitions / of_warp) / block_warps
}

/// How many blocks with so many bytes of shared memory fit.
fn by_shared(wanted: i64, caps: &Caps) -> u32 {
    let unit = i64::from(caps.shared_unit);
    match (wanted + i64::from(caps.reserved_shared) + unit - 1) / unit * unit {
        _ if wanted > i64::from(caps.max_shared_per_block) => 0,
        0 => u32::MAX,
        taken => {
            let blocks = i64::from(caps.shared_per_sm) / taken;
            u32::try_from(blocks).expect("at most the shared bytes, a u32")
        }
    }
}

/// Reads what each kernel needs out of a log of `ptxas -v`. Lines it does not know are passed over; a number that is
/// not printed is zero, which is how ptxas says zero.
pub fn parse_log(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = vec![];
    // Properties are also printed for functions that kernels call; those are not kernels' own.
    let mut in_kernel = true;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or(rest).to_owned();
            kernels.push(Resources { kernel, ..Resources::default() });
            in_kernel = true;
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            in_kernel = kernels.last().is_some_and(|it| it.kernel == name.trim());
        } else if let Some(last) = kernels.last_mut().filter(|_| in_kernel) {
            read_numbers(line, last);
        }
    }
    for line in log.lines().filter(|it| is_warning(it)) {
        let words = line.split_once(" : ").map_or(line, |(_, words)| words).trim();
        let about = |it: &Resources| line.contains(&format!("'{}'", it.kernel));
        let named = kernels.iter().any(about);
        // A warning that names no kernel is about all of them, as far as can be told.
        kernels.iter_mut().filter(|it| !named || about(it)).for_each(|it| it.warnings.push(words.into()));
    }
    kernels
}

fn is_warning(line: &str) -> bool {
    line.contains("Potential Performance Loss") || line.contains("ptxas warning")
}

/// Reads `0 bytes stack frame, 0 bytes spill stores` and `Used 10 registers, used 1 barriers, 384 bytes cmem[0]`.
fn read_numbers(line: &str, out: &mut Resources) {
    let facts = line.rsplit(" : ").next().unwrap_or(line);
    for fact in facts.split(',') {
        let words: Vec<_> = fact.split_whitespace().collect();
        let Some(at) = words.iter().position(|it| it.parse::<u32>().is_ok()) else { continue };
        let number = words[at].parse().unwrap_or_default();
        match words[at + 1..] {
            ["registers"] => out.registers = number,
            ["barriers"] => out.barriers = number,
            ["bytes", "stack", "frame"] => out.stack_bytes = number,
            ["bytes", "spill", "stores"] => out.spill_store_bytes = number,
            ["bytes", "spill", "loads"] => out.spill_load_bytes = number,
            ["bytes", "smem"] => out.static_shared_bytes = number,
            ["bytes", bank] if bank.starts_with("cmem") => out.constant_bytes += number,
            _ => {}
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Registers => "registers",
            Limit::Shared => "shared memory",
            Limit::Threads => "threads",
            Limit::Blocks => "blocks",
            Limit::Barriers => "barriers",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arch(sm: u32) -> Arch {
        Arch { sm, suffix: None }
    }

    /// Recorded from NVRTC 13.0 for sm_90a.
    const WGMMA: &str = "\
ptxas info    : (C7519) warpgroup.arrive is injected in around line 60 by compiler to allow use of registers in \
GMMA in function 'serial'
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient \
register resources for the wgmma pipeline in the function 'serial'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'serial' for 'sm_90a'
ptxas info    : Function properties for serial
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
";

    /// Recorded from NVRTC 13.0 for sm_80, the last kernel for sm_90a.
    const SPILLS: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'reverse' for 'sm_80'
ptxas info    : Function properties for reverse
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 9 registers, used 1 barriers, 512 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'indexed' for 'sm_80'
ptxas info    : Function properties for indexed
ptxas         .     128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 31 registers, used 0 barriers, 128 bytes cumulative stack size, 368 bytes cmem[0]
ptxas info    : Compiling entry function 'heavy' for 'sm_90a'
ptxas info    : Function properties for heavy
ptxas         .     288 bytes stack frame, 560 bytes spill stores, 604 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 288 bytes cumulative stack size
";

    /// The form of older compilers, which leave zeros out, indent the facts without a mark and tell of the functions
    /// that a kernel calls.
    const OLD: &str = "\
ptxas info    : 0 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'caller' for 'sm_80'
ptxas info    : Function properties for caller
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, 384 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for helper
    32 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
";

    #[test]
    fn logs() {
        insta::assert_debug_snapshot!("log_wgmma", parse_log(WGMMA));
        insta::assert_debug_snapshot!("log_spills", parse_log(SPILLS));
        insta::assert_debug_snapshot!("log_old", parse_log(OLD));
        assert_eq!(parse_log(""), []);
        assert_eq!(parse_log("ptxas info    : Used 99999999999 registers\n: , ,\n"), []);
    }

    /// Architecture, registers, static shared, barriers; threads, dynamic shared; what is expected.
    struct Case(u32, [u32; 3], [u32; 2], u32, &'static [Limit]);

    #[test]
    fn occupancies() {
        use Limit::{Barriers, Blocks, Registers, Shared, Threads};
        #[rustfmt::skip]
        let table = [
            Case(90, [32, 0, 0], [1024, 0], 2, &[Registers, Threads]),
            Case(90, [33, 0, 0], [1024, 0], 1, &[Registers]),
            Case(90, [65, 0, 0], [1024, 0], 0, &[Registers]),
            Case(90, [16, 0, 0], [32, 0], 32, &[Blocks]),
            Case(90, [16, 0, 3], [32, 0], 21, &[Barriers]),
            Case(80, [16, 0, 3], [32, 0], 32, &[Blocks]),
            Case(90, [168, 0, 4], [384, 226 * 1024], 1, &[Registers, Shared]),
            Case(90, [168, 0, 4], [384, 0], 1, &[Registers]),
            Case(90, [128, 0, 0], [256, 0], 2, &[Registers]),
            Case(90, [128, 0, 0], [256, 113 * 1024], 2, &[Registers, Shared]),
            Case(90, [64, 0, 0], [128, 227 * 1024], 1, &[Shared]),
            Case(90, [64, 0, 0], [128, 227 * 1024 + 1], 0, &[Shared]),
            // 40 registers are 1280 a warp: 12 warps in each partition, 48 in all, seven a block.
            Case(80, [40, 0, 0], [224, 0], 6, &[Registers]),
            Case(80, [255, 0, 0], [256, 0], 1, &[Registers]),
            Case(80, [255, 0, 0], [288, 0], 0, &[Registers]),
            Case(80, [32, 16384, 0], [256, 0], 8, &[Registers, Threads]),
            Case(80, [32, 0, 0], [128, 9 * 1024], 16, &[Registers, Shared, Threads]),
            Case(86, [16, 0, 0], [64, 0], 16, &[Blocks]),
            Case(86, [40, 0, 0], [256, 0], 6, &[Registers, Threads]),
            Case(89, [16, 0, 0], [64, 0], 24, &[Threads, Blocks]),
            Case(120, [64, 0, 0], [256, 99 * 1024], 1, &[Shared]),
            Case(75, [32, 0, 0], [256, 16 * 1024], 4, &[Shared, Threads]),
            // There are as many barriers as resident blocks, on sm_100 twice as many.
            Case(100, [16, 0, 3], [32, 0], 21, &[Barriers]),
            Case(103, [16, 0, 3], [32, 0], 10, &[Barriers]),
            // Shared memory is given in units of 256 bytes before sm_80.
            Case(75, [16, 0, 0], [32, 51 * 128], 9, &[Shared]),
            Case(90, [300, 0, 0], [32, 0], 0, &[Registers]),
            Case(90, [16, 0, 0], [1025, 0], 0, &[Threads]),
            Case(90, [u32::MAX, u32::MAX, u32::MAX], [u32::MAX, u32::MAX], 0, &[Registers, Shared, Threads, Barriers]),
        ];
        for Case(sm, [registers, static_shared_bytes, barriers], [threads, dynamic], blocks, limits) in table
        {
            let needs = Resources { registers, static_shared_bytes, barriers, ..Resources::default() };
            let got = occupancy(&needs, threads, dynamic, &arch(sm)).unwrap();
            let case = format!("sm_{sm}, {registers} registers, {threads} threads, {dynamic} bytes");
            assert_eq!((got.blocks, &*got.limited_by), (blocks, limits), "{case}");
            assert_eq!(got.warps, blocks * threads.div_ceil(32), "{case}");
        }
        assert_eq!(occupancy(&Resources::default(), 128, 0, &arch(95)), None);
    }
}
