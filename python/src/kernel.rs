//! `tilewright.Kernel`.

use codegen::device::Stream;
use ir::Name;
use pyo3::{
    intern,
    prelude::*,
    types::{PyDict, PyTuple},
};
use tilewright::{CallError, Diagnostic, Parameter, Place, Tensor};

use crate::{
    convert::from_json,
    error::Result,
    exchange::{Array, Library, current_stream, dtype_name, stream_of_handle},
    results::{described, empty, handed_over, torch_empty},
};

/// A compiled kernel. `kernel(a, b)` runs it on arrays and returns its results.
#[pyclass(module = "tilewright", frozen, weakref)]
pub(crate) struct Kernel {
    compiled: tilewright::Kernel,
    /// How many of its parameters are inputs: they come first.
    inputs: usize,
    /// The rule that made its schedule, and why its steps are what they are.
    rule: Option<&'static str>,
    reasons: Vec<String>,
}

impl Kernel {
    pub(crate) fn new(kernel: tilewright::Kernel) -> Kernel {
        let inputs = kernel.parameters().iter().take_while(|it| !it.is_output).count();
        Kernel { compiled: kernel, inputs, rule: None, reasons: vec![] }
    }

    /// The same with where its schedule comes from.
    pub(crate) fn by_rule(self, rule: &'static str, reasons: Vec<String>) -> Kernel {
        Kernel { rule: Some(rule), reasons, ..self }
    }

    fn made(&self) -> &[Parameter] {
        &self.compiled.parameters()[self.inputs..]
    }

    /// The extents of the results at sizes.
    fn shapes(&self, sizes: &[i64]) -> Result<Vec<Vec<i64>>> {
        let of = |at: usize| {
            let shape = self.compiled.shape(at, sizes);
            let wrong = || {
                let title =
                    format!("`{}` would have extents past 64 bits", self.compiled.parameters()[at].name);
                Diagnostic::usage(CallError::Shape, title)
            };
            Ok(shape.ok_or_else(wrong)?)
        };
        (self.inputs..self.compiled.parameters().len()).map(of).collect()
    }

    /// The inputs in their order, from positions and from names.
    fn inputs_of<'py>(
        &self,
        arrays: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let inputs = &self.compiled.parameters()[..self.inputs];
        let mut all: Vec<_> = arrays.iter().collect();
        let count = |got: usize| {
            let known: Vec<_> = inputs.iter().map(|it| format!("`{}`", it.name)).collect();
            let title = match known.as_slice() {
                [] => format!("the kernel takes no inputs, not {got}"),
                known => format!(
                    "the kernel takes {} ({}), not {got}",
                    plural(known.len(), "input"),
                    known.join(", ")
                ),
            };
            let help = "results are given as `out=`, or made by the call";
            Diagnostic::usage(CallError::Arguments, title).help(help.to_owned())
        };
        let Some(named) = named.filter(|it| !it.is_empty()) else {
            return if all.len() == inputs.len() { Ok(all) } else { Err(count(all.len()).into()) };
        };
        for parameter in inputs.iter().skip(all.len()) {
            all.extend(named.get_item(parameter.name.as_str())?);
        }
        if all.len() == inputs.len() && named.len() + arrays.len() == inputs.len() {
            return Ok(all);
        }
        for (name, _) in named {
            let name: String = name.extract()?;
            let place = inputs.iter().position(|it| it.name.as_str() == name);
            let title = match place {
                None => format!("the kernel has no input `{name}`"),
                Some(at) if at < arrays.len() => format!("the input `{name}` is given twice"),
                Some(_) => continue,
            };
            let known: Vec<_> = inputs.iter().map(|it| format!("`{}`", it.name)).collect();
            return Err(Diagnostic::usage(CallError::Arguments, title)
                .help(format!("there is {}", known.join(", ")))
                .into());
        }
        Err(count(arrays.len() + named.len()).into())
    }

    /// Memory for the results, of the library of the first input.
    fn results<'py>(
        &self,
        py: Python<'py>,
        first: Option<(&Bound<'py, PyAny>, &Array<'py>)>,
        sizes: &[i64],
    ) -> Result<Vec<Bound<'py, PyAny>>> {
        let shapes = self.shapes(sizes)?;
        let made = self.made().iter().zip(shapes).map(|(output, shape)| {
            let shape = PyTuple::new(py, shape)?;
            let name = dtype_name(output.dtype);
            match first {
                Some((like, array)) if array.library == Library::Torch => torch_empty(like, &shape, name),
                Some((like, array)) => empty(Some(like), array.tensor.place, &shape, name),
                None if *self.compiled.target() == ir::Target::Cpu => empty(None, Place::Cpu, &shape, name),
                None => empty(None, Place::Gpu(0), &shape, name),
            }
        });
        Ok(made.collect::<PyResult<_>>()?)
    }

    fn given_results<'py>(&self, given: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>> {
        let needed = self.made().len();
        let all: Vec<_> = match given.cast::<PyTuple>() {
            Ok(all) => all.iter().collect(),
            Err(_) => vec![given.clone()],
        };
        if all.len() == needed {
            return Ok(all);
        }
        let title = format!(
            "the kernel has {}, and `out` is {}",
            plural(needed, "result"),
            plural(all.len(), "array")
        );
        let help = "several are a tuple, in the order of `kernel.outputs`".to_owned();
        Err(Diagnostic::usage(CallError::Arguments, title).help(help).into())
    }
}

#[pymethods]
impl Kernel {
    #[pyo3(signature = (*arrays, out=None, stream=None, dims=None, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arrays: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        dims: Option<&Bound<'py, PyDict>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let asked = stream.map(handle).transpose()?;
        let objects = self.inputs_of(arrays, named)?;
        let mut all: Vec<Array<'py>> =
            objects.iter().map(|it| Array::of(it, asked)).collect::<Result<_>>()?;
        let dims = dims.map(sizes_of).transpose()?.unwrap_or_default();
        // Results that are given may say sizes that no input has.
        let given = out.map(|it| self.given_results(it)).transpose()?;
        let read: Option<Vec<_>> = given
            .as_ref()
            .map(|all| all.iter().map(|it| Array::of(it, asked)).collect::<Result<_>>())
            .transpose()?;
        let shapes = all.iter().chain(read.iter().flatten()).map(|it| it.tensor.shape.as_slice()).enumerate();
        let sizes = self.compiled.sizes(shapes, &dims)?;
        let results = match given {
            Some(given) => given,
            None => self.results(py, objects.first().zip(all.first()), &sizes)?,
        };
        all.extend(match read {
            Some(read) => read,
            None => results.iter().map(|it| Array::of(it, asked)).collect::<Result<_>>()?,
        });
        let library = all.first().map(|it| it.library);
        self.run(py, all, &sizes, asked)?;
        let results = match (out, objects.first()) {
            (None, Some(like)) if library == Some(Library::Dlpack) => handed_over(like, results)?,
            (None | Some(_), _) => results,
        };
        Ok(if results.len() == 1 { results[0].clone() } else { PyTuple::new(py, results)?.into_any() })
    }

    /// The name of the workload.
    #[getter]
    fn name(&self) -> &str {
        self.compiled.name().as_str()
    }

    /// What it is compiled for: `cpu`, or `cuda` with an architecture.
    #[getter]
    fn target(&self) -> String {
        tuner::build::target_word(self.compiled.target())
    }

    /// The schedule as a script of plain steps.
    #[getter]
    fn script(&self) -> &str {
        self.compiled.script()
    }

    /// The emitted C or CUDA C++.
    #[getter]
    fn source(&self) -> &str {
        self.compiled.source()
    }

    /// What each kernel needs of a multiprocessor, as ptxas tells.
    #[getter]
    fn resources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = serde_json::to_value(self.compiled.resources()).expect("they are plain data");
        from_json(py, &all)
    }

    /// What the schedule asks for in vain.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.compiled.notes().to_vec()
    }

    /// The rule that made the schedule, where one did.
    #[getter]
    fn rule(&self) -> Option<&'static str> {
        self.rule
    }

    /// Why the steps of that schedule are what they are.
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.reasons.clone()
    }

    /// The arrays that it takes.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        described(py, &self.compiled.parameters()[..self.inputs])
    }

    /// The arrays that it makes.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        described(py, self.made())
    }

    /// The symbolic dimensions.
    #[getter]
    fn dims(&self) -> Vec<&str> {
        self.compiled.dims().iter().map(Name::as_str).collect()
    }

    /// The extents of the results for inputs of these extents.
    #[pyo3(signature = (*shapes, dims=None))]
    #[expect(clippy::needless_pass_by_value, reason = "so Python's arguments come")]
    fn output_shapes<'py>(
        &self,
        py: Python<'py>,
        shapes: Vec<Vec<i64>>,
        dims: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyTuple>> {
        if shapes.len() > self.inputs {
            let title = format!("the kernel takes {}, not {}", plural(self.inputs, "input"), shapes.len());
            return Err(Diagnostic::usage(CallError::Arguments, title).into());
        }
        let dims = dims.map(sizes_of).transpose()?.unwrap_or_default();
        let sizes = self.compiled.sizes(shapes.iter().map(Vec::as_slice).enumerate(), &dims)?;
        let all = self.shapes(&sizes)?;
        let all = all.into_iter().map(|it| PyTuple::new(py, it)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, all)?)
    }

    /// Registers it as an operator of PyTorch, which `torch.compile` takes whole.
    #[pyo3(signature = (name, *, backward=None))]
    fn to_torch_op<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        backward: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tilewright._torch")?.call_method1("register", (slf, name, backward))
    }

    fn __repr__(&self) -> String {
        let words = |it: &Parameter| {
            let shape: Vec<_> = it.shape.iter().map(ToString::to_string).collect();
            format!("{}: {}[{}]", it.name, it.dtype.as_str(), shape.join(", "))
        };
        let (inputs, outputs) = self.compiled.parameters().split_at(self.inputs);
        let list = |all: &[Parameter]| all.iter().map(words).collect::<Vec<_>>().join(", ");
        format!("<Kernel {}({}) -> {} for {}>", self.name(), list(inputs), list(outputs), self.target())
    }
}

impl Kernel {
    /// Runs it. On a CPU others may use the interpreter meanwhile. What a library may give back before a GPU has used it is waited for.
    fn run(&self, py: Python<'_>, all: Vec<Array<'_>>, sizes: &[i64], asked: Option<usize>) -> Result<()> {
        let stream = stream_of(py, asked, &all)?;
        let may_vanish = asked.is_none() && all.iter().any(|it| it.library == Library::Dlpack);
        let (tensors, _owners): (Vec<Tensor>, Vec<_>) =
            all.into_iter().map(|it| (it.tensor, it.owner)).unzip();
        if *self.compiled.target() == ir::Target::Cpu {
            return Ok(py.detach(|| self.compiled.call(&tensors, sizes, stream))?);
        }
        self.compiled.call(&tensors, sizes, stream)?;
        match tensors.first().map(|it| it.place) {
            Some(Place::Gpu(ordinal)) if may_vanish => {
                Ok(py.detach(|| codegen::device::wait_for(ordinal, stream)).map_err(Diagnostic::from)?)
            }
            _ => Ok(()),
        }
    }
}

/// The stream to run on: the caller's word, else the one that is current in the library of the arrays.
fn stream_of(py: Python<'_>, asked: Option<usize>, all: &[Array<'_>]) -> PyResult<Stream> {
    if let Some(asked) = asked {
        return Ok(stream_of_handle(asked));
    }
    let of_torch = all.iter().find(|it| it.library == Library::Torch).map(|it| it.tensor.place);
    if let Some(Place::Gpu(ordinal)) = of_torch {
        return Ok(stream_of_handle(current_stream(py, ordinal)?));
    }
    let told = all.iter().find_map(|it| it.stream);
    Ok(told.map_or(Stream::DEFAULT, stream_of_handle))
}

/// So many of something, in words.
fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("one {what}") } else { format!("{count} {what}s") }
}

/// The handle of a stream: a number, or an object of PyTorch's, CuPy's or another library's that has one.
fn handle(it: &Bound<'_, PyAny>) -> Result<usize> {
    let py = it.py();
    for name in [intern!(py, "cuda_stream"), intern!(py, "ptr")] {
        if let Some(handle) = it.getattr_opt(name)? {
            return Ok(handle.extract()?);
        }
    }
    if let Some(told) = it.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let (_, handle): (i64, usize) = told.call0()?.extract()?;
        return Ok(handle);
    }
    it.extract::<usize>().map_err(|_| {
        let title =
            format!("`stream` is the handle of a stream or an object that has one, not {}", it.get_type());
        Diagnostic::usage(CallError::Arguments, title).into()
    })
}

/// Values of symbolic dimensions.
fn sizes_of(given: &Bound<'_, PyDict>) -> Result<Vec<(Name, i64)>> {
    given.iter().map(|(name, it)| Ok((Name::new(name.extract::<String>()?), it.extract()?))).collect()
}
