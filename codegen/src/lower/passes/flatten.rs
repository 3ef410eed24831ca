//! Turns subscripts into one element offset.

use std::cell::RefCell;

use ir::{Access, Module, Op, Storage};

use crate::lower::{Context, LowerError};

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
        let storage = Storage::of(buffer);
        let (name, bytes) = (&access.buffer, i64::from(access.lanes) * buffer.dtype.bytes_i64());
        if let Some(chunk) = storage.chunk_bytes().filter(|it| access.lanes > 1 && bytes > *it) {
            cut.borrow_mut().get_or_insert(LowerError::SwizzleChunk { buffer: name.clone(), bytes, chunk });
        }
        Access { indices: vec![storage.element(&access.indices)], ..access.clone() }
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
