//! Keeps the copies that `cp.async` can do, and makes stores of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::{
    Access, DType, Feature, For, Group, Instr, Kernel, Mechanism, Module, Name, Op, Scope, SyncKind, Target,
    Value, Wait, arith::Bounds, pipeline::PipelineError,
};

use crate::lower::{
    Context, LowerError,
    analysis::bounds::kernel_bounds,
    passes::choose_mechanisms::cp_async::{WIDER, cp_async},
};

/// ```text
/// A_shared[t] <- A[t]        // `A_shared` is copied at once: a thread copies 2 adjacent bytes at a time, …
/// commit                ->   A_shared[t] = A[t]
/// wait 0 for A_shared        barrier
/// barrier
/// ```
///
/// A copy stays one if it is an instruction of 4, 8 or 16 bytes that starts at a multiple of them on both sides, and
/// something waits for it. Any other becomes a store under a comment that says why; a store lands at once, so waits
/// stay right. Waits then name only what is still copied, adjacent waits are one, and a kernel without copies has no
/// commits and waits.
///
/// Refuses where a script forces `cp_async` and no copy of a buffer is one.
pub(crate) fn select_copies(module: Module, context: &mut Context) -> Result<Module, LowerError> {
    let (module, selected) = selected(module, &context.target);
    for (buffer, reason) in selected.refused.into_iter().filter(|it| !selected.copied.contains(&it.0)) {
        for pipeline in &mut context.pipelines {
            let name = &pipeline.var;
            let copies = pipeline.components.iter_mut().filter(|it| it.mechanism == Mechanism::CpAsync);
            for it in copies.filter(|it| it.writes.contains(&buffer)) {
                let (mechanism, component) = (Mechanism::CpAsync, it.name.clone());
                if it.is_forced {
                    let (name, change) = (name.clone(), WIDER);
                    return Err(
                        PipelineError::Mechanism { name, component, mechanism, reason, change }.into()
                    );
                }
                it.mechanism = Mechanism::Synchronous;
                it.reason = format!("It is copied in its place. Not cp_async: {reason}.");
            }
        }
    }
    Ok(module)
}

/// What became of the copies of all kernels.
#[derive(Default)]
struct Selected {
    /// The buffers of which at least one copy is an instruction.
    copied: BTreeSet<Name>,
    /// The buffers of which at least one is not, and the first reason.
    refused: BTreeMap<Name, String>,
}

fn selected(mut module: Module, target: &Target) -> (Module, Selected) {
    let mut all = Selected::default();
    for at in 0..module.kernels.len() {
        let bounds = kernel_bounds(&module, &module.kernels[at]);
        let args = module.args.iter().map(|(name, it)| (name.clone(), (it.dtype, Scope::Global)));
        let kernel = &module.kernels[at];
        let memory = args.chain(allocs(kernel)).collect();
        let waited = waited(kernel);
        let mut selector = Selector { target, memory, waited, bounds, selected: Selected::default() };
        let body = selector.ops(&kernel.body);
        let Selected { copied, refused } = selector.selected;
        module.kernels[at].body = with_waits(body, &copied);
        all.copied.extend(copied);
        for (name, reason) in refused {
            all.refused.entry(name).or_insert(reason);
        }
    }
    (module, all)
}

fn allocs(kernel: &Kernel) -> Vec<(Name, (DType, Scope))> {
    let mut out = Vec::new();
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op {
                out.push((it.name.clone(), (it.dtype, it.scope)));
            }
        });
    }
    out
}

/// The buffers that some wait is for.
fn waited(kernel: &Kernel) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    for op in &kernel.body {
        op.each_instr(&mut |it| {
            if let Some(SyncKind::Wait(it)) = it.sync() {
                out.extend(it.buffers.iter().cloned());
            }
        });
    }
    out
}

struct Selector<'a> {
    target: &'a Target,
    memory: BTreeMap<Name, (DType, Scope)>,
    waited: BTreeSet<Name>,
    bounds: Bounds,
    selected: Selected,
}

impl Selector<'_> {
    fn ops(&mut self, ops: &[Op]) -> Vec<Op> {
        let mut out: Vec<Op> = Vec::new();
        for op in ops {
            match op {
                Op::Instr(Instr::AsyncCopy(place, value), origin) => match self.judge(place, value) {
                    Ok(()) => {
                        self.selected.copied.insert(place.buffer.clone());
                        out.push(op.clone());
                    }
                    Err(reason) => {
                        if *self.target != Target::Cpu {
                            let text = format!("`{}` is copied at once: {reason}.", place.buffer);
                            out.push(Op::comment(text, origin.clone()));
                        }
                        out.push(Op::Instr(Instr::Store(place.clone(), value.clone()), origin.clone()));
                        self.selected.refused.entry(place.buffer.clone()).or_insert(reason);
                    }
                },
                Op::For(it) => {
                    let outside = self.bounds.clone();
                    self.bounds.insert(&it.var, &it.extent);
                    let body = self.ops(&it.body);
                    self.bounds = outside;
                    out.push(Op::For(Arc::new(For { body, ..For::clone(it) })));
                }
                Op::If(..) | Op::Leader(..) | Op::Role(..) => {
                    out.push(op.clone().map_children(&mut |body| self.ops(&body)));
                }
                Op::Alloc(_) | Op::Instr(..) => out.push(op.clone()),
            }
        }
        out
    }

    /// Why a copy cannot be an instruction, if it cannot.
    fn judge(&self, place: &Access, value: &Value) -> Result<(), String> {
        match self.target {
            Target::Cpu => return Err("a CPU has no asynchronous copies".to_owned()),
            Target::Cuda(arch) if !arch.has(Feature::CpAsync) => {
                return Err(format!("{arch} has no cp.async"));
            }
            Target::Cuda(_) => {}
        }
        if !self.waited.contains(&place.buffer) {
            return Err("nothing waits for it".to_owned());
        }
        let copy = cp_async(place, value, &|name| self.memory.get(name).copied())?;
        for access in [place, copy.from] {
            let lanes = i64::from(access.lanes);
            let is_aligned = access.indices.iter().all(|it| self.bounds.divides(lanes, it));
            if !is_aligned {
                return Err(format!("accesses of `{}` are not aligned to {lanes} elements", access.buffer));
            }
        }
        Ok(())
    }
}

/// The statements with waits for what is still copied only, and with no commits if nothing is.
fn with_waits(ops: Vec<Op>, copied: &BTreeSet<Name>) -> Vec<Op> {
    let op = |op: Op| match op {
        Op::Instr(Instr::Commit(Group::CpAsync), _) => (!copied.is_empty()).then_some(op),
        Op::Instr(Instr::Wait(it), origin) if it.group == Group::CpAsync => {
            let buffers: Vec<_> = it.buffers.into_iter().filter(|it| copied.contains(it)).collect();
            (!buffers.is_empty()).then_some(Op::Instr(Instr::Wait(Wait { buffers, ..it }), origin))
        }
        Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {
            let was_empty = op.children().is_empty();
            let op = op.map_children(&mut |body| with_waits(body, copied));
            (was_empty || !op.children().is_empty()).then_some(op)
        }
        Op::Alloc(_) | Op::Instr(..) => Some(op),
    };
    let mut out: Vec<Op> = Vec::new();
    for op in ops.into_iter().filter_map(op) {
        match (out.last_mut(), op) {
            // Nothing happens between the two: the one for more groups is enough.
            (Some(Op::Instr(Instr::Wait(last), _)), Op::Instr(Instr::Wait(it), _)) => {
                last.in_flight = last.in_flight.min(it.in_flight);
                let new: Vec<_> = it.buffers.into_iter().filter(|it| !last.buffers.contains(it)).collect();
                last.buffers.extend(new);
            }
            (_, op) => out.push(op),
        }
    }
    out
}
