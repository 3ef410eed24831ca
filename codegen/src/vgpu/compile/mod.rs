//! From a kernel to a [`Program`]: names become slots and numbers of buffers, dimensions numbers.

mod asynchronous;
mod tensor;
mod threads;
mod value;

use std::{collections::HashMap, sync::Arc};

use ir::{
    Access, Arch, DType, Group, Index, Instr, Kernel, Less, Module, Name, Op, Participants, RingCounter,
    Scope as Space, Semaphore, ThreadAxis, axis_var, text::print_kernel,
};

use self::threads::{blocks_of_cluster, expect_warps, extents, mbarriers, roles, threads_of};
use super::{
    MAX_ELEMENTS, VgpuError, align,
    cluster::{self, Cluster},
    index::{IndexCode, Scope, WARP},
    mbarrier::MbarrierInfo,
    program::{
        Buffer, Code, CounterCode, Elements, ForCode, IfCode, LeaderCode, LessCode, PlaceInfo, Program,
        RoleInfo, SemaphoreCode, Site, place_shared,
    },
    shadow::Mark,
};

/// Resolves the names of a kernel.
struct Compiler<'a> {
    kernel: &'a Kernel,
    cluster: Cluster,
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
    roles: Vec<RoleInfo>,
    mbarriers: Vec<MbarrierInfo>,
    /// The loops in turns so far.
    turns: Vec<Name>,
    /// The products so far: the statement and the intrinsic.
    products: Vec<(u32, &'static str)>,
    /// Whether there is something that only [`super::step`] runs.
    resumes: bool,
}

/// The bits that a loop variable gets in a stamp if nothing is known of its extent.
const BITS: u32 = 20;

impl Program {
    /// Resolves a kernel for given sizes of the symbolic dimensions.
    pub(crate) fn new(
        module: &Module,
        kernel: &Kernel,
        dims: &HashMap<Name, i64>,
        lens: &[usize],
        inputs: &Arc<HashMap<Name, Arc<[i64]>>>,
    ) -> Result<Program, VgpuError> {
        let [grid, in_cluster, axes] = extents(kernel, dims)?;
        let listing = print_kernel(kernel);
        let mut compiler = Compiler::new(kernel, dims, in_cluster, axes, listing.op_lines())?;
        compiler.scope.inputs = inputs.clone();
        let threads = compiler.roles.last().map_or(0, |it| it.threads.end.next_multiple_of(WARP));
        let threads = i64::try_from(threads).expect("`Compiler::new` refuses more than a block has");
        let block = if kernel.roles.is_empty() { axes } else { [threads, 1, 1] };
        for (name, written) in &kernel.args {
            let unknown = || VgpuError::UnknownBuffer { kernel: kernel.name.clone(), buffer: name.clone() };
            let at = module.args.get_index_of(name).ok_or_else(unknown)?;
            let arg = Some((at, *written));
            compiler.declare(name, module.args[at].dtype, lens[at], Space::Global, arg);
        }
        let maps = compiler.maps()?;
        let code = compiler.list(&kernel.body)?;
        let Compiler {
            scope,
            slots,
            mut buffers,
            sites,
            places,
            roles,
            mbarriers,
            turns,
            products,
            resumes,
            cluster,
            ..
        } = compiler;
        place_shared(kernel, &mut buffers);
        if sites.len() >= Mark::SITES as usize {
            return Err(VgpuError::TooLong { kernel: kernel.name.clone() });
        }
        let lines = listing.text.lines().map(|it| it.trim().to_owned()).collect();
        let name = kernel.name.clone();
        Ok(Program {
            name,
            code,
            sites,
            buffers,
            places,
            scope,
            slots,
            cluster,
            multiplies_in_pairs: kernel.multiplies_in_pairs(),
            grid,
            block,
            lines,
            roles,
            mbarriers,
            turns,
            maps,
            claims: kernel.claims.is_some().then_some(3),
            products,
            resumes,
        })
    }
}

impl<'a> Compiler<'a> {
    /// Before the first statement of a kernel whose launch has so many threads on each axis.
    fn new(
        kernel: &'a Kernel,
        dims: &HashMap<Name, i64>,
        in_cluster: [i64; 3],
        axes: [i64; 3],
        op_lines: Vec<usize>,
    ) -> Result<Compiler<'a>, VgpuError> {
        let roles = roles(kernel, axes)?;
        let threads = roles.last().map_or(0, |it| it.threads.end);
        if threads > Arch::MAX_THREADS as usize {
            let threads = i64::try_from(threads).expect("counts are cut off before");
            return Err(VgpuError::TooManyThreads { kernel: kernel.name.clone(), threads });
        }
        expect_warps(kernel, &roles)?;
        let cluster = blocks_of_cluster(in_cluster, threads);
        let mut scope = Scope { dims: dims.clone(), count: cluster.count(), ..Scope::default() };
        for (n, axis) in (0..).zip([ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ]) {
            scope.slots.push((axis_var(axis), n));
        }
        // Behind those comes the variable that counts for how many blocks one stands.
        let slots = 3 + usize::from(kernel.claims.is_some());
        scope.slots.extend(kernel.claims.iter().map(|it| (it.clone(), 3)));
        if let [role] = roles.as_slice() {
            scope.threads = threads_of(role, &cluster);
        }
        Ok(Compiler {
            kernel,
            cluster,
            scope,
            slots,
            buffers: vec![],
            visible: vec![],
            sites: vec![],
            places: vec![],
            loops: vec![],
            on_gpu: !kernel.launch.is_empty(),
            op_lines,
            next: 0,
            line: 1,
            mbarriers: mbarriers(kernel),
            turns: vec![],
            products: vec![],
            resumes: !kernel.roles.is_empty() || !kernel.mbarriers.is_empty() || cluster.blocks() > 1,
            roles,
        })
    }
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
                let space = if it.scope.is_per_block() { it.scope } else { Space::Local };
                let owners = if space == Space::Local { self.scope.count } else { self.cluster.blocks() };
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
            Op::For(it) => Code::For(Box::new(self.for_loop(site, it)?)),
            Op::If(cond, body) => {
                let (cond, body) = (self.conditions(cond)?, self.list(body)?);
                let (meets, converges) = (body.iter().any(Code::meets), body.iter().any(Code::converges));
                Code::If(Box::new(IfCode { site, cond, body, meets, converges }))
            }
            Op::Leader(of, body) => {
                self.resumes = true;
                let body = self.list(body)?;
                let meets = body.iter().any(Code::meets);
                Code::Leader(Box::new(LeaderCode { of: *of, body, meets }))
            }
            Op::Role(name, body) => {
                let unknown =
                    || VgpuError::UnknownVariable { kernel: self.kernel.name.clone(), name: name.clone() };
                let number = self.kernel.roles.get_index_of(name).ok_or_else(unknown)?;
                self.scope.threads = threads_of(&self.roles[number], &self.cluster);
                let body = self.list(body)?;
                self.scope.threads.clear();
                Code::Role(number, body)
            }
            Op::Instr(it, _) => return self.instr(site, it),
        }))
    }

    fn for_loop(&mut self, site: u32, it: &ir::For) -> Result<ForCode, VgpuError> {
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
        let claims = self.kernel.claims.as_ref();
        let grows = claims.is_some_and(|count| it.extent.any_var(&|name| name == count));
        Ok(ForCode { site, slot, counters, bits, extent, body, meets, converges, grows })
    }

    fn instr(&mut self, site: u32, it: &Instr) -> Result<Option<Code>, VgpuError> {
        Ok(Some(match it {
            Instr::Store(place, value) => Code::Store(site, self.place(place, true)?, self.value(value)?.0),
            Instr::AsyncCopy(place, value) => Code::Copy(site, self.place(place, true)?, self.copy(value)?),
            Instr::AtomicAdd(place, value) => {
                Code::AtomicAdd(site, self.place(place, true)?, self.value(value)?.0)
            }
            Instr::Tensor(it) => {
                let align = align::of_result(it.intrinsic.instruction);
                let place = Elements { align, ..self.place(&it.place, true)? };
                Code::Tensor(site, place, Box::new(self.tensor(it)?))
            }
            Instr::WarpReduce(it) => self.warp_reduce(site, it)?,
            Instr::Semaphore(it) => Code::Semaphore(Box::new(self.semaphore(site, it)?)),
            Instr::Commit(Group::CpAsync) => Code::Commit,
            Instr::Wait(it) if it.group == Group::CpAsync => Code::Wait(it.in_flight as usize),
            Instr::Barrier(it) => {
                self.resumes |= it.among != Participants::Block;
                Code::Barrier(site, it.among)
            }
            Instr::Wgmma(_)
            | Instr::Tcgen05(_)
            | Instr::Bulk(_)
            | Instr::Claim(_)
            | Instr::Take(_)
            | Instr::Commit(_)
            | Instr::Wait(_)
            | Instr::Await(_)
            | Instr::Arrive(_)
            | Instr::Fence(_)
            | Instr::Turn(_) => {
                self.resumes = true;
                Code::Async(site, Box::new(self.asynchronous(site, it)?))
            }
            Instr::Comment(_) => return Ok(None),
        }))
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
        let Some(index) = cluster::address(access, self.buffers[buffer].space) else {
            let (kernel, buffer) = (self.kernel.name.clone(), access.buffer.clone());
            return Err(VgpuError::NotFlat { kernel, buffer });
        };
        Ok((buffer, self.index(&index)?))
    }

    fn place(&mut self, access: &Access, writes: bool) -> Result<Elements, VgpuError> {
        let (buffer, index) = self.resolve(access)?;
        if !(1..=128).contains(&access.lanes) {
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
}

#[cfg(test)]
mod tests;
