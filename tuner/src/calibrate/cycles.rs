//! How many cycles of its multiprocessors a program takes, whatever their clock is at.

use codegen::device::{BufferId, DeviceError, Launch, Machine, Part, Program, ProgramId};
use ir::Arch;

use super::measure::compile;
use super::probes::stamp;
use crate::report::Stats;

/// How often the program runs in a round, one after the other, and how many rounds there are.
const CALLS: usize = 4;
const ROUNDS: usize = 9;
/// Bytes for the clocks of all multiprocessors.
const CLOCKS: usize = 1 << 13;

/// The cycles from one start of a program to the next, on buffers that it may take. Every multiprocessor tells its clock in front of some calls
/// and behind them; that of the median one counts, less what the same takes without the program.
///
/// # Errors
/// Where the machine is no GPU, or a call fails.
pub fn cycles(
    machine: &mut dyn Machine,
    program: ProgramId,
    (sizes, buffers): (&[usize], &[BufferId]),
) -> Result<Stats, DeviceError> {
    let (units, arch) = (machine.info().units, machine.info().arch.clone());
    let arch = Arch::parse(&arch)
        .ok_or_else(|| DeviceError::Unsupported(format!("`{arch}` is no GPU: it has no cycles to count")))?;
    let launch = Launch {
        kernel: "stamp".to_owned(),
        grid: [units, 1, 1],
        block: [32, 1, 1],
        shared_bytes: arch.caps().shared_per_sm / 2,
        programmatic: false,
        maps: vec![],
        buffers: vec![0, 1, 2],
        dims: vec![0; 3],
    };
    let own = [CLOCKS; 4];
    let binary = compile(&stamp(), &arch)?.cubin;
    let stamp = machine.load(&Program {
        binary,
        launches: vec![launch],
        buffers: own[..3].to_vec(),
        zeroed: vec![],
    })?;
    let mine = own.map(|bytes| machine.alloc(bytes));
    let mut all = buffers.to_vec();
    for it in mine {
        all.push(it?);
    }
    let sizes = [sizes, &own].concat();
    let first = buffers.len();
    let tell = |at: usize| Part { program: stamp, buffers: vec![first + at, first + 2, first + 3] };
    let part = Part { program, buffers: (0..first).collect() };
    let mut between = |calls: usize| -> Result<Vec<f64>, DeviceError> {
        let parts: Vec<Part> =
            [tell(0)].into_iter().chain(vec![part.clone(); calls]).chain([tell(1)]).collect();
        let sequence = machine.load_sequence(&parts, &sizes)?;
        let mut out = vec![];
        // The first round brings code and data near, and does not count.
        for round in 0..=ROUNDS {
            machine.run(sequence, &all, 1)?;
            let clocks = [read(machine, all[first], units)?, read(machine, all[first + 1], units)?];
            let mut took: Vec<i64> = clocks[1].iter().zip(&clocks[0]).map(|(b, a)| b - a).collect();
            took.sort_unstable();
            out.extend((round > 0).then(|| took[took.len() / 2] as f64));
        }
        machine.unload(sequence);
        Ok(out)
    };
    let (without, with) = (between(0)?, between(CALLS)?);
    let none = Stats::of(&without).expect("there are rounds").median;
    let each: Vec<f64> = with.iter().map(|it| (it - none) / CALLS as f64).collect();
    machine.unload(stamp);
    all[first..].iter().for_each(|it| machine.free(*it));
    Ok(Stats::of(&each).expect("there are rounds"))
}

/// What the multiprocessors told.
fn read(machine: &mut dyn Machine, buffer: BufferId, units: u32) -> Result<Vec<i64>, DeviceError> {
    let mut bytes = vec![0; 8 * usize::try_from(units).expect("32 bits fit")];
    machine.download(buffer, &mut bytes)?;
    Ok(bytes.chunks_exact(8).map(|it| i64::from_le_bytes(it.try_into().expect("eight bytes"))).collect())
}
