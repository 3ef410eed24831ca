//! Deals the iterations of persistent loops to the blocks of a grid that is as large as the machine.

use std::sync::Arc;

use ir::{AllocScope, Func, Index, Loop, LoopAttrs, LoopKind, Name, Stmt, Target};

use crate::lower::LowerError;

/// ```text
/// for tile in 0..512 @blockIdx.x #{persistent: 132}
///   s(tile)
/// ->
/// for tile_cta in 0..132 @blockIdx.x
///   for tile_wave in 0..(643 - tile_cta) floordiv 132 #{independent: 1}
///     s(tile_wave*132 + tile_cta)
/// ```
///
/// A block runs every so many iterations, one after the other, and none where there are fewer than blocks. Iterations of a loop over blocks
/// do not meet in global memory, as `check_races` has proved; that the waves do not either is noted on their loop, since subscripts
/// no longer show it.
///
/// # Errors
/// If another loop of the kernel is bound to the same axis: an iteration of it would run in another block than the iteration of the dealt
/// loop that it may exchange data with.
pub(crate) fn deal_iterations(mut func: Func, target: &Target) -> Result<Func, LowerError> {
    if *target == Target::Cpu {
        return Ok(func);
    }
    let persistent = |it: &&Loop| it.attrs.persistent.is_some();
    let dealt: Vec<Name> = func.loops().into_iter().filter(persistent).map(|it| it.var.clone()).collect();
    for var in dealt {
        if let Some(other) = beside(&func, &var) {
            return Err(LowerError::GridShared { var, other });
        }
        let fresh = |stem: &str| Name::fresh(&format!("{var}_{stem}"), |it| func.is_taken(it));
        let (cta, wave) = (fresh("cta"), fresh("wave"));
        for buffer in func.buffers.values_mut() {
            if buffer.alloc_scope == Some(AllocScope::Loop(var.clone())) {
                buffer.alloc_scope = Some(AllocScope::Loop(wave.clone()));
            }
        }
        func.replace_loop(&var, |old| dealt_to(&old, &cta, &wave));
    }
    Ok(func)
}

/// Another loop of the kernel of a loop that is bound to its axis.
fn beside(func: &Func, var: &Name) -> Option<Name> {
    let path = func.path_to_loop(var)?;
    let (kernel, dealt) = (path.first()?, path.last()?);
    let mut found = None;
    kernel.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && it.kind == dealt.kind
            && it.var != *var
        {
            found.get_or_insert_with(|| it.var.clone());
        }
    });
    found
}

fn dealt_to(old: &Loop, cta: &Name, wave: &Name) -> Stmt {
    let blocks = old.attrs.persistent.expect("only such loops are dealt");
    let (own, count) = (Index::var(cta), Index::int(blocks));
    let iteration = Index::var(wave) * blocks + own.clone();
    let body = old.body.subst(&|name| (*name == old.var).then(|| iteration.clone()));
    let waves = Loop {
        var: wave.clone(),
        extent: (&old.extent + (blocks - 1) - own).floor_div(&count),
        kind: LoopKind::Serial,
        attrs: LoopAttrs { is_independent: true, ..LoopAttrs::default() },
        body,
    };
    let attrs = LoopAttrs { persistent: None, ..old.attrs.clone() };
    let body = Stmt::Loop(Arc::new(waves));
    Stmt::Loop(Arc::new(Loop { var: cta.clone(), extent: count, kind: old.kind, attrs, body }))
}
