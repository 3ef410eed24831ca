//! Lazy evaluation of an unscheduled program: single elements, in `f64` without rounding in between.
//!
//! It tells what an element should be without computing the rest: only what the element depends on is evaluated,
//! and elements of intermediate buffers are remembered. Floats of every type are computed in `f64`; integers wrap
//! as they do on a machine.

mod dot;

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::{
    Block, Func, Index, InterpError, IterKind, Loop, Name, Role, Site, Stmt, Store,
    interp::{
        code::{AccessCode, Fault, Memory, ValueCode},
        resolve::{Resolver, shapes},
    },
    number,
};
use dot::Dot;

/// The elements of an input, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum Elements<'a> {
    /// As numbers of the buffer's type.
    Numbers(&'a [f64]),
    /// As little-endian bytes of the buffer's type.
    Bytes(&'a [u8]),
}

/// An unscheduled program and its inputs, ready to be asked for elements.
#[derive(Debug)]
pub struct Reference<'a> {
    plan: Plan<'a>,
    state: State,
}

#[derive(Debug)]
struct Plan<'a> {
    func: &'a Func,
    shapes: Vec<Vec<usize>>,
    /// Where each buffer's elements come from, in buffer order.
    sources: Vec<Source<'a>>,
}

#[derive(Debug)]
enum Source<'a> {
    Input(crate::DType, Elements<'a>),
    Stage(Stage),
    Nothing,
}

impl Source<'_> {
    /// An element of an input.
    #[inline]
    fn read(&self, offset: usize) -> f64 {
        match self {
            Source::Input(_, Elements::Numbers(all)) => all[offset],
            Source::Input(dtype, Elements::Bytes(all)) => {
                number::decode(*dtype, &all[offset * dtype.bytes()..][..dtype.bytes()])
            }
            Source::Stage(_) | Source::Nothing => f64::NAN,
        }
    }
}

/// The one block that writes a buffer.
#[derive(Debug)]
struct Stage {
    name: Name,
    slots: usize,
    /// The slot that holds each subscript of the element.
    subscripts: Vec<u32>,
    /// The slots and sizes of the reduction iterators, outer first.
    reduce: Vec<(u32, i64)>,
    init: Option<ValueCode>,
    value: ValueCode,
}

#[derive(Debug, Default)]
struct State {
    known: Vec<HashMap<usize, f64>>,
    carried: f64,
    fault: Option<InterpError>,
}

impl<'a> Reference<'a> {
    /// Prepares a program; inputs are in buffer order.
    ///
    /// The program must be as a workload makes it: each buffer written by one block without guards, whose iterators
    /// run over whole loops, after the buffers that it reads. Anything else is [`InterpError::NotPlain`].
    pub fn new(
        func: &'a Func,
        dims: &'a IndexMap<Name, i64>,
        inputs: &[Elements<'a>],
    ) -> Result<Reference<'a>, InterpError> {
        let shapes = shapes(func, dims)?;
        let mut sources = input_sources(func, &shapes, inputs)?;
        let mut loops = Vec::new();
        add_stages(func, dims, &shapes, &func.body, &mut loops, &mut sources)?;
        let known = shapes.iter().map(|_| HashMap::new()).collect();
        Ok(Reference { plan: Plan { func, shapes, sources }, state: State { known, ..State::default() } })
    }

    /// Refuses a program that [`Reference::new`] would refuse whatever its inputs are.
    pub fn check(func: &Func, dims: &IndexMap<Name, i64>) -> Result<(), InterpError> {
        let shapes = shapes(func, dims)?;
        let source = |it: &crate::Buffer| match it.role {
            Role::Input => Source::Input(it.dtype, Elements::Bytes(&[])),
            Role::Output | Role::Temp => Source::Nothing,
        };
        let mut sources: Vec<_> = func.buffers.values().map(source).collect();
        add_stages(func, dims, &shapes, &func.body, &mut Vec::new(), &mut sources)
    }

    /// The element of a buffer.
    pub fn element(&mut self, buffer: &Name, index: &[i64]) -> Result<f64, InterpError> {
        let Some(number) = self.plan.func.buffers.get_index_of(buffer) else {
            return Err(InterpError::UnknownBuffer { name: buffer.clone(), block: None });
        };
        let shape = &self.plan.shapes[number];
        let Some(offset) = flatten(index, shape) else {
            let (buffer, index, shape) = (buffer.clone(), index.to_vec(), shape.clone());
            return Err(InterpError::NoElement { buffer, index, shape });
        };
        let mut lazy = Lazy { plan: &self.plan, state: &mut self.state, block: None };
        let value = lazy.at(number, offset, || index.to_vec());
        match self.state.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(value),
        }
    }
}

fn flatten(index: &[i64], shape: &[usize]) -> Option<usize> {
    if index.len() != shape.len() {
        return None;
    }
    index.iter().zip(shape).try_fold(0, |offset, (at, size)| {
        usize::try_from(*at).ok().filter(|at| at < size).map(|at| offset * size + at)
    })
}

fn input_sources<'a>(
    func: &Func,
    shapes: &[Vec<usize>],
    inputs: &[Elements<'a>],
) -> Result<Vec<Source<'a>>, InterpError> {
    let wanted = func.buffers.iter().filter(|(_, it)| it.role == Role::Input);
    let expected: Vec<_> = wanted.map(|(name, _)| name.clone()).collect();
    if expected.len() != inputs.len() {
        return Err(InterpError::InputCount { expected, given: inputs.len() });
    }
    let mut inputs = inputs.iter();
    let mut out = Vec::new();
    for ((name, buffer), shape) in func.buffers.iter().zip(shapes) {
        if buffer.role != Role::Input {
            out.push(Source::Nothing);
            continue;
        }
        let elements = *inputs.next().expect("counted above");
        let given = match elements {
            Elements::Numbers(it) => it.len(),
            Elements::Bytes(it) => it.len() / buffer.dtype.bytes(),
        };
        let expected = shape.iter().product();
        if given != expected {
            return Err(InterpError::InputLength { buffer: name.clone(), expected, given });
        }
        out.push(Source::Input(buffer.dtype, elements));
    }
    Ok(out)
}

/// Finds the stages in program order.
fn add_stages<'f>(
    func: &'f Func,
    dims: &IndexMap<Name, i64>,
    shapes: &[Vec<usize>],
    stmt: &'f Stmt,
    loops: &mut Vec<&'f Loop>,
    sources: &mut Vec<Source<'_>>,
) -> Result<(), InterpError> {
    match stmt {
        Stmt::Loop(it) => {
            loops.push(it);
            add_stages(func, dims, shapes, &it.body, loops, sources)?;
            loops.pop();
            Ok(())
        }
        Stmt::Seq(stmts) => {
            stmts.iter().try_for_each(|it| add_stages(func, dims, shapes, it, loops, sources))
        }
        Stmt::Block(block) => {
            let refuse = |reason| InterpError::NotPlain { block: Some(block.name.clone()), reason };
            let store = plain_store(block, loops).map_err(refuse)?;
            let (buffer, stage) = stage(func, dims, shapes, block, store)?;
            let earlier = |it: &Name| {
                let at = func.buffers.get_index_of(it);
                at.is_some_and(|at| !matches!(sources[at], Source::Nothing))
            };
            if !matches!(sources[buffer], Source::Nothing) {
                return Err(refuse("its buffer is an input or is written by another block, too"));
            }
            if block.reads().into_iter().any(|it| *it != store.place && !earlier(&it.buffer)) {
                return Err(refuse("it reads a buffer that no earlier block writes"));
            }
            sources[buffer] = Source::Stage(stage);
            Ok(())
        }
        Stmt::Store(_) => {
            Err(InterpError::NotPlain { block: None, reason: "a store stands outside of blocks" })
        }
    }
}

/// The only store of an unscheduled block.
fn plain_store<'b>(block: &'b Block, loops: &[&Loop]) -> Result<&'b Store, &'static str> {
    let Stmt::Store(store) = &block.body else { return Err("its body is not a single store") };
    if !block.guards.is_empty() {
        return Err("it has guards");
    }
    let mut bound = Vec::new();
    for it in &block.iters {
        let over = |var: &Name| loops.iter().find(|around| around.var == *var);
        let whole = it.binding.as_var().and_then(over).filter(|around| around.extent == it.extent);
        match whole {
            Some(around) if !bound.contains(&&around.var) => bound.push(&around.var),
            Some(_) | None => return Err("an iterator does not run over a loop of its own"),
        }
    }
    let spatial = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
    let names: Vec<_> = spatial.map(|it| &it.var).collect();
    let subscripts: Option<Vec<_>> = store.place.indices.iter().map(Index::as_var).collect();
    let subscripts = subscripts.ok_or("it writes at a subscript that is not an iterator")?;
    let all = names.len() == subscripts.len() && names.iter().all(|it| subscripts.contains(it));
    if !all {
        return Err("its subscripts are not its spatial iterators, each once");
    }
    let reduces = names.len() < block.iters.len();
    match &block.init {
        Some(Stmt::Store(init)) if init.place == store.place => Ok(store),
        Some(_) => Err("its init is not a store to what it writes"),
        None if reduces => Err("it reduces without an init"),
        None if block.reads().contains(&&store.place) => Err("it reads what it writes without an init"),
        None => Ok(store),
    }
}

fn stage(
    func: &Func,
    dims: &IndexMap<Name, i64>,
    shapes: &[Vec<usize>],
    block: &Block,
    store: &Store,
) -> Result<(usize, Stage), InterpError> {
    let refuse = |reason| InterpError::NotPlain { block: Some(block.name.clone()), reason };
    let mut resolver = Resolver::new(func, dims, shapes);
    resolver.enter(&block.name);
    resolver.exact = true;
    let mut reduce = Vec::new();
    let mut slots = IndexMap::new();
    for it in &block.iters {
        let size = it.extent.eval(&|name| dims.get(name).copied()).ok_or(refuse("an extent has no value"))?;
        let slot = resolver.declare(&it.var);
        slots.insert(it.var.clone(), (slot, size));
        if it.kind == IterKind::Reduce {
            reduce.push((slot, size));
        }
    }
    let init = match &block.init {
        Some(Stmt::Store(init)) => Some(resolver.store(init)?.1),
        Some(_) | None => None,
    };
    resolver.carried = Some(store.place.clone());
    let (place, value) = resolver.store(store)?;
    let mut subscripts = Vec::new();
    for (index, shape) in store.place.indices.iter().zip(&shapes[place.buffer]) {
        let found = index.as_var().and_then(|it| slots.get(it));
        match found {
            Some((slot, size)) if usize::try_from(*size) == Ok(*shape) => subscripts.push(*slot),
            Some(_) | None => return Err(refuse("its iterators do not run over all that its buffer holds")),
        }
    }
    let stage = Stage { name: block.name.clone(), slots: resolver.slots, subscripts, reduce, init, value };
    Ok((place.buffer, stage))
}

/// One evaluation under way.
struct Lazy<'p, 's> {
    plan: &'p Plan<'p>,
    state: &'s mut State,
    /// The block being evaluated.
    block: Option<&'p Name>,
}

impl<'p> Lazy<'p, '_> {
    /// The element of a buffer at an offset; `index` gives its subscripts if they are needed.
    #[inline]
    fn at(&mut self, buffer: usize, offset: usize, index: impl FnOnce() -> Vec<i64>) -> f64 {
        match &self.plan.sources[buffer] {
            source @ Source::Input(..) => source.read(offset),
            Source::Stage(stage) => {
                if let Some(known) = self.state.known[buffer].get(&offset) {
                    return *known;
                }
                let value = self.stage(stage, &index());
                if self.state.fault.is_none() {
                    self.state.known[buffer].insert(offset, value);
                }
                value
            }
            Source::Nothing => {
                self.fail(Fault::Unwritten { buffer, index: index() });
                0.0
            }
        }
    }

    /// An element that a stage writes.
    fn stage(&mut self, stage: &'p Stage, index: &[i64]) -> f64 {
        let mut env = vec![0; stage.slots];
        for (slot, at) in stage.subscripts.iter().zip(index) {
            env[*slot as usize] = *at;
        }
        let outer = self.state.carried;
        let outer_block = self.block.replace(&stage.name);
        self.state.carried = stage.init.as_ref().map_or(0.0, |it| it.eval(&env, self));
        let mut dot = Dot::of(self.plan, &stage.value);
        while self.state.fault.is_none() {
            let row = match (&dot, stage.reduce.split_last()) {
                (Some(dot), Some(((slot, size), outer))) => {
                    dot.row(self.state.carried, &mut env, *slot, *size).map(|sum| (sum, outer))
                }
                (Some(_) | None, _) => None,
            };
            let (carried, rest) = row.unwrap_or_else(|| {
                dot = None; // An element of the row is out of bounds, if this is one: find out which.
                (stage.value.eval(&env, self), stage.reduce.as_slice())
            });
            self.state.carried = carried;
            if !advance(&mut env, rest) {
                break;
            }
        }
        self.block = outer_block;
        std::mem::replace(&mut self.state.carried, outer)
    }
}

/// Steps the reduction iterators, the last one fastest; `false` at the end.
#[inline]
fn advance(env: &mut [i64], reduce: &[(u32, i64)]) -> bool {
    for (slot, size) in reduce.iter().rev() {
        let at = &mut env[*slot as usize];
        *at += 1;
        if *at < *size {
            return true;
        }
        *at = 0;
    }
    false
}

impl Memory for Lazy<'_, '_> {
    #[inline]
    fn load(&mut self, access: &AccessCode, env: &[i64]) -> f64 {
        let Some(offset) = access.offset(env) else {
            self.fail(access.fault(env, false));
            return 0.0;
        };
        self.at(access.buffer, offset, || access.indices(env).unwrap_or_default())
    }

    #[inline]
    fn carried(&self) -> f64 {
        self.state.carried
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        let site = Site { block: self.block.cloned(), at: Vec::new() };
        let error = fault.explain(site, self.plan.func, &self.plan.shapes);
        self.state.fault.get_or_insert(error);
    }
}
