//! Decides whether the indices of a kernel take 32 bits or 64.

use ir::{Index, Less, Module, Op, Target, arith::Bounds};

use crate::lower::analysis::bounds::kernel_bounds;

/// ```text
/// kernel f<<<…>>>(A, mut B)   ->   kernel f<<<…>>>(A, mut B) index i64
/// ```
///
/// On a GPU, indices take 32 bits where each of them, and every part of it, is proved to fit: half the registers and the
/// instructions of wide ones. On a CPU they take 64 bits, which cost nothing there.
pub(crate) fn index_width(mut module: Module, target: &Target) -> Module {
    if *target == Target::Cpu {
        return module;
    }
    for at in 0..module.kernels.len() {
        let mut bounds = kernel_bounds(&module, &module.kernels[at]);
        module.kernels[at].wide = !all_fit(&module.kernels[at].body, &mut bounds);
    }
    module
}

fn all_fit(ops: &[Op], bounds: &mut Bounds) -> bool {
    ops.iter().all(|op| match op {
        Op::Alloc(_) => true,
        Op::For(it) => {
            let fits = fits(&it.extent, bounds);
            bounds.insert(&it.var, &it.extent);
            fits && all_fit(&it.body, bounds)
        }
        Op::If(cond, body) => cond.iter().all(|it| less_fits(it, bounds)) && all_fit(body, bounds),
        Op::Leader(_, body) | Op::Role(_, body) => all_fit(body, bounds),
        Op::Instr(it, _) => {
            let mut all = true;
            it.each_index(&mut |it| all &= fits(it, bounds));
            all
        }
    })
}

fn less_fits(less: &Less, bounds: &Bounds) -> bool {
    fits(&less.lhs, bounds) && fits(&less.rhs, bounds)
}

/// Whether an index, and every part of it, is proved to fit 32 bits.
pub(crate) fn fits(index: &Index, bounds: &Bounds) -> bool {
    bounds.is_within(index, i64::from(i32::MAX))
}
