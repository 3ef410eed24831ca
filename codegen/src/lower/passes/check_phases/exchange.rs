//! Roles exchange nothing but what rings bring.

use std::collections::BTreeSet;

use ir::{Instr, Kernel, Mode, Name, Scope};

use super::{
    error::PhaseError,
    program::Program,
    survey::{Survey, sum},
};
use crate::lower::passes::merge_shared::aliases;

/// What a role does to a buffer.
struct Touch<'a> {
    program: usize,
    buffer: &'a Name,
    writes: bool,
    /// Whether a box comes, or a sum, which a phase tells of.
    is_box: bool,
}

/// Checks that a buffer that several roles touch is only read, or only filled by boxes of one of them; and that buffers that share bytes
/// are touched by one role.
pub(super) fn check(kernel: &Kernel, survey: &Survey<'_>) -> Result<(), PhaseError> {
    if survey.programs.len() < 2 {
        return Ok(());
    }
    let touches = touches(survey);
    let aliases = aliases(kernel);
    let same = |a: &Name, b: &Name| a == b || aliases.contains(&(a.clone(), b.clone()));
    for a in touches.iter().filter(|it| it.writes) {
        let other = touches.iter().find(|b| {
            let is_brought = a.is_box && !b.writes && a.buffer == b.buffer;
            a.program != b.program && same(a.buffer, b.buffer) && !is_brought
        });
        if let Some(b) = other {
            let role = |at: usize| survey.programs[at].name().unwrap_or_else(|| a.buffer.clone());
            let (first, second) = (role(a.program), role(b.program));
            return Err(PhaseError::Exchange { buffer: a.buffer.clone(), first, second });
        }
    }
    Ok(())
}

fn touches<'a>(survey: &Survey<'a>) -> Vec<Touch<'a>> {
    let mut seen = BTreeSet::new();
    let mut out = vec![];
    for (number, program) in survey.programs.iter().enumerate() {
        for (_, it) in program.instrs() {
            let is_box = it.fill().is_some();
            it.each_effect(&mut |effect| {
                let buffer = &effect.access.buffer;
                let is_local = survey.alloc(buffer).is_some_and(|it| it.scope == Scope::Local);
                let writes = effect.mode != Mode::Read;
                let is_sum = survey.barriers.iter().any(|of| sum(it, &of.sums).is_some());
                let is_box = is_box || is_sum && writes;
                if !is_local && seen.insert((number, buffer, writes, is_box)) {
                    out.push(Touch { program: number, buffer, writes, is_box });
                }
            });
        }
    }
    out
}

/// The instructions of a program that touch one of some buffers, boxes that come and sums of products aside.
pub(super) fn touching<'p, 'a>(
    program: &'p Program<'a>,
    buffers: &'p [&'a Name],
) -> impl Iterator<Item = (usize, &'a Instr)> + 'p {
    program.instrs().filter(|(_, it)| {
        let own = match it {
            Instr::Tcgen05(it) => Some(&it.place.first),
            _ => None,
        };
        let mut touches = false;
        it.each_effect(&mut |effect| {
            let is_sum = own.is_some_and(|own| std::ptr::eq(own, effect.access));
            touches |= !is_sum && buffers.contains(&&effect.access.buffer);
        });
        touches && it.fill().is_none()
    })
}
