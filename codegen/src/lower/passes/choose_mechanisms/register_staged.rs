//! Copies through registers: loads early, stores to shared memory late.

use std::sync::Arc;

use indexmap::IndexMap;
use ir::{
    Access, Block, BlockAttrs, Buffer, Func, Index, Iter, IterKind, Loop, LoopKind, Name, Numbers, Origin,
    Scope, Stmt, Store, Value,
    pipeline::{ORDER, STAGE, numbers},
};

use crate::lower::passes::choose_mechanisms::{
    cp_async::Nests,
    question::{Obstacle, Question},
};

/// The most bytes that one thread holds in registers for one component: 64 registers.
const MAX_BYTES: i64 = 256;

const ONE_LOAD: &str = "fill the shared buffer by one block that loads one element of global memory";

/// Whether a component of a pipeline can be staged through registers: it is one block that writes shared memory from
/// one load of global memory, what its threads load fits their registers, and its store can come last in its stage.
pub(crate) fn judge(question: &Question<'_>) -> Result<String, Obstacle> {
    let func = question.func;
    let mut nests = Nests::default();
    nests.collect(&question.component.body);
    let [(loops, block)] = nests.out.as_slice() else {
        return Err(Obstacle::new(format!("it has {} blocks", nests.out.len()), ONE_LOAD));
    };
    let Stmt::Store(store) = &block.body else {
        return Err(Obstacle::new(format!("`{}` is not one assignment", block.name), ONE_LOAD));
    };
    if block.init.is_some() {
        return Err(Obstacle::new(format!("`{}` reduces", block.name), ONE_LOAD));
    }
    let buffer = &store.place.buffer;
    let scope = |name: &Name| func.buffers.get(name).map(|it| it.scope);
    if scope(buffer) != Some(Scope::Shared) {
        return Err(Obstacle::new(format!("`{buffer}` is not in shared memory"), "set its scope to shared"));
    }
    let mut loads = Vec::new();
    store.value.each_load(&mut |it| loads.push(it));
    let [load] = loads.as_slice() else {
        return Err(Obstacle::new(format!("it loads {} elements", loads.len()), ONE_LOAD));
    };
    if scope(&load.buffer) != Some(Scope::Global) {
        return Err(Obstacle::new(format!("`{}` is not in global memory", load.buffer), ONE_LOAD));
    }
    for other in question.all.iter().filter(|it| it.name != question.component.name) {
        let touches = other.reads.contains(buffer) || other.writes.contains(buffer);
        if touches && other.stage <= question.component.stage {
            let reason = format!("`{}` uses `{buffer}` before a later stage", other.name);
            return Err(Obstacle::new(reason, "give what uses the copy a later stage"));
        }
    }
    let bytes = held_bytes(func, loops, &store.value)?;
    Ok(format!("each thread holds {bytes} bytes of `{}` in registers until its stage ends", load.buffer))
}

/// How many bytes a thread holds between the two halves.
fn held_bytes(func: &Func, loops: &[&Loop], value: &Value) -> Result<i64, Obstacle> {
    let element = staged(value).dtype(&|name| func.dtype_of(name)).expect("the program is verified");
    let mut bytes = element.bytes_i64();
    for it in loops {
        let change = "split the loop by a constant, and compute the copy at the outer part";
        let Some(extent) = it.extent.as_int() else {
            let reason = format!("loop `{}` runs {} times, which is no constant", it.var, it.extent);
            return Err(Obstacle::new(reason, change));
        };
        match it.kind {
            LoopKind::Bound(axis) if axis.is_thread() => {}
            LoopKind::Bound(axis) => {
                let reason = format!("loop `{}` in it is bound to {}", it.var, axis.as_str());
                return Err(Obstacle::new(reason, "bind a loop outside the pipeline to it"));
            }
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => {
                bytes = bytes.saturating_mul(extent);
            }
        }
    }
    if bytes > MAX_BYTES {
        let reason = format!("a thread would hold {bytes} bytes in registers, and {MAX_BYTES} are the most");
        return Err(Obstacle::new(reason, "use more threads, or smaller tiles"));
    }
    Ok(bytes)
}

/// The part of a value that is computed early: its load, or the selection around it, since what a selection does not
/// choose must not be loaded. Arithmetic waits, so that nobody waits for the load before it has to.
fn staged(value: &Value) -> &Value {
    let has_load = |value: &Value| {
        let mut found = false;
        value.each_load(&mut |_| found = true);
        found
    };
    match value {
        Value::Const(_) | Value::Index(..) | Value::Load(_) | Value::Select(..) | Value::Where(..) => value,
        Value::Cast(_, a) | Value::Unary(_, a) => staged(a),
        Value::Binary(_, a, b) => staged(if has_load(a) { a } else { b }),
    }
}

/// The value with another one in the place of its staged part.
fn with_staged(value: &Value, new: &Value) -> Value {
    if std::ptr::eq(staged(value), value) {
        return new.clone();
    }
    let inner = |value: &Value| {
        let mut found = false;
        value.each_load(&mut |_| found = true);
        if found { with_staged(value, new) } else { value.clone() }
    };
    match value {
        Value::Const(_) | Value::Index(..) | Value::Load(_) | Value::Select(..) | Value::Where(..) => {
            new.clone()
        }
        Value::Cast(dtype, a) => Value::Cast(*dtype, Arc::new(inner(a))),
        Value::Unary(op, a) => Value::Unary(*op, Arc::new(inner(a))),
        Value::Binary(op, a, b) => Value::binary(*op, inner(a), inner(b)),
    }
}

/// ```text
/// for k in 0..8 #{software_pipeline_stage: {A_shared: 0, C: 1}, software_pipeline_order: {A_shared: 0, C: 1}}
///   for t in 0..32 @threadIdx.x
///     block A_shared(vk: 8 = k, v: 32 = t)
///       A_shared[v] = A[vk, v] + 1.0f32
///   …
/// ->
/// for k in 0..8 #{software_pipeline_stage: {A_shared_reg: 0, A_shared: 0, C: 1},
///     software_pipeline_order: {A_shared_reg: 0, A_shared: 2, C: 1}}
///   for t_reg in 0..32 @threadIdx.x
///     block A_shared_reg(vk: 8 = k, v: 32 = t_reg, r0: 32 = t_reg)
///       A_shared_reg[r0] = A[vk, v]
///   for t in 0..32 @threadIdx.x
///     block A_shared(vk: 8 = k, v: 32 = t, r0: 32 = t)
///       A_shared[v] = A_shared_reg[r0] + 1.0f32
///   …
/// ```
///
/// The new block and its local buffer are named after the block, and the loops of its nest after the loops, each with
/// `_reg` (and a number where that is taken). The buffer has a dimension for each loop of the nest, threads
/// included, so that each thread is seen to own its part; `compact_buffers` drops those. Both halves keep guards and
/// kinds of loops. Returns the name of the new component.
pub(crate) fn stage_through_registers(func: &mut Func, var: &Name, component: &Name) -> Option<Name> {
    let it = func.find_loop(var)?;
    let Stmt::Seq(stmts) = &it.body else { return None };
    let holds = |stmt: &&Stmt| stmt.blocks().iter().any(|it| it.name == *component);
    let (at, stmt) = stmts.iter().enumerate().find(|it| holds(&it.1))?;
    let mut nests = Nests::default();
    nests.collect(stmt);
    let (loops, block) = nests.out.first()?;
    let Stmt::Store(store) = &block.body else { return None };

    let name = Name::fresh(&format!("{component}_reg"), |it| func.is_taken(it));
    let dtype = staged(&store.value).dtype(&|name| func.dtype_of(name))?;
    let shape = loops.iter().map(|it| it.extent.clone()).collect();
    let [early, late] = halves(func, loops, block, store, &name);
    let early = renamed(&with_block(stmt, &early), func, &mut vec![name.clone()]);
    let late = with_block(stmt, &late);
    let (stages, orders) = (numbers(it, STAGE).ok()?, numbers(it, ORDER).ok()?);
    let number = stages.get_index_of(component)?;
    let stages = with_component(stages, number, &name, false)?;
    let orders = with_component(orders, number, &name, true)?;

    func.buffers.insert(name.clone(), Buffer::temp(dtype, shape, Scope::Local));
    func.replace_loop(var, |mut old| {
        if let Stmt::Seq(stmts) = &mut old.body {
            stmts[at] = late;
            stmts.insert(at, early);
            let pipeline = old.attrs.pipeline_mut();
            (pipeline.stages, pipeline.orders) = (Some(stages), Some(orders));
        }
        Stmt::Loop(Arc::new(old))
    });
    Some(name)
}

/// The block that loads into registers and the one that stores from them, both under the loops of the old one.
fn halves(func: &Func, loops: &[&Loop], block: &Block, store: &Store, name: &Name) -> [Block; 2] {
    let mut iters = block.iters.clone();
    let mut place = Vec::new();
    for (at, it) in loops.iter().enumerate() {
        let var = Name::fresh(&format!("r{at}"), |it| func.is_taken(it));
        place.push(Index::var(&var));
        iters.push(Iter::new(&var, it.extent.clone(), IterKind::Spatial, Index::var(&it.var)));
    }
    let held = Access::new(name, place);
    let value = with_staged(&store.value, &Value::Load(held.clone()));
    let (guards, origin) = (block.guards.clone(), Origin::of(&block.name));
    let attrs = BlockAttrs { origin, ..BlockAttrs::default() };
    let body = Stmt::store(held, staged(&store.value).clone());
    let early = Block { name: name.clone(), iters: iters.clone(), guards, attrs, init: None, body };
    let late = Block { iters, body: Stmt::store(store.place.clone(), value), ..block.clone() };
    [early, late]
}

/// A nest with another block in the place of its only one.
fn with_block(nest: &Stmt, block: &Block) -> Stmt {
    let mut nest = nest.clone();
    nest.walk_mut(&mut |stmt| match stmt {
        Stmt::Block(it) => {
            *it = Arc::new(block.clone());
            false
        }
        Stmt::Loop(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => true,
    });
    nest
}

/// A nest with fresh names for its loops.
fn renamed(nest: &Stmt, func: &Func, taken: &mut Vec<Name>) -> Stmt {
    match nest {
        Stmt::Loop(it) => {
            let var = Name::fresh(&format!("{}_reg", it.var), |it| func.is_taken(it) || taken.contains(it));
            taken.push(var.clone());
            let with = |name: &Name| (*name == it.var).then(|| Index::var(&var));
            let body = renamed(&it.body.subst(&with), func, taken);
            Stmt::Loop(Arc::new(Loop { var, body, ..Loop::clone(it) }))
        }
        Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| renamed(it, func, taken)).collect()),
        Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => nest.clone(),
    }
}

/// The numbers of all components, the new one with that of the old one. In the order the old one comes last.
fn with_component(
    mut numbers: IndexMap<Name, i64>,
    at: usize,
    new: &Name,
    is_order: bool,
) -> Option<Numbers> {
    let last = numbers.values().copied().max().unwrap_or(0);
    let (_, number) = numbers.get_index_mut(at)?;
    let old = *number;
    if is_order {
        *number = last + 1;
    }
    numbers.shift_insert(at, new.clone(), old);
    Some(Numbers::Map(numbers))
}
