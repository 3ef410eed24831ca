//! Running the kernels.

use codegen::device::{
    BufferId, DeviceError, Launch, Machine, Program, ProgramId,
    nvrtc::{self, Compiled},
};
use indexmap::IndexMap;
use ir::Arch;

use super::{
    Calibration, Quantity, VERSION,
    probe::{Probe, Unit},
    probes::{MEMORY, Source, differences, probes, sources},
};
use crate::report::Stats;

/// How often each kernel runs.
const ROUNDS: usize = 31;
/// Bytes for the cycles of each block, and for what nobody reads.
const CYCLES: usize = 1 << 16;
const SINK: usize = 8 << 20;
/// Starts that follow each other.
const STARTS: u32 = 200;

/// A machine with the buffers that every kernel takes, and machine code by source.
struct Rig<'a> {
    machine: &'a mut dyn Machine,
    buffers: [BufferId; 3],
    code: IndexMap<&'static str, Vec<u8>>,
}

/// Measures what names of `only` are the beginning of, or all if there are none. `seen` is told what comes next.
///
/// # Errors
/// Where the machine is no GPU, there is no compiler, or the device is lost. What a kernel cannot do on this machine is left out and told.
pub fn calibrate(
    machine: &mut dyn Machine,
    only: &[String],
    time: String,
    seen: &mut dyn FnMut(&str),
) -> Result<Calibration, DeviceError> {
    let info = machine.info().clone();
    let arch = Arch::parse(&info.arch).ok_or_else(|| {
        DeviceError::Unsupported(format!("`{}` is no GPU: there is nothing to calibrate", info.arch))
    })?;
    let is_asked = |name: &str| only.is_empty() || only.iter().any(|it| name.starts_with(it.as_str()));
    let mut left_out = IndexMap::new();
    for it in sources() {
        if let Some(needs) = it.needs.filter(|needs| !arch.has(*needs)) {
            left_out.insert(it.name.to_owned(), format!("{arch} has no {needs:?}"));
        }
    }
    let all: Vec<Probe> = probes(&arch, info.units).into_iter().filter(|it| is_asked(&it.name)).collect();
    let buffers = [machine.alloc(CYCLES)?, machine.alloc(SINK)?, machine.alloc(MEMORY)?];
    let before = machine.clock_mhz();
    let mut rig = Rig { machine, buffers, code: IndexMap::new() };
    let mut measured = IndexMap::new();
    for it in &all {
        seen(&it.name);
        match rig.measure(it, &arch) {
            Ok(found) => {
                measured.insert(it.name.clone(), found);
            }
            Err(
                err @ (DeviceError::Lost { .. } | DeviceError::Hang { .. } | DeviceError::Missing { .. }),
            ) => {
                return Err(err);
            }
            Err(err) => {
                left_out.insert(it.name.clone(), err.to_string());
            }
        }
    }
    add_differences(&mut measured);
    let after = rig.machine.clock_mhz();
    for it in rig.buffers {
        rig.machine.free(it);
    }
    Ok(Calibration {
        v: VERSION,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        time,
        machine: info,
        clock_mhz: [before, after],
        rounds: ROUNDS,
        measured,
        left_out,
    })
}

/// Compiles a source.
pub(super) fn compile(source: &Source, arch: &Arch) -> Result<Compiled, DeviceError> {
    let text = format!("{}\n{}", include_str!("kernels/common.cu"), source.text);
    nvrtc::compile(&text, &format!("{}.cu", source.name), arch, &[])
}

impl Rig<'_> {
    fn measure(&mut self, probe: &Probe, arch: &Arch) -> Result<Quantity, DeviceError> {
        if !self.code.contains_key(probe.source) {
            let source = sources().into_iter().find(|it| it.name == probe.source).expect("it is in the list");
            self.code.insert(probe.source, compile(&source, arch)?.cubin);
        }
        if let Some((count, apart)) = probe.chain {
            let link = Probe {
                blocks: 64,
                threads: 256,
                stride: apart,
                ..Probe::chain("", "memory", "link", count)
            };
            let program = self.load(&link)?;
            self.machine.run(program, &self.buffers, 1)?;
            self.machine.unload(program);
        }
        let program = self.load(probe)?;
        let values = self.rounds(probe, program);
        self.machine.unload(program);
        let stats = Stats::of(&values?).expect("there are rounds");
        Ok(Quantity {
            unit: probe.unit.word(&probe.name).to_owned(),
            median: stats.median,
            low: stats.quartile_1,
            high: stats.quartile_3,
        })
    }

    fn rounds(&mut self, probe: &Probe, program: ProgramId) -> Result<Vec<f64>, DeviceError> {
        let mut out = vec![];
        // The first run brings code and data near and does not count.
        for round in 0..=ROUNDS {
            if probe.is_cold {
                self.machine.flush_cache()?;
            }
            let starts = if probe.unit == Unit::Microseconds { STARTS } else { 1 };
            let seconds = self.machine.run(program, &self.buffers, starts)?;
            let found = match probe.unit {
                Unit::Microseconds => seconds * 1e6 / f64::from(starts),
                Unit::Cycles | Unit::PerCycle { .. } => self.slowest(probe.blocks)?,
            };
            if round > 0 {
                out.push(probe.value(found));
            }
        }
        Ok(out)
    }

    /// The cycles of the slowest block.
    fn slowest(&mut self, blocks: u32) -> Result<f64, DeviceError> {
        let mut bytes = vec![0; 8 * usize::try_from(blocks).expect("32 bits fit")];
        self.machine.download(self.buffers[0], &mut bytes)?;
        let words = bytes.chunks_exact(8).map(|it| i64::from_le_bytes(it.try_into().expect("eight bytes")));
        Ok(words.max().unwrap_or(0) as f64)
    }

    fn load(&mut self, probe: &Probe) -> Result<ProgramId, DeviceError> {
        let map = probe.map(MEMORY);
        let launch = Launch {
            kernel: probe.kernel.clone(),
            grid: [probe.blocks, 1, 1],
            block: [probe.threads, 1, 1],
            shared_bytes: probe.shared,
            programmatic: false,
            maps: map.into_iter().collect(),
            buffers: vec![0, 1, 2],
            dims: vec![probe.steps, probe.stride, probe.bytes],
        };
        let binary = self.code[probe.source].clone();
        let buffers = vec![CYCLES, SINK, MEMORY];
        self.machine.load(&Program { binary, launches: vec![launch], buffers, zeroed: vec![] })
    }
}

/// Adds what follows from groups of few and of many products: the cycles of one more, and what a group takes beyond its products.
fn add_differences(measured: &mut IndexMap<String, Quantity>) {
    for (few, many, [small, large]) in differences() {
        let Some((a, b)) = measured.get(&few).cloned().zip(measured.get(&many).cloned()) else { continue };
        let name = few.split("_group").next().unwrap_or(&few).to_owned();
        let one = |low: f64, high: f64| (high - low) / (large - small);
        let beyond = |low: f64, high: f64| low - small * one(low, high);
        let add = |of: &dyn Fn(f64, f64) -> f64| Quantity {
            unit: Unit::Cycles.word("").to_owned(),
            median: of(a.median, b.median),
            low: of(a.low, b.low),
            high: of(a.high, b.high),
        };
        measured.insert(format!("{name}_cycles"), add(&one));
        measured.insert(format!("{name}_latency"), add(&beyond));
    }
}
