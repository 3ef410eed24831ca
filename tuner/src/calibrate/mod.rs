//! Latencies and rates of a GPU, measured on it: what the table in `ir::arch` is made of.
//!
//! Small kernels, compiled by NVRTC, read the clock of their multiprocessor, so that all but the time of a launch is in cycles and no
//! frequency counts. A latency is that of operations of which each waits for the one before; a rate is what one multiprocessor moves or
//! computes in a cycle while all (global memory, boxes) or one (all else) are at it.

mod cycles;
mod measure;
mod probe;
mod probes;
mod products;
mod table;

use codegen::device::{DeviceError, MachineInfo, nvrtc};
use indexmap::IndexMap;
use ir::Arch;
use serde::{Deserialize, Serialize};

use crate::json_number;
pub use cycles::cycles;
pub use measure::calibrate;
pub use table::{Row, rows};

/// What was measured of a GPU, with all that tells whether it can be compared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// The version of this format.
    pub v: u32,
    /// The version of tilewright.
    pub tool: String,
    /// When, as RFC 3339 in UTC. The caller reads the clock.
    pub time: String,
    /// The GPU, its driver and its compiler.
    pub machine: MachineInfo,
    /// The clock of its multiprocessors before and after, in MHz; nothing where it cannot be told.
    pub clock_mhz: [Option<f64>; 2],
    /// How often each kernel ran.
    pub rounds: usize,
    /// What came out, by name.
    pub measured: IndexMap<String, Quantity>,
    /// What was not measured, and why.
    pub left_out: IndexMap<String, String>,
}

/// A number that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantity {
    /// Of what it is: `cycles`, `bytes a cycle`, `operations a cycle`, `a cycle`, `us`.
    pub unit: String,
    /// The median over the rounds.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub median: f64,
    /// The first quartile.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub low: f64,
    /// The third.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub high: f64,
}

/// The version of the format that this build writes.
const VERSION: u32 = 1;

/// Compiles all kernels for an architecture and runs none: whether NVRTC takes them, with the registers of each.
///
/// # Errors
/// As [`nvrtc::compile`].
pub fn compiled(arch: &Arch) -> Result<Vec<(&'static str, nvrtc::Compiled)>, DeviceError> {
    let sources = probes::sources().into_iter().filter(|it| it.needs.is_none_or(|needs| arch.has(needs)));
    sources.map(|it| Ok((it.name, measure::compile(&it, arch)?))).collect()
}

#[cfg(test)]
mod tests;
