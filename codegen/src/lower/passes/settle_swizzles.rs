//! Settles how buffers are swizzled, now that their rows are known.

use std::collections::BTreeSet;

use ir::{
    Access, Block, Buffer, Func, Index, Loop, Mechanism, Name, Scope, Stmt, Storage, Swizzle, Target,
    XorSwizzle,
    arith::Bounds,
    intrin::{Instruction, Intrinsic},
    pipeline::{PipelineError, is_pipeline},
};

use crate::lower::{
    LowerError,
    analysis::copy_box::{copy_box, expect_dense},
    passes::choose_mechanisms::cp_async::Nests,
};

/// ```text
/// temp A_shared: f16[128, 64] @shared swizzle(auto)   ->   temp A_shared: f16[128, 64] @shared swizzle(3, 4, 3)
/// ```
///
/// `auto` becomes the swizzle by which eight rows are read fastest, 16 bytes each, or none where rows are read as fast
/// without. A row is what the last dimension spans, padding included. Swizzles that were given stay as they are; one
/// that would carry elements from row to row is refused, since accesses to neighbours would no longer be accesses to
/// neighbours.
///
/// A buffer that the copy engine fills, or warpgroups multiply, gets a mode of the hardware: `auto` becomes the widest whose
/// span divides the rows. Rows longer than that are cut into panels, since the hardware has no longer ones. What the copy engine
/// is to fill it has to be able to: it writes boxes without gaps.
pub(crate) fn settle_swizzles(mut func: Func, target: &Target) -> Result<Func, LowerError> {
    let bounds = Bounds::of_dims(&func);
    let by_hardware = if *target == Target::Cpu { BTreeSet::new() } else { by_hardware(&func) };
    for (name, buffer) in &mut func.buffers {
        let Some(swizzle) = buffer.layout.swizzle else { continue };
        let bytes = buffer.dtype.bytes_i64();
        let row = Storage::of(buffer).row();
        let settled = match swizzle {
            Swizzle::None => None,
            Swizzle::Auto if by_hardware.contains(name) => widest(buffer),
            Swizzle::Auto => chosen(buffer, &row),
            Swizzle::Xor(it) => {
                let block = it.block_bytes() / bytes;
                if !bounds.divides(block, &row) {
                    let buffer = name.clone();
                    return Err(LowerError::SwizzleRows { buffer, row, block, bytes: it.block_bytes() });
                }
                Some(it)
            }
        };
        buffer.layout.swizzle = Some(settled.map_or(Swizzle::None, Swizzle::Xor));
        if by_hardware.contains(name) {
            buffer.layout.panel = panel(buffer, settled);
        }
    }
    let mut nests = Nests::default();
    nests.collect(&func.body);
    for (around, block) in nests.out.iter().filter(|it| it.1.attrs.mechanism == Some(Mechanism::Tma)) {
        check_box(&func, around, block, bounds.clone())?;
    }
    Ok(func)
}

/// Refuses a block whose box does not lie in shared memory as the copy engine has it.
fn check_box(func: &Func, around: &[&Loop], block: &Block, mut bounds: Bounds) -> Result<(), LowerError> {
    let (mut loops, mut body) = (vec![], &block.body);
    for it in around {
        bounds.insert(&it.var, &it.extent);
    }
    while let Stmt::Loop(it) = body {
        loops.push((it.var.clone(), it.extent.as_int().unwrap_or(0)));
        bounds.insert(&it.var, &it.extent);
        body = &it.body;
    }
    let Stmt::Store(store) = body else { return Ok(()) };
    let own = |name: &Name| block.find_iter(name).map(|it| it.binding.clone());
    let is_shared = |it: &&Access| func.buffers[&it.buffer].scope == Scope::Shared;
    let mut touched = vec![&store.place];
    store.value.each_load(&mut |it| touched.push(it));
    let Some(shared) = touched.into_iter().find(is_shared) else { return Ok(()) };
    let place: Access = shared.map_indices(&mut |index| bounds.simplify(&index.subst(&own)));
    let buffer = &func.buffers[&place.buffer];
    let found = copy_box(&loops, [&place, &place], &bounds);
    let found = found.and_then(|it| {
        let own = (&*it.starts[1], &*it.extents[1]);
        expect_dense(&Storage::of(buffer), buffer.layout.panel, own, &bounds)
    });
    found.map_err(|reason| {
        let pipeline = around.iter().rev().find(|it| is_pipeline(it)).or(around.last());
        let name = pipeline.map_or_else(|| block.name.clone(), |it| it.var.clone());
        let change = "ask for `cp_async`, or copy what one buffer holds in one iteration";
        let (component, mechanism) = (block.name.clone(), Mechanism::Tma);
        PipelineError::Mechanism { name, component, mechanism, reason, change }.into()
    })
}

fn chosen(buffer: &Buffer, row: &Index) -> Option<XorSwizzle> {
    let row = row.as_int().filter(|_| buffer.shape.len() > 1)?;
    XorSwizzle::for_rows(row.checked_mul(buffer.dtype.bytes_i64())?)
}

/// The shared buffers that the copy engine fills, or tensor cores read by themselves.
fn by_hardware(func: &Func) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    for block in func.body.blocks() {
        let is_read =
            |it: &Intrinsic| it.is_of_tensor_core() || matches!(it.instruction, Instruction::Wgmma { .. });
        if block.attrs.mechanism == Some(Mechanism::Tma) || block.attrs.tensorize.is_some_and(is_read) {
            let touched = block.reads().into_iter().chain(block.writes());
            out.extend(touched.map(|it| it.buffer.clone()));
        }
    }
    out.retain(|name| func.buffers[name].scope == Scope::Shared);
    out
}

/// The mode of the hardware with the widest span that divides the rows of a buffer.
fn widest(buffer: &Buffer) -> Option<XorSwizzle> {
    let row = row_bytes(buffer)?;
    XorSwizzle::MODES.iter().rev().map(|it| it.1).find(|it| row % it.block_bytes() == 0)
}

/// How many elements of a row stand together where it is longer than the span of its swizzle.
fn panel(buffer: &Buffer, swizzle: Option<XorSwizzle>) -> Option<i64> {
    let span = swizzle.filter(|it| it.mode().is_some())?.block_bytes();
    row_bytes(buffer).filter(|row| *row > span)?;
    Some(span / buffer.dtype.bytes_i64())
}

/// The bytes of the last dimension, where there are rows of it.
fn row_bytes(buffer: &Buffer) -> Option<i64> {
    let last = buffer.shape.last().filter(|_| buffer.shape.len() > 1)?;
    last.as_int()?.checked_mul(buffer.dtype.bytes_i64())
}
