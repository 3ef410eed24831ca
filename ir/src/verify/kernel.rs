//! The verifier of lowered programs: what is true of a [`Module`] between any two passes.
//!
//! # Names
//! * Names of arguments, dimensions, allocations and loops are identifiers. No two arguments, and no argument and dimension, have
//!   one name. Along a path, no allocation or loop has a name that is in scope.
//! * The arguments of a kernel are those of the module.
//!
//! # Launch
//! * Extents of axes are over the dimensions. Those of thread axes and of the axes of a cluster are constants of at least 1.
//!
//! # Memory
//! * An allocation has elements: every extent of its shape is at least 1. Its alignment is a power of two, and its offset a
//!   multiple of that.
//! * On a GPU, shared and tensor memory is allocated at the top of a kernel, and fragments are gone: lanes have registers of their own.
//! * Memory of a cluster has as many elements in its first dimension as that has blocks.
//! * `per` names a loop of the kernel. A variable is local memory.
//!
//! # Statements
//! * The extent of a loop and conditions are over the dimensions, the axes of the launch and the loops around. Conditions are some.
//! * A ring counter starts at one of its slots.
//! * A loop of a kernel that is launched on a GPU does not run on the threads of a CPU.
//! * Where all threads of a block have to come together, no condition around and no extent of a loop around depends on a thread;
//!   where those of a cluster do, nor on the place of a block in it.
//!
//! # Claims
//! * The variable that counts them is no other name of the kernel, and stands in a loop's extent by itself.
//! * A loop with that extent takes a block once in each iteration, by a statement directly in it, and nothing else does. Loops inside it, and
//!   conditions and places of what orders or goes to memory of the block, do not depend on which block of the grid it is.
//! * An answer is 16 bytes of shared memory, and comes for one of the kernel's mbarriers; one thread claims, below a `leader`.
//!
//! # Accesses
//! * The buffer is an argument of the kernel, or an allocation in scope. An argument that is written is marked so, and is no input
//!   of the module.
//! * There is a subscript for each dimension of the buffer, over what is in scope. An access has one lane or more.
//!
//! # Roles, leaders and the copy engine
//! * A kernel with roles has no thread axes of its own, and its top is made of allocations and of what each role does, once. A role
//!   has whole warps, and no more threads than a block may have.
//! * A tensor map is over an argument, with as many strides and sides of its box as dimensions, at most five; sides are from 1 to 256.
//! * There is at least one mbarrier of a name, and an arrival of it. Arrivals and copies go along axes of the cluster that the launch has.
//! * A box is copied by one thread, below a `leader`, between shared memory and the buffer of a map of the kernel, with a coordinate for
//!   each dimension of that. A leader does nothing that several threads do together.
//! * What a warpgroup does together stands under no condition and in no loop that depends on `threadIdx.x`; what a role does together,
//!   on no thread axis.
//! * Turns are among two warpgroups of a role or more, and have the same number for all threads of one.
//!
//! # Instructions
//! * The accumulator of a `wgmma` is in registers, and its right factor in shared memory. That of a `tcgen05` product is in tensor memory, both
//!   factors are in shared memory, and one thread starts it, below a `leader`.
//! * An asynchronous copy goes to shared memory, and an atomic addition to global memory.
//! * A tensor instruction takes operands from registers and shared memory, and its result goes to registers. Those that load from tensor
//!   memory, and they and products alone, touch that.

//! * A reduction by a warp is from and to registers of the lanes, of one type.
//! * A counter of turns holds numbers of type `i32`, in an argument that begins as zeros.
//! * What is waited for is memory of the kernel.
//! * Both sides of an assignment have one type.
//! * Divisors that are constants are at least 1.

use std::collections::BTreeSet;

use super::{
    kernel_differs::Differs,
    kernel_error::{KernelError, KernelErrorKind as Kind},
    kernel_index::unknown,
};
use crate::{
    Access, Alloc, DType, Effect, Instr, Kernel, Less, Module, Name, Op, Participants, RingCounter, Role,
    Scope, SyncKind, Value, axis_var, intrin,
};

/// Checks all invariants, and returns every one that does not hold, in program order.
pub fn verify_module(module: &Module) -> Result<(), Vec<KernelError>> {
    let mut errors = Vec::new();
    let mut report = |kind| errors.push(KernelError { kernel: module.name.clone(), kind });
    let mut names = BTreeSet::new();
    for name in module.args.keys().chain(&module.dims) {
        if !name.is_valid() || !names.insert(name) {
            report(Kind::Name { name: name.clone() });
        }
    }
    for (name, arg) in &module.args {
        let known = |it: &Name| module.dims.contains(it);
        if let Some(var) = arg.shape.iter().find_map(|it| unknown(it, &known)) {
            report(Kind::Variable { at: name.clone(), var });
        }
    }
    for kernel in &module.kernels {
        errors.extend(Verifier::kernel(module, kernel));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

pub(super) struct Verifier<'a> {
    pub(super) module: &'a Module,
    pub(super) kernel: &'a Kernel,
    /// Variables in scope, and whether they differ between the threads of a block.
    pub(super) vars: Vec<(Name, bool)>,
    allocs: Vec<&'a Alloc>,
    /// Of whom only some may come here.
    pub(super) only_some: Differs,
    /// Of whom one thread does, if one does.
    pub(super) leads: Option<Participants>,
    pub(super) depth: usize,
    errors: Vec<KernelError>,
}

impl<'a> Verifier<'a> {
    fn kernel(module: &'a Module, kernel: &'a Kernel) -> Vec<KernelError> {
        let dims = module.dims.iter().chain(&kernel.claims).map(|it| (it.clone(), false));
        let axes = kernel.launch.keys().map(|it| (axis_var(*it), it.is_thread()));
        let mut it = Verifier {
            module,
            kernel,
            vars: dims.chain(axes).collect(),
            allocs: vec![],
            only_some: Differs::default(),
            leads: None,
            depth: 0,
            errors: vec![],
        };
        it.head();
        it.declarations();
        it.ops(&kernel.body);
        it.errors
    }

    pub(super) fn report(&mut self, kind: Kind) {
        self.errors.push(KernelError { kernel: self.kernel.name.clone(), kind });
    }

    fn head(&mut self) {
        let strange: Vec<_> =
            self.kernel.args.keys().filter(|it| !self.module.args.contains_key(*it)).cloned().collect();
        for buffer in strange {
            self.report(Kind::Buffer { buffer });
        }
        let is_table = |it: &Name| self.module.args.get(it).is_some_and(|it| it.below.is_some());
        let tables = self.kernel.tables().into_iter();
        for buffer in
            tables.filter(|it| !(is_table(it) && self.kernel.args.contains_key(it))).collect::<Vec<_>>()
        {
            self.report(Kind::Buffer { buffer });
        }
        for (name, written) in &self.kernel.args {
            if *written && self.module.args.get(name).is_some_and(|it| it.role == Role::Input) {
                self.report(Kind::Written { buffer: name.clone() });
            }
        }
        for (&axis, extent) in &self.kernel.launch {
            let dims = &self.module.dims;
            let is_constant = axis.is_thread() || axis.is_cluster();
            let is_bad = match extent.as_int() {
                Some(it) => it < 1 && is_constant,
                None => is_constant || unknown(extent, &|it| dims.contains(it)).is_some(),
            };
            if is_bad {
                self.report(Kind::Axis { axis, extent: extent.clone() });
            }
        }
    }

    pub(super) fn ops(&mut self, ops: &'a [Op]) {
        let (vars, allocs) = (self.vars.len(), self.allocs.len());
        for op in ops {
            self.op(op);
        }
        self.vars.truncate(vars);
        self.allocs.truncate(allocs);
    }

    fn op(&mut self, op: &'a Op) {
        match op {
            Op::Alloc(it) => self.alloc(it),
            Op::For(it) => {
                self.fresh(&it.var);
                self.index(&it.var, &it.extent);
                if it.kind == crate::ForKind::Parallel && !self.kernel.launch.is_empty() {
                    self.report(Kind::Parallel { var: it.var.clone() });
                }
                self.claims(it);
                let differs = self.differs(&[&it.extent]);
                let outside = self.vars.len();
                self.vars.push((it.var.clone(), false));
                for RingCounter { var, start, count } in &it.counters {
                    self.fresh(var);
                    if !(0..*count).contains(start) {
                        self.report(Kind::Counter { var: var.clone(), start: *start, count: *count });
                    }
                    self.vars.push((var.clone(), false));
                }
                self.inside(differs, &it.body);
                self.vars.truncate(outside);
            }
            Op::If(conditions, body) => {
                if conditions.is_empty() {
                    self.report(Kind::NoCondition);
                }
                let at = Name::new("if");
                for Less { lhs, rhs } in conditions {
                    self.index(&at, lhs);
                    self.index(&at, rhs);
                }
                let sides: Vec<_> = conditions.iter().flat_map(|it| [&it.lhs, &it.rhs]).collect();
                self.inside(self.differs(&sides), body);
            }
            Op::Leader(of, body) => {
                let outside = self.leads.replace(*of);
                if *of == Participants::Cluster && !self.kernel.has_pairs() {
                    self.report(Kind::Pair { instr: "leader" });
                }
                self.inside(Differs { threads: true, of_role: true, lanes: true, blocks: false }, body);
                self.leads = outside;
            }
            Op::Role(name, body) => self.role(name, body),
            Op::Instr(it, _) => self.instr(it),
        }
    }

    fn fresh(&mut self, name: &Name) {
        let is_taken = self.vars.iter().any(|it| it.0 == *name)
            || self.kernel.args.contains_key(name)
            || self.kernel.maps.contains_key(name)
            || self.kernel.mbarriers.contains_key(name)
            || self.kernel.claims.as_ref() == Some(name)
            || self.allocs.iter().any(|it| it.name == *name);
        if is_taken || !name.is_valid() {
            self.report(Kind::Name { name: name.clone() });
        }
    }

    fn alloc(&mut self, it: &'a Alloc) {
        self.fresh(&it.name);
        let name = || it.name.clone();
        if it.shape.iter().any(|extent| *extent < 1) {
            self.report(Kind::Empty { buffer: name() });
        }
        let is_aligned = it.offset.is_none_or(|offset| it.align > 0 && offset % it.align == 0);
        if !is_aligned || it.align.count_ones() != 1 {
            self.report(Kind::Alignment { buffer: name() });
        }
        let is_misplaced = match it.scope {
            Scope::Cluster | Scope::Shared | Scope::Tensor => self.depth > 0,
            Scope::Fragment => true,
            Scope::Global | Scope::Local => false,
        };
        if it.is_register && it.scope != Scope::Local {
            self.report(Kind::Register { buffer: name() });
        }
        if is_misplaced && !self.kernel.launch.is_empty() {
            self.report(Kind::Place { buffer: name(), scope: it.scope });
        }
        if it.scope == Scope::Cluster && it.blocks() != Some(self.kernel.cluster_blocks()) {
            self.report(Kind::Parts { buffer: name(), blocks: self.kernel.cluster_blocks() });
        }
        if let Some(var) = it.per.as_ref().filter(|var| !has_loop(&self.kernel.body, var)) {
            self.report(Kind::Variable { at: name(), var: var.clone() });
        }
        self.allocs.push(it);
    }

    fn instr(&mut self, it: &'a Instr) {
        let effects = it.effects();
        let is_divided = match effects.participants {
            Participants::Block => self.only_some.threads,
            Participants::Cluster => self.only_some.of_role || self.only_some.blocks,
            _ => false,
        };
        if is_divided {
            self.report(Kind::Divergent { instr: it.word(), of: effects.participants });
        }
        let at = Name::new(it.word());
        it.each_index(&mut |index| self.index(&at, index));
        self.together(it);
        for effect in &effects.accesses {
            self.access(it, effect);
        }
        if let Some(SyncKind::Wait(wait)) = effects.sync {
            for buffer in
                wait.buffers.iter().filter(|it| self.memory(it).is_none()).cloned().collect::<Vec<_>>()
            {
                self.report(Kind::Buffer { buffer });
            }
        }
        if let Some((place, value)) = it.assignment() {
            self.assignment(place, value);
        }
        self.special(it);
    }

    /// What instructions of a kind ask of their operands.
    fn special(&mut self, it: &Instr) {
        match it {
            Instr::AsyncCopy(place, _) => self.expect_scope(it, place, &[Scope::Shared]),
            Instr::AtomicAdd(place, _) => self.expect_scope(it, place, &[Scope::Global]),
            Instr::Tensor(tensor) => {
                let stores = matches!(tensor.intrinsic.instruction, intrin::Instruction::Stmatrix { .. });
                let places = if stores { &[Scope::Shared] } else { &[Scope::Local] };
                self.expect_scope(it, &tensor.place, places);
                let operands = tensor.operands.iter();
                let loads = matches!(tensor.intrinsic.instruction, intrin::Instruction::TensorLoad(_));
                let from: &[Scope] = if loads { &[Scope::Tensor] } else { &[Scope::Local, Scope::Shared] };
                operands.for_each(|place| self.expect_scope(it, place, from));
            }
            Instr::WarpReduce(reduce) => {
                self.expect_scope(it, &reduce.place, &[Scope::Local]);
                self.expect_scope(it, &reduce.operand, &[Scope::Local]);
                self.assignment(&reduce.place, &Value::Load(reduce.operand.clone()));
            }
            Instr::Semaphore(turn) => {
                let counter = self.module.args.get(&turn.counter.buffer);
                if !counter.is_some_and(|it| it.zeroed && it.dtype == DType::I32) {
                    self.report(Kind::Operand { instr: it.word(), buffer: turn.counter.buffer.clone() });
                }
            }
            it => self.asynchronous(it),
        }
    }

    fn access(&mut self, instr: &Instr, effect: &Effect<'_>) {
        let Effect { access: it, mode, .. } = *effect;
        let buffer = || it.buffer.clone();
        let Some(memory) = self.memory(&it.buffer) else {
            self.report(Kind::Buffer { buffer: buffer() });
            return;
        };
        let is_mapped = matches!(instr, Instr::Bulk(copy) if std::ptr::eq(it, &raw const copy.global));
        if it.indices.len() != memory.rank && !is_mapped {
            self.report(Kind::Rank { buffer: buffer(), rank: memory.rank, subscripts: it.indices.len() });
        }
        if it.lanes == 0 {
            self.report(Kind::Lanes { buffer: buffer() });
        }
        if mode.writes() && !memory.is_writable {
            self.report(Kind::Written { buffer: buffer() });
        }
    }

    fn assignment(&mut self, place: &Access, value: &Value) {
        let dtype = |name: &Name| self.memory(name).map(|it| it.dtype);
        let mut is_known = true;
        value.each_load(&mut |it| is_known &= dtype(&it.buffer).is_some());
        // What is unknown is said to be that already.
        let Some(to) = dtype(&place.buffer).filter(|_| is_known) else { return };
        if value.dtype(&dtype) != Some(to) {
            self.report(Kind::Type { buffer: place.buffer.clone(), dtype: to });
        }
    }

    pub(super) fn memory(&self, name: &Name) -> Option<Memory> {
        if let Some(it) = self.allocs.iter().find(|it| it.name == *name) {
            let (dtype, scope, rank) = (it.dtype, it.scope, it.shape.len());
            return Some(Memory { dtype, scope, rank, is_writable: true });
        }
        let is_writable = *self.kernel.args.get(name)?;
        let it = self.module.args.get(name)?;
        Some(Memory { dtype: it.dtype, scope: Scope::Global, rank: it.shape.len(), is_writable })
    }
}

/// What is known of a buffer.
pub(super) struct Memory {
    pub(super) dtype: DType,
    pub(super) scope: Scope,
    rank: usize,
    is_writable: bool,
}

fn has_loop(ops: &[Op], var: &Name) -> bool {
    ops.iter().any(|op| match op {
        Op::For(it) if it.var == *var => true,
        _ => has_loop(op.children(), var),
    })
}
