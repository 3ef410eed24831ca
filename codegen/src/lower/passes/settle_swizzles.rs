//! Settles how buffers are swizzled, now that their rows are known.

use ir::{Buffer, Func, Index, Storage, Swizzle, XorSwizzle, arith::Bounds};

use crate::lower::LowerError;

/// ```text
/// temp A_shared: f16[128, 64] @shared swizzle(auto)   ->   temp A_shared: f16[128, 64] @shared swizzle(3, 4, 3)
/// ```
///
/// `auto` becomes the swizzle by which eight rows are read fastest, 16 bytes each, or none where rows are read as fast
/// without. A row is what the last dimension spans, padding included. Swizzles that were given stay as they are; one
/// that would carry elements from row to row is refused, since accesses to neighbours would no longer be accesses to
/// neighbours.
pub(crate) fn settle_swizzles(mut func: Func) -> Result<Func, LowerError> {
    let bounds = Bounds::of_dims(&func);
    for (name, buffer) in &mut func.buffers {
        let Some(swizzle) = buffer.layout.swizzle else { continue };
        let bytes = buffer.dtype.bytes_i64();
        let row = Storage::of(buffer).row();
        let settled = match swizzle {
            Swizzle::None => None,
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
    }
    Ok(func)
}

fn chosen(buffer: &Buffer, row: &Index) -> Option<XorSwizzle> {
    let row = row.as_int().filter(|_| buffer.shape.len() > 1)?;
    XorSwizzle::for_rows(row.checked_mul(buffer.dtype.bytes_i64())?)
}
