//! One kernel that is timed, and what its cycles say.

use codegen::device::MapSpec;

/// What is started, and what it tells.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Probe {
    /// What comes out is called so.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// The kernel, and the source that it is in.
    pub(super) kernel: String,
    pub(super) source: &'static str,
    /// Blocks, threads of each and bytes of its shared memory.
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) shared: u32,
    /// Whether the second-level cache is filled with something else before.
    pub(super) is_cold: bool,
    /// The rows of 128 bytes of a box, if the kernel takes a tensor map.
    pub(super) rows: Option<u32>,
    pub(super) steps: i64,
    pub(super) stride: i64,
    pub(super) bytes: i64,
    /// The chain that has to be in memory: how many elements, and how far apart.
    pub(super) chain: Option<(i64, i64)>,
    /// How many operations the kernel does, or how much a block moves or computes.
    pub(super) amount: f64,
}

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// Cycles of one operation, of which each waits for the one before.
    Cycles,
    /// So much in a cycle of one multiprocessor; the slowest block counts.
    PerCycle { blocks_per_unit: u32 },
    /// Microseconds from one start of a kernel to the next.
    Microseconds,
}

impl Unit {
    /// What the number is of.
    pub(super) fn word(self, name: &str) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::Microseconds => "us",
            Unit::PerCycle { .. } if name.contains("bytes") => "bytes a cycle",
            Unit::PerCycle { .. } if name.contains("flops") => "operations a cycle",
            Unit::PerCycle { .. } => "a cycle",
        }
    }
}

impl Probe {
    /// A kernel of one thread whose operations wait for each other.
    pub(super) fn chain(name: impl Into<String>, source: &'static str, kernel: &str, steps: i64) -> Probe {
        Probe {
            name: name.into(),
            unit: Unit::Cycles,
            kernel: kernel.to_owned(),
            source,
            blocks: 1,
            threads: 1,
            shared: 0,
            is_cold: false,
            rows: None,
            steps,
            stride: 0,
            bytes: 0,
            chain: None,
            amount: steps as f64,
        }
    }

    /// One by which one block, or all of them, do so much each.
    pub(super) fn rate(name: impl Into<String>, source: &'static str, kernel: &str, amount: f64) -> Probe {
        let unit = Unit::PerCycle { blocks_per_unit: 1 };
        Probe { unit, amount, ..Probe::chain(name, source, kernel, 0) }
    }

    /// The map that it takes: rows of 128 bytes, as many as there is memory.
    pub(super) fn map(&self, memory: usize) -> Option<MapSpec> {
        let rows = self.rows?;
        Some(MapSpec {
            name: "map".to_owned(),
            buffer: 2,
            dtype: ir::DType::F16,
            dims: vec![memory as u64 / 128, 64],
            strides: vec![128, 2],
            tile: vec![rows, 64],
            swizzle: 128,
        })
    }

    /// What its cycles say.
    pub(super) fn value(&self, cycles: f64) -> f64 {
        match self.unit {
            Unit::Cycles => cycles / self.amount,
            Unit::PerCycle { blocks_per_unit } => self.amount * f64::from(blocks_per_unit) / cycles,
            Unit::Microseconds => cycles,
        }
    }
}
