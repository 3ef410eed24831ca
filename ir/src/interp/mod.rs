//! The reference interpreter: what a `Func` computes, element by element, in program order.
//!
//! It is the oracle of every test. Loop kinds, scopes, layouts and annotations do not change what it does. An
//! element is carried as an `f64` and each operation is rounded to its type as [`crate::number`] says; `i64` beyond
//! 2^53 is therefore out of reach. Elements of temporaries and outputs are poisoned until written, and every
//! subscript and iterator is checked, so that a wrong schedule is found where it goes wrong.

pub(crate) mod code;
pub(crate) mod domain;
mod error;
mod hoist;
mod machine;
pub(crate) mod resolve;
pub(crate) mod span;
pub(crate) mod tables;

use indexmap::IndexMap;

use crate::{DType, Func, Name, Role, number};
use hoist::hoist;
use machine::{Machine, POISON};
use resolve::{Given, MOST_HELD, Resolver, shapes};
use tables::tables;

pub use error::{InterpError, Site};

/// A tensor's elements, row-major, each an `f64` that its type has.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// The type of the elements.
    pub dtype: DType,
    /// The size in each dimension.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<f64>,
}

impl Tensor {
    /// A tensor whose elements are rounded to the type.
    pub fn new(dtype: DType, shape: &[usize], data: impl IntoIterator<Item = f64>) -> Tensor {
        let data = data.into_iter().map(|it| number::round(dtype, it)).collect();
        Tensor { dtype, shape: shape.to_vec(), data }
    }
}

/// Runs a program on inputs in buffer order, under a value for each symbolic dimension, and gives its outputs in
/// buffer order.
pub fn run(func: &Func, dims: &IndexMap<Name, i64>, inputs: &[Tensor]) -> Result<Vec<Tensor>, InterpError> {
    let shapes = shapes(func, dims, MOST_HELD)?;
    let data = allocate(func, &shapes, inputs)?;
    let tables = tables(func, &shapes, &|buffer, at| data[buffer][at]);
    let mut resolver = Resolver::new(Given { func, dims, shapes: &shapes, tables: &tables });
    let body = resolver.stmt(&func.body)?;
    let (body, env) = hoist(body, resolver.slots);
    let data = Machine::new(env, data).run(&body).map_err(|it| it.explain(func, &shapes))?;
    outputs(func, shapes, data)
}

/// The contents of each buffer before the run.
fn allocate(func: &Func, shapes: &[Vec<usize>], inputs: &[Tensor]) -> Result<Vec<Vec<f64>>, InterpError> {
    let wanted = func.buffers.iter().filter(|(_, it)| it.role == Role::Input);
    let expected: Vec<_> = wanted.map(|(name, _)| name.clone()).collect();
    if expected.len() != inputs.len() {
        return Err(InterpError::InputCount { expected, given: inputs.len() });
    }
    let mut inputs = inputs.iter();
    let mut out = Vec::new();
    for ((name, buffer), shape) in func.buffers.iter().zip(shapes) {
        let count = shape.iter().product();
        match buffer.role {
            Role::Input => {
                let tensor = inputs.next().expect("counted above");
                check_input(name, buffer.dtype, shape, tensor)?;
                let clean = |it: &f64| if it.is_nan() { f64::NAN } else { number::round(buffer.dtype, *it) };
                out.push(tensor.data.iter().map(clean).collect());
            }
            Role::Output | Role::Temp => out.push(vec![f64::from_bits(POISON); count]),
        }
    }
    Ok(out)
}

fn check_input(name: &Name, dtype: DType, shape: &[usize], tensor: &Tensor) -> Result<(), InterpError> {
    let (buffer, count) = (name.clone(), shape.iter().product());
    if tensor.dtype != dtype {
        return Err(InterpError::InputType { buffer, expected: dtype, given: tensor.dtype });
    }
    if tensor.shape != shape {
        let (expected, given) = (shape.to_vec(), tensor.shape.clone());
        return Err(InterpError::InputShape { buffer, expected, given });
    }
    if tensor.data.len() != count {
        return Err(InterpError::InputLength { buffer, expected: count, given: tensor.data.len() });
    }
    Ok(())
}

fn outputs(func: &Func, shapes: Vec<Vec<usize>>, data: Vec<Vec<f64>>) -> Result<Vec<Tensor>, InterpError> {
    let mut out = Vec::new();
    for (((name, buffer), shape), data) in func.buffers.iter().zip(shapes).zip(data) {
        if buffer.role != Role::Output {
            continue;
        }
        if let Some(at) = data.iter().position(|it| it.to_bits() == POISON) {
            return Err(InterpError::OutputUnwritten { buffer: name.clone(), index: unflatten(at, &shape) });
        }
        out.push(Tensor { dtype: buffer.dtype, shape, data });
    }
    Ok(out)
}

/// The subscripts of a row-major offset.
fn unflatten(mut offset: usize, shape: &[usize]) -> Vec<i64> {
    let mut out: Vec<_> = shape
        .iter()
        .rev()
        .map(|size| {
            let at = offset % size;
            offset /= size;
            i64::try_from(at).expect("it is a place in a list")
        })
        .collect();
    out.reverse();
    out
}
