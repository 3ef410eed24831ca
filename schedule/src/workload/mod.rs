//! Workloads: what to compute, as data.
//!
//! ```text
//! workload(
//!     name: "matmul",
//!     about: "C = A·B",
//!     params: {
//!         "m": size(default: 1024), "n": size(default: 1024), "k": size(default: 1024),
//!         "dtype": dtype(default: "f32", of: ["f32", "f16"]),
//!         "layout": word(default: "NN", of: ["NN", "NT"]),
//!     },
//!     axes: {"i": "m", "j": "n", "k": "k"},
//!     tensors: {
//!         "A": input(dtype: "dtype", shape: ["m", "k"]),
//!         "B": input(dtype: "dtype", shape: ["k", "n"], stored: by(param: "layout", is: {"NN": [0, 1], "NT": [1, 0]})),
//!         "C": output(dtype: "f32", shape: ["m", "n"]),
//!     },
//!     stages: ["C[i, j] += f32(A[i, k]) * f32(B[k, j])"],
//! )
//! ```
//!
//! * **Parameters.** `size` is at least 1; a word given for it makes a symbolic dimension of that name. `int(default,
//!   least: 0)` is a constant such as a stride, `number` a constant of the computation, `dtype` a type, `word` a
//!   choice. One without default must be given.
//! * **Types.** `types: {"acc": …}` names types for tensors and conversions.
//! * **Choices.** A type, a stored order, a default, the tolerance and the list of stages may depend on parameters:
//!   `by(param: "layout", is: {"NN": …, "NT": …})` has a case for each value, and `same(types: ("out", "acc"),
//!   then: …, else: …)` compares two types.
//! * **Tolerance.** `tolerance: 1e-3` says how far an output may be from what exact arithmetic gives, in parts of its largest
//!   magnitude; it may be a choice, such as by the type. Without it the bounds of each element follow from the
//!   roundings that its computation makes in its types.
//! * **Axes** have extents over sizes and ints: `"(h + 2*pad - r) floordiv stride + 1"`. In a stage, a name is an axis
//!   before it is a size.
//! * **Tensors** are inputs, outputs and temps, each in the order of the text. `stored: [1, 0]` says which dimension
//!   stands where in memory, the slowest first; expressions go on saying `B[k, j]`.
//! * **Stages** write one tensor each, for all axes of the target: `=`, or with axes that stand only on the right
//!   `+=`, `*=`, `max=`, `min=`. Values have loads, numbers, `+ - * /`, of integers `& | ^ << >>`, `min`, `max`, `dot_e2m1x2`, `exp` and so on, conversions
//!   `f32(x)` (of an index, too: `f32(n)`) and `select(0 <= i - 1 && i < n, X[i - 1], 0)`, which loads nothing where its conditions,
//!   on indices, fail. `< <= > >= == !=` compare values, `&&` and `||` join what they say, and `where(X[i] > 0, X[i], Y[i])` chooses by it.
//!   `where(j < length[i], X[i, j], 0)` compares indices where `length` is an input that says what its elements are below.
//!   Operands are of one type; numbers take it.
//!
//! A stage becomes one block named after the tensor that it writes, in loops named after axes: the target's in its
//! order, then the reduced ones in the order of `axes`. Where an earlier stage has a loop of an axis already, the
//! tensor's name is appended: `i`, then `i_D`.

mod build;
mod check;
mod choice;
mod error;
mod expr;
mod form;
mod index;
mod lex;
mod param;
mod value;

use indexmap::IndexMap;
use ir::{Func, Name};

pub use error::{Problem, WorkloadError};
pub use param::Param;

use form::{Form, ParamKind};
use param::{Chosen, Meaning};

/// A workload: its parts, read and checked for all values of its parameters.
#[derive(Clone, Debug)]
pub struct Workload {
    form: Form,
}

/// Reads a workload.
pub fn parse(text: &str) -> Result<Workload, WorkloadError> {
    let form = form::read(text)?;
    check::check(&form)?;
    Ok(Workload { form })
}

impl Workload {
    /// Its name, which its programs have.
    pub fn name(&self) -> Name {
        Name::new(self.form.name.value.as_str())
    }

    /// What it computes, in a sentence.
    pub fn about(&self) -> &str {
        &self.form.about
    }

    /// Its parameters in order, each with the values that it takes, in words.
    pub fn params(&self) -> IndexMap<String, String> {
        let words = |kind: &ParamKind| match kind {
            ParamKind::Size { .. } => "a size, or a name for a symbolic dimension".to_owned(),
            ParamKind::Int { least, .. } => format!("an integer from {least}"),
            ParamKind::Number { .. } => "a number".to_owned(),
            ParamKind::Type { of, .. } | ParamKind::Word { of, .. } => {
                of.iter().map(|it| it.value.as_str()).collect::<Vec<_>>().join(", ")
            }
        };
        self.form.params.iter().map(|(name, decl)| (name.clone(), words(&decl.it))).collect()
    }

    /// The value of every parameter, given some of them.
    pub fn complete(
        &self,
        given: &IndexMap<String, Param>,
    ) -> Result<IndexMap<String, Param>, WorkloadError> {
        let chosen = Chosen::new(&self.form, given)?;
        let value = |(name, meaning): (&String, &Meaning)| {
            let value = match meaning {
                Meaning::Index(it) => match (it.as_int(), it.as_var()) {
                    (Some(it), _) => Param::Int(it),
                    (None, Some(dim)) => Param::Text(dim.to_string()),
                    (None, None) => Param::Text(it.to_string()),
                },
                Meaning::Number(it) => Param::Float(*it),
                Meaning::Type(it) => Param::Text(it.to_string()),
                Meaning::Word(it) => Param::Text(it.clone()),
            };
            (name.clone(), value)
        };
        Ok(chosen.params.iter().map(value).collect())
    }

    /// The program for given parameters; those with a default may be left out.
    pub fn instantiate(&self, given: &IndexMap<String, Param>) -> Result<Func, WorkloadError> {
        build::build(&self.form, &Chosen::new(&self.form, given)?)
    }
}
