//! Shipped workloads by name, and runs of them.

use indexmap::IndexMap;
use ir::{
    DType, Func, Name, Role, Tensor, interp,
    reference::{Elements, Reference},
};
use schedule::workload::{self, Param};

pub(crate) fn params(list: &[(&str, Param)]) -> IndexMap<String, Param> {
    list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

pub(crate) fn int(value: i64) -> Param {
    Param::Int(value)
}

pub(crate) fn word(value: &str) -> Param {
    Param::Text(value.to_owned())
}

pub(crate) fn func(name: &str, list: &[(&str, Param)]) -> Func {
    workload::parse(tilewright_workloads::find(name).unwrap()).unwrap().instantiate(&params(list)).unwrap()
}

/// Inputs with small numbers that every type has.
pub(crate) fn inputs(func: &Func, dims: &IndexMap<Name, i64>) -> Vec<Tensor> {
    let inputs = func.buffers.values().filter(|it| it.role == Role::Input);
    let tensor = |(salt, it): (usize, &ir::Buffer)| {
        let size =
            |it: &ir::Index| usize::try_from(it.eval(&|name| dims.get(name).copied()).unwrap()).unwrap();
        let shape: Vec<_> = it.shape.iter().map(size).collect();
        let count: usize = shape.iter().product();
        // What reads go through holds what its elements are below.
        let below = it.below.as_ref().map(|it| it.eval(&|name| dims.get(name).copied()).unwrap() as f64);
        let number = |at: usize| ((at * 7 + salt * 5) % 13) as f64;
        Tensor::new(
            it.dtype,
            &shape,
            (0..count).map(|at| below.map_or(number(at) - 6.0, |it| number(at) % it)),
        )
    };
    inputs.enumerate().map(tensor).collect()
}

/// Runs the program, checks every element against the lazy reference, and gives inputs and outputs.
pub(crate) fn run(func: &Func, dims: &[(&str, i64)]) -> (Vec<Tensor>, Vec<Tensor>) {
    let dims: IndexMap<Name, i64> = dims.iter().map(|(name, it)| (Name::new(*name), *it)).collect();
    let inputs = inputs(func, &dims);
    let outputs = interp::run(func, &dims, &inputs).unwrap();
    let elements: Vec<_> = inputs.iter().map(|it| Elements::Numbers(&it.data)).collect();
    let mut reference = Reference::new(func, &dims, &elements).unwrap();
    let names = func.buffers.iter().filter(|(_, it)| it.role == Role::Output).map(|(name, _)| name);
    for (name, output) in names.zip(&outputs) {
        for (at, got) in output.data.iter().enumerate() {
            let mut index = Vec::new();
            let mut rest = at;
            for size in output.shape.iter().rev() {
                index.insert(0, i64::try_from(rest % size).unwrap());
                rest /= size;
            }
            let want = reference.element(name, &index).unwrap();
            close(output.dtype, *got, want.value);
            let (error, allowed) = want.error(*got);
            assert!(error <= allowed, "{name}{index:?} is {got}, not {want:?}");
        }
    }
    (inputs, outputs)
}

/// Within a few roundings of the type.
pub(crate) fn close(dtype: DType, got: f64, want: f64) {
    let unit = match dtype {
        DType::F16 => 1e-3,
        DType::Bf16 => 8e-3,
        DType::F32 => 1e-6,
        _ => 1e-14,
    };
    assert!((got - want).abs() <= 4.0 * unit * want.abs().max(1.0), "{dtype}: {got} for {want}");
}
