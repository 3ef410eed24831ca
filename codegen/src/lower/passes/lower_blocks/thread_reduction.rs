//! Blocks that threads reduce together.

use std::sync::Arc;

use ir::{
    Access, Alloc, Block, For, ForKind, Index, Instr, Less, Literal, LoopKind, Name, Op, Reducer, Scope,
    Stmt, Store, ThreadAxis, Value, WarpReduce, axis_var, thread_group::group_width,
};

use super::{FuncToKernel, guarded, once_only, scoped::Scoped};
use crate::lower::{LowerError, analysis::thread_reduction::reduces_over};

/// How many lanes a warp has.
const WARP: i64 = ir::intrin::WARP;

/// Threads that reduce together: what each of them brings and has.
struct Group<'a> {
    /// A variable of each thread: its term, then its result.
    own: Name,
    reducer: &'a Reducer,
    identity: Literal,
    /// The axes of threads of the launch, `threadIdx.x` first.
    axes: Vec<Along>,
}

/// An axis of threads, and how many of them in a row reduce together: one if they do not.
#[derive(Clone, Copy)]
struct Along {
    axis: ThreadAxis,
    threads: i64,
    width: i64,
}

impl Along {
    fn is_reduced(self) -> bool {
        self.width > 1
    }

    fn is_whole(self) -> bool {
        self.width == self.threads
    }
}

impl FuncToKernel<'_> {
    /// The axes of threads along which a block is reduced.
    pub(super) fn reduced_axes(block: &Block, at: &Scoped) -> Vec<ThreadAxis> {
        let reduced =
            at.threads.bound.iter().filter(|(var, axis)| axis.is_thread() && reduces_over(block, var));
        reduced.map(|it| it.1).collect()
    }

    /// Whether nothing but a block that threads reduce together is in a loop that is bound.
    pub(super) fn only_reduces_together(body: &Stmt, at: &Scoped) -> bool {
        let blocks = body.blocks();
        let [block] = blocks.as_slice() else { return false };
        let mut is_reduced = !Self::reduced_axes(block, at).is_empty();
        body.walk(&mut |stmt| {
            if let Stmt::Loop(it) = stmt {
                is_reduced |= matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread())
                    && reduces_over(block, &it.var);
            }
        });
        is_reduced
    }

    /// ```text
    /// for t in 0..64 @threadIdx.x            own[0] = A[threadIdx_x]
    ///   block B(vt: reduce 64 = t)           own[0] = warp_reduce_add(own[0], 32)
    ///     init                               if threadIdx_x mod 32 < 1
    ///       B[0] = 0.0f32             ->       warps[threadIdx_x floordiv 32] = own[0]
    ///     B[0] = B[0] + A[vt]                own[0] = threadIdx_x mod 32 < 2 ? warps[threadIdx_x mod 32] : 0.0f32
    ///                                        own[0] = warp_reduce_add(own[0], 2)
    ///                                        if threadIdx_x < 1
    ///                                          B[0] = own[0]
    /// ```
    ///
    /// All threads of the launch take part, those beyond a loop or a condition with the identity: so nobody is waited for in
    /// vain. `at` is the place of the block, and `inner` what holds in it.
    pub(super) fn reduce_together(
        &self,
        block: &Block,
        along: &[ThreadAxis],
        at: &Scoped,
        inner: &Scoped,
    ) -> Vec<Op> {
        let refused = |why| {
            let error = LowerError::ThreadReduction { block: block.name.clone(), why };
            self.refused.borrow_mut().get_or_insert(error);
            vec![]
        };
        if at.threads.is_divergent {
            return refused(
                "not all threads of the kernel come to it: a loop around it is narrower than others on its axis",
            );
        }
        let Some(reducer) = Reducer::of(block) else {
            return refused("it is no sum, product, minimum or maximum");
        };
        let identity = self.func.dtype_of(&reducer.place.buffer).and_then(|it| reducer.op.identity(it));
        let Some(identity) = identity else { return refused("what it combines has no identity") };
        let Some(axes) = self.thread_axes(block, at) else {
            return refused(
                "the threads that have one of its results do not follow each other in a group of 2, 4, 8, 16 or 32",
            );
        };
        let group =
            Group { own: self.new_name(&format!("{}_all", block.name)), reducer: &reducer, identity, axes };
        if !group.is_of_lanes() && group.axes.iter().any(|it| it.is_reduced() && !it.is_whole()) {
            return refused(
                "several threads of an axis have one of its results, and more than a warp reduces to it",
            );
        }
        let own = group.own();
        let conditions: Vec<Less> = at
            .threads
            .pending
            .iter()
            .cloned()
            .chain(block.guards.iter().filter_map(|it| at.condition(it)))
            .collect();
        let term = inner.value(&reducer.term);
        let term = if conditions.is_empty() { term } else { group.or_identity(conditions.clone(), term) };
        let (name, dtype) = (group.own.clone(), identity.dtype);
        let mut ops = vec![
            Op::Alloc(Alloc::new(name, dtype, 1, Scope::Local)),
            Op::Instr(Instr::Store(own.clone(), term), inner.origin.clone()),
        ];
        ops.extend(self.combine(&group, block, inner));

        let place = reducer.place.map_indices(&mut |it| inner.resolve(it));
        let start = match &block.init {
            None => Some(Value::Load(place.clone())),
            Some(Stmt::Store(it)) => Some(inner.value(&Store::clone(it).value)),
            Some(_) => return refused("it starts from more than one value"),
        };
        let start = start.filter(|it| *it != Value::Const(identity));
        let result = Value::Load(own);
        let result = start.map_or(result.clone(), |it| Value::binary(reducer.op, it, result));
        let scope = self.func.buffers[&reducer.place.buffer].scope;
        let firsts = along.iter().filter(|it| scope.is_shared_along(**it));
        let firsts = firsts.filter_map(|it| at.condition(&group.is_first_along(*it)));
        let store = Op::Instr(Instr::Store(place, result), inner.origin.clone());
        let once = once_only(vec![store], &|op| self.missing_axes(op, at));
        ops.extend(guarded(conditions.into_iter().chain(firsts).collect(), once));
        ops
    }

    /// The axes of threads that the kernel is launched with; `None` where threads with one result do not follow each other.
    fn thread_axes(&self, block: &Block, at: &Scoped) -> Option<Vec<Along>> {
        let axes = self.launch.iter().filter(|it| it.0.is_thread());
        let count = |it: &Index| it.as_int().expect("axes of threads have constant extents");
        let width = |axis: ThreadAxis, threads: i64| {
            let bound = at.threads.bound.iter().filter(|it| it.1 == axis && reduces_over(block, &it.0));
            bound.map(|it| group_width(block, &it.0, threads)).next_back().unwrap_or(Some(1))
        };
        let axes = axes.map(|(axis, extent)| (*axis, count(extent))).filter(|it| it.1 > 1);
        axes.map(|(axis, threads)| Some(Along { axis, threads, width: width(axis, threads)? })).collect()
    }

    /// Makes the own value of each thread that of its group.
    fn combine(&self, group: &Group<'_>, block: &Block, inner: &Scoped) -> Vec<Op> {
        let threads = group.threads();
        match u32::try_from(threads).ok().filter(|it| WarpReduce::WIDTHS.contains(it)) {
            _ if threads == 1 => vec![],
            Some(width) if group.follow_each_other() => vec![group.shuffled(width, inner)],
            None if group.follow_each_other() && threads % WARP == 0 => self.by_warps(group, block, inner),
            Some(_) | None => self.through_memory(group, block, inner),
        }
    }

    /// First the lanes of each warp, then what the warps have, which each warp combines for itself.
    fn by_warps(&self, group: &Group<'_>, block: &Block, inner: &Scoped) -> Vec<Op> {
        let warps = group.threads() / WARP;
        // Threads beyond a narrower loop come, too: nothing but the launch is known of them.
        let bounds = self.bounds();
        let number = group.number();
        let (lane, warp) = (number.floor_mod(&Index::int(WARP)), number.floor_div(&Index::int(WARP)));
        let others = || group.axes.iter().filter(|it| !it.is_reduced());
        let shape = others().map(|it| it.threads).chain([warps]).collect();
        let memory = self.exchanged(block, group.identity.dtype, shape);
        let of = |last: &Index| {
            let indices = others().map(|it| Index::var(&axis_var(it.axis))).chain([last.clone()]);
            Access::new(&memory, indices.map(|it| bounds.simplify(&it)).collect())
        };
        let first = Less::new(bounds.simplify(&lane), Index::int(1));
        let store = Op::Instr(Instr::Store(of(&warp), Value::Load(group.own())), inner.origin.clone());
        // Every few lanes read what all warps have, so that the result is there in every lane.
        let width = u32::try_from(warps).expect("a block has at most 32 warps").next_power_of_two();
        let slot = number.floor_mod(&Index::int(width.into()));
        let all = Value::Load(of(&slot));
        let all = if i64::from(width) == warps {
            all
        } else {
            group.or_identity(vec![Less::new(bounds.simplify(&slot), Index::int(warps))], all)
        };
        let mut ops = vec![
            group.shuffled(32, inner),
            Op::If(vec![first], vec![store]),
            Op::Instr(Instr::Store(group.own(), all), inner.origin.clone()),
        ];
        ops.extend((width > 1).then(|| group.shuffled(width, inner)));
        ops
    }

    /// All of them write, and each reads what all have: threads that are no lanes of warps in a row.
    fn through_memory(&self, group: &Group<'_>, block: &Block, inner: &Scoped) -> Vec<Op> {
        let axes: Vec<_> = group.axes.iter().rev().collect();
        let memory = self.exchanged(block, group.identity.dtype, axes.iter().map(|it| it.threads).collect());
        let own = |axis: ThreadAxis| Index::var(&axis_var(axis));
        let mine = Access::new(&memory, axes.iter().map(|it| own(it.axis)).collect());
        let reduced = group.axes.iter().filter(|it| it.is_reduced());
        let loops: Vec<(ThreadAxis, i64, Name)> = reduced
            .map(|it| (it.axis, it.threads, self.new_name(&format!("{}_other", block.name))))
            .collect();
        let var = |axis: ThreadAxis| loops.iter().find(|it| it.0 == axis).map(|it| Index::var(&it.2));
        let theirs = axes.iter().map(|it| var(it.axis).unwrap_or_else(|| own(it.axis))).collect();
        let theirs = Value::Load(Access::new(&memory, theirs));
        let store = |place, value| Op::Instr(Instr::Store(place, value), inner.origin.clone());
        let sum = Value::binary(group.reducer.op, Value::Load(group.own()), theirs);
        let body = loops.iter().fold(vec![store(group.own(), sum)], |body, (_, extent, var)| {
            vec![Op::For(Arc::new(For::new(var.clone(), Index::int(*extent), ForKind::Serial, body)))]
        });
        let mut ops =
            vec![store(mine, Value::Load(group.own())), store(group.own(), Value::Const(group.identity))];
        ops.extend(body);
        ops
    }

    /// Shared memory for what threads tell each other.
    fn exchanged(&self, block: &Block, dtype: ir::DType, shape: Vec<i64>) -> Name {
        let name = self.new_name(&format!("{}_warps", block.name));
        let alloc = Alloc { shape, ..Alloc::new(name.clone(), dtype, 1, Scope::Shared) };
        self.exchanged.borrow_mut().push(Op::Alloc(alloc));
        name
    }

    /// A name that nothing in the program has, nor was given before.
    fn new_name(&self, stem: &str) -> Name {
        let mut given = self.given.borrow_mut();
        let name = Name::nth(stem, |it| self.func.is_taken(it) || given.contains(it));
        given.push(name.clone());
        name
    }
}

impl Group<'_> {
    fn own(&self) -> Access {
        Access::new(&self.own, vec![Index::int(0)])
    }

    fn or_identity(&self, conditions: Vec<Less>, value: Value) -> Value {
        Value::Select(conditions, Arc::new(value), Arc::new(Value::Const(self.identity)))
    }

    /// How many threads there are in it.
    fn threads(&self) -> i64 {
        self.axes.iter().map(|it| it.width).product()
    }

    /// Whether its threads are numbered one after the other.
    fn follow_each_other(&self) -> bool {
        let mut rest = self.axes.iter().skip_while(|it| it.is_whole());
        rest.next();
        rest.all(|it| !it.is_reduced())
    }

    /// Whether its threads are lanes of one warp that follow each other.
    fn is_of_lanes(&self) -> bool {
        self.follow_each_other() && self.threads() <= WARP
    }

    /// The number of a thread in it, where they follow each other.
    fn number(&self) -> Index {
        let mut number = Index::int(0);
        for it in self.axes.iter().filter(|it| it.is_reduced()).rev() {
            number = number * Index::int(it.threads) + Index::var(&axis_var(it.axis));
        }
        number
    }

    /// Whether a thread is the first of its group along an axis.
    fn is_first_along(&self, axis: ThreadAxis) -> Less {
        let place = Index::var(&axis_var(axis));
        let part = self.axes.iter().find(|it| it.axis == axis && !it.is_whole());
        let place = part.map_or(place.clone(), |it| place.floor_mod(&Index::int(it.width)));
        Less::new(place, Index::int(1))
    }

    /// Lanes reduce in groups of so many.
    fn shuffled(&self, width: u32, inner: &Scoped) -> Op {
        let (place, operand) = (self.own(), self.own());
        Op::Instr(
            Instr::WarpReduce(WarpReduce { op: self.reducer.op, width, place, operand }),
            inner.origin.clone(),
        )
    }
}
