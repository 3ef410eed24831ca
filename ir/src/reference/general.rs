//! Any program that runs: as a whole where it is short, else the slice of it that wanted elements depend on.

use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap},
};

use super::{
    Source,
    slice::{NoSlice, slice},
    span::steps,
};
use crate::{
    Func, InterpError, Name, Site,
    interp::{
        code::{AccessCode, BlockCode, Fault, LessCode, Memory, StmtCode, ValueCode},
        domain::{Domain, Running},
        resolve::{Given, Resolver},
    },
};

/// Programs of at most so many stores run as a whole.
const SHORT: u64 = 1 << 20;
/// So many elements are wanted at once of a longer one.
const BATCH: usize = 64;

/// A program and its inputs.
#[derive(Debug)]
pub(super) struct General<'a, N: Domain> {
    func: &'a Func,
    shapes: Vec<Vec<usize>>,
    sources: Vec<Source<'a>>,
    code: StmtCode,
    slots: usize,
    /// Whether it runs as a whole.
    pub(super) is_short: bool,
    /// What the program left, once it has run as a whole.
    left: Option<Cells<N>>,
    /// See [`Memory::f8_unit`].
    f8_unit: Option<f64>,
}

/// What was written: the elements of each buffer by their offsets.
type Cells<N> = Vec<HashMap<usize, <N as Domain>::Running>>;

/// A run.
struct Machine<'p, N: Domain> {
    sources: &'p [Source<'p>],
    cells: Cells<N>,
    /// The element that is being written.
    place: (usize, usize),
    /// Whether its value was asked for and there is none.
    missed: Cell<bool>,
    fault: Option<Fault>,
    f8_unit: Option<f64>,
}

/// A fault and the block that it is in.
type Stopped<'p> = (Fault, Option<&'p Name>);

impl<'a, N: Domain> General<'a, N> {
    pub(super) fn new(
        given: Given<'_>,
        func: &'a Func,
        sources: &[Source<'a>],
    ) -> Result<General<'a, N>, InterpError> {
        let mut resolver = Resolver::new(given);
        resolver.carries = true;
        let code = resolver.stmt(&func.body)?;
        let slots = resolver.slots;
        let is_short = steps(&code, &mut vec![[0, 0]; slots]) <= SHORT;
        let (shapes, sources) = (given.shapes.to_vec(), sources.to_vec());
        Ok(General { func, shapes, sources, code, slots, is_short, left: None, f8_unit: None })
    }

    /// Has sums of products of eight-bit floats cut off; before any element is asked for.
    pub(super) fn cut_f8(&mut self, unit: f64) {
        self.f8_unit = Some(unit);
    }

    /// The elements of a buffer at offsets; `None` where the program writes none.
    pub(super) fn elements(
        &mut self,
        buffer: usize,
        offsets: &[usize],
    ) -> Result<Vec<Option<N>>, InterpError> {
        if !self.is_short {
            let batches = offsets.chunks(BATCH).map(|it| self.sliced(buffer, it));
            return Ok(batches.collect::<Result<Vec<_>, _>>()?.concat());
        }
        if self.left.is_none() {
            let mut machine = self.machine();
            let res = machine.stmt(&self.code, &mut vec![0; self.slots], None);
            let cells = machine.cells;
            res.map_err(|it| self.explain(it))?;
            self.left = Some(cells);
        }
        let cells = self.left.as_ref().expect("it has run");
        Ok(offsets.iter().map(|it| cells[buffer].get(it).map(Running::total)).collect())
    }

    fn machine(&self) -> Machine<'_, N> {
        let cells = self.shapes.iter().map(|_| HashMap::new()).collect();
        let (sources, f8_unit) = (self.sources.as_slice(), self.f8_unit);
        Machine { sources, cells, place: (0, 0), missed: Cell::new(false), fault: None, f8_unit }
    }

    fn sliced(&self, buffer: usize, offsets: &[usize]) -> Result<Vec<Option<N>>, InterpError> {
        let mut wanted: Vec<_> = self.shapes.iter().map(|_| BTreeSet::new()).collect();
        wanted[buffer].extend(offsets);
        let slice = match slice(&self.code, self.slots, wanted) {
            Ok(slice) => slice,
            Err(NoSlice::TooLong) if offsets.len() > 1 => {
                let (first, second) = offsets.split_at(offsets.len() / 2);
                return Ok([self.sliced(buffer, first)?, self.sliced(buffer, second)?].concat());
            }
            Err(NoSlice::TooLong) => {
                let reason = "a single element depends on too many steps of the program";
                return Err(InterpError::NotPlain { block: None, reason });
            }
            Err(NoSlice::Fault(fault, block)) => return Err(self.explain((fault, block))),
        };
        let mut machine = self.machine();
        for step in slice.steps.iter().rev() {
            let env = &slice.env[step.env..][..self.slots];
            machine.store(step.place, step.value, env).map_err(|it| self.explain((it, step.block)))?;
        }
        Ok(offsets.iter().map(|it| machine.cells[buffer].get(it).map(Running::total)).collect())
    }

    fn explain(&self, (fault, block): Stopped<'_>) -> InterpError {
        fault.explain(Site { block: block.cloned(), at: vec![] }, self.func, &self.shapes)
    }
}

impl<N: Domain> Machine<'_, N> {
    fn stmt<'c>(
        &mut self,
        code: &'c StmtCode,
        env: &mut [i64],
        block: Option<&'c Name>,
    ) -> Result<(), Stopped<'c>> {
        match code {
            StmtCode::Loop { slot, extent, body, .. } => {
                let extent = extent.eval(env).ok_or((Fault::BadIndex, block))?;
                (0..extent).try_for_each(|value| {
                    env[*slot as usize] = value;
                    self.stmt(body, env, block)
                })
            }
            StmtCode::Block(it) => self.block(it, env),
            StmtCode::Seq(stmts) => stmts.iter().try_for_each(|it| self.stmt(it, env, block)),
            StmtCode::Store(place, value) => self.store(place, value, env).map_err(|it| (it, block)),
        }
    }

    fn block<'c>(&mut self, block: &'c BlockCode, env: &mut [i64]) -> Result<(), Stopped<'c>> {
        let name = Some(&block.name);
        let index = || (Fault::BadIndex, name);
        if !LessCode::all(&block.guards, env).ok_or_else(index)? {
            return Ok(());
        }
        let mut starts = true;
        for it in &block.iters {
            let value = it.binding.eval(env).ok_or_else(index)?;
            let extent = it.extent.eval(env).ok_or_else(index)?;
            if value < 0 || value >= extent {
                return Err((Fault::OutsideDomain { iter: it.name.clone(), value, extent }, name));
            }
            env[it.slot as usize] = value;
            starts &= !it.is_reduce || value == 0;
        }
        block.init.as_ref().filter(|_| starts).map_or(Ok(()), |it| self.stmt(it, env, name))?;
        self.stmt(&block.body, env, name)
    }

    fn store(&mut self, place: &AccessCode, value: &ValueCode, env: &[i64]) -> Result<(), Fault> {
        let offset = place.offset(env).ok_or_else(|| place.fault(env, true))?;
        self.place = (place.buffer, offset);
        let value = value.fold(env, self);
        if self.missed.take() {
            self.fail(Fault::Unwritten { buffer: place.buffer, offset });
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.cells[place.buffer].insert(offset, value);
        Ok(())
    }

    /// What is at an offset.
    fn at(&self, buffer: usize, offset: usize) -> Option<N::Running> {
        let input = || match &self.sources[buffer] {
            source @ Source::Input(..) => Some(N::exact(source.read(offset)).into()),
            Source::Nothing => None,
        };
        self.cells[buffer].get(&offset).copied().or_else(input)
    }
}

impl<N: Domain> Memory for Machine<'_, N> {
    type Number = N;

    fn load(&mut self, access: &AccessCode, env: &[i64]) -> N {
        let Some(offset) = access.offset(env) else {
            self.fail(access.fault(env, false));
            return N::exact(0.0);
        };
        if let Some(it) = self.at(access.buffer, offset) {
            return it.total();
        }
        self.fail(Fault::Unwritten { buffer: access.buffer, offset });
        N::exact(0.0)
    }

    fn f8_unit(&self) -> Option<f64> {
        self.f8_unit
    }

    fn carried(&self) -> N::Running {
        self.at(self.place.0, self.place.1).unwrap_or_else(|| {
            self.missed.set(true);
            N::exact(0.0).into()
        })
    }

    #[cold]
    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}
