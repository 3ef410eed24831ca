//! Puts instructions in the place of tensorised blocks, and fragments into the registers of lanes.

mod tensor_memory;
mod wgmma;

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use indexmap::IndexMap;
use ir::{
    Access, Block, Func, Group, Index, Instr, LoopKind, Mechanism, Name, Scope, Stmt, Storage, Store, Target,
    TensorOp, ThreadAxis, Value, Wait,
    arith::Bounds,
    axis_var,
    intrin::{self, Fragment, Instruction, Intrinsic, Matched, Operand},
};

use crate::lower::{LowerError, analysis::pairs};

/// ```text
/// temp C_frag: f32[16, 8] @fragment            temp C_frag: f32[1, 1, 4] @local
/// block C(vk: reduce 8 = k) #{tensorize: …}    block C(vk: reduce 8 = k)
///   for i in 0..16                         ->    C_frag[0, 0, 0 +: 4] =
///     for j in 0..8 …                              mma_m16n8k16_f16_f32(C_frag[0, 0, 0 +: 4], …)
/// ```
///
/// A lane gets the part of each fragment that its map gives it. Statements outside of tensorised blocks may touch a
/// fragment only in the lane that has the element; that is proved here. Tensorised blocks run in whole warps: the axis
/// `threadIdx.x` is the lane and has 32 threads.
pub(crate) fn lower_tensors(func: Func, target: &Target) -> Result<Func, LowerError> {
    let tensorised = func.body.blocks().into_iter().any(|it| it.attrs.tensorize.is_some());
    let is_special = |it: &ir::Buffer| matches!(it.scope, Scope::Fragment | Scope::Tensor);
    if !tensorised && !func.buffers.values().any(is_special) {
        return Ok(func);
    }
    if *target == Target::Cpu {
        // There are no warps: blocks run as they are written, and fragments are private arrays.
        return Ok(on_cpu(func));
    }
    let fragments = intrin::fragments(&func)?;
    let pass = Tensors { func: &func, fragments: &fragments, target, halved: RefCell::default() };
    let at = At { env: BTreeMap::new(), lane: None, bounds: Bounds::of_dims(&func) };
    let body = pass.stmt(&func.body, &at)?;
    let mut buffers = func.buffers.clone();
    for (name, dim) in pass.halved.into_inner() {
        let extent = &mut buffers[&name].shape[dim];
        *extent = extent.floor_div(&Index::int(pairs::BLOCKS));
    }
    for (name, fragment) in &fragments {
        let Some(buffer) = buffers.get_mut(name).filter(|it| it.scope == Scope::Fragment) else { continue };
        buffer.shape = fragment.shape(&buffer.shape);
        buffer.scope = Scope::Local;
    }
    Ok(Func { body, buffers, ..func })
}

fn on_cpu(mut func: Func) -> Func {
    let is_special = |it: &&mut ir::Buffer| matches!(it.scope, Scope::Fragment | Scope::Tensor);
    for buffer in func.buffers.values_mut().filter(is_special) {
        buffer.scope = Scope::Local;
    }
    func
}

struct Tensors<'a> {
    func: &'a Func,
    fragments: &'a IndexMap<Name, Fragment>,
    target: &'a Target,
    /// The buffers of which each block of a pair has half, along a dimension.
    halved: RefCell<BTreeMap<Name, usize>>,
}

/// What holds at a place of the tree.
#[derive(Clone)]
struct At {
    /// What iterators and the lane's loop stand for.
    env: BTreeMap<Name, Index>,
    /// The loop around that runs over the lanes.
    lane: Option<Name>,
    bounds: Bounds,
}

impl At {
    fn resolve(&self, index: &Index) -> Index {
        self.bounds.simplify(&index.subst(&|name| self.env.get(name).cloned()))
    }
}

/// The lane in a kernel.
fn lane() -> Index {
    Index::var(&axis_var(ThreadAxis::ThreadX))
}

fn instruction(it: TensorOp) -> Stmt {
    Stmt::Instr(Arc::new(Instr::Tensor(it)))
}

impl Tensors<'_> {
    fn stmt(&self, stmt: &Stmt, at: &At) -> Result<Stmt, LowerError> {
        Ok(match stmt {
            Stmt::Loop(it) => {
                let mut inner = at.clone();
                inner.bounds.insert(&it.var, &it.extent);
                if it.kind == LoopKind::Bound(ThreadAxis::ThreadX) {
                    inner.bounds.insert(&axis_var(ThreadAxis::ThreadX), &it.extent);
                    inner.env.insert(it.var.clone(), lane());
                    inner.lane = Some(it.var.clone());
                }
                let body = self.stmt(&it.body, &inner)?;
                Stmt::Loop(Arc::new(ir::Loop { body, ..ir::Loop::clone(it) }))
            }
            Stmt::Seq(stmts) => {
                Stmt::Seq(stmts.iter().map(|it| self.stmt(it, at)).collect::<Result<_, _>>()?)
            }
            Stmt::Block(it) => Stmt::Block(Arc::new(self.block(it, at)?)),
            Stmt::Store(_) | Stmt::Instr(_) => stmt.clone(),
        })
    }

    fn block(&self, block: &Block, at: &At) -> Result<Block, LowerError> {
        let mut inner = at.clone();
        if at.lane.is_none() {
            // A matrix store is of as many lanes as the fragment that it stores.
            let stored = block.reads().into_iter().filter_map(|it| self.fragments.get(&it.buffer));
            let own = block.attrs.tensorize.map_or(intrin::WARP, Intrinsic::lanes);
            let lanes = stored.map(|it| it.map.lanes).max().map_or(own, |it| it.max(own));
            inner.bounds.insert(&axis_var(ThreadAxis::ThreadX), &Index::int(lanes));
        }
        let values: Vec<_> = block.iters.iter().map(|it| at.resolve(&it.binding)).collect();
        inner.env.extend(block.iters.iter().map(|it| it.var.clone()).zip(values));
        let Some(intrinsic) = block.attrs.tensorize else {
            self.expect_no_tensor_memory(block)?;
            let part = |stmt: &Stmt| self.own_lane(stmt, block, &inner);
            let init = block.init.as_ref().map(part).transpose()?;
            return Ok(Block { init, body: part(&block.body)?, ..block.clone() });
        };
        if let Some(target) = &at.lane {
            return Err(LowerError::LaneLoop { block: block.name.clone(), var: target.clone() });
        }
        if let Target::Cuda(arch) = self.target
            && !arch.has(intrinsic.needs)
        {
            let (block, intrinsic, needed) = (block.name.clone(), intrinsic.name, intrinsic.needs.targets());
            return Err(LowerError::IntrinsicArch { block, intrinsic, needed, arch: arch.clone() });
        }
        let found = intrin::matched(intrinsic, self.func, block).map_err(|mismatch| {
            let (block, intrinsic) = (block.name.clone(), intrinsic.name);
            intrin::FragmentError::Changed { block, intrinsic, mismatch }
        })?;
        let body = match intrinsic.instruction {
            Instruction::Ldmatrix { .. } | Instruction::Stmatrix { .. } => {
                self.matrix_copy(intrinsic, &found, block, &inner)?
            }
            Instruction::Wgmma { .. } => self.wgmma(intrinsic, &found, block, &inner)?,
            Instruction::Tcgen05(_) => self.tcgen05(intrinsic, &found, block, &inner)?,
            Instruction::TensorCopy => self.tensor_copy(intrinsic, &found, block, &inner)?,
            Instruction::TensorLoad(_) => self.tensor_load(intrinsic, &found, block, &inner)?,
            Instruction::Mma { .. } | Instruction::Lanes(_) => self.mma(intrinsic, &found, block, &inner)?,
        };
        Ok(Block { init: None, body, ..block.clone() })
    }

    /// The product of a block, behind what stands `before` it if it is waited for: at once, unless a pipeline sees to that.
    fn waited_for(
        block: &Block,
        found: &Matched,
        (group, pipelined): (Group, Mechanism),
        before: Option<Instr>,
        product: Instr,
    ) -> Stmt {
        if block.attrs.mechanism == Some(pipelined) {
            return Stmt::Instr(Arc::new(product));
        }
        let buffers = found.operands.iter().map(|it| it.buffer.clone()).collect();
        let wait = Instr::Wait(Wait { group, reads_only: false, in_flight: 0, buffers });
        let all = before.into_iter().chain([product, Instr::Commit(group), wait]);
        Stmt::Seq(all.map(|it| Stmt::Instr(Arc::new(it))).collect())
    }

    fn mma(
        &self,
        intrinsic: &'static Intrinsic,
        found: &Matched,
        block: &Block,
        at: &At,
    ) -> Result<Stmt, LowerError> {
        let operands = found.operands.iter().map(|it| self.registers(it, block, at));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        Ok(instruction(TensorOp { intrinsic, place: operands[0].clone(), operands }))
    }

    /// A copy between a fragment and shared memory. Either way its lanes hold the one and address rows of the other.
    fn matrix_copy(
        &self,
        intrinsic: &'static Intrinsic,
        found: &Matched,
        block: &Block,
        at: &At,
    ) -> Result<Stmt, LowerError> {
        let [to, from] = found.operands.as_slice() else { unreachable!("a copy has two operands") };
        let is_store = matches!(intrinsic.instruction, Instruction::Stmatrix { .. });
        let (held, addressed) = if is_store { (from, to) } else { (to, from) };
        let registers = self.registers(held, block, at)?;
        let rows = self.matrix_rows(intrinsic, held, addressed, block, at)?;
        let (place, operand) = if is_store { (rows, registers) } else { (registers, rows) };
        Ok(instruction(TensorOp { intrinsic, place, operands: vec![operand] }))
    }

    /// The row of shared memory that each lane addresses for a copy between that and the fragment that they hold.
    fn matrix_rows(
        &self,
        intrinsic: &'static Intrinsic,
        held: &Operand,
        addressed: &Operand,
        block: &Block,
        at: &At,
    ) -> Result<Access, LowerError> {
        let fragment = &self.fragments[&held.buffer];
        let memory = &self.func.buffers[&addressed.buffer];
        let bytes = memory.dtype.bytes_i64();
        let refused = |error| LowerError::MatrixLoad {
            block: block.name.clone(),
            buffer: held.buffer.clone(),
            intrinsic: intrinsic.name,
            error,
        };
        // The operand's dimension that is rows of the map, and the one that is its columns.
        let rank_of = |dim: usize| held.dims.iter().position(|it| *it == dim);
        let [Some(rows), Some(columns)] = fragment.dims.map(rank_of) else {
            let (found, needed, map) = ([held.dims[0], held.dims[1]], fragment.dims, fragment.map);
            return Err(refused(intrin::LdmatrixError::Dims { found, needed, map }));
        };
        let last = memory.shape.len() - 1;
        let width = 16 / bytes;
        let misaligned = || LowerError::RowAlignment {
            block: block.name.clone(),
            buffer: addressed.buffer.clone(),
            intrinsic: intrinsic.name,
        };
        let contiguous =
            [rows, columns].iter().position(|it| addressed.dims[*it] == last).ok_or_else(misaligned)?;
        let inner = usize::from(fragment.inner == fragment.dims[1]);
        let size = [held.tile[rows], held.tile[columns]];
        let copied = intrin::rows(intrinsic, fragment.map, size, contiguous, inner, bytes);
        let copied = copied.map_err(refused)?;
        let mut indices: Vec<Index> = addressed.base.iter().map(|it| at.resolve(it)).collect();
        let pitches = Storage::of(memory).strides;
        let whole = |dim: usize| dim == last || at.bounds.divides(width, &pitches[dim]);
        if !(0..=last).all(whole) || !at.bounds.divides(width, &indices[last]) {
            return Err(misaligned());
        }
        for (at_map, start) in [rows, columns].into_iter().zip(&copied.start) {
            let start = start.subst(&|_| Some(lane()));
            let dim = addressed.dims[at_map];
            indices[dim] = at.bounds.simplify(&(indices[dim].clone() + start));
        }
        let lanes = u32::try_from(width).expect("a row of a matrix is 16 bytes");
        Ok(Access { buffer: addressed.buffer.clone(), indices, lanes })
    }

    /// The registers of a lane that a tile of a fragment is in.
    fn registers(&self, operand: &Operand, block: &Block, at: &At) -> Result<Access, LowerError> {
        let fragment = &self.fragments[&operand.buffer];
        let base: Vec<Index> = operand.base.iter().map(|it| at.resolve(it)).collect();
        for (dim, tile) in fragment.dims.iter().zip(fragment.map.tile) {
            if !at.bounds.divides(tile, &base[*dim]) {
                return Err(LowerError::TileAlignment {
                    block: block.name.clone(),
                    buffer: operand.buffer.clone(),
                    index: base[*dim].clone(),
                    tile,
                });
            }
        }
        let (_, mut indices) = fragment.position(&base);
        for it in &mut indices {
            *it = at.bounds.simplify(it);
        }
        let elements: i64 = operand.tile.iter().product();
        let lanes =
            u32::try_from(elements / fragment.map.lanes).expect("a lane has a few elements of a tile");
        Ok(Access { buffer: operand.buffer.clone(), indices, lanes })
    }

    /// A statement whose accesses to fragments are each in the lane that runs it.
    fn own_lane(&self, stmt: &Stmt, block: &Block, at: &At) -> Result<Stmt, LowerError> {
        let mut failed = None;
        let out = self.rewritten(stmt, block, at, &mut failed);
        failed.map_or(Ok(out), Err)
    }

    fn rewritten(&self, stmt: &Stmt, block: &Block, at: &At, failed: &mut Option<LowerError>) -> Stmt {
        match stmt {
            Stmt::Loop(it) => {
                let mut inner = at.clone();
                inner.bounds.insert(&it.var, &it.extent);
                let body = self.rewritten(&it.body, block, &inner, failed);
                Stmt::Loop(Arc::new(ir::Loop { body, ..ir::Loop::clone(it) }))
            }
            Stmt::Seq(stmts) => {
                Stmt::Seq(stmts.iter().map(|it| self.rewritten(it, block, at, failed)).collect())
            }
            Stmt::Block(_) | Stmt::Instr(_) => stmt.clone(),
            Stmt::Store(it) => {
                let Store { place, value } = &**it;
                let mut place_of = |access: &Access| self.in_lane(access, block, at, failed);
                let value = value.map_loads(&mut |access| Value::Load(place_of(access)));
                Stmt::store(place_of(place), value)
            }
        }
    }

    fn in_lane(&self, access: &Access, block: &Block, at: &At, failed: &mut Option<LowerError>) -> Access {
        let Some(fragment) = self.fragments.get(&access.buffer) else { return access.clone() };
        let resolved: Vec<Index> = access.indices.iter().map(|it| at.resolve(it)).collect();
        let (owner, indices) = fragment.position(&resolved);
        if !at.bounds.equal(&owner, &lane()) || at.lane.is_none() {
            failed.get_or_insert(LowerError::OtherLane {
                block: block.name.clone(),
                buffer: access.buffer.clone(),
                owner: at.bounds.simplify(&owner),
                in_lanes: at.lane.is_some(),
            });
        }
        let indices = indices.iter().map(|it| at.bounds.simplify(it)).collect();
        Access { indices, ..access.clone() }
    }
}
