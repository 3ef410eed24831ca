//! Random steps.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use indexmap::IndexMap;
use ir::{Func, LoopKind, Name, ThreadAxis};
use tilewright_schedule::{
    Number, Step,
    primitive::{
        AddUnitLoop, Annotate, AnnotationValue, Bind, Blockize, CacheRead, CacheWrite, ClusterLaunchControl,
        ComputeAt, ComputeInline, CrossBlockReduction, DecomposePadding, DecomposeReduction, DecomposeScan,
        DoubleBufferScope, Forced, Fuse, Merge, Order, PadEinsum, Padding, Parallel, Persistent, PingPong,
        Rasterize, Reindex, RemoveNoOp, Reorder, Reverse, ReverseComputeAt, ReverseComputeInline, Rfactor,
        RollingScan, RollingUpdate, SetScope, SoftwarePipeline, SoftwarePipelineAcross,
        SoftwarePipelineAsyncStages, SoftwarePipelineOrder, SoftwarePipelineStage, Split, Stages,
        StorageAlign, Swizzle, Tensorize, TransformBlockLayout, TransformLayout, Unroll, Vectorize,
        WarpSpecialize,
    },
};

/// A number from which choices are taken.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        let sides = sides.max(1) as u64;
        let side = self.0 % sides;
        self.0 /= sides;
        usize::try_from(side).unwrap()
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.roll(from.len())].clone()) }
    }
}

/// A step over the names of a program, often a legal one.
pub(crate) fn propose(func: &Func, mut dice: Dice) -> Option<Step> {
    let blocks: Vec<Name> = func.body.blocks().into_iter().map(|it| it.name.clone()).collect();
    let loops: Vec<Name> = func.loops().into_iter().map(|it| it.var.clone()).collect();
    let kind = dice.roll(29);
    let block = dice.pick(&blocks)?;
    let path: Vec<Name> = func.loops_of(&block)?.into_iter().map(|it| it.var.clone()).collect();
    let target = dice.pick(&path)?;
    let fresh = |stem: &str| Name::fresh(stem, |name| func.is_taken(name));
    Some(match kind {
        0..=3 => Step::Split(split(func, &target, &mut dice)),
        4 => {
            let from = path.iter().position(|it| *it == target)?;
            let to = path.len().min(from + 2 + dice.roll(2));
            Step::Fuse(Fuse { loops: path[from..to].to_vec(), into: fresh("f") })
        }
        5..=7 => {
            let mut order = path.clone();
            order.rotate_left(dice.roll(path.len()));
            if dice.roll(2) == 0 {
                order.reverse();
            }
            order.truncate(2 + dice.roll(3));
            Step::Reorder(Reorder { order })
        }
        8 => {
            let axis = dice.pick(&["blockIdx.x", "blockIdx.y", "cluster.x", "threadIdx.x", "threadIdx.y"])?;
            Step::Bind(Bind { target, axis: axis.into() })
        }
        9 => at_once(func, target, &mut dice)?,
        10 => match dice.roll(3) {
            2 => tensorize(path[0].clone(), &mut dice)?,
            0 => Step::Vectorize(Vectorize { target: path.last()?.clone() }),
            _ => unroll(func, target, &mut dice)?,
        },
        11 => on_buffers(func, &mut dice)?,
        12 | 13 => pipeline(func, &loops, &mut dice)?,
        14 => match dice.roll(2) {
            0 => {
                let slots = dice.pick(&[None, Some(3.into())])?;
                Step::DoubleBufferScope(DoubleBufferScope { block, slots })
            }
            _ => Step::Annotate(Annotate {
                target: None,
                block: Some(block),
                key: "note".into(),
                value: AnnotationValue::Text("n".to_owned()),
            }),
        },
        15 | 16 => cache(func, &block, &mut dice)?,
        17 | 18 => moved(func, block, &loops, &mut dice)?,
        19 | 20 => Step::ReverseComputeAt(ReverseComputeAt { block, target: dice.pick(&loops)? }),
        21 => inlined(block, &mut dice),
        22 => Step::Blockize(Blockize { target: path[path.len() - 1 - dice.roll(path.len())].clone() }),
        23 => tiles(func, block, target, &mut dice)?,
        24 => cut_off(block, target, &mut dice),
        25 => in_order_of_iterators(func, block, &mut dice)?,
        26 => scan(target, &mut dice),
        27 => merged(func, block, target, dice.pick(&loops)?, &mut dice),
        _ => Step::Rfactor(Rfactor { target, factor_axis: i64::try_from(dice.roll(2)).ok()? }),
    })
}

/// A producer or a reduction under a loop of those that read the same.
fn moved(func: &Func, block: Name, loops: &[Name], dice: &mut Dice) -> Option<Step> {
    let target = dice.pick(loops)?;
    let reduces = func.find_block(&block)?.iters.iter().any(|it| it.kind == ir::IterKind::Reduce);
    Some(if reduces && dice.roll(2) == 0 {
        Step::RollingUpdate(RollingUpdate { block, target })
    } else {
        Step::ComputeAt(ComputeAt { block, target })
    })
}

/// A block put into those that read it, or into that which it reads.
fn inlined(block: Name, dice: &mut Dice) -> Step {
    match dice.roll(2) {
        0 => Step::ComputeInline(ComputeInline { block }),
        _ => Step::ReverseComputeInline(ReverseComputeInline { block }),
    }
}

/// A scan in tiles, or by a running sum.
fn scan(target: Name, dice: &mut Dice) -> Step {
    match dice.roll(2) {
        0 => Step::RollingScan(RollingScan { target }),
        _ => Step::DecomposeScan(DecomposeScan { target, tile: 4.into() }),
    }
}

/// Two loops in one, or one loop otherwise.
fn merged(func: &Func, block: Name, target: Name, other: Name, dice: &mut Dice) -> Step {
    match dice.roll(6) {
        0 => Step::Reverse(Reverse { target }),
        1 => unit_loop(func, block, target, dice),
        _ => Step::Merge(Merge { into: target.clone(), loops: vec![target, other] }),
    }
}

/// A loop of one iteration around a loop or a block.
fn unit_loop(func: &Func, block: Name, target: Name, dice: &mut Dice) -> Step {
    let into = Name::nth("one", |it| func.is_taken(it));
    Step::AddUnitLoop(match dice.roll(2) {
        0 => AddUnitLoop { target: Some(target), block: None, into },
        _ => AddUnitLoop { target: None, block: Some(block), into },
    })
}

/// A loop without its init, or without its end.
fn cut_off(block: Name, target: Name, dice: &mut Dice) -> Step {
    match dice.roll(2) {
        0 => Step::DecomposeReduction(DecomposeReduction { block, target }),
        _ => Step::RemoveNoOp(RemoveNoOp { target }),
    }
}

/// A step by which iterations run at once.
fn at_once(func: &Func, target: Name, dice: &mut Dice) -> Option<Step> {
    Some(match dice.roll(4) {
        0 => Step::Parallel(Parallel { target }),
        2 => {
            let persistent = func.loops().into_iter().find(|it| it.attrs.persistent.is_some());
            let outer = persistent.map_or_else(|| target.clone(), |it| it.var.clone());
            Step::PingPong(PingPong { target: outer, turns: target, members: 2.into() })
        }
        1 => {
            let of_grid = |it: &&ir::Loop| it.kind == LoopKind::Bound(ThreadAxis::BlockX);
            let bound = func.loops().into_iter().find(of_grid).map(|it| it.var.clone());
            let (target, blocks) = (bound.unwrap_or(target), i64::try_from(1 + dice.roll(5)).ok()?.into());
            match dice.roll(3) {
                0 => Step::Reverse(Reverse { target }),
                1 => Step::ClusterLaunchControl(ClusterLaunchControl { target }),
                _ => Step::Persistent(Persistent { target, blocks }),
            }
        }
        _ => {
            let mechanism = dice.pick(&["semaphore", "atomic"])?.into();
            Step::CrossBlockReduction(CrossBlockReduction { target, mechanism })
        }
    })
}

/// Iterators of a block taken together, and copies in their order.
fn in_order_of_iterators(func: &Func, block: Name, dice: &mut Dice) -> Option<Step> {
    let it = func.find_block(&block)?;
    if dice.roll(2) == 0 {
        let used = it.reads().into_iter().chain(it.writes()).map(|it| it.buffer.clone());
        let (buffer, scope) =
            (dice.pick(&used.collect::<Vec<_>>()), dice.pick(&[None, Some("local".into())])?);
        return Some(Step::Reindex(Reindex { block, buffer, scope, name: None }));
    }
    let mut into: IndexMap<Name, Vec<Name>> = IndexMap::new();
    for iter in &it.iters {
        let group = Name::fresh(dice.pick(&["g", "h"])?, |name| func.is_taken(name));
        if dice.roll(4) > 0 {
            into.entry(group).or_default().push(iter.var.clone());
        }
    }
    if dice.roll(2) == 0 {
        into.reverse();
    }
    Some(Step::TransformBlockLayout(TransformBlockLayout { block, into }))
}

fn split(func: &Func, target: &Name, dice: &mut Dice) -> Split {
    let mut into = IndexMap::new();
    let inferred = dice.roll(3);
    for at in 0..2 + dice.roll(2) {
        let name =
            Name::fresh(&format!("{target}{at}"), |name| func.is_taken(name) || into.contains_key(name));
        let factor = i64::try_from(1 + dice.roll(5)).unwrap();
        into.insert(name, (at != inferred).then_some(Number::Int(factor)));
    }
    Split { target: target.clone(), into, overlap: dice.roll(3) == 0 }
}

/// Padding, parting it again, and the order of tiles.
fn tiles(func: &Func, block: Name, target: Name, dice: &mut Dice) -> Option<Step> {
    Some(match dice.roll(5) {
        0 | 1 => {
            let iters = func.find_block(&block)?.iters.len();
            let padding = (0..iters).map(|_| Number::Int(i64::try_from(1 + dice.roll(5)).unwrap()));
            let padding = Padding::List(padding.collect());
            Step::PadEinsum(PadEinsum { block, padding, reuse: vec![], edge: dice.roll(2) == 0 })
        }
        2 | 3 => Step::DecomposePadding(DecomposePadding { block, target }),
        _ => {
            let ir::Stmt::Loop(inner) = &func.find_loop(&target)?.body else { return None };
            let group = Number::Int(i64::try_from(1 + dice.roll(5)).ok()?);
            let (inner, into) = (inner.var.clone(), Name::fresh("bid", |name| func.is_taken(name)));
            Step::Rasterize(Rasterize { outer: target, inner, group, into })
        }
    })
}

fn unroll(func: &Func, target: Name, dice: &mut Dice) -> Option<Step> {
    let around = func.path_to_loop(&target)?.into_iter().rev().nth(1 + dice.roll(2));
    let serpentine = around.filter(|_| dice.roll(2) == 0).map(|it| it.var.clone());
    Some(Step::Unroll(Unroll { target, serpentine }))
}

fn tensorize(target: Name, dice: &mut Dice) -> Option<Step> {
    let intrin = dice.pick(&["lanes_m16n8", "mma_m16n8k16_f16_f32", "ldmatrix_x1"])?.into();
    Some(Step::Tensorize(Tensorize { target: Some(target), block: None, intrin }))
}

fn on_buffers(func: &Func, dice: &mut Dice) -> Option<Step> {
    let buffer = dice.pick(&func.buffers.keys().cloned().collect::<Vec<_>>())?;
    Some(match dice.roll(4) {
        3 => {
            let mode = dice.pick(&[None, Some("64B".into()), Some("none".into())])?;
            Step::Swizzle(Swizzle { buffer, mode, bits: None, base: None, shift: None })
        }
        1 => {
            let index_map = dice.pick(&[None, Some("(i, k) -> (k floordiv 2, i, k mod 2)".to_owned())])?;
            let order = index_map.is_none().then(|| vec![1, 0]);
            Step::TransformLayout(TransformLayout { buffer, order, index_map })
        }
        0 => Step::SetScope(SetScope {
            buffer,
            scope: dice.pick(&["global", "shared", "shared", "local"])?.into(),
        }),
        _ => Step::StorageAlign(StorageAlign { buffer, axis: -2, factor: 8.into(), offset: 1.into() }),
    })
}

fn cache(func: &Func, block: &Name, dice: &mut Dice) -> Option<Step> {
    let scope: Name = dice.pick(&["shared", "local"])?.into();
    let buffers: Vec<Name> = func.find_block(block)?.reads().iter().map(|it| it.buffer.clone()).collect();
    Some(match dice.pick(&buffers) {
        Some(buffer) if dice.roll(3) > 0 => {
            let block = block.clone();
            Step::CacheRead(CacheRead { block, buffer, scope, readers: None, name: None })
        }
        Some(_) | None => Step::CacheWrite(CacheWrite { block: block.clone(), scope, name: None }),
    })
}

/// A pipeline that goes on through the iterations of the loop around it.
fn across(func: &Func, loops: &[Name]) -> Option<Step> {
    let pipelined = loops.iter().find(|it| func.find_loop(it).is_some_and(ir::pipeline::is_pipeline))?;
    let outer = func.path_to_loop(pipelined)?.iter().rev().nth(1)?.var.clone();
    Some(Step::SoftwarePipelineAcross(SoftwarePipelineAcross { target: pipelined.clone(), outer }))
}

/// One of the annotations of a loop with several statements.
fn pipeline(func: &Func, loops: &[Name], dice: &mut Dice) -> Option<Step> {
    if let (0, Some(step)) = (dice.roll(3), across(func, loops)) {
        return Some(step);
    }
    let bodies = loops.iter().filter_map(|name| {
        let ir::Stmt::Seq(stmts) = &func.find_loop(name)?.body else { return None };
        Some((name.clone(), stmts.len()))
    });
    let (target, count) = dice.pick(&bodies.collect::<Vec<_>>())?;
    let place = |at: usize| i64::try_from(at).unwrap();
    if dice.roll(6) == 0 {
        let choice = dice.pick(&[None, Some(1.into())])?;
        return Some(Step::SoftwarePipeline(SoftwarePipeline { target, choice, slots: None }));
    }
    if dice.roll(6) == 0 {
        return roles(func, &target, dice);
    }
    if dice.roll(4) == 0 {
        let mechanism = dice.pick(&[None, Some(Forced::All("cp_async".into()))])?;
        let stages = vec![place(dice.roll(3)).into()];
        return Some(Step::SoftwarePipelineAsyncStages(SoftwarePipelineAsyncStages {
            blocks: vec![],
            target,
            stages,
            mechanism,
        }));
    }
    if dice.roll(2) == 0 {
        let stages = (0..count).map(|_| place(dice.roll(3)).into()).collect();
        return Some(Step::SoftwarePipelineStage(SoftwarePipelineStage {
            target,
            stages: Stages::List(stages),
            style: None,
            benign: vec![],
        }));
    }
    let mut order: Vec<i64> = (0..count).map(place).collect();
    order.rotate_left(dice.roll(count));
    Some(Step::SoftwarePipelineOrder(SoftwarePipelineOrder { target, order: Order::List(order) }))
}

/// A role of its own for one of the blocks of a pipeline.
fn roles(func: &Func, ring: &Name, dice: &mut Dice) -> Option<Step> {
    let inside: Vec<Name> = func.find_loop(ring)?.body.blocks().iter().map(|it| it.name.clone()).collect();
    let target = func.path_to_loop(ring)?.first()?.var.clone();
    let registers = dice.pick(&[24, 40]).filter(|_| dice.roll(2) == 0).map(|number| {
        [("load", number), ("compute", 232)].map(|(role, it)| (Name::new(role), Number::Int(it))).into()
    });
    let roles = [(Name::new("load"), vec![dice.pick(&inside)?])].into();
    Some(Step::WarpSpecialize(WarpSpecialize { target, roles, registers }))
}
