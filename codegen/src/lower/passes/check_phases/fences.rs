//! Fences stand where one proxy finds what another has left.

use std::collections::BTreeSet;

use ir::{
    Access, Effect, Factor, Fence, Instr, Name, Participants, Proxy, Scope, SyncKind, Wgmma, arith::Bounds,
};

use super::{
    error::PhaseError,
    in_flight::are_apart,
    program::Program,
    survey::Survey,
    walk::{Search, View, Walk},
};

/// Checks that a fence is before each product that finds registers as threads left them, and one, before a barrier, between what threads
/// write to shared memory and what hardware does there, and between what they read and what it fills again.
pub(super) fn check(survey: &Survey<'_>) -> Result<(), PhaseError> {
    for program in &survey.programs {
        for (node, it) in program.instrs() {
            if let Instr::Wgmma(product) = it {
                let mut search = Registers { product, is_missing: false };
                let walked = Walk::new(program, &mut search).before(node, &program.bounds(node), false);
                if search.is_missing {
                    let buffer = product.place.buffer.clone();
                    return Err(PhaseError::Unfenced {
                        buffer,
                        fence: "wgmma",
                        what: "a product that uses it",
                    });
                }
                walked.map_err(|it| it.about(&product.place.buffer))?;
            }
        }
        shared(survey, program)?;
    }
    Ok(())
}

/// The same of shared memory.
fn shared(survey: &Survey<'_>, program: &Program<'_>) -> Result<(), PhaseError> {
    let mut touched = BTreeSet::new();
    for (_, it) in program.instrs() {
        it.each_effect(&mut |effect| {
            let buffer = &effect.access.buffer;
            let is_shared = survey.alloc(buffer).is_some_and(|it| it.scope == Scope::Shared);
            if is_shared && effect.proxy == Proxy::Generic {
                touched.insert(buffer);
            }
        });
    }
    for (node, it) in program.instrs() {
        let mut by_hardware = vec![];
        it.each_effect(&mut |effect| {
            if effect.proxy == Proxy::Async && touched.contains(&effect.access.buffer) {
                by_hardware.push((effect.access, effect.mode));
            }
        });
        for (access, mode) in by_hardware {
            let later = Later::At { access, fills: mode.writes() };
            find_fence(program, (node, &program.bounds(node)), &later, ProxyOrder::None)?;
        }
    }
    Ok(())
}

/// Checks that threads fence between what they read of buffers that hardware fills, and an arrival by which they give it back.
pub(super) fn given_back(
    survey: &Survey<'_>,
    program: &Program<'_>,
    (node, bounds): (usize, &Bounds),
    buffers: &[&Name],
) -> Result<(), PhaseError> {
    let is_shared = |it: &&&Name| survey.alloc(it).is_some_and(|it| it.scope == Scope::Shared);
    let buffers: Vec<&Name> = buffers.iter().filter(is_shared).copied().collect();
    let is_late = |it: &Instr| matches!(it, Instr::Arrive(it) if it.is_late);
    // The end of products is told by the hardware that has read.
    if buffers.is_empty() || program.op(node).instr().is_some_and(is_late) {
        return Ok(());
    }
    let state = if program.leader(node).is_none() { ProxyOrder::Barrier } else { ProxyOrder::None };
    find_fence(program, (node, bounds), &Later::Of(&buffers), state)
}

/// Looks back for a fence, and refuses what is found before it.
fn find_fence(
    program: &Program<'_>,
    (node, bounds): (usize, &Bounds),
    later: &Later<'_>,
    state: ProxyOrder,
) -> Result<(), PhaseError> {
    let mut search = Touched { program, later, leader: program.leader(node), missing: None };
    let state = Fenced { order: state, by_leader: false };
    let walked = Walk::new(program, &mut search).before(node, bounds, state);
    if let Some(buffer) = search.missing {
        return Err(PhaseError::Unfenced { buffer, fence: "async", what: "what hardware does there" });
    }
    walked.map_err(|it| it.about(later.buffer()))
}

/// The search for a fence, or for what should be behind one.
struct Registers<'s> {
    product: &'s Wgmma,
    is_missing: bool,
}

impl Registers<'_> {
    fn operands(it: &Wgmma) -> impl Iterator<Item = &Access> {
        let left = match &it.left {
            Factor::Registers(it) => Some(it),
            Factor::Shared(_) => None,
        };
        [&it.place].into_iter().chain(left)
    }
}

impl Search for Registers<'_> {
    type State = bool;

    fn look(&mut self, _: usize, it: &Instr, _: &View, state: &mut bool) {
        match it {
            Instr::Fence(Fence::Wgmma) => *state = true,
            // What it needs, that one needed before.
            Instr::Wgmma(other) => {
                let names = |it| Registers::operands(it).map(|it| &it.buffer).collect::<Vec<_>>();
                *state |= names(other) == names(self.product);
            }
            it => it.each_effect(&mut |effect| {
                let mut own = Registers::operands(self.product);
                self.is_missing |= own.any(|it| it.buffer == effect.access.buffer);
            }),
        }
    }

    fn done(&self, state: &bool) -> bool {
        *state || self.is_missing
    }

    fn start(&mut self) {
        self.is_missing = true;
    }
}

/// What hardware does later.
enum Later<'s> {
    /// This access, and whether it writes there.
    At { access: &'s Access, fills: bool },
    /// It fills some part of these buffers.
    Of(&'s [&'s Name]),
}

impl Later<'_> {
    /// Whether it has to come after a touch by a thread.
    fn comes_after(&self, effect: &Effect<'_>, view: &View) -> bool {
        match self {
            Later::At { access, fills } => {
                let matters = *fills || effect.mode.writes();
                let is_same = effect.access.buffer == access.buffer;
                matters && is_same && !are_apart(access, effect.access, view)
            }
            Later::Of(buffers) => buffers.contains(&&effect.access.buffer),
        }
    }

    fn buffer(&self) -> &Name {
        match self {
            Later::At { access, .. } => &access.buffer,
            Later::Of(buffers) => buffers[0],
        }
    }
}

/// The search for a barrier, then for a fence, before what threads do.
struct Touched<'s, 'a> {
    program: &'s Program<'a>,
    later: &'s Later<'s>,
    /// Which one of several threads the walk began with, if it was one.
    leader: Option<Participants>,
    missing: Option<Name>,
}

/// What has been found.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fenced {
    order: ProxyOrder,
    /// Whether the one thread that the walk began with has a fence: it needs no barrier behind what it did itself.
    by_leader: bool,
}

/// What orders a place before the access of hardware that a walk began at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProxyOrder {
    /// Nothing yet.
    None,
    /// A barrier: it brings all threads together, and says nothing to another proxy.
    Barrier,
    /// A fence of each thread, and a barrier behind it: what is before them has been seen to.
    FenceAndBarrier,
}

impl Search for Touched<'_, '_> {
    type State = Fenced;

    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut Fenced) {
        let leader = self.program.leader(node);
        let by_same = leader.is_some() && leader == self.leader;
        it.each_effect(&mut |effect| {
            let is_fenced = by_same && state.by_leader;
            if effect.proxy == Proxy::Generic && !is_fenced && self.later.comes_after(&effect, view) {
                self.missing.get_or_insert(effect.access.buffer.clone());
            }
        });
        match (it.sync(), state.order) {
            (Some(SyncKind::Fence(Fence::Async)), _) if by_same => state.by_leader = true,
            (Some(SyncKind::Barrier), ProxyOrder::None) => state.order = ProxyOrder::Barrier,
            (Some(SyncKind::Fence(Fence::Async)), ProxyOrder::Barrier) if leader.is_none() => {
                state.order = ProxyOrder::FenceAndBarrier;
            }
            _ => {}
        }
    }

    fn done(&self, state: &Fenced) -> bool {
        state.order == ProxyOrder::FenceAndBarrier || self.missing.is_some()
    }
}
