//! Two accesses of one program.

use super::{Conflict, FuncAccess, Iteration};
use crate::{Func, Name, ThreadAxis, arith::Bounds, axis_var};

/// What is known where two accesses happen: of each axis the wider bounds, and what guards say of both.
pub fn bounds_of_both(func: &Func, a: &FuncAccess<'_>, b: &FuncAccess<'_>) -> Bounds {
    let mut bounds = Bounds::of_dims(func);
    for it in a.loops.iter().chain(&*b.loops) {
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

/// Whether the solver finds that they are by the same iteration of a variable wherever they are to one element.
pub fn has_same(
    func: &Func,
    a: &FuncAccess<'_>,
    b: &FuncAccess<'_>,
    var: &Name,
    is_common: &dyn Fn(&Name) -> bool,
) -> bool {
    let when = |name: &Name| Iteration::same_if(is_common(name));
    let (first, second) = (a.relation(), b.relation());
    Conflict { first: &first, second: &second, dims: &func.dims, when: &when }.has_same(var)
}

/// Whether the solver finds no element that both touch.
pub fn never_meet(
    func: &Func,
    a: &FuncAccess<'_>,
    b: &FuncAccess<'_>,
    is_common: &dyn Fn(&Name) -> bool,
) -> bool {
    let when = |name: &Name| Iteration::same_if(is_common(name));
    let (first, second) = (a.relation(), b.relation());
    Conflict { first: &first, second: &second, dims: &func.dims, when: &when }.never()
}
