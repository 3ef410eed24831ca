//! The tool under test: annotating a program, lowering it, and running it in every form that it takes.

use std::collections::BTreeSet;

use codegen::{
    lower::{LowerError, State},
    vgpu::{self, Settings},
};
use indexmap::IndexMap;
use ir::{
    Arch, Func, Index, Iter, IterKind, Loop, LoopKind, Module, Name, Role, Scope, Stmt, Target, Tensor,
    ThreadAxis, interp,
};

pub(crate) fn target() -> Target {
    Target::Cuda(Arch { sm: 80, suffix: None })
}

/// Inputs of a program, and what it computes from them.
pub(crate) struct Expected {
    pub(crate) dims: IndexMap<Name, i64>,
    inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
}

/// A program after the passes.
pub(crate) struct Lowered {
    /// After the pass that expands pipelines.
    pub(crate) expanded: Func,
    pub(crate) module: Module,
}

impl Expected {
    /// `input` gives an element of an input: the number of the input, its shape, the offset of the element.
    pub(crate) fn new(
        func: &Func,
        dims: &IndexMap<Name, i64>,
        input: &dyn Fn(usize, &[usize], usize) -> f64,
    ) -> Result<Expected, String> {
        let inputs = func.buffers.values().filter(|it| it.role == Role::Input).enumerate();
        let inputs = inputs.map(|(number, it)| {
            let shape: Vec<_> = it.shape.iter().map(|it| size(it, dims)).collect();
            let count: usize = shape.iter().product();
            Tensor::new(it.dtype, &shape, (0..count).map(|at| input(number, &shape, at)))
        });
        let inputs: Vec<_> = inputs.collect();
        let outputs = interp::run(func, dims, &inputs).map_err(|err| err.to_string())?;
        Ok(Expected { dims: dims.clone(), inputs, outputs })
    }

    /// Whether another form of the program means the same, to the bit.
    pub(crate) fn interpreter(&self, what: &str, func: &Func) -> Result<(), String> {
        let outputs = interp::run(func, &self.dims, &self.inputs)
            .map_err(|err| format!("{what}, interpreted: {err}"))?;
        self.same(what, outputs.iter().map(|it| &*it.data))
    }

    /// Whether the kernels compute the same, in several orders of threads, without a race or another finding.
    pub(crate) fn virtual_gpu(&self, func: &Func, module: &Module) -> Result<(), String> {
        Settings::hostile(1).into_iter().try_for_each(|settings| {
            let of_role = |role| func.buffers.iter().filter(move |(_, it)| it.role == role).map(|it| it.0);
            let inputs = of_role(Role::Input).cloned().zip(self.inputs.iter().map(|it| it.data.clone()));
            let mut memory: IndexMap<Name, Vec<f64>> = inputs.collect();
            let report =
                vgpu::run(module, &self.dims, &mut memory, &settings).map_err(|err| err.to_string())?;
            if let Some(found) = report.findings.first() {
                return Err(format!("the virtual GPU, {}: {found}", settings.words()));
            }
            let what = format!("the virtual GPU, {}", settings.words());
            self.same(&what, of_role(Role::Output).map(|name| &*memory[name]))
        })
    }

    fn same<'a>(&self, what: &str, got: impl Iterator<Item = &'a [f64]>) -> Result<(), String> {
        for (number, (got, want)) in got.zip(&self.outputs).enumerate() {
            if let Some(at) = got.iter().zip(&want.data).position(|(x, y)| x.to_bits() != y.to_bits()) {
                let (got, want) = (got[at], want.data[at]);
                return Err(format!("{what}: output {number}, element {at}, is {got}, not {want}"));
            }
        }
        Ok(())
    }
}

impl Lowered {
    /// Whether the interpreter can run what the expansion made: passes shrink local memory to what one thread has, and
    /// the interpreter knows no threads.
    pub(crate) fn is_for_interpreter(&self) -> bool {
        self.expanded.buffers.values().all(|it| it.scope != Scope::Local)
    }
}

/// Lowers a program.
pub(crate) fn lower(func: &Func) -> Result<Lowered, LowerError> {
    let mut expanded = func.clone();
    let module = codegen::lower::lower(func, &target(), &mut |pass, state| {
        if let (State::Func(func), "software_pipeline") = (state, pass.name) {
            expanded = closed(func);
        }
    })?;
    Ok(Lowered { expanded, module })
}

/// The program with an iterator for each loop variable that a block reads, as passes may leave them, so that the
/// interpreter takes it.
fn closed(func: &Func) -> Func {
    let loops: IndexMap<Name, Index> =
        func.loops().into_iter().map(|it| (it.var.clone(), it.extent.clone())).collect();
    let mut out = func.clone();
    out.map_blocks(&mut |block| {
        let mut free = BTreeSet::new();
        let mut own: BTreeSet<Name> = block.iters.iter().map(|it| it.var.clone()).collect();
        for stmt in block.init.iter().chain([&block.body]) {
            stmt.walk(&mut |it| {
                if let Stmt::Loop(it) = it {
                    own.insert(it.var.clone());
                }
            });
            let _ = stmt.map_indices(&mut |it| {
                free.extend(it.vars());
                it.clone()
            });
        }
        for var in free.difference(&own) {
            if let Some(extent) = loops.get(var) {
                block.iters.push(Iter::new(var, extent.clone(), IterKind::Spatial, Index::var(var)));
            }
        }
    });
    out
}

/// The program with a number for each symbolic dimension.
pub(crate) fn with_constants(func: &Func, dims: &IndexMap<Name, i64>) -> Func {
    let with = |name: &Name| dims.get(name).map(|it| Index::int(*it));
    let mut out = Func { dims: vec![], body: func.body.subst(&with), ..func.clone() };
    for shape in out.buffers.values_mut().flat_map(|it| &mut it.shape) {
        *shape = shape.subst(&with);
    }
    out
}

/// The program with its loop `b` run by blocks and its loops `t…` by threads.
pub(crate) fn bound(func: &Func) -> Func {
    let mut out = func.clone();
    let loops: Vec<Name> = func.loops().into_iter().map(|it| it.var.clone()).collect();
    for var in loops {
        let axis = match var.as_str().chars().next() {
            Some('b') => ThreadAxis::BlockX,
            Some('t') => ThreadAxis::ThreadX,
            _ => continue,
        };
        out.replace_loop(&var, |old| Stmt::Loop(Loop { kind: LoopKind::Bound(axis), ..old }.into()));
    }
    out
}

/// The value of an extent.
pub(crate) fn size(index: &Index, dims: &IndexMap<Name, i64>) -> usize {
    usize::try_from(index.eval(&|name| dims.get(name).copied()).unwrap()).unwrap()
}

/// The listing of a program, for messages.
pub(crate) fn text(func: &Func) -> String {
    ir::text::print(func).text
}
