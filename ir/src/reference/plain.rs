//! Lazy evaluation of programs as workloads make them: each element by the one block that writes it.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use indexmap::IndexMap;

use super::{Source, dot::Dot};
use crate::{
    Block, Func, Index, InterpError, IterKind, Loop, Name, Scan, Site, Stmt, Store,
    interp::{
        code::{AccessCode, Fault, Memory, ValueCode},
        domain::{Domain, Running},
        resolve::{Given, Resolver},
    },
};

/// A plain program, and what is known of its elements.
#[derive(Debug)]
pub(super) struct Plain<'a, N: Domain> {
    plan: PlainPlan<'a>,
    state: State<N>,
}

#[derive(Debug)]
pub(super) struct PlainPlan<'a> {
    pub(super) func: &'a Func,
    pub(super) shapes: Vec<Vec<usize>>,
    /// Where each buffer's elements come from, in buffer order.
    pub(super) sources: Vec<Source<'a>>,
    /// The blocks that write buffers, where one does.
    stages: Vec<Option<Stage>>,
    /// See [`Memory::f8_unit`].
    pub(super) f8_unit: Option<f64>,
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
    scan: Option<ScanStage>,
}

/// What is known of a stage that scans: which terms a result has. All others change nothing.
#[derive(Debug)]
struct ScanStage {
    /// The dimension that is scanned, and the slot of the terms.
    along: usize,
    over: u32,
    size: i64,
    is_backward: bool,
    is_inclusive: bool,
}

impl ScanStage {
    fn of(block: &Block, slots: &IndexMap<Name, (u32, i64)>) -> Option<ScanStage> {
        let scan = Scan::of(block).filter(Scan::has_same_terms)?;
        let Scan { along, over, is_backward, is_inclusive, reducer, .. } = scan;
        let along = reducer.place.indices.iter().position(|it| it.as_var() == Some(&along))?;
        let (over, size) = *slots.get(&over)?;
        Some(ScanStage { along, over, size, is_backward, is_inclusive })
    }

    /// The terms of the result at a place.
    fn terms(&self, at: i64) -> Range<i64> {
        let skipped = i64::from(!self.is_inclusive);
        if self.is_backward { at + skipped..self.size } else { 0..at + 1 - skipped }
    }
}

/// How far the running sum of each row is known, by the number of its terms.
type Runs<N> = HashMap<Vec<i64>, BTreeMap<i64, <N as Domain>::Running>>;

#[derive(Debug)]
struct State<N: Domain> {
    known: Vec<HashMap<usize, N>>,
    /// Of stages that scan forward, by the buffers that they write.
    runs: HashMap<usize, Runs<N>>,
    carried: N::Running,
    fault: Option<InterpError>,
}

impl<'a, N: Domain> Plain<'a, N> {
    /// Prepares a program whose inputs have their sources.
    ///
    /// # Errors
    /// [`InterpError::NotPlain`] unless each buffer is written by one block without guards, whose iterators run over
    /// whole loops, after the buffers that it reads.
    pub(super) fn new(
        given: Given<'_>,
        func: &'a Func,
        sources: &[Source<'a>],
    ) -> Result<Plain<'a, N>, InterpError> {
        let shapes = given.shapes;
        let mut stages: Vec<_> = sources.iter().map(|_| None).collect();
        let is_input = |at: usize| matches!(sources[at], Source::Input(..));
        add_stages(given, &func.body, &mut Vec::new(), &mut stages, &is_input)?;
        let known = shapes.iter().map(|_| HashMap::new()).collect();
        let state = State { known, runs: HashMap::new(), carried: N::exact(0.0).into(), fault: None };
        let plan =
            PlainPlan { func, shapes: shapes.to_vec(), sources: sources.to_vec(), stages, f8_unit: None };
        Ok(Plain { plan, state })
    }

    /// Has sums of products of eight-bit floats cut off.
    pub(super) fn cut_f8(&mut self, unit: f64) {
        self.plan.f8_unit = Some(unit);
    }

    /// The element of a buffer at an offset whose subscripts these are.
    pub(super) fn element(&mut self, buffer: usize, offset: usize, index: &[i64]) -> Result<N, InterpError> {
        let mut lazy = Lazy { plan: &self.plan, state: &mut self.state, block: None };
        let value = lazy.at(buffer, offset, || index.to_vec());
        match self.state.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(value),
        }
    }
}

/// Finds the stages in program order.
fn add_stages<'f>(
    given: Given<'_>,
    stmt: &'f Stmt,
    loops: &mut Vec<&'f Loop>,
    stages: &mut [Option<Stage>],
    is_input: &dyn Fn(usize) -> bool,
) -> Result<(), InterpError> {
    match stmt {
        Stmt::Loop(it) => {
            loops.push(it);
            add_stages(given, &it.body, loops, stages, is_input)?;
            loops.pop();
            Ok(())
        }
        Stmt::Seq(stmts) => stmts.iter().try_for_each(|it| add_stages(given, it, loops, stages, is_input)),
        Stmt::Block(block) => {
            let refuse = |reason| InterpError::NotPlain { block: Some(block.name.clone()), reason };
            let store = plain_store(block, loops).map_err(refuse)?;
            let (buffer, stage) = stage(given, block, store)?;
            let earlier = |it: &Name| {
                let at = given.func.buffers.get_index_of(it);
                at.is_some_and(|at| is_input(at) || stages[at].is_some())
            };
            if is_input(buffer) || stages[buffer].is_some() {
                return Err(refuse("its buffer is an input or is written by another block, too"));
            }
            if block.reads().into_iter().any(|it| *it != store.place && !earlier(&it.buffer)) {
                return Err(refuse("it reads a buffer that no earlier block writes"));
            }
            stages[buffer] = Some(stage);
            Ok(())
        }
        Stmt::Store(_) | Stmt::Instr(_) => {
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

fn stage(given: Given<'_>, block: &Block, store: &Store) -> Result<(usize, Stage), InterpError> {
    let refuse = |reason| InterpError::NotPlain { block: Some(block.name.clone()), reason };
    let mut resolver = Resolver::new(given);
    resolver.enter(&block.name);
    let mut reduce = Vec::new();
    let mut slots = IndexMap::new();
    for it in &block.iters {
        let size =
            it.extent.eval(&|name| given.dims.get(name).copied()).ok_or(refuse("an extent has no value"))?;
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
    resolver.carries = true;
    let (place, value) = resolver.store(store)?;
    let mut subscripts = Vec::new();
    for (index, shape) in store.place.indices.iter().zip(&given.shapes[place.buffer]) {
        let found = index.as_var().and_then(|it| slots.get(it));
        match found {
            Some((slot, size)) if usize::try_from(*size) == Ok(*shape) => subscripts.push(*slot),
            Some(_) | None => return Err(refuse("its iterators do not run over all that its buffer holds")),
        }
    }
    let scan = ScanStage::of(block, &slots);
    let stage =
        Stage { name: block.name.clone(), slots: resolver.slots, subscripts, reduce, init, value, scan };
    Ok((place.buffer, stage))
}

/// One evaluation under way.
struct Lazy<'p, 's, N: Domain> {
    plan: &'p PlainPlan<'p>,
    state: &'s mut State<N>,
    /// The block being evaluated.
    block: Option<&'p Name>,
}

impl<'p, N: Domain> Lazy<'p, '_, N> {
    /// The element of a buffer at an offset; `index` gives its subscripts if they are needed.
    #[inline]
    fn at(&mut self, buffer: usize, offset: usize, index: impl FnOnce() -> Vec<i64>) -> N {
        if let Some(stage) = &self.plan.stages[buffer] {
            if let Some(known) = self.state.known[buffer].get(&offset) {
                return *known;
            }
            let value = self.stage(buffer, stage, &index());
            if self.state.fault.is_none() {
                self.state.known[buffer].insert(offset, value);
            }
            return value;
        }
        match &self.plan.sources[buffer] {
            source @ Source::Input(..) => N::exact(source.read(offset)),
            Source::Nothing => {
                self.fail(Fault::Unwritten { buffer, offset });
                N::exact(0.0)
            }
        }
    }

    /// An element that a stage writes.
    fn stage(&mut self, buffer: usize, stage: &'p Stage, index: &[i64]) -> N {
        let mut env = vec![0; stage.slots];
        for (slot, at) in stage.subscripts.iter().zip(index) {
            env[*slot as usize] = *at;
        }
        let outer = self.state.carried;
        let outer_block = self.block.replace(&stage.name);
        let init = stage.init.as_ref().map_or(N::exact(0.0), |it| it.eval(&env, self));
        self.state.carried = init.into();
        if let Some(scan) = &stage.scan {
            self.scan(buffer, stage, scan, index, &mut env);
        } else {
            self.reduce(stage, &mut env);
        }
        self.block = outer_block;
        std::mem::replace(&mut self.state.carried, outer).total()
    }

    /// Combines the terms of a result that has its own alone, in their order. A forward scan goes on from what is known of the row.
    fn scan(&mut self, buffer: usize, stage: &'p Stage, scan: &ScanStage, index: &[i64], env: &mut [i64]) {
        let mut terms = scan.terms(index[scan.along]);
        let (all, mut row) = (terms.end, index.to_vec());
        row.remove(scan.along);
        if !scan.is_backward {
            let known = self.state.runs.entry(buffer).or_default().entry(row.clone()).or_default();
            if let Some((count, run)) = known.range(..=all).next_back() {
                (terms.start, self.state.carried) = (*count, *run);
            }
        }
        for at in terms {
            if self.state.fault.is_some() {
                return;
            }
            env[scan.over as usize] = at;
            self.state.carried = stage.value.fold(env, self);
        }
        if !scan.is_backward {
            let known = self.state.runs.entry(buffer).or_default().entry(row).or_default();
            known.insert(all, self.state.carried);
        }
    }

    /// Combines all terms.
    fn reduce(&mut self, stage: &'p Stage, env: &mut [i64]) {
        let mut dot = Dot::of(self.plan, &stage.value);
        while self.state.fault.is_none() {
            let row = match (&dot, stage.reduce.split_last()) {
                (Some(dot), Some(((slot, size), outer))) => {
                    dot.row(&mut self.state.carried, env, *slot, *size).map(|()| outer)
                }
                (Some(_) | None, _) => None,
            };
            let rest = if let Some(rest) = row {
                rest
            } else {
                dot = None; // An element of the row is out of bounds, if this is one: find out which.
                self.state.carried = stage.value.fold(env, self);
                stage.reduce.as_slice()
            };
            if !advance(env, rest) {
                break;
            }
        }
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

impl<N: Domain> Memory for Lazy<'_, '_, N> {
    type Number = N;

    #[inline]
    fn load(&mut self, access: &AccessCode, env: &[i64]) -> N {
        let Some(offset) = access.offset(env) else {
            self.fail(access.fault(env, false));
            return N::exact(0.0);
        };
        self.at(access.buffer, offset, || access.indices(env).expect("the offset was computed of them"))
    }

    #[inline]
    fn carried(&self) -> N::Running {
        self.state.carried
    }

    fn f8_unit(&self) -> Option<f64> {
        self.plan.f8_unit
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        let site = Site { block: self.block.cloned(), at: Vec::new() };
        let error = fault.explain(site, self.plan.func, &self.plan.shapes);
        self.state.fault.get_or_insert(error);
    }
}
