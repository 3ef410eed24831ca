//! Two accesses of a program: what is known where both happen, and whether they meet.

use ir::{Func, Name, ThreadAxis, arith::Bounds, axis_var, solve::Meeting};

use crate::lower::analysis::func_accesses::FuncAccess;

/// The bounds of both, of each axis the wider; and what guards say of either.
pub(crate) fn pair_bounds(func: &Func, a: &FuncAccess<'_>, b: &FuncAccess<'_>) -> Bounds {
    let mut bounds = Bounds::of_dims(func);
    for it in a.loops.iter().chain(&b.loops) {
        bounds.insert(&it.var, &it.extent);
    }
    for axis in ThreadAxis::ALL {
        let extents = [a, b].into_iter().filter_map(|it| it.bound(axis)).map(|it| it.extent.clone());
        if let Some(widest) = extents.reduce(|a, b| if bounds.at_most(&a, &b) { b } else { a.maximum(&b) }) {
            bounds.insert(&axis_var(axis), &widest);
        }
    }
    // A guard of one alone says nothing of the other, whose loops may be the same.
    for guard in a.guards.iter().filter(|it| b.guards.contains(it)) {
        bounds.assume(guard);
    }
    bounds
}

/// Whether two accesses are by the same iteration of a variable wherever they meet, exactly: guards and all.
pub(crate) fn has_same(
    func: &Func,
    a: &FuncAccess<'_>,
    b: &FuncAccess<'_>,
    var: &Name,
    is_common: &dyn Fn(&Name) -> bool,
) -> bool {
    let (x, y) = (a.place(), b.place());
    Meeting { a: &x, b: &y, dims: &func.dims, is_common }.has_same(var)
}
