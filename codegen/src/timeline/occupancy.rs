//! What the slots of pipelines cost: shared memory, and with it blocks that are resident together.

use std::sync::Arc;

use ir::{Arch, Func, Kernel, Name, Op, Scope, Stmt};
use serde::Serialize;

use super::{Timeline, threads};
use crate::{
    device::{Limit, Occupancy, Resources, occupancy},
    launch::shared_layout,
    lower::repacked,
};

/// What the slots of the pipelines of a kernel cost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Consequences {
    /// The kernel.
    pub kernel: Name,
    /// The bytes of shared memory that one more iteration in flight takes.
    pub bytes_per_slot: i64,
    /// The kernel as it is.
    pub now: Choice,
    /// With one slot fewer of each shared buffer that has several, if that is not the kernel without pipelines.
    pub fewer: Option<Choice>,
    /// The kernel of the same program without its pipelines.
    pub before: Option<Choice>,
    /// What it comes to, in words.
    pub verdict: Option<String>,
}

/// A number of slots, and what fits then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Slots"))]
pub struct Choice {
    /// The most slots that a shared buffer has; none if no shared buffer is the pipeline's own.
    pub slots: i64,
    /// The registers of a thread, if a compiler told; otherwise only threads and shared memory count.
    pub registers: Option<u32>,
    /// The shared memory of a block.
    pub shared_bytes: i64,
    /// How full a multiprocessor gets, where the limits of the architecture are known.
    pub occupancy: Option<Occupancy>,
}

/// A kernel and what the compiler says of it, if there is one.
pub type Compiled<'a> = (&'a Kernel, Option<&'a Resources>);

/// What the slots of the pipelines of a kernel cost; `before` is the kernel without them.
pub fn consequences(
    timelines: &[&Timeline],
    (kernel, compiled): Compiled<'_>,
    before: Option<Compiled<'_>>,
    arch: &Arch,
) -> Consequences {
    let shared = || timelines.iter().flat_map(|it| &it.rings).filter(|it| it.scope == Scope::Shared);
    let most = shared().map(|it| it.slots).max().unwrap_or(0);
    let now = choice(kernel, most, compiled, arch);
    let one = most.min(1);
    let before = before.map(|(kernel, compiled)| choice(kernel, one, compiled, arch));
    let fewer = (most > 2 || most == 2 && before.is_none()).then(|| {
        let kernel = with_slots(kernel, timelines, &|slots| (slots - 1).max(1));
        choice(&kernel, most - 1, compiled, arch)
    });
    let verdict = before.as_ref().and_then(|it| verdict(&now, it));
    let more = with_slots(kernel, timelines, &|slots| slots + 1);
    let bytes_per_slot = shared_layout(&more).1 - now.shared_bytes;
    Consequences { kernel: kernel.name.clone(), bytes_per_slot, now, fewer, before, verdict }
}

fn choice(kernel: &Kernel, slots: i64, compiled: Option<&Resources>, arch: &Arch) -> Choice {
    let shared_bytes = shared_layout(kernel).1;
    let alone = Resources { registers: 1, ..Resources::default() };
    let full = threads(kernel).and_then(|it| u32::try_from(it).ok()).zip(u32::try_from(shared_bytes).ok());
    let occupancy =
        full.and_then(|(threads, dynamic)| occupancy(compiled.unwrap_or(&alone), threads, dynamic, arch));
    Choice { slots, registers: compiled.map(|it| it.registers), shared_bytes, occupancy }
}

/// The program without its pipelines: every iteration runs after the one before it.
pub fn without_pipelines(func: &Func) -> Func {
    let mut out = func.clone();
    out.body.walk_mut(&mut |stmt| {
        match stmt {
            Stmt::Loop(it) if it.attrs.pipeline.is_some() => Arc::make_mut(it).attrs.pipeline = None,
            Stmt::Block(it) if it.attrs.double_buffer || it.attrs.slots.is_some() => {
                let attrs = &mut Arc::make_mut(it).attrs;
                (attrs.double_buffer, attrs.slots) = (false, None);
            }
            Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
        }
        true
    });
    out
}

/// The kernel with other numbers of slots; only its allocations are right then.
fn with_slots(kernel: &Kernel, timelines: &[&Timeline], limit: &dyn Fn(i64) -> i64) -> Kernel {
    let mut out = Kernel { body: vec![], ..kernel.clone() };
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && it.scope == Scope::Shared
            {
                let mut it = it.clone();
                let rings = timelines.iter().flat_map(|it| &it.rings);
                for ring in rings.filter(|ring| ring.buffer == it.name && ring.slots > 1) {
                    it.shape = vec![it.elements() / ring.slots * limit(ring.slots)];
                }
                out.body.push(Op::Alloc(it));
            }
        });
    }
    repacked(kernel, out)
}

fn verdict(now: &Choice, before: &Choice) -> Option<String> {
    let (from, to) = (before.occupancy.as_ref()?, now.occupancy.as_ref()?);
    let (what, verb) = match now.slots {
        0 | 1 => ("pipelining".to_owned(), "costs"),
        2 => ("double buffering".to_owned(), "costs"),
        slots => (format!("{slots} slots"), "cost"),
    };
    let limits = to.limited_by.iter().map(Limit::to_string).collect::<Vec<_>>().join(" and ");
    let why = to.limited_by.iter().filter_map(|it| match it {
        Limit::Registers => Some(("registers a thread", before.registers?.into(), now.registers?.into())),
        Limit::Shared => Some(("bytes of shared memory", before.shared_bytes, now.shared_bytes)),
        Limit::Threads | Limit::Blocks | Limit::Barriers => None,
    });
    let why: Vec<String> =
        why.map(|(what, from, to): (_, i64, i64)| format!("{from} {what} became {to}")).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
    // Without registers both numbers are upper bounds.
    let most = if now.registers.is_some() { "" } else { "at most " };
    Some(if to.blocks < from.blocks {
        format!(
            "{what} {verb} occupancy: {most}{} blocks per SM become {most}{}, limited by {limits}{why}",
            from.blocks, to.blocks
        )
    } else {
        let memory = match now.shared_bytes - before.shared_bytes {
            more @ 1.. => format!("{more} more bytes of shared memory"),
            ..1 => "no more shared memory".to_owned(),
        };
        let blocks = to.blocks;
        format!("{what} {verb} no occupancy: {memory}, {most}{blocks} blocks per SM, limited by {limits}")
    })
}
