//! What the elements of a program's outputs must be: exact, with bounds for machines, without computing the rest.
//!
//! Each element is computed in `f64` without rounding in between, together with how far a machine's may be from it
//! ([`Near`]); integers wrap as they do on a machine. A program as a workload makes it is *plain*: each buffer is
//! written by one block without guards over whole loops. Of such a program only what an element depends on is
//! evaluated, and elements of intermediate buffers are remembered. Any other program, with guards, several writers,
//! temporaries that are refilled, or an earlier schedule, runs as a whole where it is short; of a longer one runs the slice
//! that the wanted elements depend on.

mod dot;
mod general;
mod plain;
mod slice;
mod span;

use indexmap::IndexMap;

use crate::{
    Func, InterpError, Name, Role,
    interp::{
        domain::Domain,
        resolve::{Given, MOST_NAMED, shapes},
        tables::{Tables, tables},
    },
    number,
};
use general::General;
use plain::Plain;

pub use crate::near::{Near, unit_roundoff};

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
    func: &'a Func,
    dims: &'a IndexMap<Name, i64>,
    shapes: Vec<Vec<usize>>,
    sources: Vec<Source<'a>>,
    tables: Tables,
    exact: Evaluator<'a, Near>,
    /// The same program in its own types, once it was asked for.
    own: Option<Evaluator<'a, f64>>,
}

/// How a program is evaluated.
#[derive(Debug)]
enum Evaluator<'a, N: Domain> {
    Plain(Plain<'a, N>),
    General(General<'a, N>),
}

/// Where the elements of a buffer come from before the program writes them.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Input(crate::DType, Elements<'a>),
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
            Source::Nothing => f64::NAN,
        }
    }
}

impl<'a> Reference<'a> {
    /// Prepares a program; inputs are in buffer order.
    pub fn new(
        func: &'a Func,
        dims: &'a IndexMap<Name, i64>,
        inputs: &[Elements<'a>],
    ) -> Result<Reference<'a>, InterpError> {
        let shapes = shapes(func, dims, MOST_NAMED)?;
        let sources = input_sources(func, &shapes, inputs)?;
        let tables = tables(func, &shapes, &|buffer, at| sources[buffer].read(at));
        let given = Given { func, dims, shapes: &shapes, tables: &tables };
        let exact = Evaluator::new(given, func, &sources)?;
        Ok(Reference { func, dims, shapes, sources, tables, exact, own: None })
    }

    /// The same for a machine whose matrix units keep so many bits after the point of sums of products of eight-bit floats
    /// ([`Caps::f8_sum_bits`](crate::Caps)); `None` changes nothing. A program may not use them, and is then allowed more than it needs.
    #[must_use]
    pub fn with_f8_sums(mut self, bits: Option<u32>) -> Reference<'a> {
        let Some(bits) = bits else { return self };
        // Cutting off at 2^-bits errs by twice as much as rounding there.
        let unit = 0.5f64.powi(bits.cast_signed() + 1);
        match &mut self.exact {
            Evaluator::Plain(it) => it.cut_f8(unit),
            Evaluator::General(it) => it.cut_f8(unit),
        }
        self
    }

    /// Refuses a program that is not plain: [`InterpError::NotPlain`] says why.
    pub fn check(func: &Func, dims: &IndexMap<Name, i64>) -> Result<(), InterpError> {
        let shapes = shapes(func, dims, MOST_NAMED)?;
        let source = |it: &crate::Buffer| match it.role {
            Role::Input => Source::Input(it.dtype, Elements::Bytes(&[])),
            Role::Output | Role::Temp => Source::Nothing,
        };
        let sources: Vec<_> = func.buffers.values().map(source).collect();
        let tables = tables(func, &vec![vec![0]; shapes.len()], &|_, _| 0.0);
        let given = Given { func, dims, shapes: &shapes, tables: &tables };
        Plain::<Near>::new(given, func, &sources).map(|_| ())
    }

    /// Whether an element costs no more than computing what it depends on: not where a long program has to be sliced.
    pub fn is_cheap(&self) -> bool {
        match &self.exact {
            Evaluator::Plain(_) => true,
            Evaluator::General(it) => it.is_short,
        }
    }

    /// An element of a buffer.
    pub fn element(&mut self, buffer: &Name, index: &[i64]) -> Result<Near, InterpError> {
        let found = self.elements(buffer, std::slice::from_ref(&index))?.pop().flatten();
        found.ok_or_else(|| InterpError::OutputUnwritten { buffer: buffer.clone(), index: index.to_vec() })
    }

    /// Elements of a buffer, together, which is cheaper than one by one; `None` for one that the program never writes.
    ///
    /// # Errors
    /// Where there is no such element, or the program goes wrong on the way to one.
    pub fn elements<I: AsRef<[i64]>>(
        &mut self,
        buffer: &Name,
        indices: &[I],
    ) -> Result<Vec<Option<Near>>, InterpError> {
        let (number, offsets) = self.offsets(buffer, indices)?;
        self.exact.elements(number, &offsets, indices)
    }

    /// An element as the program gives it in its own types and its own order.
    ///
    /// # Errors
    /// As [`Reference::elements`].
    pub fn in_own_types(&mut self, buffer: &Name, index: &[i64]) -> Result<Option<f64>, InterpError> {
        let indices = [index];
        let (number, offsets) = self.offsets(buffer, &indices)?;
        if self.own.is_none() {
            let (func, dims) = (self.func, self.dims);
            let given = Given { func, dims, shapes: &self.shapes, tables: &self.tables };
            self.own = Some(Evaluator::new(given, func, &self.sources)?);
        }
        let own = self.own.as_mut().expect("it was just made");
        Ok(own.elements(number, &offsets, &indices)?.pop().flatten())
    }

    /// The number of a buffer, and the offsets of elements in it.
    fn offsets<I: AsRef<[i64]>>(
        &self,
        buffer: &Name,
        indices: &[I],
    ) -> Result<(usize, Vec<usize>), InterpError> {
        let Some(number) = self.func.buffers.get_index_of(buffer) else {
            return Err(InterpError::UnknownBuffer { name: buffer.clone(), block: None });
        };
        let shape = &self.shapes[number];
        let offset = |index: &I| {
            flatten(index.as_ref(), shape).ok_or_else(|| {
                let (buffer, index, shape) = (buffer.clone(), index.as_ref().to_vec(), shape.clone());
                InterpError::NoElement { buffer, index, shape }
            })
        };
        Ok((number, indices.iter().map(offset).collect::<Result<_, _>>()?))
    }
}

impl<'a, N: Domain> Evaluator<'a, N> {
    fn new(
        given: Given<'_>,
        func: &'a Func,
        sources: &[Source<'a>],
    ) -> Result<Evaluator<'a, N>, InterpError> {
        match Plain::new(given, func, sources) {
            Ok(it) => Ok(Evaluator::Plain(it)),
            Err(InterpError::NotPlain { .. }) => General::new(given, func, sources).map(Evaluator::General),
            Err(err) => Err(err),
        }
    }

    fn elements<I: AsRef<[i64]>>(
        &mut self,
        buffer: usize,
        offsets: &[usize],
        indices: &[I],
    ) -> Result<Vec<Option<N>>, InterpError> {
        match self {
            Evaluator::General(it) => it.elements(buffer, offsets),
            Evaluator::Plain(it) => {
                let mut element = |(offset, index): (&usize, &I)| it.element(buffer, *offset, index.as_ref());
                offsets.iter().zip(indices).map(|it| element(it).map(Some)).collect()
            }
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

#[cfg(test)]
mod tests;
