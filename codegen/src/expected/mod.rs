//! How many cycles a kernel takes, and what limits it: the lowered kernel played on a clock, with what `tilewright calibrate` measured.
//!
//! A *team* is warps that go in step: a warpgroup of a role, or all threads of a block. Teams run their statements one after the other and keep
//! resources for a time; boxes, products and stores that threads do not wait for go on beside them, and mbarriers, barriers and turns let them wait for
//! each other as they do on the GPU. What is played are the blocks that one multiprocessor holds at once; those that follow take as long. Where data
//! decide how long a loop is, where no warpgroups multiply, and where an architecture was not measured, nothing is expected.

pub mod accesses;
mod cost;
mod play;
mod rates;
mod server;
mod sync;
mod team;
mod work;

use std::collections::HashMap;

use indexmap::IndexMap;
use ir::{Arch, Instr, Kernel, Module, Name, Op, Scope, ThreadAxis, axis_var};
use serde::Serialize;

use crate::{
    device::{Resources, occupancy},
    launch::shared_layout,
};
use play::Play;
use rates::Rates;
pub use rates::Resource;
use team::Team;

/// What is expected of a kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// The kernel.
    pub kernel: Name,
    /// The record of `bench/latency` that it is worked out from.
    pub record: &'static str,
    /// Cycles from one start to the next.
    pub cycles: f64,
    /// Blocks that the multiprocessor with most of them runs in all.
    pub blocks: i64,
    /// How many of them it runs at once.
    pub resident: i64,
    /// Its pipelined loops that run long enough to have a pace.
    pub loops: Vec<ExpectedLoop>,
}

/// What is expected of a loop.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectedLoop {
    /// Its variable.
    pub var: Name,
    /// Cycles from one iteration to the next.
    pub interval: f64,
    /// For how many of them each resource is busy, the busiest first.
    pub busy: Vec<(Resource, f64)>,
    /// Cycles from the request for a box to the end of the products that read it.
    pub chain: f64,
}

impl ExpectedLoop {
    /// The resource that limits it; none where it is the waiting for each other that does.
    pub fn limit(&self) -> Option<Resource> {
        self.busy.first().filter(|it| it.1 >= LIMITS * self.interval).map(|it| it.0)
    }
}

/// What part of the time a resource is busy that limits a loop.
const LIMITS: f64 = 0.95;
/// Registers of a thread for addresses and loop variables, where no compiler tells how many there are.
const BASE_REGISTERS: i64 = 32;

/// Plays a kernel and its pipelined loops on a GPU with so many multiprocessors; `compiled` is what a compiler told of it.
pub fn expected(
    (module, kernel): (&Module, &Kernel),
    vars: &[Name],
    dims: &IndexMap<Name, i64>,
    (arch, units): (&Arch, i64),
    compiled: Option<&Resources>,
) -> Option<Expected> {
    let rates = Rates::of(arch)?;
    if !multiplies_by_warpgroups(kernel) {
        return None;
    }
    let module = module.clone().with_remainders();
    let kernel = module.kernels.iter().find(|it| it.name == kernel.name)?;
    let mut env: HashMap<Name, i64> = dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
    let mut grid = 1i64;
    for axis in ThreadAxis::ALL {
        env.insert(axis_var(axis), 0);
    }
    for (_, extent) in kernel.launch.iter().filter(|it| !it.0.is_thread()) {
        grid = grid.checked_mul(extent.eval(&|it| dims.get(it).copied())?)?;
    }
    let blocks = ((grid + units - 1) / units).max(1);
    let together = resident(kernel, arch, compiled)?.min(blocks);
    let teams =
        (0..usize::try_from(together).ok()?).flat_map(|number| Team::all(kernel, &env, number)).collect();
    let mut play = Play::new((&module, kernel), &rates, units, teams, vars);
    let cycles = play.run()?;
    let loops = vars.iter().filter_map(|var| play.expected_loop(var)).collect();
    let rounds = blocks as f64 / together as f64;
    let cycles = rates.launch() + rounds * cycles + (rounds - 1.0) * rates.block();
    let record = rates.record();
    Some(Expected { kernel: kernel.name.clone(), record, cycles, blocks, resident: together, loops })
}

/// Whether warpgroups multiply in it: of kernels whose warps hide each other's latencies nobody compared what is expected with what is measured.
fn multiplies_by_warpgroups(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.iter().for_each(|op| op.each_instr(&mut |it| found |= matches!(it, Instr::Wgmma(_))));
    found
}

/// How many blocks a multiprocessor holds.
fn resident(kernel: &Kernel, arch: &Arch, compiled: Option<&Resources>) -> Option<i64> {
    let threads = u32::try_from(kernel.threads()).ok()?;
    let shared = u32::try_from(shared_layout(kernel).1).ok()?;
    let mut held = 0;
    for op in &kernel.body {
        op.walk(&mut |op| match op {
            Op::Alloc(it) if matches!(it.scope, Scope::Local | Scope::Fragment) => {
                held += it.elements() * it.dtype.bytes_i64() / 4;
            }
            _ => {}
        });
    }
    let registers = u32::try_from(held + BASE_REGISTERS).ok()?.min(arch.caps().registers_per_thread);
    let estimate = Resources { registers, ..Resources::default() };
    let found = occupancy(compiled.unwrap_or(&estimate), threads, shared, arch)?;
    Some(i64::from(found.blocks).max(1))
}
