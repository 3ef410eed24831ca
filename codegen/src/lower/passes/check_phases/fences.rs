//! Fences stand where one proxy finds what another has left.

use std::collections::BTreeSet;

use ir::{Access, Factor, Fence, Instr, Mode, Proxy, Scope, SyncKind, Wgmma};

use super::{
    error::PhaseError,
    in_flight::are_apart,
    program::Program,
    survey::Survey,
    walk::{Search, View, Walk},
};

/// Checks that a fence is before each product that finds registers as threads left them, and one, before a barrier, between what threads
/// write to shared memory and what hardware reads there.
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
    let mut written = BTreeSet::new();
    for (_, it) in program.instrs() {
        it.each_effect(&mut |effect| {
            let buffer = &effect.access.buffer;
            let is_shared = survey.alloc(buffer).is_some_and(|it| it.scope == Scope::Shared);
            if is_shared && effect.proxy == Proxy::Generic && effect.mode != Mode::Read {
                written.insert(buffer);
            }
        });
    }
    for (node, it) in program.instrs() {
        let mut read = vec![];
        it.each_effect(&mut |effect| {
            if effect.proxy == Proxy::Async && written.contains(&effect.access.buffer) {
                read.push(effect.access);
            }
        });
        for access in read {
            let mut search = Written { program, access, is_missing: false };
            let walked =
                Walk::new(program, &mut search).before(node, &program.bounds(node), ProxyOrder::None);
            if search.is_missing {
                let buffer = access.buffer.clone();
                return Err(PhaseError::Unfenced {
                    buffer,
                    fence: "async",
                    what: "what hardware does there",
                });
            }
            walked.map_err(|it| it.about(&access.buffer))?;
        }
    }
    Ok(())
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

/// The search for a barrier, then for a fence, before what threads write.
struct Written<'s, 'a> {
    program: &'s Program<'a>,
    access: &'s Access,
    is_missing: bool,
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

impl Search for Written<'_, '_> {
    type State = ProxyOrder;

    fn look(&mut self, node: usize, it: &Instr, view: &View, state: &mut ProxyOrder) {
        it.each_effect(&mut |effect| {
            let is_write = effect.mode != Mode::Read && effect.proxy == Proxy::Generic;
            let is_same = effect.access.buffer == self.access.buffer;
            self.is_missing |= is_write && is_same && !are_apart(self.access, effect.access, view);
        });
        let by_all = self.program.leader(node).is_none();
        match (it.sync(), *state) {
            (Some(SyncKind::Barrier), ProxyOrder::None) => *state = ProxyOrder::Barrier,
            (Some(SyncKind::Fence(Fence::Async)), ProxyOrder::Barrier) if by_all => {
                *state = ProxyOrder::FenceAndBarrier;
            }
            _ => {}
        }
    }

    fn done(&self, state: &ProxyOrder) -> bool {
        *state == ProxyOrder::FenceAndBarrier || self.is_missing
    }
}
