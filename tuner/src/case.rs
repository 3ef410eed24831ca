//! A workload with its sizes: what is measured, whatever the schedule.

use codegen::device::MachineInfo;
use indexmap::IndexMap;
use ir::{
    Arch, DType, Func, InterpError, Name, Role, cost,
    reference::{Elements, Reference},
};

use crate::{Tensor, memory};

/// A workload with its sizes and a seed. All candidates of a comparison share one.
#[derive(Clone, Debug)]
pub struct Case {
    /// The unscheduled program: what the numbers must be.
    pub func: Func,
    /// The values of its symbolic dimensions.
    pub dims: IndexMap<Name, i64>,
    /// Where the inputs, the sampled elements and the order of measurement come from.
    pub seed: u64,
    /// How much there is to do.
    pub work: Work,
    params: IndexMap<Name, Param>,
}

/// How much a workload has to do at least.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Work {
    /// Arithmetic operations on elements.
    pub flops: f64,
    /// Bytes of inputs and outputs, each counted once.
    pub bytes: f64,
}

impl Work {
    /// The work of a program at values of its symbolic dimensions; `None` where it is more than 64 bits count, or a value is missing.
    pub fn of(func: &Func, dims: &IndexMap<Name, i64>) -> Option<Work> {
        let (flops, bytes) = cost::flops(func, dims).zip(cost::bytes(func, dims))?;
        Some(Work { flops: flops as f64, bytes: bytes as f64 })
    }
}

/// An input or an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Param {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub role: Role,
    /// What each element is less than, of an input through which reads go.
    pub below: Option<i64>,
}

/// Why a case cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CaseError {
    /// A symbolic dimension has no value, or one below 1.
    #[error("dimension `{0}` needs a value of at least 1")]
    Dimension(Name),
    /// The operations or the bytes are more than 64 bits count.
    #[error("there is more to do than 64 bits count")]
    Work,
    /// The size of a buffer does not fit.
    #[error("the size of `{buffer}` is not between 1 and 2^40 elements")]
    Size {
        /// The buffer.
        buffer: Name,
    },
    /// The inputs and outputs do not fit the memory of this machine.
    #[error("inputs and outputs take {needed} bytes of memory{}", free_words(*.free))]
    Memory {
        /// The bytes that measuring takes.
        needed: u64,
        /// The bytes there are, where the system tells.
        free: Option<u64>,
    },
}

ir::codes!(CaseError {
    Dimension = 3101,
    Work = 3102,
    Size = 3103,
    Memory = 3103,
});

/// The most elements of one tensor: 2^40, so that products of sizes fit 64 bits with room to spare.
const MAX_ELEMENTS: usize = 1 << 40;

impl Case {
    /// A case, once its sizes have been found sound.
    pub fn new(func: Func, dims: IndexMap<Name, i64>, seed: u64) -> Result<Case, CaseError> {
        for dim in &func.dims {
            if dims.get(dim).is_none_or(|it| *it < 1) {
                return Err(CaseError::Dimension(dim.clone()));
            }
        }
        let mut params = IndexMap::new();
        for (name, buffer) in func.buffers.iter().filter(|(_, it)| it.role != Role::Temp) {
            let size = |index: &ir::Index| {
                let value = index.eval(&|it| dims.get(it).copied())?;
                usize::try_from(value).ok().filter(|it| *it > 0)
            };
            let shape = buffer.shape.iter().map(size).collect::<Option<Vec<_>>>();
            let fits = |it: &Vec<usize>| {
                it.iter().try_fold(1usize, |a, b| a.checked_mul(*b)).is_some_and(|it| it <= MAX_ELEMENTS)
            };
            let shape = shape.filter(fits).ok_or_else(|| CaseError::Size { buffer: name.clone() })?;
            let below = buffer.below.as_ref().and_then(|it| it.eval(&|dim| dims.get(dim).copied()));
            params.insert(name.clone(), Param { dtype: buffer.dtype, shape, role: buffer.role, below });
        }
        let work = Work::of(&func, &dims).ok_or(CaseError::Work)?;
        Ok(Case { func, dims, seed, work, params })
    }

    /// Refuses a case whose tensors do not fit the memory that is free here. Without this a digit too many ends the
    /// process, as what cannot be allocated does. A processor has the tensors a second time, as its own buffers.
    ///
    /// # Errors
    /// [`CaseError::Memory`].
    pub fn expect_memory(&self, on_cpu: bool) -> Result<(), CaseError> {
        let copies = |it: &Param| match it.role {
            // What it held before it was written, and what was seen afterwards.
            Role::Output => 2,
            Role::Input | Role::Temp => 1,
        } + u64::from(on_cpu);
        let bytes = |it: &Param| copies(it).saturating_mul(it.bytes() as u64);
        memory::expect(self.params.values().map(bytes).fold(0, u64::saturating_add))
    }

    /// The inputs, drawn from the seed, in parameter order.
    pub fn inputs(&self) -> IndexMap<Name, Tensor> {
        let inputs = self.params.iter().filter(|(_, it)| it.role == Role::Input);
        (0..).zip(inputs).map(|(n, (name, it))| (name.clone(), it.drawn(self.seed, n))).collect()
    }

    /// The same, taken from those of a case of the same seed where they have the same type and shape.
    #[must_use]
    pub fn inputs_again(&self, mut old: IndexMap<Name, Tensor>) -> IndexMap<Name, Tensor> {
        let inputs = self.params.iter().filter(|(_, it)| it.role == Role::Input);
        (0..)
            .zip(inputs)
            .map(|(n, (name, it))| {
                // How large elements may be is not seen in them.
                let same =
                    |old: &Tensor| old.dtype == it.dtype && old.shape == it.shape && it.below.is_none();
                let again = old.swap_remove(name).filter(same);
                let tensor = again.unwrap_or_else(|| it.drawn(self.seed, n));
                (name.clone(), tensor)
            })
            .collect()
    }

    /// What knows the right values: the unscheduled program, evaluated in f64 where it is asked, with bounds.
    ///
    /// # Errors
    /// Where the program cannot be evaluated.
    pub fn reference<'a>(&'a self, inputs: &'a IndexMap<Name, Tensor>) -> Result<Reference<'a>, InterpError> {
        let elements: Vec<_> = inputs.values().map(|it| Elements::Bytes(&it.bytes)).collect();
        Reference::new(&self.func, &self.dims, &elements)
    }

    /// The same for runs on a machine, whose matrix units may keep less of a sum than its type has.
    ///
    /// # Errors
    /// Where the program cannot be evaluated.
    pub fn reference_on<'a>(
        &'a self,
        machine: &MachineInfo,
        inputs: &'a IndexMap<Name, Tensor>,
    ) -> Result<Reference<'a>, InterpError> {
        let caps = Arch::parse(&machine.arch).as_ref().map(Arch::caps);
        Ok(self.reference(inputs)?.with_f8_sums(caps.and_then(|it| it.f8_sum_bits)))
    }

    /// The inputs and outputs, in parameter order.
    pub(crate) fn params(&self) -> &IndexMap<Name, Param> {
        &self.params
    }

    /// The value of an index over the symbolic dimensions.
    pub(crate) fn eval(&self, index: &ir::Index) -> Option<i64> {
        index.eval(&|it| self.dims.get(it).copied())
    }
}

fn free_words(free: Option<u64>) -> String {
    free.map_or_else(|| ", and there is not as much".to_owned(), |it| format!(", and {it} are free"))
}

impl Param {
    fn drawn(&self, seed: u64, index: u32) -> Tensor {
        Tensor::random_below(self.dtype, &self.shape, self.below, seed, index)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bytes()
    }
}
