//! What the instruction `cp.async` can do: copies of 4, 8 or 16 bytes from global to shared memory.

use std::sync::Arc;

use ir::{
    Access, Arch, Block, DType, Feature, Func, Index, Less, Loop, LoopKind, Mechanism, Name, Number, Scope,
    Stmt, Storage, Store, Target, ThreadAxis, Value,
    access::{Axes, Disjointness, accesses, bounds_of_both, has_same, never_meet},
    arith::Bounds,
    axis_var,
};

use crate::lower::passes::choose_mechanisms::question::{Obstacle, Question, replace_component};

/// A copy that is one instruction.
pub(crate) struct CpAsync<'a> {
    /// How many bytes: 4, 8 or 16.
    pub(crate) bytes: usize,
    /// Where they come from.
    pub(crate) from: &'a Access,
    /// The conditions under which they are copied; where one does not hold, zeros are written.
    pub(crate) cond: &'a [Less],
}

/// An assignment as one instruction, or the reason why it cannot be one, fit to follow a colon.
///
/// That both sides start at a multiple of the bytes is for the caller to know: accesses of several lanes do, as
/// `vectorize` makes them.
pub(crate) fn cp_async<'a>(
    place: &Access,
    value: &'a Value,
    memory: &dyn Fn(&Name) -> Option<(DType, Scope)>,
) -> Result<CpAsync<'a>, String> {
    let (from, cond) = pure_copy(place, value, memory)?;
    if from.lanes != place.lanes {
        return Err(format!("it writes {} elements for {} of `{}`", place.lanes, from.lanes, from.buffer));
    }
    let element = memory(&place.buffer).map_or(0, |it| it.0.bytes());
    let bytes = element * place.lanes as usize;
    if !is_width(bytes) {
        return Err(format!("a thread copies {bytes} adjacent bytes at a time, and cp.async 4, 8 or 16"));
    }
    Ok(CpAsync { bytes, from, cond })
}

/// Whether the instruction copies that many bytes.
fn is_width(bytes: usize) -> bool {
    Arch::CP_ASYNC_BYTES.contains(&bytes)
}

/// What an assignment copies from global to shared memory unchanged, and under which conditions it is not zero.
pub(crate) fn pure_copy<'a>(
    place: &Access,
    value: &'a Value,
    memory: &dyn Fn(&Name) -> Option<(DType, Scope)>,
) -> Result<(&'a Access, &'a [Less]), String> {
    let (from, cond): (_, &[Less]) = match value {
        Value::Load(from) => (from, &[]),
        Value::Select(cond, a, b) => match (&**a, &**b) {
            (Value::Load(from), Value::Const(it)) if is_zero(it.number) => (from, cond),
            (Value::Load(_), Value::Const(_)) => {
                return Err("where it copies nothing it writes something else than zero".to_owned());
            }
            _ => return Err("it chooses between two computed values".to_owned()),
        },
        Value::Const(_) | Value::Index(..) => return Err("it copies nothing".to_owned()),
        Value::Cast(..) | Value::Unary(..) | Value::Binary(..) | Value::Where(..) => {
            return Err("it computes with what it loads".to_owned());
        }
    };
    let (Some((dtype, scope)), Some((source, source_scope))) = (memory(&place.buffer), memory(&from.buffer))
    else {
        return Err(format!("`{}` or `{}` is unknown", place.buffer, from.buffer));
    };
    if scope != Scope::Shared || source_scope != Scope::Global {
        let (from, to) = (source_scope.as_str(), scope.as_str());
        return Err(format!("it copies from {from} to {to} memory, and cp.async from global to shared"));
    }
    if dtype != source {
        return Err(format!("`{}` has elements of {source}, and `{}` of {dtype}", from.buffer, place.buffer));
    }
    Ok((from, cond))
}

/// Whether all bits of the number are zero in every type: minus zero is another number.
const fn is_zero(number: Number) -> bool {
    matches!(number, Number::Int(0) | Number::Float(0))
}

/// Whether a component of a pipeline can be copied by the instruction: each of its blocks copies unchanged from global
/// to shared memory, 4, 8 or 16 adjacent bytes a thread at a time.
pub(crate) fn judge(question: &Question<'_>) -> Result<String, Obstacle> {
    if let Target::Cuda(arch) = question.target
        && !arch.has(Feature::CpAsync)
    {
        let reason = format!("{arch} has no cp.async, which came with sm_{}", Feature::CpAsync.least_sm());
        return Err(Obstacle::new(reason, "lower for sm_80 or later, or use `register_staged`"));
    }
    let func = question.func;
    let memory = |name: &Name| func.buffers.get(name).map(|it| (it.dtype, it.scope));
    let mut found: Option<(usize, &Name)> = None;
    let mut nests = Nests { loops: question.around.to_vec(), out: vec![] };
    nests.collect(&question.component.body);
    for (loops, block) in &nests.out {
        if block.init.is_some() {
            return Err(Obstacle::new(format!("`{}` reduces", block.name), PLAIN));
        }
        let mut stores = Vec::new();
        block.body.each_store(&mut |store| stores.push(store));
        for store in stores {
            let (from, cond) = pure_copy(&store.place, &store.value, &memory)
                .map_err(|reason| Obstacle::new(reason, PLAIN))?;
            let bytes = bytes_at_once(func, loops, block, store, (from, cond))?;
            if found.is_none_or(|(least, _)| bytes < least) {
                found = Some((bytes, &from.buffer));
            }
        }
    }
    if let Some(reason) = written_twice(question, &nests.out) {
        return Err(Obstacle::new(reason, PLAIN));
    }
    match found {
        Some((bytes, from)) => Ok(format!("each thread copies `{from}` unchanged, {bytes} bytes at a time")),
        None => Err(Obstacle::new("it copies nothing", PLAIN)),
    }
}

/// Why one iteration may copy to one element twice, if it may: copies land in any order, and either could stay.
fn written_twice(question: &Question<'_>, nests: &[(Vec<&Loop>, &Block)]) -> Option<String> {
    let (func, depth) = (question.func, question.around.len());
    let mut all = accesses(&func.body, Axes::of(question.target));
    all.retain(|it| {
        it.write && it.block().is_some_and(|block| nests.iter().any(|nest| nest.1.name == block.name))
    });
    let outer = |name: &Name| {
        let is_axis = ThreadAxis::ALL.iter().any(|axis| axis_var(*axis) == *name);
        is_axis || func.dims.contains(name) || question.around.iter().any(|it| it.var == *name)
    };
    for (n, a) in all.iter().enumerate() {
        for b in all[n..].iter().filter(|b| b.buffer == a.buffer) {
            let bounds = bounds_of_both(func, a, b);
            let pair = Disjointness { a: &a.indices, b: &b.indices, bounds: &bounds, is_common: &outer };
            let is_apart = if std::ptr::eq(a, b) {
                let separated = pair.separated();
                let own = a.loops[depth.min(a.loops.len())..].iter();
                own.filter(|it| !matches!(it.kind, LoopKind::Bound(_)) && it.extent.as_int() != Some(1))
                    .all(|it| separated.contains(&it.var) || has_same(func, a, b, &it.var, &outer))
            } else {
                pair.disjoint() || never_meet(func, a, b, &outer)
            };
            if !is_apart {
                let (buffer, a, b) = (a.buffer, a.block_name(), b.block_name());
                let who =
                    if a == b { format!("`{a}` may write") } else { format!("`{a}` and `{b}` may write") };
                return Some(format!("{who} one element of `{buffer}` twice, and copies land in any order"));
            }
        }
    }
    None
}

const PLAIN: &str = "copy with `cache_read` and compute afterwards, or use `register_staged`";
pub(crate) const WIDER: &str =
    "vectorize the innermost loop of the copy, over adjacent elements that start at a multiple of 4 bytes";

/// Marks the blocks of a component, for `lower_blocks` to make copies of their stores.
pub(crate) fn mark(func: &mut Func, var: &Name, component: &Name) -> Option<Name> {
    mark_as(Mechanism::CpAsync, func, var, component)
}

/// Marks the blocks of a component with the mechanism that copies for them.
pub(crate) fn mark_as(mechanism: Mechanism, func: &mut Func, var: &Name, component: &Name) -> Option<Name> {
    replace_component(func, var, component, |stmt| {
        let mut stmt = stmt.clone();
        stmt.walk_mut(&mut |stmt| match stmt {
            Stmt::Block(it) => {
                Arc::make_mut(it).attrs.mechanism = Some(mechanism);
                false
            }
            Stmt::Loop(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => true,
        });
        stmt
    });
    None
}

/// The blocks of a statement, each with all loops around it.
#[derive(Default)]
pub(crate) struct Nests<'a> {
    pub(crate) loops: Vec<&'a Loop>,
    pub(crate) out: Vec<(Vec<&'a Loop>, &'a Block)>,
}

impl<'a> Nests<'a> {
    pub(crate) fn collect(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Loop(it) => {
                self.loops.push(it);
                self.collect(&it.body);
                self.loops.pop();
            }
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.collect(it)),
            Stmt::Block(it) => self.out.push((self.loops.clone(), it)),
            Stmt::Store(_) | Stmt::Instr(_) => {}
        }
    }
}

/// How many adjacent bytes a thread copies at a time: one element, or the lanes of the innermost loop.
///
/// The place is judged by its last subscript only: its rows may still be made shorter, and `select_copies` judges what
/// comes out.
fn bytes_at_once(
    func: &Func,
    loops: &[&Loop],
    block: &Block,
    store: &Store,
    (from, cond): (&Access, &[Less]),
) -> Result<usize, Obstacle> {
    let element = func.buffers[&store.place.buffer].dtype.bytes();
    let lanes = loops.last().filter(|it| it.kind == LoopKind::Vectorized).and_then(|it| {
        let extent = it.extent.as_int()?;
        let widths = [16, 8, 4, 2].into_iter().filter(|lanes| lanes * element <= 16);
        let mut widths = widths.filter(|lanes| extent % i64::try_from(*lanes).expect("at most 16") == 0);
        widths.find(|lanes| are_lanes(func, loops, block, (&store.place, from, cond), *lanes))
    });
    let bytes = element * lanes.unwrap_or(1);
    if is_width(bytes) {
        return Ok(bytes);
    }
    let reason = format!("a thread copies {bytes} adjacent bytes at a time, and cp.async 4, 8 or 16");
    Err(Obstacle::new(reason, WIDER))
}

/// Whether groups of `lanes` iterations of the innermost loop touch aligned groups of neighbours.
fn are_lanes(
    func: &Func,
    loops: &[&Loop],
    block: &Block,
    (place, from, cond): (&Access, &Access, &[Less]),
    lanes: usize,
) -> bool {
    let (Some(inner), Ok(lanes)) = (loops.last(), i64::try_from(lanes)) else { return false };
    let mut bounds = Bounds::of_dims(func);
    for it in loops {
        bounds.insert(&it.var, &it.extent);
    }
    let groups = inner.extent.as_int().map_or(1, |it| it / lanes);
    bounds.insert(&inner.var, &Index::int(groups));
    let lane = Name::fresh(&format!("{}_lane", inner.var), |it| func.is_taken(it));
    bounds.insert(&lane, &Index::int(lanes));
    // As `vectorize` will write it.
    let first = if groups == 1 { Index::int(0) } else { Index::var(&inner.var) * lanes };
    let split = first + Index::var(&lane);
    let resolved = |index: &Index| {
        let index = index.subst(&|name| block.find_iter(name).map(|it| it.binding.clone()));
        index.subst(&|name| (*name == inner.var).then(|| split.clone()))
    };
    let start = |index: &Index, step: i64| {
        let (found, start) = bounds.linear_in(&resolved(index), &lane)?;
        (found == step).then_some(start)
    };
    let last = place.indices.last().and_then(|it| start(it, 1));
    let outer = place.indices.iter().rev().skip(1).all(|it| start(it, 0).is_some());
    let subscripts: Vec<Index> = from.indices.iter().map(resolved).collect();
    let offset = bounds.linear_in(&Storage::of(&func.buffers[&from.buffer]).linear(&subscripts), &lane);
    // A row of whole groups ends between two of them: then the condition is one on groups.
    let is_fixed = |it: &Less| {
        let less = bounds.simplify_less(&Less::new(resolved(&it.lhs), resolved(&it.rhs)));
        start(&(&less.lhs - &less.rhs), 0).is_some()
    };
    outer
        && last.is_some_and(|it| bounds.divides(lanes, &it))
        && offset.is_some_and(|(step, start)| step == 1 && bounds.divides(lanes, &start))
        && cond.iter().all(is_fixed)
}
