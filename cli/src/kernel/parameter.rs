//! The arrays that a kernel takes: what each has to be, and the sizes that follow from those that are given.

use codegen::{argument_alignment, device::Borrowed};
use ir::{DType, Func, Index, IndexKind, Module, Name, Role, Target};

use super::refusals;
use crate::diagnostic::Diagnostic;

/// Where an array is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the memory of this process.
    Cpu,
    /// On the GPU of a number, counted from 0.
    Gpu(u32),
}

/// An array of the caller's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: Vec<i64>,
    /// The distances between neighbours in each dimension, in elements; none for row-major without gaps.
    pub strides: Option<Vec<i64>>,
    /// Where it is.
    pub place: Place,
    /// Whether it must not be written.
    pub is_read_only: bool,
    /// Its memory.
    pub memory: Borrowed,
}

/// An array that a kernel takes.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name in the workload.
    pub name: Name,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents, over the symbolic dimensions.
    pub shape: Vec<Index>,
    /// Whether the kernel writes it.
    pub is_output: bool,
    /// What its address must be a multiple of.
    pub alignment: usize,
    /// Where each extent comes from.
    extents: Vec<Extent>,
}

/// An extent, as far as it is known beforehand.
#[derive(Clone, Debug)]
enum Extent {
    Known(i64),
    /// The symbolic dimension of a number.
    Dim(usize),
    /// Computed from these.
    Computed(Index),
}

impl Parameter {
    /// Those of a program, in its order.
    pub(super) fn all(func: &Func, module: &Module, target: &Target) -> Vec<Parameter> {
        let of = |name: &Name| {
            let buffer = func.buffers.get(name).filter(|it| it.role != Role::Temp)?;
            let extent = |it: &Index| match it.kind() {
                IndexKind::Int(it) => Extent::Known(it),
                IndexKind::Var(name) => match module.dims.iter().position(|it| *it == *name) {
                    Some(at) => Extent::Dim(at),
                    None => Extent::Computed(it.clone()),
                },
                _ => Extent::Computed(it.clone()),
            };
            Some(Parameter {
                name: name.clone(),
                dtype: buffer.dtype,
                shape: buffer.shape.clone(),
                is_output: buffer.role == Role::Output,
                alignment: argument_alignment(module, target, name),
                extents: buffer.shape.iter().map(extent).collect(),
            })
        };
        module.args.keys().filter_map(of).collect()
    }

    /// Its extents at sizes of the symbolic dimensions; none past 64 bits.
    pub(super) fn at(&self, names: &[Name], sizes: &[i64]) -> Option<Vec<i64>> {
        let value = |name: &Name| Some(sizes[names.iter().position(|it| it == name)?]);
        let extent = |it: &Extent| match it {
            Extent::Known(it) => Some(*it),
            Extent::Dim(at) => Some(sizes[*at]),
            Extent::Computed(it) => it.eval(&value),
        };
        self.extents.iter().map(extent).collect()
    }

    /// Takes the sizes that an array has and nobody has said.
    pub(super) fn bind(&self, shape: &[i64], sizes: &mut [Option<i64>]) {
        for (extent, there) in self.extents.iter().zip(shape) {
            if let Extent::Dim(at) = extent {
                sizes[*at].get_or_insert(*there);
            }
        }
    }

    /// Refuses an array that the kernel cannot take at these sizes.
    pub(super) fn check(&self, it: &Tensor, names: &[Name], sizes: &[i64]) -> Result<(), Diagnostic> {
        let name = &self.name;
        let is_same = it.dtype == self.dtype || (self.dtype, it.dtype) == (DType::Tf32, DType::F32);
        if !is_same {
            return Err(refusals::other_type(name, self.dtype, it.dtype));
        }
        let here = self.at(names, sizes);
        if here.as_ref() != Some(&it.shape) {
            let is_plain = self.extents.iter().all(|it| matches!(it, Extent::Known(_)));
            let here = here.as_deref().filter(|_| !is_plain);
            return Err(refusals::other_shape(name, &self.shape, here, &it.shape));
        }
        if !is_row_major(it) {
            return Err(refusals::not_row_major(name, &it.shape, it.strides.as_deref().unwrap_or_default()));
        }
        if !it.memory.start().is_multiple_of(self.alignment) {
            return Err(refusals::misaligned(name, self.alignment, it.memory.start()));
        }
        if self.is_output && it.is_read_only {
            return Err(refusals::read_only(name));
        }
        Ok(())
    }
}

/// Whether the elements follow each other. Where a dimension has one element, no stride matters.
fn is_row_major(it: &Tensor) -> bool {
    let Some(strides) = &it.strides else { return true };
    let mut expected = Some(1i64);
    for (extent, stride) in it.shape.iter().zip(strides).rev() {
        if *extent != 1 && Some(*stride) != expected {
            return false;
        }
        expected = expected.and_then(|it| it.checked_mul(*extent));
    }
    strides.len() == it.shape.len()
}
