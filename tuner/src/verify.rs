//! Whether the numbers of a run are right.
//!
//! Every element of an output is looked at once: one that still holds the poison of [`Tensor::poisoned`], or a NaN,
//! is *doubtful* and is compared with the reference like the sampled elements are. The sample is all elements of a
//! small output; of a large one its corners, random elements of each of its faces (where guards and tails go
//! wrong) and at least 1024 random elements anywhere. Where those would depend on too much of earlier stages, they stand in
//! 32 rows and columns.
//!
//! # Tolerance
//!
//! Integers and booleans are compared exactly, unless they come from floats. How far a floating-point element may be
//! from the exact one is known of each element by itself: the reference carries through the program what every operation
//! may be wrong ([`ir::reference::Near`] has the rules). A workload may say instead how far: `tolerance: 1e-3` is that
//! part of the largest magnitude of the reference over the sample of an output.
//!
//! Where numbers are wrong, the unscheduled program is evaluated at the worst element in its own types and its own order. If
//! that is outside of what is allowed as well, it is not the schedule that loses the numbers.

mod block_error;
mod places;
#[cfg(test)]
mod tests;

use ir::{
    DType, InterpError, Name, Role,
    reference::{Near, Reference, unit_roundoff},
};
use serde::{Deserialize, Serialize};

use crate::{Case, Failure, Tensor, json_number};
use places::places;

pub use block_error::BlockError;

/// What knows the right values of elements: the reference, or a formula in a test.
pub trait Oracle {
    /// What elements of an output must be; `None` where the program writes nothing.
    fn elements(&mut self, buffer: &Name, places: &[Vec<i64>]) -> Result<Vec<Option<Near>>, InterpError>;

    /// An element as the unscheduled program gives it in its own types, where that is known.
    fn in_own_types(&mut self, _buffer: &Name, _place: &[i64]) -> Option<f64> {
        None
    }

    /// Whether an element costs no more than computing it.
    fn is_cheap(&self) -> bool {
        true
    }
}

impl Oracle for Reference<'_> {
    fn elements(&mut self, buffer: &Name, places: &[Vec<i64>]) -> Result<Vec<Option<Near>>, InterpError> {
        Reference::elements(self, buffer, places)
    }

    fn in_own_types(&mut self, buffer: &Name, place: &[i64]) -> Option<f64> {
        Reference::in_own_types(self, buffer, place).ok().flatten()
    }

    fn is_cheap(&self) -> bool {
        Reference::is_cheap(self)
    }
}

/// What an output must hold, at the elements that are compared.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The output.
    pub buffer: Name,
    /// Flat offsets and what must be there, in order of the offsets.
    pub samples: Vec<(usize, Near)>,
    /// The largest magnitude among the values.
    pub scale: f64,
    /// The largest allowed difference, where the workload says one.
    tolerance: Option<f64>,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
}

/// The verdict on all outputs of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// One for each output.
    pub outputs: Vec<OutputCheck>,
}

/// The verdict on one output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The difference at the worst of the compared elements: that with the largest part of what is allowed there.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub max_error: f64,
    /// The allowed difference at that element.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub tolerance: f64,
    /// The largest magnitude of the reference among the sampled elements.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub scale: f64,
    /// The worst element.
    pub worst: Option<Worst>,
    /// How many compared elements say nothing, because what is allowed there is more than the scale: the types of the
    /// workload do not hold a digit of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub vague: usize,
}

/// An element that differs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worst {
    /// Its place.
    pub at: Vec<usize>,
    /// What the program wrote.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub got: f64,
    /// What is right.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub expected: f64,
    /// What the unscheduled program gives in its own types, if that was asked.
    #[serde(with = "json_number::optional", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub own: Option<f64>,
}

/// How many doubtful elements are compared in addition.
const DOUBTFUL: usize = 64;

impl Verification {
    /// Whether no compared element is wrong.
    pub fn is_ok(&self) -> bool {
        self.outputs.iter().all(|it| it.wrong == 0)
    }

    /// Why it is wrong, if it is: `otherwise`, unless its numbers were never right and the unscheduled program's are not
    /// either.
    pub fn failure(&self, otherwise: Failure) -> Option<Failure> {
        let mut wrong = self.outputs.iter().filter(|it| it.wrong > 0).peekable();
        wrong.peek()?;
        let is_lost = otherwise == Failure::Wrong && wrong.all(OutputCheck::is_ill_conditioned);
        Some(if is_lost { Failure::IllConditioned } else { otherwise })
    }

    /// The largest difference of any output in parts of the tolerance: at most 1 if all is right.
    pub fn error_in_tolerances(&self) -> f64 {
        let part = |it: &OutputCheck| share(it.max_error, it.tolerance);
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
            let allowed =
                if self.tolerance > 0.0 { format!(" within {:.1e}", self.tolerance) } else { String::new() };
            let own = worst.own.map(|own| format!(", and unscheduled in its own types it is {own}"));
            let own = own.unwrap_or_default();
            format!(
                "; {buffer}[{}] is {} and should be {}{allowed}{own}",
                at.join(", "),
                worst.got,
                worst.expected
            )
        });
        format!(
            "{wrong} of {compared} compared elements of `{buffer}` differ{}{}",
            unwritten.unwrap_or_default(),
            worst.unwrap_or_default()
        )
    }

    /// Whether the unscheduled program in its own types is as wrong at the worst element.
    pub fn is_ill_conditioned(&self) -> bool {
        let own = self.worst.as_ref().and_then(|it| it.own.map(|own| (own - it.expected).abs()));
        self.wrong > 0 && self.unwritten == 0 && own.is_some_and(|it| it > self.tolerance || it.is_nan())
    }
}

/// What a library's product, and kernels that follow it, may be wrong beyond a schedule of the workload: eight roundings to
/// the type of the output for each block.
pub(crate) fn library_slack(case: &Case) -> f64 {
    let outputs = case.params().values().filter(|it| it.role == Role::Output);
    let coarsest = outputs.map(|it| unit_roundoff(it.dtype)).fold(0.0, f64::max);
    8.0 * coarsest * case.func.body.blocks().len() as f64
}

/// A difference in parts of what is allowed.
fn share(error: f64, allowed: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / allowed }
}

impl Expected {
    /// What each output of a case must hold.
    ///
    /// # Errors
    /// Where the reference cannot tell a value: the workload itself is at fault.
    pub fn of(case: &Case, oracle: &mut dyn Oracle) -> Result<Vec<Expected>, InterpError> {
        let outputs = case.params().iter().filter(|(_, it)| it.role == Role::Output);
        let outputs = outputs.zip(0u64..).map(|((name, param), n)| {
            let offsets = places(case, name, &param.shape, n, oracle.is_cheap());
            let coordinates: Vec<_> = offsets.iter().map(|at| coordinates(&param.shape, *at)).collect();
            let found = oracle.elements(name, &coordinates)?;
            let written = offsets.into_iter().zip(found).filter_map(|(at, near)| Some((at, near?)));
            let samples: Vec<_> = written.collect();
            let finite = samples.iter().map(|(_, it)| it.value.abs()).filter(|it| it.is_finite());
            let scale = finite.fold(0.0, f64::max);
            let relative = case.func.tolerance.filter(|_| param.dtype.is_float());
            let tolerance = relative.map(|it| it.to_f64() * scale);
            let (dtype, shape) = (param.dtype, param.shape.clone());
            Ok(Expected { buffer: name.clone(), samples, scale, tolerance, dtype, shape })
        });
        outputs.collect()
    }

    /// Compares what a run wrote.
    pub fn check(&self, tensor: &Tensor, oracle: &mut dyn Oracle) -> OutputCheck {
        self.check_loosely(tensor, 0.0, oracle)
    }

    /// The same, where each element may be wrong by so many parts of the scale in addition.
    pub(crate) fn check_loosely(&self, tensor: &Tensor, slack: f64, oracle: &mut dyn Oracle) -> OutputCheck {
        let slack = if self.dtype.is_float() { slack * self.scale } else { 0.0 };
        let loosely = |it: Near| Near { below: it.below + slack, above: it.above + slack, ..it };
        let (unwritten, nan) = tensor.doubtful();
        let mut check = OutputCheck {
            buffer: self.buffer.clone(),
            elements: tensor.len(),
            compared: 0,
            unwritten: unwritten.len(),
            nan: nan.len(),
            wrong: 0,
            max_error: 0.0,
            tolerance: 0.0,
            scale: self.scale,
            worst: None,
            vague: 0,
        };
        // One byte may hold the poison as its number; a wider element that has it was not written.
        let is_poison = |at: usize| self.dtype.bytes() > 1 && unwritten.binary_search(&at).is_ok();
        for (at, near) in &self.samples {
            self.compare(tensor.get(*at), is_poison(*at), *at, loosely(*near), &mut check);
        }
        let doubtful = unwritten.iter().take(DOUBTFUL).chain(nan.iter().take(DOUBTFUL));
        let not_sampled = |at: &&usize| self.samples.binary_search_by_key(*at, |it| it.0).is_err();
        let doubtful: Vec<usize> = doubtful.filter(not_sampled).copied().collect();
        let places: Vec<_> = doubtful.iter().map(|at| coordinates(&self.shape, *at)).collect();
        match oracle.elements(&self.buffer, &places) {
            Ok(found) => {
                for (at, near) in doubtful.into_iter().zip(found) {
                    if let Some(near) = near {
                        self.compare(tensor.get(at), is_poison(at), at, loosely(near), &mut check);
                    }
                }
            }
            Err(_) => check.wrong += doubtful.len(),
        }
        if check.wrong > 0
            && let Some(worst) = &mut check.worst
        {
            let place: Vec<_> = worst
                .at
                .iter()
                .map(|it| i64::try_from(*it).expect("it is a coordinate of a tensor in memory"))
                .collect();
            worst.own = oracle.in_own_types(&self.buffer, &place);
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

    fn compare(&self, got: f64, is_poison: bool, at: usize, near: Near, check: &mut OutputCheck) {
        let near = self.tolerance.map_or(near, |it| Near::within(near.value, it));
        let (error, allowed) = match near.error(got) {
            (_, allowed) if is_poison => (f64::INFINITY, allowed),
            found => found,
        };
        check.compared += 1;
        check.vague += usize::from(self.scale > 0.0 && near.below.max(near.above) > self.scale);
        // An infinite difference is wrong even where any number would do.
        let is_wrong = error > allowed || error == f64::INFINITY;
        check.wrong += usize::from(is_wrong);
        let part = if is_wrong { share(error, allowed.min(f64::MAX)) } else { share(error, allowed) };
        if check.worst.is_none() || part > share(check.max_error, check.tolerance.min(f64::MAX)) {
            (check.max_error, check.tolerance) = (error, allowed);
            let at = coordinates(&self.shape, at).into_iter().map(i64::cast_unsigned);
            let at = at.map(|it| usize::try_from(it).expect("it is a coordinate of a tensor in memory"));
            check.worst = Some(Worst { at: at.collect(), got, expected: near.value, own: None });
        }
    }
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
