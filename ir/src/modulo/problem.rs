//! What is asked when a loop is to be pipelined, and what bounds every answer.

use std::collections::BTreeSet;

use super::{
    elsewhere::elsewhere,
    threads::Threads,
    work::{Pace, Resource, Work, extent, work},
};
use crate::{
    Arch, Block, Func, Loop, Name, intrin,
    pipeline::{DependenceGraph, PipelineError, dependences},
};

/// A loop, with all that the search has to know of it.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) arch: Arch,
    pub(super) names: Vec<Name>,
    pub(super) work: Vec<Work>,
    pub(super) edges: Vec<Edge>,
    /// The temporaries of which iterations may have their own.
    pub(super) rings: Vec<Ring>,
    pub(super) threads: Threads,
    /// How many iterations there are, if that is known.
    pub(super) trips: Option<f64>,
    /// 32-bit registers of a thread that hold what is no ring's, about.
    registers: f64,
    /// Bytes of shared memory that the rest of the kernel takes, and whether it does so at the same time.
    elsewhere: (f64, bool),
}

/// That a component has to come after another one of so many iterations before, by their places in program order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Edge {
    pub(super) src: usize,
    pub(super) dst: usize,
    pub(super) distance: i64,
    /// Whether it uses what that has made, and not only its place.
    pub(super) is_flow: bool,
}

/// A temporary of which iterations may have their own.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) is_shared: bool,
    /// Bytes of one slot: of a block of threads, or of one thread for registers.
    pub(super) bytes: f64,
    /// The blocks of the loop that fill it.
    pub(super) blocks: Vec<Name>,
    pub(super) writers: Vec<usize>,
    pub(super) users: Vec<usize>,
}

/// Registers for addresses and loop variables.
const BASE_REGISTERS: f64 = 32.0;
/// By how much latencies of global memory grow at most.
const MOST_LOAD: f64 = 2.0;

impl Problem {
    /// Of a loop; nothing where a size is not known.
    pub(super) fn of(func: &Func, var: &Name, arch: &Arch) -> Result<Option<Problem>, PipelineError> {
        let graph = match dependences(func, var, true) {
            // A pipeline inside is taken as a whole where it is not written out in parts.
            Err(PipelineError::NoParts { .. } | PipelineError::OneComponent { .. }) => {
                dependences(func, var, false)?
            }
            other => other?,
        };
        let path = func.path_to_loop(var);
        let path = path.ok_or_else(|| PipelineError::NoPipeline { name: var.clone() })?;
        let Some((it, around)) = path.split_last() else { return Ok(None) };
        let Some(threads) = Threads::of(around, it) else { return Ok(None) };
        let all = graph.components.iter().map(|it| work(func, it, &threads, arch));
        let Some(work) = all.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let edges = edges(&graph, &work);
        let rings = rings(func, it, &graph.private, &work);
        let registers = BASE_REGISTERS + held(func, &graph.private, &work) / 4.0;
        let elsewhere = elsewhere(func, it, around, &graph.private);
        let names = graph.components.iter().map(|it| it.name.clone()).collect();
        let (trips, arch) = (extent(&it.extent), arch.clone());
        Ok(Some(Problem { arch, names, work, edges, rings, threads, trips, registers, elsewhere }))
    }

    /// The least interval between iterations of one block that resources allow, and which of them bounds it.
    pub(super) fn of_resources(&self) -> (Resource, f64) {
        let busy = |at: usize| self.work.iter().map(|it| it.busy[at]).sum::<f64>();
        let all = Resource::ALL.into_iter().enumerate().map(|(at, it)| (it, busy(at)));
        all.reduce(|a, b| if b.1 > a.1 { b } else { a }).expect("there are resources")
    }

    /// The least interval that dependences round a circle of iterations allow.
    pub(super) fn of_recurrences(&self) -> f64 {
        let own = self.work.iter().map(|it| it.chain).fold(0.0, f64::max);
        let most: f64 = self.work.iter().map(|it| it.longest().1 + it.latency).sum();
        let (mut low, mut high) = (own, own.max(most));
        // What an interval allows, every longer one does.
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high);
            if self.allows(middle) { high = middle } else { low = middle }
        }
        if self.allows(low) { low } else { high }
    }

    /// Whether times can be given to all components so that every dependence is kept at an interval.
    fn allows(&self, interval: f64) -> bool {
        let mut times = vec![0.0; self.work.len()];
        for _ in 0..=self.work.len() {
            let mut changed = false;
            for it in &self.edges {
                let takes =
                    if it.is_flow { self.work[it.src].longest().1 + self.work[it.src].latency } else { 0.0 };
                let least = times[it.src] + takes - interval * it.distance as f64;
                if times[it.dst] + 1e-6 < least {
                    times[it.dst] = least;
                    changed = true;
                }
            }
            if !changed {
                return true;
            }
        }
        false
    }

    /// Bytes of shared memory with so many slots of each ring.
    pub(super) fn shared(&self, slots: &[i64]) -> f64 {
        let rings = self.rings.iter().zip(slots).filter(|it| it.0.is_shared);
        let rings = rings.map(|(it, slots)| it.bytes * *slots as f64).sum::<f64>();
        let (others, is_together) = self.elsewhere;
        if is_together { rings + others } else { rings.max(others) }
    }

    /// How many blocks a multiprocessor holds with so many slots of each ring, about; none where they do not fit.
    pub(super) fn resident(&self, slots: &[i64]) -> f64 {
        let caps = self.arch.caps();
        let shared = self.shared(slots);
        if shared > f64::from(caps.max_shared_per_block) {
            return 0.0;
        }
        let rings = self.rings.iter().zip(slots).filter(|it| !it.0.is_shared);
        let registers = self.registers + rings.map(|(it, slots)| it.bytes / 4.0 * *slots as f64).sum::<f64>();
        let registers = (registers.min(f64::from(caps.registers_per_thread)) / 8.0).ceil() * 8.0;
        let by_registers = f64::from(caps.registers_per_sm) / (registers * self.threads.count);
        let by_shared = f64::from(caps.shared_per_sm) / (shared + f64::from(caps.reserved_shared));
        let by_threads = f64::from(caps.threads_per_sm()) / self.threads.count;
        let least = by_registers.min(by_shared).min(by_threads).min(f64::from(caps.blocks_per_sm));
        // A script that asks for more registers than there are is the compiler's to judge.
        if by_shared < 1.0 { 0.0 } else { least.floor().max(1.0) }
    }

    /// How many blocks of the grid a multiprocessor runs in all.
    pub(super) fn share(&self) -> f64 {
        (self.threads.blocks / f64::from(self.arch.caps().usual_units)).ceil().max(1.0)
    }

    /// Whether a component brings from global memory what others wait for.
    pub(super) fn is_fetch(&self, at: usize) -> bool {
        self.is_wanted(at) && self.work[at].busy[0] > 0.0
    }

    /// Whether a component brings something into registers that others wait for.
    pub(super) fn is_load(&self, at: usize) -> bool {
        self.is_wanted(at) && self.work[at].busy[0] <= 0.0
    }

    fn is_wanted(&self, at: usize) -> bool {
        let is_used = self.edges.iter().any(|edge| edge.src == at && edge.is_flow);
        is_used && matches!(self.work[at].pace, Pace::Copy(_) | Pace::Move)
    }

    /// By how much copies from global memory take longer than on an idle machine: they queue, the more the more of
    /// its rate is used.
    pub(super) fn load(&self) -> f64 {
        let busy: f64 = self.work.iter().map(|it| it.busy[0]).sum();
        let used = busy / self.of_resources().1.max(1.0);
        (1.0 / (1.0 - used).max(0.01)).min(MOST_LOAD)
    }
}

fn edges(graph: &DependenceGraph, work: &[Work]) -> Vec<Edge> {
    let edge = |it: &crate::pipeline::Dependence| {
        let is_flow = work[it.src].writes.iter().any(|name| work[it.dst].reads.contains(name));
        Edge { src: it.src, dst: it.dst, distance: it.distance, is_flow }
    };
    graph.dependences.iter().map(edge).collect()
}

fn rings(func: &Func, it: &Loop, private: &BTreeSet<Name>, work: &[Work]) -> Vec<Ring> {
    let ring = |name: &Name| {
        let places = |used: &dyn Fn(&Work) -> bool| -> Vec<usize> {
            (0..work.len()).filter(|at| used(&work[*at])).collect()
        };
        let writers = places(&|it| it.writes.contains(name));
        let users = places(&|it| it.writes.contains(name) || it.reads.contains(name));
        let is_shared = func.buffers.get(name)?.scope.is_of_blocks();
        let bytes = bytes(func, name, work)?;
        let fills = |it: &&&Block| it.writes().iter().any(|it| it.buffer == *name);
        let blocks = it.body.blocks();
        let blocks = blocks.iter().filter(fills).map(|it| it.name.clone()).collect();
        Some(Ring { is_shared, bytes, blocks, writers, users })
    };
    private.iter().filter_map(ring).collect()
}

/// Bytes of what components write of a buffer. Rows that are padded take a sixteenth more, about.
fn bytes(func: &Func, name: &Name, work: &[Work]) -> Option<f64> {
    let is_padded = func.buffers.get(name).is_some_and(|it| !it.layout.align.is_empty());
    let bytes = work.iter().filter_map(|it| it.fills.get(name)).copied().reduce(f64::max)?;
    Some(if is_padded { bytes * 1.0625 } else { bytes } / intrin::sharing(func, name) as f64)
}

/// Bytes of registers of a thread that hold what is no ring's.
fn held(func: &Func, private: &BTreeSet<Name>, work: &[Work]) -> f64 {
    let names: BTreeSet<&Name> = work.iter().flat_map(|it| it.fills.keys()).collect();
    let is_held = |name: &Name| {
        func.buffers.get(name).is_some_and(|it| it.scope.is_registers()) && !private.contains(name)
    };
    names.into_iter().filter(|it| is_held(it)).filter_map(|it| bytes(func, it, work)).sum()
}
