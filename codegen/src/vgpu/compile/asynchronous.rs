//! What deals with agents beside the threads: mbarriers, bulk copies, products.

use ir::{
    Arrival, BinaryOp, BulkCopy, BulkKind, DType, Factor, Index, Instr, Name, Phase, Scope as Space, Tcgen05,
    TensorMap, ThreadAxis, Tile, Wgmma,
    intrin::{self, Instruction, ProductKind},
    number,
};

use super::Compiler;
use crate::vgpu::{
    VgpuError, align,
    bulk::{BulkCode, BulkWay, MapCode},
    claim::{ClaimCode, TakeCode},
    mbarrier::{ArriveCode, AwaitCode},
    program::{AsyncCode, Elements},
    tcgen05::{ScalesCode, Tcgen05Code, TensorCopyCode},
    tile::TileCode,
    turn::TurnCode,
    wgmma::{LeftCode, WgmmaCode},
};

/// The most elements of a box, 256 in each of two dimensions: what its rows have beside that is 16 bytes at least.
const LARGEST_BOX: i64 = 1 << 18;

/// Which of the axes of a cluster an axis is.
fn number_of(axis: ThreadAxis) -> usize {
    axis as usize - ThreadAxis::ClusterX as usize
}

impl Compiler<'_> {
    pub(super) fn asynchronous(&mut self, site: u32, it: &Instr) -> Result<AsyncCode, VgpuError> {
        Ok(match it {
            Instr::Bulk(it) => AsyncCode::Bulk(self.bulk(it)?),
            Instr::Claim(it) => {
                let (buffer, first) = self.resolve(&it.answer)?;
                self.expect_shared(&it.answer.buffer, buffer)?;
                let (barrier, slot) = (self.barrier(&it.barrier)?, self.index(&it.slot)?);
                AsyncCode::Claim(ClaimCode { buffer, first, barrier, slot })
            }
            Instr::Take(it) => AsyncCode::Take(TakeCode { answer: self.place(&it.answer, false)? }),
            Instr::Wgmma(it) => AsyncCode::Wgmma(Box::new(self.wgmma(site, it)?)),
            Instr::Tcgen05(it) if it.factors().is_none() => {
                AsyncCode::TensorCopy(Box::new(self.tensor_copy(it)?))
            }
            Instr::Tcgen05(it) => AsyncCode::Tcgen05(Box::new(self.tcgen05(it)?)),
            Instr::Commit(group) => AsyncCode::Commit(*group),
            Instr::Wait(it) => AsyncCode::Wait {
                group: it.group,
                in_flight: it.in_flight as usize,
                reads_only: it.reads_only,
            },
            Instr::Await(Phase { barrier, slot, phase }) => {
                let barrier = self.barrier(barrier)?;
                AsyncCode::Await(AwaitCode { barrier, slot: self.index(slot)?, phase: self.index(phase)? })
            }
            Instr::Arrive(Arrival { barrier, slot, bytes, is_late, along, at_first }) => {
                let (barrier, slot) = (self.barrier(barrier)?, self.index(slot)?);
                let bytes = bytes.as_ref().map(|it| self.index(it)).transpose()?;
                let along = along.iter().map(|it| number_of(*it)).collect();
                let (is_late, at_first) = (*is_late, *at_first);
                AsyncCode::Arrive(ArriveCode { barrier, slot, bytes, is_late, along, at_first })
            }
            Instr::Fence(it) => AsyncCode::Fence(*it),
            Instr::Turn(it) => {
                let of = self.turns.iter().position(|known| *known == it.of).unwrap_or_else(|| {
                    self.turns.push(it.of.clone());
                    self.turns.len() - 1
                });
                let (turn, count) = (self.index(&it.turn)?, self.index(&it.count)?);
                AsyncCode::Turn(TurnCode { kind: it.kind, of, turn, count })
            }
            Instr::Store(..)
            | Instr::AsyncCopy(..)
            | Instr::AtomicAdd(..)
            | Instr::Tensor(_)
            | Instr::WarpReduce(_)
            | Instr::Barrier(_)
            | Instr::Semaphore(_)
            | Instr::Comment(_) => unreachable!("threads do those themselves"),
        })
    }

    /// Which of the kernel's mbarriers have a name.
    fn barrier(&self, name: &Name) -> Result<usize, VgpuError> {
        let unknown = || VgpuError::UnknownVariable { kernel: self.kernel.name.clone(), name: name.clone() };
        self.kernel.mbarriers.get_index_of(name).ok_or_else(unknown)
    }

    /// The tensor maps for the sizes at hand.
    pub(super) fn maps(&mut self) -> Result<Vec<MapCode>, VgpuError> {
        let kernel = self.kernel;
        kernel.maps.iter().map(|(name, map)| self.map(name, map)).collect()
    }

    /// Refuses what `cuTensorMapEncodeTiled` refuses, and boxes whose rows are longer than their swizzle.
    fn map(&mut self, name: &Name, map: &TensorMap) -> Result<MapCode, VgpuError> {
        let refuse = |why| VgpuError::TensorMap { kernel: self.kernel.name.clone(), map: name.clone(), why };
        let number = |it: &Index| it.eval(&|it| self.scope.dims.get(it).copied());
        let numbers = |all: &[Index]| all.iter().map(number).collect::<Option<Vec<i64>>>();
        let sizes = numbers(&map.dims).filter(|it| it.iter().all(|it| (1..=TensorMap::LARGEST).contains(it)));
        let dims = sizes.ok_or_else(|| refuse("a size is not from 1 to 2^32"))?;
        let strides = numbers(&map.strides).ok_or_else(|| refuse("a stride is not known"))?;
        let found = self.visible.iter().find(|it| it.0 == map.buffer).map(|it| it.1);
        let buffer = found.filter(|it| self.buffers[*it].space == Space::Global);
        let buffer = buffer.ok_or_else(|| refuse("its tensor is no argument of the kernel"))?;
        let each = self.buffers[buffer].dtype.bytes_i64();
        let rank = dims.len();
        if !(1..=TensorMap::MOST_DIMS).contains(&rank) || [strides.len(), map.tile.len()] != [rank; 2] {
            return Err(refuse("it has not from one to five dimensions, each with a stride and a side"));
        }
        if map.tile.iter().any(|it| !(1..=TensorMap::LONGEST_SIDE).contains(it))
            || map.tile.iter().product::<i64>() > LARGEST_BOX
        {
            return Err(refuse(
                "a side of its box is not from 1 to 256, or the box larger than shared memory",
            ));
        }
        let far: Vec<i64> = strides[..rank - 1].iter().map(|it| it.saturating_mul(each)).collect();
        if strides[rank - 1] != 1 || far.iter().any(|it| it % TensorMap::UNIT != 0) {
            return Err(refuse(
                "a distance of neighbours is no multiple of 16 bytes, or of the innermost ones more than one",
            ));
        }
        if far.iter().any(|it| !(1..TensorMap::FARTHEST).contains(it)) {
            return Err(refuse("a distance of neighbours is not from 1 to 2^40 bytes"));
        }
        let row = map.tile[rank - 1] * each;
        if row % TensorMap::UNIT != 0 || map.swizzle.is_some_and(|it| row > it.block_bytes()) {
            return Err(refuse("a row of its box is no multiple of 16 bytes, or longer than its swizzle"));
        }
        Ok(MapCode { buffer, dims, strides, tile: map.tile.clone(), swizzle: map.swizzle })
    }

    fn bulk(&mut self, it: &BulkCopy) -> Result<BulkCode, VgpuError> {
        let unknown =
            || VgpuError::UnknownVariable { kernel: self.kernel.name.clone(), name: it.map.clone() };
        let map = self.kernel.maps.get_index_of(&it.map).ok_or_else(unknown)?;
        let tile = &self.kernel.maps[map].tile;
        let (buffer, first) = self.resolve(&it.shared.first)?;
        let of_map = self.kernel.maps[map].buffer == it.global.buffer;
        let name = &it.shared.first.buffer;
        self.expect_shared(name, buffer)?;
        let dtype = self.found(&it.global.buffer)?;
        let same = self.buffers[buffer].dtype == self.buffers[dtype].dtype;
        // A box of one matrix of several lies in a buffer of two dimensions.
        let is_long = |side: &&i64| **side != 1;
        let same_box = it.shared.extents.iter().filter(is_long).eq(tile.iter().filter(is_long));
        if !of_map || !same || !same_box || it.global.indices.len() != tile.len() {
            let (kernel, map) = (self.kernel.name.clone(), it.map.clone());
            let why = "a copy by it has another tensor, type, box or number of coordinates";
            return Err(VgpuError::TensorMap { kernel, map, why });
        }
        let coords = it.global.indices.iter().map(|it| self.index(it)).collect::<Result<_, _>>()?;
        let way = match &it.kind {
            BulkKind::Load { barrier, slot, along, at_first } => {
                let (barrier, slot) = (self.barrier(barrier)?, self.index(slot)?);
                BulkWay::Load { barrier, slot, along: along.map(number_of), at_first: *at_first }
            }
            BulkKind::Store => BulkWay::Store,
            BulkKind::Add => BulkWay::Add,
        };
        Ok(BulkCode { way, map, coords, buffer, first })
    }

    fn expect_shared(&self, name: &Name, buffer: usize) -> Result<(), VgpuError> {
        if self.buffers[buffer].space == Space::Shared {
            return Ok(());
        }
        Err(VgpuError::UnknownBuffer { kernel: self.kernel.name.clone(), buffer: name.clone() })
    }

    fn found(&self, name: &Name) -> Result<usize, VgpuError> {
        let found = self.visible.iter().rev().find(|it| it.0 == *name).map(|it| it.1);
        found.ok_or_else(|| VgpuError::UnknownBuffer {
            kernel: self.kernel.name.clone(),
            buffer: name.clone(),
        })
    }

    fn wgmma(&mut self, site: u32, it: &Wgmma) -> Result<WgmmaCode, VgpuError> {
        let kernel = self.kernel.name.clone();
        let error = || VgpuError::Tensor { kernel: kernel.clone(), intrinsic: it.intrinsic.name };
        let Instruction::Wgmma { types, left: map, k, transposes, .. } = it.intrinsic.instruction else {
            return Err(error());
        };
        let (sum, factor) = of_types(types).ok_or_else(error)?;
        let depth = usize::try_from(k).map_err(|_| error())?;
        let place = Elements { align: align::REGISTER, ..self.registers(&it.place)? };
        let right = self.tile(&it.right, transposes)?.ok_or_else(error)?;
        let columns = right.extents[0];
        let step = if factor == DType::I8 && columns > 32 { 16 } else { 8 };
        let fits = columns % step == 0 && (8..=256).contains(&columns) && right.extents[1] == depth;
        let types = [self.buffers[place.buffer].dtype, self.buffers[right.buffer].dtype];
        if !fits || types != [sum, factor] || place.lanes as usize != columns / 2 || !place.index.is_uniform()
        {
            return Err(error());
        }
        let (left, of) = match (&it.left, map) {
            (Factor::Shared(it), None) => {
                let left = self.tile(it, transposes)?.ok_or_else(error)?;
                if left.extents != [64, depth] {
                    return Err(error());
                }
                let buffer = left.buffer;
                (LeftCode::Shared(left), buffer)
            }
            (Factor::Registers(it), Some(map)) => {
                let left = self.registers(it)?;
                if i64::from(left.lanes) != map.elements() || !left.index.is_uniform() {
                    return Err(error());
                }
                let buffer = left.buffer;
                (LeftCode::Registers(left), buffer)
            }
            _ => return Err(error()),
        };
        if self.buffers[of].dtype != factor {
            return Err(error());
        }
        let starts = it.starts.as_ref().map(|it| self.conditions(it)).transpose()?;
        let number = self.products.len();
        self.products.push((site, it.intrinsic.name));
        Ok(WgmmaCode { intrinsic: it.intrinsic, number, place, left, right, starts })
    }

    fn tcgen05(&mut self, it: &Tcgen05) -> Result<Tcgen05Code, VgpuError> {
        let kernel = self.kernel.name.clone();
        let error = || VgpuError::Tensor { kernel: kernel.clone(), intrinsic: it.intrinsic.name };
        let (Instruction::Tcgen05(kind), Some([left, right])) = (it.intrinsic.instruction, it.factors())
        else {
            return Err(error());
        };
        let Elements { buffer: sum, index: column, .. } = self.columns(&it.place.first)?;
        let left = self.tile(left, kind.transposes)?.ok_or_else(error)?;
        let right = self.tile(right, kind.transposes)?.ok_or_else(error)?;
        let scales = match it.scales().filter(|_| kind.scaled.is_some()) {
            Some([a, b]) => Some([self.scales(kind, a)?, self.scales(kind, b)?]),
            None => None,
        };
        let columns = right.extents[0];
        let depth = usize::try_from(kind.k).map_err(|_| error())?;
        let blocks = usize::try_from(kind.blocks).map_err(|_| error())?;
        let columns = columns * blocks;
        let rows = [128, i64::try_from(columns).map_err(|_| error())?];
        let step = 16 * blocks;
        let fits = columns % step == 0 && (step..=256).contains(&columns) && right.extents[1] == depth;
        if blocks > self.kernel.cluster_blocks().try_into().map_err(|_| error())? {
            return Err(error());
        }
        let needed = intrin::operand_types(it.intrinsic);
        let buffers = match &scales {
            Some([a, b]) => vec![sum, left.buffer, a.buffer, right.buffer, b.buffer],
            None => vec![sum, left.buffer, right.buffer],
        };
        let types: Vec<_> = buffers.iter().map(|it| self.buffers[*it].dtype).collect();
        if !fits || left.extents != [128, depth] || it.place.extents != rows || needed != types {
            return Err(error());
        }
        let starts = it.starts.as_ref().map(|it| self.conditions(it)).transpose()?;
        let multiply: fn(f64, f64) -> f64 = match kind.product() {
            BinaryOp::DotE2m1x2 => number::dot_e2m1x2,
            _ => |a, b| a * b,
        };
        Ok(Tcgen05Code { sum, column, columns, blocks, left, right, multiply, scales, starts })
    }

    fn scales(&mut self, kind: ProductKind, it: &Tile) -> Result<ScalesCode, VgpuError> {
        let Elements { buffer, index: column, .. } = self.columns(&it.first)?;
        Ok(ScalesCode {
            buffer,
            column,
            of_row: usize::try_from(kind.scales_of_row()).expect("a product reads a few of each row"),
        })
    }

    /// A copy of scales to tensor memory.
    fn tensor_copy(&mut self, it: &Tcgen05) -> Result<TensorCopyCode, VgpuError> {
        let (kernel, intrinsic) = (self.kernel.name.clone(), it.intrinsic.name);
        let error = || VgpuError::Tensor { kernel: kernel.clone(), intrinsic };
        let (Instruction::TensorCopy, [from]) = (it.intrinsic.instruction, it.operands.as_slice()) else {
            return Err(error());
        };
        let Elements { buffer: to, index: column, .. } = self.columns(&it.place.first)?;
        let from = self.tile(from, false)?.ok_or_else(error)?;
        let types = it.intrinsic.types;
        let has_type = |it: usize| types.contains(&self.buffers[it].dtype);
        if from.extents != [32, 16]
            || it.place.extents != [32, 16]
            || ![to, from.buffer].into_iter().all(has_type)
        {
            return Err(error());
        }
        Ok(TensorCopyCode { to, column, from })
    }

    /// Columns of tensor memory: the rows are those of the lanes, or all.
    pub(super) fn columns(&mut self, it: &ir::Access) -> Result<Elements, VgpuError> {
        let kernel = self.kernel.name.clone();
        let buffer = self.found(&it.buffer)?;
        let [_, column] = it.indices.as_slice() else {
            return Err(VgpuError::NotFlat { kernel, buffer: it.buffer.clone() });
        };
        if self.buffers[buffer].space != Space::Tensor {
            return Err(VgpuError::UnknownBuffer { kernel, buffer: it.buffer.clone() });
        }
        Ok(Elements { buffer, index: self.index(column)?, lanes: it.lanes, align: 1, counted: u32::MAX })
    }

    /// Registers of an asynchronous product: any number of them.
    fn registers(&mut self, it: &ir::Access) -> Result<Elements, VgpuError> {
        let (buffer, index) = self.resolve(it)?;
        if self.buffers[buffer].space != Space::Local {
            let (kernel, buffer) = (self.kernel.name.clone(), it.buffer.clone());
            return Err(VgpuError::UnknownBuffer { kernel, buffer });
        }
        Ok(Elements { buffer, index, lanes: it.lanes, align: 1, counted: u32::MAX })
    }

    /// A factor in shared memory; nothing if it is not one.
    fn tile(&mut self, it: &Tile, transposes: bool) -> Result<Option<TileCode>, VgpuError> {
        let (buffer, first) = self.resolve(&it.first)?;
        self.expect_shared(&it.first.buffer, buffer)?;
        let (Some(matrix), [rows, depth]) = (it.matrix, it.extents.as_slice()) else { return Ok(None) };
        let [Ok(rows), Ok(depth)] = [*rows, *depth].map(usize::try_from) else { return Ok(None) };
        let is_known = transposes || matrix.major == ir::Major::K;
        Ok(is_known.then_some(TileCode { buffer, first, matrix, extents: [rows, depth] }))
    }
}

/// The types of the sum and of the factors of a product, from those in its opcode: `.f32.bf16.bf16`.
fn of_types(types: &str) -> Option<(DType, DType)> {
    let dtype = |word: &str| match word {
        "f32" => Some(DType::F32),
        "f16" => Some(DType::F16),
        "bf16" => Some(DType::Bf16),
        "tf32" => Some(DType::Tf32),
        "e4m3" => Some(DType::F8e4m3),
        "e5m2" => Some(DType::F8e5m2),
        "s8" => Some(DType::I8),
        "s32" => Some(DType::I32),
        _ => None,
    };
    let mut words = types.split('.').skip(1);
    Some((dtype(words.next()?)?, dtype(words.next()?)?))
}
