//! Programs with symbolic dimensions, whose sizes are known when they run: rules see them with sizes in place of those.

use ir::{Func, Index, Name, arith::Bounds};

/// What rules take a symbolic dimension for: enough for many tiles, and odd, so that rows of such a length begin at no multiple of anything and nothing is chosen that another size
/// would refuse.
pub(super) const SIZE: i64 = 4095;

/// The program with that size for each symbolic dimension, if it has some.
pub(super) fn sized(func: &Func) -> Option<Func> {
    if func.dims.is_empty() {
        return None;
    }
    let bounds = Bounds::default();
    let size = |name: &Name| func.dims.contains(name).then(|| Index::int(SIZE));
    let mut known = |index: &Index| bounds.simplify(&index.subst(&size));
    let mut out = func.clone();
    out.dims.clear();
    for it in out.buffers.values_mut() {
        it.shape = it.shape.iter().map(&mut known).collect();
        it.below = it.below.as_ref().map(&mut known);
    }
    out.body = func.body.map_indices(&mut known);
    Some(out)
}
