//! Statements.

use ir::{
    Access, Alloc, Barrier, Fence, For, ForKind, Group, Index, Instr, Op, RingCounter, Scope, Value,
    text::LineSource,
};

use super::{Dialect, Printer, helper::Helper, names::identifier, ptx::Ptx, types};

/// The request to write all iterations of a loop out.
const UNROLL: &str = "#pragma unroll";

/// The most iterations that the C compiler is asked to write out.
const MAX_UNROLLED: i64 = 128;

impl Printer<'_> {
    /// Statements in order; the allocations among them end with the list.
    pub(super) fn ops(&mut self, ops: &[Op]) {
        let allocs = self.frame.allocs.len();
        for op in ops {
            self.op(op);
        }
        self.frame.allocs.truncate(allocs);
    }

    fn op(&mut self, op: &Op) {
        let outside = self.line_source.replace(LineSource::Op(self.at.1));
        self.at.1 += 1;
        self.statement(op);
        self.line_source = outside;
    }

    fn statement(&mut self, op: &Op) {
        match op {
            Op::Alloc(it) => {
                // The columns of all are told where tensor memory is asked for.
                if it.scope != Scope::Tensor {
                    let line = self.alloc(it);
                    self.line(&line);
                }
                self.frame.allocs.push(it.clone());
            }
            Op::For(it) => self.for_loop(it),
            Op::If(cond, body) => {
                let head = format!("if ({})", self.conditions(cond));
                let outside = self.frame.bounds.clone();
                for less in cond {
                    self.frame.bounds.assume(less);
                }
                self.nest(&head, |it| it.ops(body));
                self.frame.bounds = outside;
            }
            Op::Leader(of, body) => self.leader(*of, body),
            Op::Role(name, body) => self.role(name, body),
            Op::Instr(it, _) => self.instr(it),
        }
    }

    fn instr(&mut self, it: &Instr) {
        match it {
            Instr::Store(place, value) => self.store(place, value),
            Instr::AsyncCopy(place, value) => self.copy(place, value),
            Instr::AtomicAdd(place, value) => self.atomic_add(place, value),
            Instr::Tensor(it) => self.tensor(it),
            Instr::WarpReduce(it) => self.warp_reduce(it),
            Instr::Wgmma(it) => self.wgmma(it),
            Instr::Tcgen05(it) => self.tcgen05(it),
            Instr::Bulk(it) => self.bulk(it),
            Instr::Claim(it) => self.claim(it),
            Instr::Take(it) => self.take(it),
            Instr::Commit(Group::Tcgen05) => self.commit_tensor(),
            Instr::Wait(it) if it.group == Group::Tcgen05 => self.wait_tensor(it),
            Instr::Commit(group) => self.commit(*group),
            Instr::Wait(it) => self.wait(it),
            Instr::Barrier(Barrier { among, proof }) => {
                if !proof.is_empty() {
                    self.comment(&proof.join("; "));
                }
                self.barrier(*among);
            }
            Instr::Await(it) => self.await_phase(it),
            Instr::Arrive(it) => self.arrive(it),
            Instr::Fence(it) => self.fence(*it),
            Instr::Semaphore(it) => self.semaphore(it),
            Instr::Turn(it) => self.turn(it),
            Instr::Comment(text) => self.comment(text),
        }
    }

    fn comment(&mut self, text: &str) {
        for it in text.lines() {
            // A backslash at the end would carry the comment on into the next line.
            self.line(&format!("// {}", it.trim_end_matches(['\\', ' '])));
        }
    }

    fn fence(&mut self, it: Fence) {
        let name = self.require(Helper::Ptx(Ptx::Fence(it)));
        self.line(&format!("{name}();"));
    }

    pub(super) fn store(&mut self, place: &Access, value: &Value) {
        let (place, value) = (self.place(place), self.value(value, place.lanes));
        self.line(&[&place, " = ", &value, ";"].concat());
    }

    fn alloc(&mut self, it: &Alloc) -> String {
        let name = identifier(&it.name).into_owned();
        if let Some(lanes) = self.frame.registers.get(&it.name).copied() {
            let of = self.require(Helper::Type(it.dtype, lanes));
            return format!("{of} {name};");
        }
        let of = self.require(Helper::Type(it.dtype, 1));
        match self.dialect {
            Dialect::C => format!("{of} {name}[{}] __attribute__((aligned(64)));", it.elements()),
            Dialect::Cuda(_) if it.scope.is_of_blocks() => {
                let offset = self.frame.shared_offsets[&it.name];
                format!("{of} *const {name} = ({of} *)(tw_shared + {offset});")
            }
            Dialect::Cuda(_) => format!("__align__(16) {of} {name}[{}];", it.elements()),
        }
    }

    fn for_loop(&mut self, it: &For) {
        if it.kind == ForKind::Parallel && self.dialect.is_c() {
            if !self.frame.is_parallel {
                self.parallel_loop(it);
                return;
            }
            self.line("// The loop around this one already runs on all threads.");
        }
        let pragma = self.pragma(it);
        if let Some(pragma) = &pragma {
            self.line(pragma);
        }
        let (of, var) = (self.index_type(self.frame.wide), identifier(&it.var).into_owned());
        let extent = self.index(&it.extent);
        let outside = self.frame.written_out.len();
        if pragma.is_some_and(|it| it == UNROLL) {
            self.frame.written_out.push(it.var.clone());
        }
        let start = |it: &RingCounter| format!(", tw_{} = {}", it.var, it.start);
        let step = |RingCounter { var, count, .. }: &RingCounter| {
            format!(", tw_{var} = tw_{var} == {} ? 0 : tw_{var} + 1", count - 1)
        };
        let starts: String = it.counters.iter().map(start).collect();
        let steps: String = it.counters.iter().map(step).collect();
        let head = format!("for ({of} {var} = 0{starts}; {var} < {extent}; ++{var}{steps})");
        self.nest(&head, |printer| {
            printer.inside(it, |printer| printer.ops(&it.body));
        });
        self.frame.written_out.truncate(outside);
    }

    /// Prints with the loop's variable in scope.
    pub(super) fn inside(&mut self, it: &For, body: impl FnOnce(&mut Self)) {
        let outside = self.frame.bounds.clone();
        let counters = self.frame.counters.len();
        self.frame.bounds.insert(&it.var, &it.extent);
        for counter in &it.counters {
            self.frame.bounds.insert(&counter.var, &Index::int(counter.count));
            self.frame.counters.push(counter.var.clone());
        }
        self.frame.loops.push(it.var.clone());
        body(self);
        self.frame.loops.pop();
        self.frame.counters.truncate(counters);
        self.frame.bounds = outside;
    }

    /// What the compiler is told about unrolling.
    fn pragma(&self, it: &For) -> Option<String> {
        let extent = it.extent.as_int();
        match (self.dialect, it.kind) {
            (Dialect::C, ForKind::Unrolled) => {
                Some(format!("#pragma GCC unroll {}", extent.unwrap_or(8).clamp(1, MAX_UNROLLED)))
            }
            (Dialect::C, ForKind::Serial | ForKind::Parallel | ForKind::Vectorized) => None,
            (Dialect::Cuda(_), ForKind::Unrolled | ForKind::Vectorized) => Some(UNROLL.to_owned()),
            (Dialect::Cuda(_), ForKind::Serial | ForKind::Parallel) => Some("#pragma unroll 1".to_owned()),
        }
    }

    /// The parameter or variable that holds a buffer's address.
    pub(super) fn pointer(&self, dtype: ir::DType, is_written: bool) -> String {
        let qualifier = if is_written { "" } else { "const " };
        format!("{qualifier}{} *", types::scalar(self.dialect, dtype))
    }
}
