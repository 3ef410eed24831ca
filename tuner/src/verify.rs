//! Whether the numbers of a run are right.
//!
//! Every element of an output is looked at once: one that still holds the poison of [`Tensor::poisoned`], or a NaN,
//! is *doubtful* and is compared with the reference like the sampled elements are. The sample is all elements of a
//! small output; of a large one its corners, random elements of each of its faces (where guards and tails go
//! wrong) and at least 1024 random elements anywhere.
//!
//! # Tolerance
//!
//! Integers and booleans are compared exactly. A floating-point element may differ from the f64 reference by
//!
//! ```text
//! scale * sum over blocks of ( 8 u(written) + 4 sqrt(K) u(written) + 8 sqrt(K) sum of u(cast) )
//! ```
//!
//! where `scale` is the largest magnitude of the reference over the sample of that output, `u(type)` the unit
//! roundoff of a type (2^-24 for f32, 2^-8 for bf16), `written` the type that the block stores, `K` how many values
//! one element of the block combines (1 without a reduction, where the second term is dropped), and the last sum goes over the casts to a
//! type of lower precision in its body. Rounding errors of a sum of K values of mixed sign grow like sqrt(K) u times
//! the size of the result; the factor 4 is about four standard deviations, measured kernels stay near 1. A kernel
//! that forgets one product of a row of 4096 is off by about a thousand times this bound.

use ir::{Block, DType, Func, Index, InterpError, IterKind, Name, Role, Value, reference::Reference};
use serde::{Deserialize, Serialize};

use crate::{
    Case, Tensor,
    data::{below, stream},
};

/// What knows the right value of an element: the reference interpreter, or a formula in a test.
pub trait Oracle {
    /// The value of an output at a place, in f64 arithmetic on the inputs as they were rounded.
    fn element(&mut self, buffer: &Name, at: &[i64]) -> Result<f64, InterpError>;
}

impl Oracle for Reference<'_> {
    fn element(&mut self, buffer: &Name, at: &[i64]) -> Result<f64, InterpError> {
        Reference::element(self, buffer, at)
    }
}

/// What an output must hold, at the elements that are compared.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The output.
    pub buffer: Name,
    /// Flat offsets and values, in order of the offsets.
    pub samples: Vec<(usize, f64)>,
    /// The largest magnitude among the values.
    pub scale: f64,
    /// The largest allowed difference.
    pub tolerance: f64,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
}

/// The tolerance of a workload, relative to the scale of an output. See the module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance(pub f64);

/// The verdict on all outputs of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// One for each output.
    pub outputs: Vec<OutputCheck>,
}

/// The verdict on one output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OutputCheck {
    /// The output.
    pub buffer: Name,
    /// How many elements it has; each was looked at for poison and NaN.
    pub elements: usize,
    /// How many of them were compared with the reference.
    pub compared: usize,
    /// How many still hold the poison that was there before the run.
    pub unwritten: usize,
    /// How many are NaN otherwise.
    pub nan: usize,
    /// How many of the compared elements differ by more than the tolerance.
    pub wrong: usize,
    /// The largest difference among the compared elements.
    #[serde(with = "number")]
    pub max_error: f64,
    /// The largest allowed difference.
    #[serde(with = "number")]
    pub tolerance: f64,
    /// The largest magnitude of the reference among the sampled elements.
    #[serde(with = "number")]
    pub scale: f64,
    /// The element with the largest difference.
    pub worst: Option<Worst>,
}

/// An element that differs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Worst {
    /// Its place.
    pub at: Vec<usize>,
    /// What the program wrote.
    #[serde(with = "number")]
    pub got: f64,
    /// What is right.
    #[serde(with = "number")]
    pub expected: f64,
}

/// Outputs up to this many reductions steps in all are compared whole.
const FULL: u128 = 1 << 20;
/// How many random elements of a large output are compared.
const RANDOM: usize = 1024;
/// How many random elements of each face of a large output are compared.
const FACE: usize = 32;
/// How many doubtful elements are compared in addition.
const DOUBTFUL: usize = 64;

impl Verification {
    /// Whether no compared element is wrong.
    pub fn is_ok(&self) -> bool {
        self.outputs.iter().all(|it| it.wrong == 0)
    }

    /// The largest difference of any output in parts of the tolerance: at most 1 if all is right.
    pub fn error_in_tolerances(&self) -> f64 {
        let part = |it: &OutputCheck| if it.max_error == 0.0 { 0.0 } else { it.max_error / it.tolerance };
        self.outputs.iter().map(part).fold(0.0, f64::max)
    }
}

impl OutputCheck {
    /// ``3 of 64 compared elements of `C` differ; C[0, 1] is 2 and should be 3``, for an output that is wrong.
    pub fn wrong_words(&self) -> String {
        let OutputCheck { buffer, elements, compared, unwritten, wrong, .. } = self;
        let unwritten = (*unwritten > 0).then(|| format!(", {unwritten} of {elements} were never written"));
        let worst = self.worst.as_ref().map(|worst| {
            let at: Vec<_> = worst.at.iter().map(ToString::to_string).collect();
            format!("; {buffer}[{}] is {} and should be {}", at.join(", "), worst.got, worst.expected)
        });
        format!(
            "{wrong} of {compared} compared elements of `{buffer}` differ{}{}",
            unwritten.unwrap_or_default(),
            worst.unwrap_or_default()
        )
    }
}

impl Tolerance {
    /// The formula in the module's documentation. Zero where every written type is an integer.
    pub fn of(case: &Case) -> Tolerance {
        let blocks = case.func.body.blocks();
        let terms = BlockError::of(&case.func);
        Tolerance(terms.iter().zip(blocks).map(|(it, block)| it.at(reduction_length(case, block))).sum())
    }
}

/// What one block adds to the tolerance of a workload, before its sizes are known.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockError {
    /// The block.
    pub block: Name,
    /// The unit roundoff of what it writes: zero for integers.
    pub written: f64,
    /// The sum of the unit roundoffs of its casts to a type of lower precision.
    pub casts: f64,
    /// The extents of its reduction iterators: one element combines their product.
    pub reduce: Vec<Index>,
}

impl BlockError {
    /// One for each block of an unscheduled program.
    pub fn of(func: &Func) -> Vec<BlockError> {
        let dtype = |name: &Name| func.dtype_of(name);
        let block = |it: &Block| {
            let (mut written, mut casts) = (0.0, 0.0);
            it.body.each_store(&mut |store| {
                written += dtype(&store.place.buffer).map_or(0.0, unit_roundoff);
                casts += cast_error(&store.value, &dtype);
            });
            let reduce = it.iters.iter().filter(|it| it.kind == IterKind::Reduce);
            BlockError {
                block: it.name.clone(),
                written,
                casts,
                reduce: reduce.map(|it| it.extent.clone()).collect(),
            }
        };
        func.body.blocks().into_iter().map(block).collect()
    }

    /// What it adds where one element combines so many values: the formula in the module's documentation.
    pub fn at(&self, steps: u64) -> f64 {
        let steps = steps.max(1) as f64;
        let growth = if steps > 1.0 { 4.0 * steps.sqrt() } else { 0.0 };
        (8.0 + growth) * self.written + 8.0 * steps.sqrt() * self.casts
    }
}

/// How many values one element of a block combines.
pub(crate) fn reduction_length(case: &Case, block: &Block) -> u64 {
    let extents = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    let length = |it: &ir::Iter| case.eval(&it.extent).and_then(|it| u64::try_from(it).ok()).unwrap_or(1);
    extents.map(length).fold(1, u64::saturating_mul)
}

fn cast_error(value: &Value, dtype: &dyn Fn(&Name) -> Option<DType>) -> f64 {
    match value {
        Value::Const(_) | Value::Load(_) | Value::Index(..) => 0.0,
        Value::Cast(to, inner) => {
            let from = inner.dtype(dtype).map_or(0.0, unit_roundoff);
            let narrower = unit_roundoff(*to) > from && from > 0.0;
            cast_error(inner, dtype) + if narrower { unit_roundoff(*to) } else { 0.0 }
        }
        Value::Unary(_, a) => cast_error(a, dtype),
        Value::Binary(_, a, b) | Value::Select(_, a, b) => cast_error(a, dtype) + cast_error(b, dtype),
        Value::Tensor(_, operands) => operands.iter().map(|it| cast_error(it, dtype)).sum(),
    }
}

impl Expected {
    /// What each output of a case must hold.
    ///
    /// # Errors
    /// Where the reference cannot tell a value: the workload itself is at fault.
    pub fn of(case: &Case, oracle: &mut dyn Oracle) -> Result<Vec<Expected>, InterpError> {
        let tolerance = Tolerance::of(case);
        let outputs = case.params().iter().filter(|(_, it)| it.role == Role::Output);
        let outputs = outputs.zip(0u64..).map(|((name, param), n)| {
            let places = places(case, name, &param.shape, n);
            let value = |at: usize| Ok((at, oracle.element(name, &coordinates(&param.shape, at))?));
            let samples: Vec<_> = places.into_iter().map(value).collect::<Result<_, InterpError>>()?;
            let finite = samples.iter().map(|(_, it)| it.abs()).filter(|it| it.is_finite());
            let scale = finite.fold(0.0, f64::max);
            let relative = if param.dtype.is_float() { tolerance.0 } else { 0.0 };
            let (dtype, shape) = (param.dtype, param.shape.clone());
            Ok(Expected { buffer: name.clone(), samples, scale, tolerance: relative * scale, dtype, shape })
        });
        outputs.collect()
    }

    /// Compares what a run wrote.
    pub fn check(&self, tensor: &Tensor, oracle: &mut dyn Oracle) -> OutputCheck {
        let (unwritten, nan) = tensor.doubtful();
        let mut check = OutputCheck {
            buffer: self.buffer.clone(),
            elements: tensor.len(),
            compared: 0,
            unwritten: unwritten.len(),
            nan: nan.len(),
            wrong: 0,
            max_error: 0.0,
            tolerance: self.tolerance,
            scale: self.scale,
            worst: None,
        };
        for (at, expected) in &self.samples {
            self.compare(tensor, *at, *expected, &mut check);
        }
        let doubtful = unwritten.iter().take(DOUBTFUL).chain(nan.iter().take(DOUBTFUL));
        for at in doubtful.filter(|at| self.samples.binary_search_by_key(*at, |it| it.0).is_err()) {
            match oracle.element(&self.buffer, &coordinates(&self.shape, *at)) {
                Ok(expected) => self.compare(tensor, *at, expected, &mut check),
                Err(_) => check.wrong += 1,
            }
        }
        check
    }

    /// The same for elements as numbers, which are rounded to the type.
    pub fn check_numbers(&self, numbers: &[f64], oracle: &mut dyn Oracle) -> OutputCheck {
        let mut tensor = Tensor::zeroed(self.dtype, &self.shape);
        let len = tensor.len();
        for (at, it) in numbers.iter().take(len).enumerate() {
            tensor.set(at, *it);
        }
        self.check(&tensor, oracle)
    }

    fn compare(&self, tensor: &Tensor, at: usize, expected: f64, check: &mut OutputCheck) {
        let got = tensor.get(at);
        #[expect(clippy::float_cmp, reason = "equal infinities are equal, though their difference is not 0")]
        let same = got == expected || (got.is_nan() && expected.is_nan());
        let error = if same { 0.0 } else { (got - expected).abs() };
        check.compared += 1;
        // A NaN among the two makes the difference NaN, which is not within any tolerance.
        check.wrong += usize::from(!matches!(
            error.partial_cmp(&self.tolerance),
            Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
        ));
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if error > check.max_error || check.worst.is_none() {
            check.max_error = error.max(check.max_error);
            let at = coordinates(&self.shape, at).into_iter().map(i64::cast_unsigned);
            let at = at.map(|it| usize::try_from(it).expect("it is a coordinate of a tensor in memory"));
            check.worst = Some(Worst { at: at.collect(), got, expected });
        }
    }
}

/// The flat offsets to compare, in order.
fn places(case: &Case, buffer: &Name, shape: &[usize], index: u64) -> Vec<usize> {
    let len: usize = shape.iter().product();
    let blocks = case.func.body.blocks();
    let steps = blocks.iter().map(|it| u128::from(reduction_length(case, it))).sum::<u128>().max(1);
    if len as u128 * steps <= FULL || len <= RANDOM {
        return (0..len).collect();
    }
    // The name takes part so that no two outputs are sampled at the same places.
    let salt = buffer.as_str().bytes().fold(index, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut rng = stream(case.seed, (1 << 63) | (salt >> 1));
    let mut out: Vec<usize> = (0..RANDOM).map(|_| below(&mut rng, len)).collect();
    let ends = |size: usize| [0, size - 1];
    for (axis, size) in shape.iter().enumerate() {
        for end in ends(*size) {
            for _ in 0..FACE {
                let place = shape.iter().enumerate();
                let place = place.map(|(n, it)| if n == axis { end } else { below(&mut rng, *it) });
                out.push(flat(shape, place));
            }
        }
    }
    for corner in 0..1usize << shape.len().min(8) {
        out.push(flat(shape, shape.iter().enumerate().map(|(n, it)| ends(*it)[(corner >> n) & 1])));
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn flat(shape: &[usize], place: impl Iterator<Item = usize>) -> usize {
    place.zip(shape).fold(0, |at, (it, size)| at * size + it)
}

/// The subscripts of a flat offset.
fn coordinates(shape: &[usize], mut at: usize) -> Vec<i64> {
    let mut out: Vec<i64> = shape
        .iter()
        .rev()
        .map(|size| {
            let it = at % size;
            at /= size;
            i64::try_from(it).expect("tensors have at most 2^40 elements")
        })
        .collect();
    out.reverse();
    out
}

/// The unit roundoff of a floating-point type: the largest relative error of rounding to it. Zero for integers.
fn unit_roundoff(dtype: DType) -> f64 {
    let bits = match dtype {
        DType::F8e5m2 => 3,
        DType::F8e4m3 => 4,
        DType::Bf16 => 8,
        DType::F16 | DType::Tf32 => 11,
        DType::F32 => 24,
        DType::F64 => 53,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32 => return 0.0,
    };
    (-f64::from(bits)).exp2()
}

/// JSON has no infinities and no NaN: they are written as words.
pub(crate) mod number {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { to.serialize_f64(*value) } else { to.collect_str(value) }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(f64),
            Word(String),
        }
        match Either::deserialize(from)? {
            Either::Number(it) => Ok(it),
            Either::Word(it) => it.parse().map_err(serde::de::Error::custom),
        }
    }
}
