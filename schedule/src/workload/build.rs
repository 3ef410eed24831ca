//! From a workload whose parameters are known to a `Func`.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use ir::{
    Block, Buffer, Buffers, DType, Func, Index, Iter, IterKind, Layout, Literal, Name, Role, Scope as Memory,
    Stmt, Value, arith::Bounds, cost,
};

use super::{
    error::{Problem, WorkloadError},
    expr::{Expr, Node, Stage},
    form::Form,
    index::index,
    param::Chosen,
    value::{Scope, iterator, size_named},
};

/// Makes the program.
pub(super) fn build(form: &Form, chosen: &Chosen) -> Result<Func, WorkloadError> {
    dims_are_free(form, chosen)?;
    let (buffers, orders) = buffers(form, chosen)?;
    let mut extents = IndexMap::new();
    for (axis, decl) in &form.axes {
        extents.insert(axis.clone(), size(&decl.it, chosen, &format!("the extent of axis `{axis}`"))?);
    }
    let stages = form.stages.pick(&|it| chosen.word(it), &|it| chosen.dtype(it))?;
    let mut func = Func {
        name: Name::new(form.name.value.as_str()),
        dims: chosen.dims.keys().cloned().collect(),
        tolerance: tolerance(form, chosen)?,
        buffers,
        mbarriers: IndexMap::new(),
        body: Stmt::Seq(vec![]),
    };
    let scope = Scope { form, chosen, buffers: &func.buffers, orders: &orders, extents: &extents };
    let mut loops = Loops { form, chosen, named: BTreeSet::new() };
    let body =
        stages.iter().map(|stage| lower(stage, &scope, &mut loops, &func)).collect::<Result<Vec<_>, _>>()?;
    func.body = Stmt::seq(body);
    func.drop_unused_buffers();
    drop_unread_inputs(&mut func);
    let least = func.dims.iter().map(|it| (it.clone(), 1)).collect();
    match cost::footprint(&func, &least) {
        Some(bytes) if bytes <= cost::MOST_BYTES => Ok(func),
        Some(_) | None => Err(WorkloadError::given(Problem::TooLarge)),
    }
}

/// Inputs that only other choices of stages read are none of this program.
fn drop_unread_inputs(func: &mut Func) {
    let mut read = func.tables();
    func.body.each_access(&mut |access, _| {
        read.insert(access.buffer.clone());
    });
    func.buffers.retain(|name, it| it.role != Role::Input || read.contains(name));
}

/// How far outputs may be from exact ones, if the workload says so.
fn tolerance(form: &Form, chosen: &Chosen) -> Result<Option<Literal>, WorkloadError> {
    let Some(choice) = &form.tolerance else { return Ok(None) };
    let value = choice.pick(&|it| chosen.word(it), &|it| chosen.dtype(it))?;
    Ok(Some(Literal::from_f64(DType::F64, *value)))
}

/// No symbolic dimension is called like something else in the program.
fn dims_are_free(form: &Form, chosen: &Chosen) -> Result<(), WorkloadError> {
    for (dim, param) in &chosen.dims {
        let word = dim.as_str();
        let other = if form.axes.contains_key(word) {
            "an axis"
        } else if form.tensors.contains_key(word) {
            "a tensor"
        } else if form.name.value == word {
            "the workload"
        } else if form.axes.keys().any(|it| iterator(it) == *dim) {
            "an iterator"
        } else {
            continue;
        };
        let problem = Problem::DimTaken { name: param.clone(), dim: word.to_owned(), other };
        return Err(WorkloadError::given(problem));
    }
    Ok(())
}

/// A size computed from parameters: at least 1, as far as that can be told.
fn size(expr: &Expr, chosen: &Chosen, what: &str) -> Result<Index, WorkloadError> {
    let named = |it: &Expr| match &it.node {
        Node::Name(name) => Ok(size_named(chosen, name)),
        _ => Ok(None),
    };
    let size = index(expr, &named)?;
    if let Some(value) = size.as_int().filter(|it| *it < 1) {
        let problem = Problem::BadSize { what: what.to_owned(), value: value.to_string() };
        return Err(WorkloadError::new(problem, expr.span.clone()));
    }
    Ok(size)
}

/// The buffers, and for each the dimension that stands at each place of its stored shape.
fn buffers(form: &Form, chosen: &Chosen) -> Result<(Buffers, IndexMap<String, Vec<usize>>), WorkloadError> {
    let (mut buffers, mut orders) = (Buffers::default(), IndexMap::new());
    for (name, decl) in &form.tensors {
        let it = &decl.it;
        let dtype = it.dtype.pick(&|it| chosen.word(it), &|it| chosen.dtype(it))?;
        let dtype = chosen.dtype(dtype)?;
        let sizes = it
            .shape
            .iter()
            .enumerate()
            .map(|(n, it)| size(it, chosen, &format!("dimension {n} of `{name}`")));
        let sizes: Vec<_> = sizes.collect::<Result<_, _>>()?;
        let order = match &it.stored {
            Some(choice) => choice.pick(&|it| chosen.word(it), &|it| chosen.dtype(it))?.clone(),
            None => (0..sizes.len()).collect(),
        };
        let below = it.below.as_ref().map(|below| {
            if dtype.is_float() || dtype == DType::Bool {
                return Err(WorkloadError::new(Problem::BelowOf("none of integers"), below.span.clone()));
            }
            size(below, chosen, &format!("what elements of `{name}` are below"))
        });
        let below = below.transpose()?;
        let shape = order.iter().map(|at| sizes[*at].clone()).collect();
        let (scope, layout) = (Memory::Global, Layout::default());
        buffers.insert(
            Name::new(name.as_str()),
            Buffer { dtype, shape, scope, role: it.role, layout, alloc_scope: None, below },
        );
        orders.insert(name.clone(), order);
    }
    buffers.sort_by(|_, a, _, b| position(a.role).cmp(&position(b.role)));
    Ok((buffers, orders))
}

/// Inputs come first, then outputs, then temporaries, each in the order of the text.
fn position(role: Role) -> u8 {
    match role {
        Role::Input => 0,
        Role::Output => 1,
        Role::Temp => 2,
    }
}

/// The names of loops.
struct Loops<'a> {
    form: &'a Form,
    chosen: &'a Chosen,
    named: BTreeSet<Name>,
}

impl Loops<'_> {
    /// The axis for the first stage that runs over it, the axis and the tensor that is written for later ones.
    fn name(&mut self, axis: &str, tensor: &str) -> Name {
        let first = Name::new(axis);
        if self.named.insert(first.clone()) {
            return first;
        }
        let taken = |it: &Name| {
            let word = it.as_str();
            let declared = self.form.axes.contains_key(word) || self.form.tensors.contains_key(word);
            declared
                || self.form.name.value == word
                || self.chosen.dims.contains_key(it)
                || self.named.contains(it)
        };
        let name = Name::fresh(&format!("{axis}_{tensor}"), taken);
        self.named.insert(name.clone());
        name
    }
}

/// The nest of loops of a stage.
fn lower(
    stage: &Stage,
    scope: &Scope<'_>,
    loops: &mut Loops<'_>,
    func: &Func,
) -> Result<Stmt, WorkloadError> {
    runs_over(stage, scope, func)?;
    let place = scope.access(&stage.tensor, &stage.subscripts, false)?;
    let dtype = scope.buffers[&place.buffer].dtype;
    let value = scope.value(&stage.value, dtype, true)?;
    let (init, value) = match stage.reducer.and_then(|op| Some((op, op.identity(dtype)?))) {
        Some((op, identity)) => {
            let init = Stmt::store(place.clone(), Value::Const(identity));
            (Some(init), Value::binary(op, Value::Load(place.clone()), value))
        }
        None => (None, value),
    };

    let mut iters = Vec::new();
    let mut nest = Vec::new();
    for (axis, kind) in axes(stage, scope.form) {
        let (var, extent) = (loops.name(axis, &stage.tensor), scope.extents[axis].clone());
        iters.push(Iter::new(&iterator(axis), extent.clone(), kind, Index::var(&var)));
        nest.push((var, extent));
    }
    let name = Name::new(stage.tensor.as_str());
    let (guards, attrs) = (Vec::new(), ir::BlockAttrs::default());
    let block = Block { name, iters, guards, attrs, init, body: Stmt::store(place, value) };
    let block = Stmt::Block(std::sync::Arc::new(block));
    Ok(nest.into_iter().rev().fold(block, |body, (var, extent)| Stmt::serial(&var, extent, body)))
}

/// The axes of a stage: those of its target in that order, then those that it reduces in the order of `axes`.
fn axes<'a>(stage: &'a Stage, form: &'a Form) -> Vec<(&'a str, IterKind)> {
    let mut out = Vec::new();
    for it in &stage.subscripts {
        if let Node::Name(axis) = &it.node {
            out.push((axis.as_str(), IterKind::Spatial));
        }
    }
    let mut used = BTreeSet::new();
    stage.value.walk(&mut |it| {
        if let Node::Name(name) = &it.node {
            used.insert(name.as_str());
        }
    });
    let reduced = form.axes.keys().map(String::as_str);
    let reduced: Vec<_> =
        reduced.filter(|it| used.contains(it) && out.iter().all(|(axis, _)| axis != it)).collect();
    out.extend(reduced.into_iter().map(|it| (it, IterKind::Reduce)));
    out
}

/// Each axis of the target runs over the whole dimension.
fn runs_over(stage: &Stage, scope: &Scope<'_>, func: &Func) -> Result<(), WorkloadError> {
    let bounds = Bounds::of_dims(func);
    let shape = &scope.buffers[stage.tensor.as_str()].shape;
    for (place, dimension) in scope.orders[&stage.tensor].iter().enumerate() {
        let it = &stage.subscripts[*dimension];
        let Node::Name(axis) = &it.node else { continue };
        let (extent, size) = (&scope.extents[axis], &shape[place]);
        if !bounds.equal(extent, size) {
            let (extent, size) = (extent.to_string(), size.to_string());
            let (axis, tensor) = (axis.clone(), stage.tensor.clone());
            let problem = Problem::Extent { axis, extent, tensor, dimension: *dimension, size };
            return Err(WorkloadError::new(problem, it.span.clone()));
        }
    }
    Ok(())
}
