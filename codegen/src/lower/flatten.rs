//! Turns subscripts into one element offset.

use std::cell::RefCell;

use ir::{Access, Alloc, Buffer, Index, Module, Op, Role, Swizzle};

use super::{Context, LowerError};

/// How a buffer lies in memory.
pub(crate) struct Strides {
    /// The distance in elements of neighbours in each dimension.
    pub(crate) strides: Vec<Index>,
    /// How many elements the buffer takes.
    pub(crate) len: Index,
}

/// The row-major strides of a buffer, each widened as `storage_align` asks where the buffer is ours.
pub(crate) fn strides(buffer: &Buffer) -> Strides {
    let mut strides = vec![Index::int(1); buffer.shape.len()];
    let mut len = Index::int(1);
    for (axis, extent) in buffer.shape.iter().enumerate().rev() {
        let aligned = buffer.layout.align.iter().find(|it| it.axis == axis && buffer.role == Role::Temp);
        if let Some(align) = aligned {
            len = &len + &(Index::int(align.offset) - len.clone()).floor_mod(&Index::int(align.factor));
        }
        strides[axis] = len.clone();
        len = len * extent.clone();
    }
    Strides { strides, len }
}

/// ```text
/// B[i, j] = A[j]   ->   B[i*8 + j] = A[j]
/// ```
///
/// The offset is the sum of subscripts times strides, swizzled where the buffer is; making it cheap is the business of
/// `simplify_indices`. A comment before the allocation of a buffer tells its swizzle.
///
/// Refuses an access to neighbours that a swizzle would take apart.
pub(crate) fn flatten(module: Module, context: &Context) -> Result<Module, LowerError> {
    let cut = RefCell::new(None);
    let flat = |access: &Access| {
        let Some(buffer) = context.buffers.get(&access.buffer) else { return access.clone() };
        let terms =
            access.indices.iter().zip(strides(buffer).strides).map(|(index, stride)| index.clone() * stride);
        let offset = terms.reduce(|a, b| a + b).unwrap_or_else(|| Index::int(0));
        let (name, bytes) = (&access.buffer, i64::from(access.lanes) * buffer.dtype.bytes_i64());
        if let Some(Swizzle::Xor(it)) = buffer.layout.swizzle
            && access.lanes > 1
            && bytes > it.chunk_bytes()
        {
            let chunk = it.chunk_bytes();
            cut.borrow_mut().get_or_insert(LowerError::SwizzleChunk { buffer: name.clone(), bytes, chunk });
        }
        Access { indices: vec![swizzled(buffer, offset)], ..access.clone() }
    };
    let told = |op: Op| {
        let text = if let Op::Alloc(it) = &op { context.swizzles.get(&it.name) } else { None };
        text.map(|it| Op::comment(it.clone())).into_iter().chain([op])
    };
    let module = module.map_bodies(&mut |_, body| {
        body.iter().map(|op| op.map_accesses(&mut |it| flat(it))).flat_map(told).collect()
    });
    cut.into_inner().map_or(Ok(module), Err)
}

/// What the start of a buffer is a multiple of, in bytes: where it is swizzled, the period of its pattern, so that the
/// pattern is one of addresses, as copies of tiles by the hardware have it. Longer periods than those come to no more
/// than theirs.
pub(crate) fn alignment(buffer: &Buffer) -> i64 {
    const MOST: i64 = 1024;
    match buffer.layout.swizzle {
        Some(Swizzle::Xor(it)) => it.period_bytes().clamp(Alloc::ALIGN, MOST),
        Some(Swizzle::Auto) | None => Alloc::ALIGN,
    }
}

/// Where the element of an offset lies.
fn swizzled(buffer: &Buffer, offset: Index) -> Index {
    match buffer.layout.swizzle {
        Some(Swizzle::Xor(it)) => it.element(&offset, buffer.dtype.bytes_i64()),
        // `settle_swizzles` leaves none open.
        Some(Swizzle::Auto) | None => offset,
    }
}
