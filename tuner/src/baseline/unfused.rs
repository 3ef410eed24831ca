//! The baseline of a fused workload: the library's matrix product, followed by elementwise kernels.
//!
//! It is what a framework does that runs one operator after the other: each operator reads and writes whole tensors in
//! the type of the output, computes in the type of the accumulator, and rounds at the end. That is the fair rival of a
//! fused kernel, and so are its kernels fair: they are our own, generated, with 16 bytes a thread and load, which is as
//! fast as memory is.
//!
//! A compiler for frameworks fuses elementwise operators with each other, though not with the product: [`Grouping`] has
//! both. What the library can fuse by itself (a bias, a GELU by tanh) differs from one release to the next and is not
//! used.

use codegen::device::{DeviceError, Gemm, MachineInfo, Program};
use indexmap::IndexMap;
use ir::{
    Access, Arch, Block, Buffer, Buffers, DType, Func, Index, IterKind, Layout, Name, Role, Scope, Stmt,
    Target, Value,
};
use schedule::Step;

use crate::{
    Case,
    baseline::product_into,
    build::{BuildError, Problem, generate},
};

/// How many kernels follow the product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grouping {
    /// One for each stage.
    Separate,
    /// One for all of them.
    Together,
}

/// A product and what follows it. Buffers are the case's inputs and outputs, then `temps`.
#[derive(Clone, Debug)]
pub(crate) struct Unfused {
    pub(crate) gemm: Gemm,
    /// Where A, B and C of the product lie.
    pub(crate) operands: Vec<usize>,
    pub(crate) kernels: Vec<Elementwise>,
    /// The bytes of the tensors in between.
    pub(crate) temps: Vec<usize>,
}

/// An elementwise kernel.
#[derive(Clone, Debug)]
pub(crate) struct Elementwise {
    /// Not scheduled yet.
    func: Func,
    /// Where its buffers lie.
    pub(crate) buffers: Vec<usize>,
}

impl Unfused {
    /// The product and the kernels of a case; `None` where it is not a product, and elementwise blocks after it.
    pub(crate) fn of(case: &Case, grouping: Grouping) -> Option<Unfused> {
        let blocks = case.func.body.blocks();
        let [product, stages @ ..] = blocks.as_slice() else { return None };
        let chain = Chain::of(case, product, stages)?;
        let (gemm, [a, b]) = product_into(case, product, chain.stored)?;
        let first = chain.elements()? * chain.stored.bytes();
        let place = |name: &Name| case.params().get_index_of(name);
        let operands = vec![place(&a)?, place(&b)?, case.params().len()];
        let groups: Vec<&[&Block]> = match grouping {
            Grouping::Separate => stages.chunks(1).collect(),
            Grouping::Together => vec![stages],
        };
        let kernels = groups.iter().map(|it| chain.kernel(it)).collect::<Option<Vec<_>>>()?;
        Some(Unfused { gemm, operands, temps: vec![first; kernels.len()], kernels })
    }

    /// `cuBLAS and 3 elementwise kernels`.
    pub(crate) fn name(&self, library: &str) -> String {
        match self.kernels.len() {
            1 => format!("{library} and one elementwise kernel"),
            n => format!("{library} and {n} elementwise kernels"),
        }
    }

    /// The kernels, compiled for a machine.
    pub(crate) fn programs(&self, info: &MachineInfo) -> Result<Vec<Program>, DeviceError> {
        let target = match Arch::parse(&info.arch) {
            Some(arch) => Target::Cuda(arch),
            None => Target::Cpu,
        };
        let program = |it: &Elementwise| match it.program(&target) {
            Ok(program) => Ok(program),
            Err(BuildError::Compile(err)) => Err(err),
            Err(err) => Err(DeviceError::Unsupported(format!("an elementwise kernel: {err}"))),
        };
        self.kernels.iter().map(program).collect()
    }
}

impl Elementwise {
    fn program(&self, target: &Target) -> Result<Program, BuildError> {
        let problem = Problem::new(self.func.clone(), IndexMap::new(), 0, target.clone())
            .map_err(|err| DeviceError::Unsupported(err.to_string()))?;
        let made = generate(&problem, &self.steps(target))?.compile(target)?;
        Ok(made.program)
    }

    /// A schedule that is as fast as memory: everything inlined into the last stage, whose rows are cut to pieces of one
    /// block, with a vector for each thread.
    fn steps(&self, target: &Target) -> Vec<Step> {
        let blocks = self.func.body.blocks();
        let Some((last, others)) = blocks.split_last() else { return vec![] };
        let mut steps: Vec<String> =
            others.iter().map(|it| format!("compute_inline(block: {:?})", it.name.as_str())).collect();
        let loops = self.func.loops_of(&last.name).expect("the block is one of the program's");
        let names: Vec<&str> = loops.iter().map(|it| it.var.as_str()).collect();
        let columns = loops.last().and_then(|it| it.extent.as_int()).unwrap_or(1);
        let Some((column, rows)) = names.split_last() else { return vec![] };
        let name = |stem: &str| Name::fresh(stem, |it| self.func.is_taken(it));
        let (piece, thread, lane) = (name("piece"), name("thread"), name("lane"));
        let outside = self.func.buffers.values().filter(|it| it.role != Role::Temp);
        let bytes = outside.map(|it| it.dtype.bytes()).max().expect("a program has outputs");
        let whole = i64::try_from(target.max_vector_bytes() / bytes).expect("a vector is a few bytes").max(1);
        match target {
            Target::Cpu => {
                steps.push(format!(
                    "split(loop: {column:?}, into: {{{:?}: None, {:?}: {whole}}})",
                    piece.as_str(),
                    lane.as_str()
                ));
                steps.push(format!("vectorize(loop: {:?})", lane.as_str()));
                steps.push(format!("parallel(loop: {:?})", rows.first().copied().unwrap_or(piece.as_str())));
            }
            Target::Cuda(_) => {
                // A row that is not of whole vectors has shorter ones, so that each starts at a multiple of itself.
                let lanes =
                    (0..=whole.ilog2()).rev().map(|it| 1i64 << it).find(|it| columns % it == 0).unwrap_or(1);
                let threads = (columns / lanes).clamp(1, 256);
                steps.push(format!(
                    "split(loop: {column:?}, into: {{{:?}: None, {:?}: {threads}, {:?}: {lanes}}})",
                    piece.as_str(),
                    thread.as_str(),
                    lane.as_str()
                ));
                let mut grid = piece.clone();
                if !rows.is_empty() {
                    grid = name("grid");
                    let all: Vec<_> = rows.iter().copied().chain([piece.as_str()]).collect();
                    steps.push(format!("fuse(loops: {all:?}, into: {:?})", grid.as_str()));
                }
                steps.push(format!("bind(loop: {:?}, axis: \"blockIdx.x\")", grid.as_str()));
                steps.push(format!("bind(loop: {:?}, axis: \"threadIdx.x\")", thread.as_str()));
                steps.push(format!("vectorize(loop: {:?})", lane.as_str()));
            }
        }
        steps.iter().map(|it| Step::from_ron(it).expect("the steps are written above")).collect()
    }
}

/// Elementwise blocks after a product, each over all of it.
struct Chain<'a> {
    case: &'a Case,
    /// The extents of the product and of everything that follows.
    shape: Vec<i64>,
    /// The type of the output, which the tensors in between are stored in.
    stored: DType,
    /// The temporaries, that of the product first, with the place of each among all buffers of the baseline.
    temps: IndexMap<Name, usize>,
}

impl<'a> Chain<'a> {
    fn of(case: &'a Case, product: &Block, stages: &[&Block]) -> Option<Chain<'a>> {
        let func = &case.func;
        let (last, middle) = stages.split_last()?;
        let writes = |it: &Block| Some(single_store(it)?.0.buffer.clone());
        let output = func.buffers.get(&writes(last)?).filter(|it| it.role == Role::Output)?;
        let outputs = func.buffers.values().filter(|it| it.role == Role::Output).count();
        let mut temps = IndexMap::new();
        for it in std::iter::once(product).chain(middle.iter().copied()) {
            let name = writes(it)?;
            func.buffers.get(&name).filter(|it| it.role == Role::Temp)?;
            let at = case.params().len() + temps.len();
            temps.insert(name, at);
        }
        let place = single_store(product)?.0;
        let shape = &func.buffers.get(&place.buffer)?.shape;
        let shape: Vec<i64> = shape.iter().map(|it| case.eval(it)).collect::<Option<_>>()?;
        let chain = Chain { case, shape, stored: output.dtype, temps };
        let fits = stages.iter().all(|it| chain.is_elementwise(it));
        (fits && outputs == 1 && stages.len() == chain.temps.len()).then_some(chain)
    }

    fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |len, it| len.checked_mul(usize::try_from(*it).ok()?))
    }

    /// Whether a block computes each element from the same element of temporaries, and anything of inputs.
    fn is_elementwise(&self, block: &Block) -> bool {
        let Some((place, value)) = single_store(block) else { return false };
        let iters =
            block.iters.iter().zip(&self.shape).all(|(it, extent)| {
                it.kind == IterKind::Spatial && self.case.eval(&it.extent) == Some(*extent)
            });
        let vars = block.iters.iter().map(|it| Index::var(&it.var));
        let mut own = true;
        value.each_load(&mut |it| {
            let role = self.case.func.buffers.get(&it.buffer).map(|it| it.role);
            let same = self.temps.contains_key(&it.buffer) && it.indices == place.indices;
            own &= role == Some(Role::Input) || same;
        });
        let whole = block.iters.len() == self.shape.len() && vars.eq(place.indices.iter().cloned());
        iters && own && whole && block.init.is_none() && block.guards.is_empty()
    }

    /// Blocks as a program of their own: temporaries that others write are inputs, and the last is the output.
    fn kernel(&self, blocks: &[&Block]) -> Option<Elementwise> {
        let (func, last) = (&self.case.func, blocks.last()?);
        let target = &single_store(last)?.0.buffer;
        let written: Vec<&Name> =
            blocks.iter().map(|it| Some(&single_store(it)?.0.buffer)).collect::<Option<_>>()?;
        let mut buffers = Buffers::default();
        let mut add = |name: &Name| {
            let inside = written.contains(&name) && name != target;
            let role = match () {
                () if name == target => Role::Output,
                () if inside => Role::Temp,
                () => Role::Input,
            };
            let old = &func.buffers[name];
            let dtype = if self.temps.contains_key(name) && !inside { self.stored } else { old.dtype };
            let shape = old.shape.iter().map(|it| Some(Index::int(self.case.eval(it)?)));
            let shape = shape.collect::<Option<Vec<_>>>()?;
            let new = Buffer {
                dtype,
                shape,
                scope: Scope::Global,
                role,
                layout: Layout::default(),
                alloc_scope: None,
                below: None,
            };
            buffers.insert(name.clone(), new);
            Some(())
        };
        for block in blocks {
            block.reads().iter().try_for_each(|it| add(&it.buffer))?;
            add(&single_store(block)?.0.buffer)?;
        }
        let body = blocks.iter().map(|it| self.nest(it, &buffers)).collect::<Option<Vec<_>>>()?;
        let params = buffers.iter().filter(|(_, it)| it.role != Role::Temp);
        let places = params
            .map(|(name, _)| self.temps.get(name).copied().or_else(|| self.case.params().get_index_of(name)));
        let places = places.collect::<Option<Vec<_>>>()?;
        let name = Name::fresh(&format!("{}_kernel", last.name), |it| func.is_taken(it));
        Some(Elementwise {
            func: Func {
                name,
                dims: vec![],
                tolerance: None,
                buffers,
                mbarriers: IndexMap::new(),
                body: Stmt::seq(body),
            },
            buffers: places,
        })
    }

    /// A block in its loops, whose loads and store convert where a tensor is stored in another type.
    fn nest(&self, block: &Block, buffers: &Buffers) -> Option<Stmt> {
        let func = &self.case.func;
        let (place, value) = single_store(block)?;
        let stored = |it: &Name| Some((func.buffers.get(it)?.dtype, buffers.get(it)?.dtype));
        let value = value.map_loads(&mut |it| match stored(&it.buffer) {
            Some((old, new)) if old != new => Value::Cast(old, Value::Load(it.clone()).into()),
            Some(_) | None => Value::Load(it.clone()),
        });
        let value = match stored(&place.buffer)? {
            (old, new) if old != new => Value::Cast(new, value.into()),
            _ => value,
        };
        let mut iters = block.iters.clone();
        for it in &mut iters {
            it.extent = Index::int(self.case.eval(&it.extent)?);
        }
        let new = Block { iters, body: Stmt::store(place.clone(), value), ..block.clone() };
        let loops = func.loops_of(&block.name)?;
        let whole = |it: &&ir::Loop| Some((it.var.clone(), Index::int(self.case.eval(&it.extent)?)));
        let loops = loops.iter().map(whole).collect::<Option<Vec<_>>>()?;
        let block = Stmt::Block(new.into());
        Some(loops.into_iter().rev().fold(block, |body, (var, extent)| Stmt::serial(&var, extent, body)))
    }
}

/// The only store of a block.
fn single_store(block: &Block) -> Option<(&Access, &Value)> {
    match &block.body {
        Stmt::Store(it) => Some((&it.place, &it.value)),
        Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => None,
    }
}

#[cfg(test)]
mod tests;
