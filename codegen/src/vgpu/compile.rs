//! From a kernel to a [`Program`]: names become slots and numbers of buffers, dimensions numbers.

use std::collections::HashMap;

use ir::{
    Access, DType, Index, Instr, Kernel, Less, Literal, Module, Name, Op, RingCounter, Scope as Space,
    Semaphore, TensorOp, ThreadAxis, Value, axis_var, intrin::Instruction, number, text::print_kernel,
};

use super::{
    MAX_ELEMENTS, VgpuError, align,
    index::{IndexCode, Scope, WARP},
    program::{
        Buffer, Code, CopyCode, CounterCode, Elements, ForCode, IfCode, LessCode, PlaceInfo, Program,
        SemaphoreCode, Site, ValueCode, place_shared,
    },
    shadow::Mark,
    tensor::TensorCode,
};

/// Resolves the names of a kernel.
struct Compiler<'a> {
    kernel: &'a Kernel,
    scope: Scope,
    slots: usize,
    buffers: Vec<Buffer>,
    visible: Vec<(Name, usize)>,
    sites: Vec<Site>,
    places: Vec<PlaceInfo>,
    loops: Vec<(Name, u32)>,
    /// Whether it is a kernel of a GPU: vectors of a CPU start at any element.
    on_gpu: bool,
    /// The line of each statement in the order of [`Op::walk`], and the number of the next statement.
    op_lines: Vec<usize>,
    next: usize,
    /// The line of the statement under the hand.
    line: usize,
}

/// The most blocks that it takes on.
const MAX_BLOCKS: i64 = 1 << 26;

/// The bits that a loop variable gets in a stamp if nothing is known of its extent.
const BITS: u32 = 20;

impl Program {
    /// Resolves a kernel for given sizes of the symbolic dimensions.
    pub(crate) fn new(
        module: &Module,
        kernel: &Kernel,
        dims: &HashMap<Name, i64>,
        lens: &[usize],
    ) -> Result<Program, VgpuError> {
        let (grid, block) = extents(kernel, dims)?;
        let threads = block.iter().fold(1, |a: i64, b| a.saturating_mul(*b));
        if threads > i64::from(Mark::THREADS) {
            return Err(VgpuError::TooManyThreads { kernel: kernel.name.clone(), threads });
        }
        let count = usize::try_from(threads).expect("it is positive").next_multiple_of(WARP);
        let mut scope = Scope { dims: dims.clone(), count, ..Scope::default() };
        for (n, axis) in ThreadAxis::ALL.into_iter().enumerate() {
            if axis.is_thread() {
                let stride: i64 = block[..n - 3].iter().product();
                let at = |it: usize| i64::try_from(it).expect("few threads") / stride % block[n - 3];
                scope.threads.insert(axis_var(axis), (0..count).map(at).collect());
            } else {
                scope.slots.push((axis_var(axis), u32::try_from(n).expect("one of six")));
            }
        }
        let listing = print_kernel(kernel);
        let mut compiler = Compiler {
            kernel,
            scope,
            slots: 3,
            buffers: vec![],
            visible: vec![],
            sites: vec![],
            places: vec![],
            loops: vec![],
            on_gpu: !kernel.launch.is_empty(),
            op_lines: listing.op_lines(),
            next: 0,
            line: 1,
        };
        for (name, written) in &kernel.args {
            let unknown = || VgpuError::UnknownBuffer { kernel: kernel.name.clone(), buffer: name.clone() };
            let at = module.args.get_index_of(name).ok_or_else(unknown)?;
            let arg = Some((at, *written));
            compiler.declare(name, module.args[at].dtype, lens[at], Space::Global, arg);
        }
        let code = compiler.list(&kernel.body)?;
        let Compiler { scope, slots, mut buffers, sites, places, .. } = compiler;
        place_shared(kernel, &mut buffers);
        if sites.len() >= Mark::SITES as usize {
            return Err(VgpuError::TooLong { kernel: kernel.name.clone() });
        }
        let lines = listing.text.lines().map(|it| it.trim().to_owned()).collect();
        let name = kernel.name.clone();
        Ok(Program { name, code, sites, buffers, places, scope, slots, grid, block, lines })
    }
}

fn extents(kernel: &Kernel, dims: &HashMap<Name, i64>) -> Result<([i64; 3], [i64; 3]), VgpuError> {
    let mut all = [1; 6];
    for (&axis, extent) in &kernel.launch {
        let value = extent.eval(&|it| dims.get(it).copied()).filter(|it| *it > 0);
        let error = || VgpuError::Launch { kernel: kernel.name.clone(), axis, extent: extent.clone() };
        all[axis as usize] = value.filter(|it| *it <= MAX_BLOCKS).ok_or_else(error)?;
    }
    let [bx, by, bz, tx, ty, tz] = all;
    let blocks = bx.saturating_mul(by).saturating_mul(bz);
    if blocks > MAX_BLOCKS {
        return Err(VgpuError::TooManyBlocks { kernel: kernel.name.clone(), blocks });
    }
    Ok(([bx, by, bz], [tx, ty, tz]))
}

impl Compiler<'_> {
    fn declare(&mut self, name: &Name, dtype: DType, len: usize, space: Space, arg: Option<(usize, bool)>) {
        self.visible.push((name.clone(), self.buffers.len()));
        self.buffers.push(Buffer { name: name.clone(), dtype, len, space, start: 0, arg, aliases: vec![] });
    }

    fn site(&mut self) -> u32 {
        self.sites.push(Site { line: self.line, loops: self.loops.clone() });
        self.newest_site()
    }

    /// The number of the statement at hand.
    fn newest_site(&self) -> u32 {
        u32::try_from(self.sites.len() - 1).expect("statements are in memory")
    }

    fn list(&mut self, ops: &[Op]) -> Result<Vec<Code>, VgpuError> {
        let outside = self.visible.len();
        let mut out = Vec::new();
        for op in ops {
            self.line = self.op_lines[self.next];
            self.next += 1;
            out.extend(self.op(op)?);
        }
        self.visible.truncate(outside);
        Ok(out)
    }

    /// What a statement does; nothing for remarks.
    fn op(&mut self, op: &Op) -> Result<Option<Code>, VgpuError> {
        if let Op::Instr(it, _) = op
            && it.is_remark()
        {
            return Ok(None);
        }
        let site = self.site();
        Ok(Some(match op {
            Op::Alloc(it) => {
                // What is global here is private memory of one thread, only larger.
                let space = if it.scope == Space::Shared { Space::Shared } else { Space::Local };
                let owners = if space == Space::Local { self.scope.count } else { 1 };
                let fits = |len: &usize| len.saturating_mul(owners) <= MAX_ELEMENTS;
                let Some(len) = usize::try_from(it.elements()).ok().filter(fits) else {
                    return Err(VgpuError::TooLarge {
                        buffer: it.name.clone(),
                        len: Index::int(it.elements()),
                    });
                };
                self.declare(&it.name, it.dtype, len, space, None);
                Code::Alloc(self.buffers.len() - 1)
            }
            Op::For(it) => {
                let extent = self.index(&it.extent)?;
                let most = extent.as_constant().and_then(|it| u64::try_from(it - 1).ok());
                let bits = most.map_or(BITS, |it| (u64::BITS - it.leading_zeros()).max(1));
                let slot = self.slots;
                self.slots += 1;
                let at = u32::try_from(slot).expect("loops are in memory");
                self.scope.slots.push((it.var.clone(), at));
                let outside = self.scope.slots.len() - 1;
                let mut counters = Vec::new();
                for RingCounter { var, start, count } in &it.counters {
                    counters.push(CounterCode { slot: self.slots, start: *start, count: *count });
                    let at = u32::try_from(self.slots).expect("loops are in memory");
                    self.scope.slots.push((var.clone(), at));
                    self.slots += 1;
                }
                self.loops.push((it.var.clone(), bits));
                let body = self.list(&it.body)?;
                self.loops.pop();
                self.scope.slots.truncate(outside);
                let (meets, converges) = (body.iter().any(Code::meets), body.iter().any(Code::converges));
                Code::For(Box::new(ForCode { site, slot, counters, bits, extent, body, meets, converges }))
            }
            Op::If(cond, body) => {
                let (cond, body) = (self.conditions(cond)?, self.list(body)?);
                let (meets, converges) = (body.iter().any(Code::meets), body.iter().any(Code::converges));
                Code::If(Box::new(IfCode { site, cond, body, meets, converges }))
            }
            Op::Instr(it, _) => return self.instr(site, it),
        }))
    }

    fn instr(&mut self, site: u32, it: &Instr) -> Result<Option<Code>, VgpuError> {
        Ok(Some(match it {
            Instr::Store(place, value) => Code::Store(site, self.place(place, true)?, self.value(value)?.0),
            Instr::AsyncCopy(place, value) => Code::Copy(site, self.place(place, true)?, self.copy(value)?),
            Instr::AtomicAdd(place, value) => {
                Code::AtomicAdd(site, self.place(place, true)?, self.value(value)?.0)
            }
            Instr::Tensor(it) => {
                let place = Elements { align: align::REGISTER, ..self.place(&it.place, true)? };
                Code::Tensor(site, place, Box::new(self.tensor(it)?))
            }
            Instr::Semaphore(it) => Code::Semaphore(Box::new(self.semaphore(site, it)?)),
            Instr::Commit => Code::Commit,
            Instr::Wait(it) => Code::Wait(it.in_flight as usize),
            Instr::Barrier(_) => Code::Barrier,
            Instr::Comment(_) => return Ok(None),
        }))
    }

    fn copy(&mut self, value: &Value) -> Result<CopyCode, VgpuError> {
        Ok(match value {
            Value::Load(it) => CopyCode::Source(vec![], self.place(it, false)?, ValueCode::Const(0.0)),
            Value::Select(cond, a, b) if let Value::Load(it) = &**a => {
                CopyCode::Source(self.conditions(cond)?, self.place(it, false)?, self.value(b)?.0)
            }
            Value::Select(..)
            | Value::Const(_)
            | Value::Index(..)
            | Value::Cast(..)
            | Value::Unary(..)
            | Value::Binary(..) => CopyCode::Value(self.value(value)?.0),
        })
    }

    fn index(&mut self, index: &Index) -> Result<IndexCode, VgpuError> {
        IndexCode::new(index, &mut self.scope)
            .map_err(|name| VgpuError::UnknownVariable { kernel: self.kernel.name.clone(), name })
    }

    fn conditions(&mut self, all: &[Less]) -> Result<Vec<LessCode>, VgpuError> {
        let one = |it: &Less| Ok(LessCode { lhs: self.index(&it.lhs)?, rhs: self.index(&it.rhs)? });
        all.iter().map(one).collect()
    }

    fn semaphore(&mut self, site: u32, it: &Semaphore) -> Result<SemaphoreCode, VgpuError> {
        let (buffer, index) = self.resolve(&it.counter)?;
        let (turn, count) = (self.index(&it.turn)?, self.index(&it.count)?);
        if ![&index, &turn, &count].into_iter().all(IndexCode::is_uniform) {
            let (kernel, buffer) = (self.kernel.name.clone(), it.counter.buffer.clone());
            return Err(VgpuError::OwnTurns { kernel, buffer });
        }
        Ok(SemaphoreCode { site, kind: it.kind, buffer, index, turn, count })
    }

    /// The buffer and the element of an access.
    fn resolve(&mut self, access: &Access) -> Result<(usize, IndexCode), VgpuError> {
        let found = self.visible.iter().rev().find(|it| it.0 == access.buffer);
        let (kernel, buffer) = (&self.kernel.name, &access.buffer);
        let unknown = || VgpuError::UnknownBuffer { kernel: kernel.clone(), buffer: buffer.clone() };
        let buffer = found.ok_or_else(unknown)?.1;
        let [index] = access.indices.as_slice() else {
            let (kernel, buffer) = (self.kernel.name.clone(), access.buffer.clone());
            return Err(VgpuError::NotFlat { kernel, buffer });
        };
        Ok((buffer, self.index(index)?))
    }

    fn place(&mut self, access: &Access, writes: bool) -> Result<Elements, VgpuError> {
        let (buffer, index) = self.resolve(access)?;
        if !(1..=64).contains(&access.lanes) {
            let (kernel, buffer) = (self.kernel.name.clone(), access.buffer.clone());
            return Err(VgpuError::Lanes { kernel, buffer, lanes: access.lanes });
        }
        let mut counted = u32::MAX;
        if self.buffers[buffer].space != Space::Local {
            counted = u32::try_from(self.places.len()).expect("accesses are in memory");
            let site = self.newest_site();
            let width = self.buffers[buffer].dtype.bytes_i64() * i64::from(access.lanes);
            self.places.push(PlaceInfo { site, buffer, writes, width });
        }
        let align = if self.on_gpu { align::of_vector(self.buffers[buffer].dtype, access.lanes) } else { 1 };
        Ok(Elements { buffer, index, lanes: access.lanes, align, counted })
    }

    /// An intrinsic at work.
    fn tensor(&mut self, TensorOp { intrinsic, operands, .. }: &TensorOp) -> Result<TensorCode, VgpuError> {
        let wanted = match intrinsic.instruction {
            Instruction::Mma { .. } => 3,
            Instruction::Ldmatrix { .. } => 1,
            Instruction::Lanes(_) => 0,
        };
        let kernel = &self.kernel.name;
        let error = || VgpuError::Tensor { kernel: kernel.clone(), intrinsic: intrinsic.name };
        if operands.len() != wanted || wanted == 0 {
            return Err(error());
        }
        let align = align::of_operand(intrinsic.instruction);
        let operand = |it| Ok(Elements { align, ..self.place(it, false)? });
        let operands = operands.iter().map(operand).collect::<Result<Vec<_>, _>>()?;
        let dtype = self.buffers[operands[0].buffer].dtype;
        // Of other types, the instruction would have no meaning: `.trans` takes 2 bytes for an element.
        if !intrinsic.types.is_empty() && !intrinsic.types.contains(&dtype) {
            return Err(VgpuError::Tensor { kernel: self.kernel.name.clone(), intrinsic: intrinsic.name });
        }
        Ok(TensorCode::new(intrinsic, operands, dtype))
    }

    fn value(&mut self, value: &Value) -> Result<(ValueCode, DType), VgpuError> {
        Ok(match value {
            Value::Const(it) => (ValueCode::Const(number::round(it.dtype, Literal::to_f64(*it))), it.dtype),
            Value::Load(it) => {
                let place = self.place(it, false)?;
                let dtype = self.buffers[place.buffer].dtype;
                (ValueCode::Load(place), dtype)
            }
            Value::Index(dtype, index) => (ValueCode::Index(*dtype, self.index(index)?), *dtype),
            Value::Cast(to, a) => {
                let (a, from) = self.value(a)?;
                (ValueCode::Cast(from, *to, Box::new(a)), *to)
            }
            Value::Unary(op, a) => {
                let (a, dtype) = self.value(a)?;
                (ValueCode::Unary(*op, dtype, Box::new(a)), dtype)
            }
            Value::Binary(op, a, b) => {
                let ((a, dtype), (b, _)) = (self.value(a)?, self.value(b)?);
                (ValueCode::Binary(*op, dtype, Box::new([a, b])), dtype)
            }
            Value::Select(cond, a, b) => {
                let cond = self.conditions(cond)?;
                let ((a, dtype), (b, _)) = (self.value(a)?, self.value(b)?);
                (ValueCode::Select(cond, Box::new([a, b])), dtype)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use indexmap::IndexMap;
    use ir::{For, ForKind, Origin};

    use super::*;

    /// Sites know the lines of the printed kernel.
    #[test]
    fn sites_know_their_lines() {
        let store = Op::from(Instr::Store(
            Access::new(&"X".into(), vec![Index::int(0)]),
            Value::load(&"X".into(), vec![Index::int(1)]),
        ));
        let inner = Op::For(Arc::new(For {
            var: "i".into(),
            extent: Index::int(4),
            kind: ForKind::Serial,
            counters: vec![],
            body: vec![Op::comment("two\nlines", Origin::default()), store.clone(), Instr::barrier().into()],
        }));
        let kernel = Kernel {
            name: "k".into(),
            args: IndexMap::new(),
            launch: IndexMap::new(),
            blocks_per_sm: None,
            wide: false,
            body: vec![
                Op::Alloc(ir::Alloc::new("X".into(), DType::F32, 4, Space::Shared)),
                inner,
                Op::comment("one", Origin::default()),
                Op::If(vec![], vec![Op::from(Instr::Commit)]),
                store,
            ],
        };
        let module = Module { name: "m".into(), dims: vec![], args: IndexMap::new(), kernels: vec![] };
        let program = Program::new(&module, &kernel, &HashMap::new(), &[]).unwrap();
        let lines: Vec<_> = program.sites.iter().map(|it| program.lines[it.line - 1].as_str()).collect();
        let stored = "X[0] = X[1]";
        assert_eq!(
            lines,
            ["alloc X: f32[4] @shared", "for i in 0..4", stored, "barrier", "if true", "commit", stored]
        );
        assert_eq!(program.sites[2].loops, [("i".into(), 2)]);
    }
}
