//! Whether a target has the instructions of a kernel.

use ir::{
    Arrival, BulkCopy, BulkKind, Completion, Feature, Fence, Group, Instr, Kernel, Module, Op, Participants,
    Scope, SyncKind, Target, Tile, intrin::Instruction,
};

use super::EmitError;
use crate::cfamily::{NAMED_BARRIERS, memory, named_barriers};
use crate::launch::TensorMemory;
use crate::lower::passes::choose_mechanisms::cp_async::cp_async;

/// Refuses a kernel with the first thing that its target has no instruction for.
pub(super) fn check_instructions(module: &Module, kernel: &Kernel, target: &Target) -> Result<(), EmitError> {
    let refuse = |what: String| {
        Err(EmitError::NoInstruction { kernel: kernel.name.clone(), what, target: target.clone() })
    };
    let has = |feature: Feature| matches!(target, Target::Cuda(arch) if arch.has(feature));
    let declares = !kernel.maps.is_empty() || !kernel.mbarriers.is_empty();
    if declares && !has(Feature::Tma) {
        return refuse("tensor maps or mbarriers".to_owned());
    }
    if !kernel.roles.is_empty() && *target == Target::Cpu {
        return refuse("roles".to_owned());
    }
    let sets_registers = kernel.roles.values().any(|it| it.registers.is_some());
    if sets_registers && !matches!(target, Target::Cuda(it) if has(Feature::Tma) && it.suffix.is_some()) {
        return refuse("a number of registers for each role".to_owned());
    }
    let (_, barriers) = named_barriers(kernel);
    if barriers > NAMED_BARRIERS {
        return refuse(format!("{barriers} named barriers: a block has {NAMED_BARRIERS}"));
    }
    if TensorMemory::of(kernel).is_some_and(|it| it.groups.is_none()) {
        return refuse("a loop that leaves more groups of products in flight with each iteration".to_owned());
    }
    let memory = memory(module, kernel);
    let mut missing = None;
    for op in &kernel.body {
        op.walk(&mut |op| match op {
            Op::Alloc(it) if it.scope == Scope::Cluster && !has(Feature::Clusters) => {
                missing.get_or_insert(format!("`{}` in memory of a cluster", it.name));
            }
            Op::Alloc(it) if it.scope == Scope::Tensor && !has(Feature::Tcgen05) => {
                missing.get_or_insert(format!("`{}` in tensor memory", it.name));
            }
            Op::Leader(of, _) if *of != Participants::Thread && !has(Feature::Tma) => {
                missing.get_or_insert(format!("a leader of a {}", of.as_str()));
            }
            Op::Instr(it, _) => {
                if let Some(needed) = needs(it).filter(|it| !has(*it)) {
                    missing.get_or_insert(format!("{}{}", it.word(), family(needed)));
                } else if let Instr::AsyncCopy(place, value) = it
                    && let Err(why) = cp_async(place, value, &|name| memory.get(name).copied())
                {
                    missing.get_or_insert(format!("an asynchronous copy to `{}`: {why}", place.buffer));
                } else if kernel.claims.is_none() && matches!(it, Instr::Claim(_) | Instr::Take(_)) {
                    missing.get_or_insert(format!("{} in a kernel that counts no blocks", it.word()));
                } else if !is_laid_out(it) {
                    missing.get_or_insert(format!("{} on a matrix without a layout", it.word()));
                }
            }
            _ => {}
        });
    }
    missing.map_or(Ok(()), refuse)
}

/// What an instruction needs of a target beside loads and stores. A wait for a phase asks by `try_wait`, which came with the copy engine.
fn needs(it: &Instr) -> Option<Feature> {
    let group = match it.sync() {
        Some(SyncKind::Commit(group)) => Some(group),
        Some(SyncKind::Wait(wait)) => Some(wait.group),
        Some(SyncKind::Arrive(Arrival { is_late: true, .. })) => return Some(Feature::Tcgen05),
        Some(SyncKind::Await(_) | SyncKind::Arrive(_) | SyncKind::Fence(Fence::Async)) => {
            return Some(Feature::Tma);
        }
        Some(SyncKind::Fence(Fence::Wgmma)) => return Some(Feature::Wgmma),
        Some(SyncKind::Barrier) if it.participants() == Participants::Cluster => {
            return Some(Feature::Clusters);
        }
        Some(SyncKind::Barrier | SyncKind::Turn(_)) | None => it.completion().group(),
    };
    match (group, it) {
        (Some(Group::CpAsync), _) => Some(Feature::CpAsync),
        (Some(Group::Bulk), _) => Some(Feature::Tma),
        (Some(Group::Wgmma), _) => Some(Feature::Wgmma),
        (Some(Group::Tcgen05), Instr::Tcgen05(it)) => Some(it.intrinsic.needs),
        (Some(Group::Tcgen05), _) => Some(Feature::Tcgen05),
        // The copy engine tells the other block of a pair where the tensor core multiplies for both.
        (None, Instr::Bulk(BulkCopy { kind: BulkKind::Load { at_first: true, .. }, .. })) => {
            Some(Feature::Tcgen05)
        }
        (None, Instr::Claim(_) | Instr::Take(_)) => Some(Feature::ClusterLaunchControl),
        (None, _) if it.completion() == Completion::WithPhase => Some(Feature::Tma),
        (None, Instr::Tensor(it)) => Some(it.intrinsic.needs),
        (None, _) => None,
    }
}

/// Which instructions came with a feature, where the word of one does not say it.
const fn family(it: Feature) -> &'static str {
    match it {
        Feature::CpAsync => " (cp.async)",
        Feature::Tma => " (TMA)",
        Feature::Wgmma => " (wgmma)",
        Feature::Tcgen05 => " (tcgen05)",
        Feature::Tcgen05I8 => " (tcgen05 with factors of i8)",
        Feature::ClusterLaunchControl => " (cluster launch control)",
        Feature::Clusters => " (clusters)",
        _ => "",
    }
}

/// Whether it is known how the factors of a product lie in memory, if it is one.
fn is_laid_out(it: &Instr) -> bool {
    let is_known = |it: &Tile| it.matrix.is_some() && it.extents.len() == 2;
    match it {
        Instr::Wgmma(it) => it.tiles().all(is_known),
        Instr::Tcgen05(it) => match (it.intrinsic.instruction, it.operands.as_slice()) {
            (Instruction::Tcgen05(kind), [left, of_left, right, of_right]) => {
                let is_column = |it: &Tile| it.first.indices.len() == 2;
                kind.scaled.is_some()
                    && [left, right].into_iter().all(is_known)
                    && [of_left, of_right].into_iter().all(is_column)
            }
            (Instruction::Tcgen05(kind), [left, right]) => {
                kind.scaled.is_none() && [left, right].into_iter().all(is_known)
            }
            (Instruction::TensorCopy, [from]) => is_known(from),
            _ => false,
        },
        _ => true,
    }
}
