//! What the slots of a pipeline cost: shared memory, and with it blocks that are resident together.

use ir::{Arch, Kernel, Op, Scope};
use serde::Serialize;

use super::Timeline;
use crate::{
    device::{Limit, Occupancy, Resources, occupancy},
    launch::shared_layout,
    lower::repacked,
};

/// What the slots of the pipelines of a kernel cost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Consequences {
    /// The registers of a thread, if a compiler told; otherwise only threads and shared memory count.
    pub registers: Option<u32>,
    /// The bytes of shared memory that one more iteration in flight takes.
    pub bytes_per_slot: i64,
    /// The kernel as it is.
    pub now: Choice,
    /// With one slot fewer of each shared buffer that has several, if there are such.
    pub fewer: Option<Choice>,
    /// With one slot of each, if that is another thing.
    pub single: Option<Choice>,
    /// What it comes to, in words.
    pub verdict: Option<String>,
}

/// A number of slots, and what fits then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Choice {
    /// The most slots that a shared buffer has; none if no shared buffer is the pipeline's own.
    pub slots: i64,
    /// The shared memory of a block.
    pub shared_bytes: i64,
    /// How full a multiprocessor gets, where the limits of the architecture are known.
    pub occupancy: Option<Occupancy>,
}

/// What the slots of a pipeline cost in its kernel, for what the compiler says of that, if there is one.
pub fn consequences(
    timeline: &Timeline,
    kernel: &Kernel,
    arch: &Arch,
    compiled: Option<&Resources>,
) -> Consequences {
    let shared = || timeline.rings.iter().filter(|it| it.scope == Scope::Shared);
    let most = shared().map(|it| it.slots).max().unwrap_or(0);
    let choice = |limit: &dyn Fn(i64) -> i64| {
        let kernel = with_slots(kernel, timeline, limit);
        let shared_bytes = shared_layout(&kernel).1;
        let alone = Resources { registers: 1, ..Resources::default() };
        let threads = timeline.threads.and_then(|it| u32::try_from(it).ok());
        let dynamic = u32::try_from(shared_bytes).ok();
        let full = threads.zip(dynamic);
        let occupancy =
            full.and_then(|(threads, dynamic)| occupancy(compiled.unwrap_or(&alone), threads, dynamic, arch));
        Choice { slots: limit(most), shared_bytes, occupancy }
    };
    let now = choice(&|slots| slots);
    let fewer = (most > 1).then(|| choice(&|slots| (slots - 1).max(1)));
    let single = (most > 2).then(|| choice(&|_| 1));
    let verdict = verdict(&now, single.as_ref().or(fewer.as_ref()));
    Consequences {
        registers: compiled.map(|it| it.registers),
        bytes_per_slot: shared().filter(|it| it.slots > 1).map(|it| it.bytes).sum(),
        now,
        fewer,
        single,
        verdict,
    }
}

/// The kernel with other numbers of slots; only its allocations are right then.
fn with_slots(kernel: &Kernel, timeline: &Timeline, limit: &dyn Fn(i64) -> i64) -> Kernel {
    let mut out = Kernel { body: vec![], ..kernel.clone() };
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && it.scope == Scope::Shared
            {
                let ring = timeline.rings.iter().find(|ring| ring.buffer == it.name);
                let mut it = it.clone();
                if let Some(ring) = ring.filter(|ring| ring.slots > 1) {
                    it.len = it.len / ring.slots * limit(ring.slots);
                }
                out.body.push(Op::Alloc(it));
            }
        });
    }
    repacked(kernel, out)
}

fn verdict(now: &Choice, single: Option<&Choice>) -> Option<String> {
    let (single, before) = single.and_then(|it| Some((it, it.occupancy.as_ref()?)))?;
    let after = now.occupancy.as_ref()?;
    let what = if now.slots == 2 { "double buffering".to_owned() } else { format!("{} slots", now.slots) };
    let cost = |it: &str| if now.slots == 2 { format!("{it}s") } else { it.to_owned() };
    Some(if after.blocks < before.blocks {
        let (from, to) = (before.blocks, after.blocks);
        format!("{what} {} occupancy: {from} blocks per SM become {to}", cost("cost"))
    } else {
        let by: Vec<_> = after.limited_by.iter().map(Limit::to_string).collect();
        let (bytes, blocks) = (now.shared_bytes - single.shared_bytes, after.blocks);
        format!(
            "{what} {} no occupancy: {bytes} more bytes, {blocks} blocks per SM as before, limited by {}",
            cost("cost"),
            by.join(" and ")
        )
    })
}
