//! What the tensor memory accelerator can do: copies of boxes between global and shared memory.

mod again;
mod rewrite;

pub(super) use rewrite::rewrite;

use ir::{
    Access, Block, DType, Feature, Func, Index, Less, Loop, LoopKind, Name, Scope, Stmt, Storage, Swizzle,
    Target, TensorMap, ThreadAxis, Value, arith::Bounds, intrin,
};

use rewrite::{bounds_of, widest};

use crate::lower::{
    analysis::copy_box::{CopyBox, PLACE_BYTES, copy_box, is_bound, part_of},
    passes::{
        choose_mechanisms::{
            cp_async::{Nests, pure_copy},
            question::{Obstacle, Question},
        },
        lower_blocks::kernels::kernels,
    },
};

/// Whether a component of a pipeline is one box, copied unchanged between global and shared memory, that the copy engine can move.
pub(crate) fn judge(question: &Question<'_>) -> Result<String, Obstacle> {
    if let Target::Cuda(arch) = question.target
        && !arch.has(Feature::Tma)
    {
        let reason = format!("{arch} has no TMA, which came with sm_{}", Feature::Tma.least_sm());
        return Err(Obstacle::new(reason, "lower for sm_90 or later, or use `cp_async`"));
    }
    let nest = Nest::of(question)?;
    let spread = nest.inner.iter().find(|it| !matches!(it.kind, LoopKind::Serial | LoopKind::Unrolled));
    if let (Some(it), false) = (spread, question.is_forced) {
        let reason = format!("the loop `{}` deals it to threads or lanes", it.var);
        return Err(Obstacle::new(reason, "leave its loops serial, or force `tma`"));
    }
    let found = nest.copied()?;
    nest.expect_copied_by_one_thread(&found, question.target)?;
    if nest.stores {
        nest.expect_unread(question.target)?;
        nest.expect_any_order()?;
    } else {
        nest.expect_whole(&found)?;
        if !question.is_forced {
            nest.expect_own(question)?;
        }
        nest.expect_counted()?;
        nest.expect_input(question.target)?;
    }
    nest.expect_map(&found)?;
    let sides: Vec<_> = found.extents[0].iter().map(ToString::to_string).collect();
    Ok(format!("one box of {} elements of `{}`", sides.join(" x "), nest.global.buffer))
}

/// A component that is one block that stores one element in a nest of loops.
struct Nest<'a> {
    func: &'a Func,
    around: &'a [&'a Loop],
    /// The loops of the component.
    inner: Vec<&'a Loop>,
    block: &'a Block,
    bounds: Bounds,
    /// What it touches of each memory, over loops.
    shared: Access,
    global: Access,
    /// Where it does not store zeros instead, and where it stores at all: conditions that do not always hold.
    conditions: Vec<Less>,
    guards: Vec<Less>,
    /// Whether it goes to global memory.
    stores: bool,
}

impl<'a> Nest<'a> {
    fn of(question: &'a Question<'_>) -> Result<Nest<'a>, Obstacle> {
        let (func, around) = (question.func, question.around);
        let mut nests = Nests::default();
        nests.collect(&question.component.body);
        let [(loops, block)] = &*nests.out else {
            return Err(Obstacle::new("it has several blocks", SPLIT));
        };
        if block.init.is_some() {
            return Err(Obstacle::new(format!("`{}` reduces", block.name), PLAIN));
        }
        let Stmt::Store(store) = &block.body else {
            return Err(Obstacle::new(format!("`{}` is more than one assignment", block.name), PLAIN));
        };
        let memory = |name: &Name| func.buffers.get(name).map(|it| (it.dtype, it.scope));
        let stores = memory(&store.place.buffer).is_some_and(|it| it.1 == Scope::Global);
        if stores {
            pure_store(&store.place, &store.value, &memory)
        } else {
            pure_copy(&store.place, &store.value, &memory).map(|_| ())
        }
        .map_err(|reason| Obstacle::new(reason, PLAIN))?;
        let own = |name: &Name| block.find_iter(name).map(|it| it.binding.clone());
        let (from, conditions) = match &store.value {
            Value::Select(all, from, _) => (&**from, all.iter().map(|it| it.subst(&own)).collect()),
            from => (from, vec![]),
        };
        let Value::Load(from) = from else { return Err(Obstacle::new("it copies nothing", PLAIN)) };
        let bounds = bounds_of(func, around.iter().chain(loops).copied());
        let resolved = |it: &Access| it.map_indices(&mut |index| bounds.simplify(&index.subst(&own)));
        let (place, from) = (resolved(&store.place), resolved(from));
        let guards = block.guards.iter().filter(|it| bounds.prove(it) != Some(true)).cloned().collect();
        let (shared, global) = if stores { (from, place) } else { (place, from) };
        let inner = loops.clone();
        Ok(Nest { func, around, inner, block, bounds, shared, global, conditions, guards, stores })
    }

    /// The box: first in global memory.
    fn copied(&self) -> Result<CopyBox, Obstacle> {
        let constant = |it: &&Loop| it.extent.as_int().map(|extent| (it.var.clone(), extent));
        let loops: Option<Vec<_>> = self.inner.iter().map(constant).collect();
        let loops = loops.ok_or_else(|| Obstacle::new("its size is not a constant", PLAIN))?;
        let found = copy_box(&loops, [&self.global, &self.shared], &self.bounds);
        let found =
            found.map_err(|reason| Obstacle::new(reason, "copy a tile by loops over its dimensions"))?;
        let strange = |it: &&Less| !is_bound(self.func, it, &self.global, &self.bounds);
        match self.conditions.iter().chain(&self.guards).find(strange) {
            Some(it) => {
                let reason =
                    format!("it copies where `{it}` only, which is no bound of `{}`", self.global.buffer);
                Err(Obstacle::new(reason, "leave the mechanism open"))
            }
            None => Ok(found),
        }
    }

    /// Refuses a box that is another one for each thread. One that is stored may be another for each warp or warpgroup, whose leaders
    /// start them.
    fn expect_copied_by_one_thread(&self, found: &CopyBox, target: &Target) -> Result<(), Obstacle> {
        let axes = self.around.iter().filter_map(|it| match it.kind {
            LoopKind::Bound(axis) if axis.is_thread() => Some((axis, &it.var)),
            _ => None,
        });
        let depends = |var: &Name| found.starts.iter().flatten().any(|it| it.any_var(&|name| name == var));
        for (axis, var) in axes.filter(|it| depends(it.1)) {
            let by_team = self.stores && axis != ThreadAxis::ThreadX && self.has_teams(target);
            if !by_team {
                let change = "copy the tile of the whole block";
                return Err(Obstacle::new(format!("each thread of `{var}` copies a box of its own"), change));
            }
        }
        Ok(())
    }

    /// Whether the threads of the kernel along `threadIdx.x` are a warp or a warpgroup: so many as loops are bound to them, or as
    /// tensorised blocks need where none is.
    fn has_teams(&self, target: &Target) -> bool {
        let Some(kernel) = self.kernel(target) else { return false };
        let mut widths = Vec::new();
        kernel.walk(&mut |stmt| match stmt {
            Stmt::Loop(it) if it.kind == LoopKind::Bound(ThreadAxis::ThreadX) => {
                widths.push(it.extent.as_int());
            }
            _ => {}
        });
        if widths.is_empty() {
            let tensorised = kernel.blocks().into_iter().filter_map(|it| it.attrs.tensorize);
            widths.push(tensorised.map(intrin::Intrinsic::lanes).max());
        }
        let is_team = |it: &Option<i64>| *it == Some(intrin::WARP) || *it == Some(intrin::WARPGROUP);
        widths.windows(2).all(|it| it[0] == it[1]) && widths.first().is_some_and(is_team)
    }

    /// Refuses to write zeros where the block writes nothing, unless nobody sees them: the buffer has room for them, and nobody
    /// else fills it.
    fn expect_whole(&self, found: &CopyBox) -> Result<(), Obstacle> {
        let Some(guard) = self.guards.first() else { return Ok(()) };
        let name = &self.shared.buffer;
        let writes =
            |it: &&Block| it.name != self.block.name && it.writes().iter().any(|it| it.buffer == *name);
        let others = self.func.body.blocks().into_iter().find(|it| writes(&&**it));
        if let Some(other) = others {
            let reason =
                format!("it writes where `{guard}` only, and `{}` writes the rest of `{name}`", other.name);
            return Err(Obstacle::new(reason, OPEN));
        }
        let ends = found.starts[1].iter().zip(&found.extents[1]).map(|(start, side)| start + (side - 1));
        let shape = &self.func.buffers[name].shape;
        let is_room =
            |(end, size): (Index, &Index)| self.bounds.prove(&Less::new(end, size.clone())) == Some(true);
        if ends.zip(shape).all(is_room) {
            return Ok(());
        }
        let reason = format!("it copies where `{guard}` only, and `{name}` has no room for a whole box");
        Err(Obstacle::new(reason, "pad the loops with `pad_einsum`, or leave the mechanism open"))
    }

    /// Refuses a place that others fill, too, or that is used outside of the loop: the box may be a part of it with gaps.
    fn expect_own(&self, question: &Question<'_>) -> Result<(), Obstacle> {
        let name = &self.shared.buffer;
        let here: Vec<&Block> = question.all.iter().flat_map(|it| it.body.blocks()).collect();
        let is_here = |block: &Block| here.iter().any(|it| it.name == block.name);
        let others = self.func.body.blocks().into_iter().filter(|it| it.name != self.block.name);
        for block in others {
            let reads = block.reads().iter().any(|it| it.buffer == *name);
            if block.writes().iter().any(|it| it.buffer == *name) || reads && !is_here(block) {
                let reason = format!("`{}` touches `{name}`, too", block.name);
                return Err(Obstacle::new(reason, OPEN));
            }
        }
        Ok(())
    }

    /// Refuses a loop whose iterations cannot be numbered through all loops around it: the phases of mbarriers are such numbers.
    fn expect_counted(&self) -> Result<(), Obstacle> {
        let is_uniform = |name: &Name| {
            let is_block = |it: &&&Loop| {
                matches!(it.kind, LoopKind::Bound(axis) if !axis.is_thread()) && !it.attrs.repeats_in_block()
            };
            self.func.dims.contains(name) || self.around.iter().filter(is_block).any(|it| it.var == *name)
        };
        let serial = self.around.iter().filter(|it| !matches!(it.kind, LoopKind::Bound(_)));
        let is_odd = |it: &&&Loop| {
            it.extent.any_var(&|name| !is_uniform(name))
                || widest(self.func, &it.extent, &self.bounds).is_none()
        };
        match serial.into_iter().find(is_odd) {
            Some(it) => {
                let reason =
                    format!("the loop `{}` has another number of iterations each time it is run", it.var);
                Err(Obstacle::new(reason, OPEN))
            }
            None => Ok(()),
        }
    }

    /// Refuses a source that threads of the same kernel write: what they wrote is not what the copy engine finds, unless a fence
    /// says so.
    fn expect_input(&self, target: &Target) -> Result<(), Obstacle> {
        let name = &self.global.buffer;
        let writes = |it: &Block| it.writes().iter().any(|it| it.buffer == *name);
        match self.in_kernel(target).into_iter().find(|it| writes(it)) {
            Some(it) => {
                let reason = format!("threads of the same kernel write `{name}`, in block `{}`", it.name);
                Err(Obstacle::new(reason, OPEN))
            }
            None => Ok(()),
        }
    }

    /// Refuses a destination that threads of the same kernel touch: what the copy engine writes is there when the kernel is over.
    fn expect_unread(&self, target: &Target) -> Result<(), Obstacle> {
        let name = &self.global.buffer;
        let touches = |it: &Block| it.any_access(&mut |access, _| access.buffer == *name);
        let others = self.in_kernel(target).into_iter().filter(|it| it.name != self.block.name);
        match others.into_iter().find(|it| touches(it)) {
            Some(it) => {
                let reason = format!("threads of the same kernel touch `{name}`, in block `{}`", it.name);
                Err(Obstacle::new(reason, OPEN))
            }
            None => Ok(()),
        }
    }

    /// Refuses to store an element again with another value: nothing orders a copy and those that the thread has started before, of
    /// which it waits until they have read only.
    fn expect_any_order(&self) -> Result<(), Obstacle> {
        match again::changes_in(self.func, self.around, self.block) {
            Some(it) => {
                let (name, buffer) = (&it.var, &self.global.buffer);
                let reason = format!(
                    "a later iteration of `{name}` may store other values to the same elements of `{buffer}`, and nothing orders the two"
                );
                Err(Obstacle::new(reason, "store each element once, or leave the mechanism open"))
            }
            None => Ok(()),
        }
    }

    /// The blocks of the same kernel.
    fn in_kernel(&self, target: &Target) -> Vec<&'a Block> {
        self.kernel(target).map(Stmt::blocks).into_iter().flatten().collect()
    }

    /// The part of the program that becomes the same kernel.
    fn kernel(&self, target: &Target) -> Option<&'a Stmt> {
        let first = self.around.first().map(|it| &it.var);
        let is_here = |stmt: &Stmt| {
            let mut found = false;
            stmt.walk(&mut |it| found |= matches!(it, Stmt::Loop(it) if Some(&it.var) == first));
            found
        };
        kernels(self.func, target).into_iter().map(|it| it.1).find(|it| is_here(it))
    }

    /// Refuses what a tensor map cannot say.
    fn expect_map(&self, found: &CopyBox) -> Result<(), Obstacle> {
        let (source, place) =
            (&self.func.buffers[&self.global.buffer], &self.func.buffers[&self.shared.buffer]);
        let (name, bytes) = (&self.global.buffer, source.dtype.bytes_i64());
        let rank = source.shape.len();
        if rank > TensorMap::MOST_DIMS {
            let reason =
                format!("`{name}` has {rank} dimensions, and a tensor map at most {}", TensorMap::MOST_DIMS);
            return Err(Obstacle::new(reason, OPEN));
        }
        if !place.layout.align.is_empty() {
            let reason = format!("the rows of `{}` are padded by `storage_align`", self.shared.buffer);
            return Err(Obstacle::new(reason, "swizzle it instead"));
        }
        let strides = Storage::of(source).strides;
        let bounds = Bounds::of_dims(self.func);
        for (at, stride) in strides.iter().enumerate().take(rank.saturating_sub(1)) {
            let rows = stride * bytes;
            if !bounds.divides(TensorMap::UNIT, &rows) {
                let rows = bounds.simplify(&rows);
                let reason = format!(
                    "neighbours in dimension {at} of `{name}` are {rows} bytes apart, and TMA needs multiples of {}",
                    TensorMap::UNIT
                );
                return Err(Obstacle::new(reason, "pad the rows of the tensor, or leave the mechanism open"));
            }
        }
        let row = found.extents[0].last().copied().unwrap_or(1) * bytes;
        if row % TensorMap::UNIT != 0 {
            let reason = format!(
                "the rows of its box have {row} bytes, and TMA copies multiples of {}",
                TensorMap::UNIT
            );
            return Err(Obstacle::new(reason, OPEN));
        }
        let whole = found.extents[0].iter().product::<i64>() * bytes;
        if whole % PLACE_BYTES != 0 {
            let reason = format!(
                "its box has {whole} bytes, and those of the next slot begin at a multiple of {PLACE_BYTES}"
            );
            return Err(Obstacle::new(reason, OPEN));
        }
        if let Some(side) = found.extents[0].iter().find(|it| part_of(**it).is_none()) {
            let reason =
                format!("no parts of 8 rows and more make up the {side} elements of a side of its box");
            return Err(Obstacle::new(reason, OPEN));
        }
        if let Some(Swizzle::Xor(it)) = place.layout.swizzle
            && it.mode().is_none()
        {
            let reason = format!("`{}` has a swizzle that the copy engine has not", self.shared.buffer);
            return Err(Obstacle::new(reason, "swizzle it with the mode `auto`"));
        }
        Ok(())
    }
}

/// Whether an assignment copies from shared to global memory unchanged; why not, if it does not.
fn pure_store(
    place: &Access,
    value: &Value,
    memory: &dyn Fn(&Name) -> Option<(DType, Scope)>,
) -> Result<(), String> {
    let Value::Load(from) = value else { return Err("it computes with what it loads".to_owned()) };
    let (Some((dtype, _)), Some((source, scope))) = (memory(&place.buffer), memory(&from.buffer)) else {
        return Err(format!("`{}` or `{}` is unknown", place.buffer, from.buffer));
    };
    if scope != Scope::Shared {
        return Err(format!(
            "it copies from {} to global memory, and TMA stores from shared",
            scope.as_str()
        ));
    }
    if dtype != source {
        return Err(format!("`{}` has elements of {source}, and `{}` of {dtype}", from.buffer, place.buffer));
    }
    Ok(())
}

const OPEN: &str = "leave the mechanism open";
const PLAIN: &str = "copy with `cache_read` and compute afterwards, or leave the mechanism open";
const SPLIT: &str = "make each block a statement of the loop of its own";
