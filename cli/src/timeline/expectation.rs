//! What is expected of pipelines and kernels, in sentences.

use codegen::{
    expected::{Expected, ExpectedLoop, Resource},
    timeline::Timeline,
};
use ir::{Name, Scope};

/// The cycles of an iteration, and what limits them.
pub(super) fn of_loop(all: &[Expected], it: &Timeline) -> Option<String> {
    let kernel = all.iter().find(|of| of.kernel == it.kernel)?;
    let of = kernel.loops.iter().find(|of| of.var == it.var)?;
    let busy = of.busy.iter().map(|(of, cycles)| format!("{} {cycles:.0}", of.as_str()));
    let ring = ring(of, it).map(|(cycles, _)| format!("ring {cycles:.0}"));
    let bounds: Vec<_> = busy.chain(ring).collect();
    Some(format!(
        "expected: {:.0} cycles an iteration; {}: {}",
        of.interval,
        bounds.join(", "),
        limit(of, it)
    ))
}

/// What the slots allow: the time from the request for a box to the end of its products, for so many boxes at once.
fn ring(of: &ExpectedLoop, it: &Timeline) -> Option<(f64, i64)> {
    let rings = it.rings.iter().filter(|ring| ring.scope == Scope::Shared);
    let slots = rings.map(|ring| ring.slots).min().filter(|_| of.chain > 0.0)?;
    Some((of.chain / slots as f64, slots))
}

fn limit(of: &ExpectedLoop, it: &Timeline) -> String {
    match (of.limit(), ring(of, it)) {
        (Some(Resource::Shared), _) => format!("{} limits it", Resource::Shared.as_str()),
        (Some(resource), _) => format!("{} limit it", resource.as_str()),
        (None, Some((cycles, slots))) if cycles >= 0.9 * of.interval => match slots {
            1 => "one slot limits it".to_owned(),
            slots => format!("{slots} slots limit it"),
        },
        (None, _) => "waiting for each other limits it".to_owned(),
    }
}

/// The cycles of a kernel.
pub(super) fn of_kernel(all: &[Expected], kernel: &Name) -> Option<String> {
    let it = all.iter().find(|it| it.kernel == *kernel)?;
    let blocks = match (it.blocks, it.resident) {
        (1, _) => "1 block".to_owned(),
        (blocks, 1) => format!("{blocks} blocks, one after the other"),
        (blocks, resident) => format!("{blocks} blocks, {resident} at once"),
    };
    Some(format!(
        "expected: {:.0} cycles from one start to the next, {blocks} on a multiprocessor (by bench/latency/{})",
        it.cycles, it.record
    ))
}
