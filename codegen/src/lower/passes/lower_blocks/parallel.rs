//! Refuses parallel loops of a CPU whose iterations meet.

use ir::{
    Func, Loop, LoopKind,
    access::{Disjointness, FuncAccess, bounds_of_both, has_same},
};

use crate::lower::LowerError;

/// Refuses parallel loops of a CPU whose iterations may meet in a buffer that they share.
pub(crate) fn parallel(func: &Func, users: &[&FuncAccess<'_>]) -> Result<(), LowerError> {
    for write in users.iter().filter(|it| it.write) {
        for other in users {
            let shared = &write.loops[..write.shared_loops(other)];
            let shared = shared.iter().filter(|it| it.kind == LoopKind::Parallel);
            for around in shared.filter(|it| it.extent.as_int() != Some(1)) {
                if !parallel_apart(func, write, other, around) {
                    let (var, buffer) = (around.var.clone(), write.buffer.clone());
                    return Err(LowerError::ParallelRace { var, buffer });
                }
            }
        }
    }
    Ok(())
}

fn parallel_apart(func: &Func, a: &FuncAccess<'_>, b: &FuncAccess<'_>, around: &Loop) -> bool {
    let bounds = bounds_of_both(func, a, b);
    let outer: Vec<_> = a.loops.iter().take_while(|it| it.var != around.var).map(|it| &it.var).collect();
    let pair = Disjointness {
        a: &a.indices,
        b: &b.indices,
        bounds: &bounds,
        is_common: &|name| func.dims.contains(name) || outer.contains(&name),
    };
    pair.disjoint()
        || pair.separated().contains(&around.var)
        || has_same(func, a, b, &around.var, &|name| outer.contains(&name))
}
