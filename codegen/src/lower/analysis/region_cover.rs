//! Proofs that what a place reads has been written, all of it, by another.

use ir::{Func, Index, Less, Name, region, solve};

use crate::lower::analysis::func_accesses::FuncAccess;

/// Whether every existing element that `read` touches is among those that `write` touches, while the fixed
/// variables have the same values for both and all others run: by their boxes, or, where those do not tell, because
/// the solver finds no element that is missed.
pub(crate) fn covers(
    func: &Func,
    write: &FuncAccess<'_>,
    read: &FuncAccess<'_>,
    is_fixed: &dyn Fn(&Name) -> bool,
) -> bool {
    covers_box(func, write, read, is_fixed)
        || solve::covers(
            &func.dims,
            &func.buffers[read.buffer].shape,
            &write.place(),
            &read.place(),
            is_fixed,
        )
}

fn covers_box(
    func: &Func,
    write: &FuncAccess<'_>,
    read: &FuncAccess<'_>,
    is_fixed: &dyn Fn(&Name) -> bool,
) -> bool {
    let shape = &func.buffers[read.buffer].shape;
    let bounds = write.bounds(func);
    let is_inner = |name: &Name| !is_fixed(name) && bounds.extent(name).is_some();
    let written = region::filled(&write.indices, &write.guards, &read.guards, shape, bounds, &is_inner);
    let Some(written) = written else { return false };
    let bounds = read.bounds(func);
    let is_inner = |name: &Name| !is_fixed(name) && bounds.extent(name).is_some();
    if !runs(func, write, read, is_fixed) {
        return false;
    }
    let dims = read.indices.iter().zip(shape);
    let part = dims.map(|(index, size)| region::range_of(index, &read.guards, size, bounds, &is_inner));
    region::covers(&written, &part.collect(), shape, bounds)
}

/// Whether the write happens wherever the read does, guards aside: each loop around it alone surely has an iteration, if
/// the box that it writes does not show how many there are; and an axis of a thread's own goes as far for it as for the read.
fn runs(
    func: &Func,
    write: &FuncAccess<'_>,
    read: &FuncAccess<'_>,
    is_fixed: &dyn Fn(&Name) -> bool,
) -> bool {
    let (bounds, own) = (read.bounds(func), write.bounds(func));
    let places: Vec<_> = write.indices.iter().map(|it| own.simplify(it)).collect();
    write.variables().skip(write.shared_loops(read)).all(|(name, extent)| {
        let least = if is_fixed(&name) { Index::var(&name) } else { Index::int(0) };
        let shows = || !is_fixed(&name) && places.iter().any(|it| it.any_var(&|var| *var == name));
        bounds.prove(&Less::new(least, extent)) == Some(true) || shows()
    })
}
