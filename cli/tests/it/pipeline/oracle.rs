//! What a pipelined loop computes, by brute force: each statement of each iteration, in the order of its time.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    model::{Access, Block, BufferUse, FACTORS, MARGIN, Program, Reduce, THREADS, constant},
    nested::{Arranged, Piece, arrange},
    random::Asked,
};

/// The stage and the order of each component.
pub(crate) type Times = Vec<(i64, i64)>;

/// An element: buffer, the iteration whose own copy of the buffer it is, row, column.
pub(crate) type Element = (usize, Option<i64>, i64, i64);

/// One component, or part of one, in one iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instance {
    pub(crate) trip: i64,
    /// The number of the piece.
    pub(crate) piece: usize,
}

/// Two instances that touch an element in the wrong order.
#[derive(Clone, Copy)]
pub(crate) struct Violation {
    pub(crate) kind: &'static str,
    pub(crate) first: Instance,
    pub(crate) then: Instance,
    pub(crate) buffer: usize,
}

impl Violation {
    pub(crate) fn text(&self) -> String {
        let Violation { kind, first, then, buffer } = self;
        let place = |it: &Instance| format!("piece {} of iteration {}", it.piece, it.trip);
        format!("{kind} on B{buffer} from {} to {}", place(first), place(then))
    }
}

/// A program for a number of iterations.
pub(crate) struct Oracle<'a> {
    pub(crate) program: &'a Program,
    pub(crate) trips: i64,
    private: BTreeSet<usize>,
    pieces: Vec<Piece>,
    /// The pipelines inside components.
    inner: BTreeMap<usize, Arranged>,
}

/// What an instance does with one element.
pub(crate) struct Touch {
    pub(crate) element: Element,
    pub(crate) write: bool,
}

/// One run of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) component: usize,
    pub(crate) block: usize,
    pub(crate) trip: i64,
    pub(crate) thread: i64,
    pub(crate) tile: i64,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(program: &'a Program, trips: i64) -> Oracle<'a> {
        let pieces = (0..program.components.len()).map(|component| Piece { component, part: None });
        let (private, inner) = (BTreeSet::new(), BTreeMap::new());
        let mut out = Oracle { program, trips, private, pieces: pieces.collect(), inner };
        let inner = |at: &usize| matches!(program.buffers[*at].kind, BufferUse::Inner(_));
        out.private = (0..program.buffers.len()).filter(inner).filter(|it| !out.carries(*it)).collect();
        out
    }

    /// The program with its inner loops pipelined as asked; or why they cannot be.
    pub(crate) fn arranged(program: &'a Program, trips: i64, asked: &Asked) -> Result<Oracle<'a>, Violation> {
        let mut out = Oracle::new(program, trips);
        let mut inner = BTreeMap::new();
        for (component, it) in asked.inner.iter().enumerate() {
            if let Some(it) = it {
                let forced = |buffer: usize| asked.forced_slots(program, component, buffer);
                inner.insert(component, arrange(&out, component, &it.times, &forced)?);
            }
        }
        out.inner = inner;
        out.pieces = asked.pieces();
        Ok(out)
    }

    /// Whether an iteration reads of a buffer what it has not written itself.
    pub(crate) fn carries(&self, buffer: usize) -> bool {
        (0..self.trips).any(|trip| {
            let all = (0..self.pieces.len()).flat_map(|piece| self.touches(Instance { trip, piece }));
            reads_before_writing(all, buffer)
        })
    }

    /// All instances in program order.
    fn instances(&self) -> Vec<Instance> {
        let pieces = 0..self.pieces.len();
        let of_trip = |trip| pieces.clone().map(move |piece| Instance { trip, piece });
        (0..self.trips).flat_map(of_trip).collect()
    }

    fn block(&self, it: Run) -> &Block {
        &self.program.components[it.component].blocks[it.block]
    }

    /// The runs of blocks of an instance.
    fn runs(&self, it: Instance) -> Vec<Run> {
        let Piece { component, part } = self.pieces[it.piece];
        let sequence = match self.inner.get(&component) {
            Some(inner) => inner.sequence(part),
            None => self.program.components[component].sequence(),
        };
        let run = |thread, (tile, block)| Run { component, block, trip: it.trip, thread, tile };
        let all = (0..THREADS).flat_map(|thread| sequence.iter().map(move |it| run(thread, *it)));
        all.filter(|run| self.block(*run).guard.holds(run.trip)).collect()
    }

    fn element(&self, access: &Access, it: Run) -> Option<Element> {
        let row = if access.flip { THREADS - 1 - it.thread } else { it.thread };
        let buffer = access.buffer?;
        let slot = self.inner.get(&it.component).map_or(0, |inner| inner.slot(buffer, it.tile));
        let copy = self.private.contains(&buffer).then_some(it.trip * 64 + slot);
        Some((buffer, copy, row, access.subscript.at(it.trip, it.tile)))
    }

    fn touches(&self, it: Instance) -> Vec<Touch> {
        self.runs(it).into_iter().flat_map(|it| self.touches_of(it)).collect()
    }

    pub(crate) fn touches_of(&self, it: Run) -> Vec<Touch> {
        let block = self.block(it);
        let element = |access: &Access| self.element(access, it);
        let place = element(&block.place).expect("the input is not written");
        let mut out = Vec::new();
        if block.reduce == Reduce::Init && it.trip == 0 {
            out.push(Touch { element: place, write: true });
        }
        if block.reduce != Reduce::No {
            out.push(Touch { element: place, write: false });
        }
        let reads = block.reads.iter().filter_map(element);
        out.extend(reads.map(|element| Touch { element, write: false }));
        out.push(Touch { element: place, write: true });
        out
    }

    fn time(times: &Times, it: Instance) -> (i64, i64) {
        let (stage, order) = times[it.piece];
        (it.trip + stage, order)
    }

    /// Two accesses to one element, one of them a write, whose order the annotation turns around; none if it is legal.
    pub(crate) fn violation(&self, times: &Times) -> Option<Violation> {
        let mut seen: BTreeMap<Element, Vec<(Instance, bool)>> = BTreeMap::new();
        for then in self.instances() {
            for touch in self.touches(then) {
                let before = seen.entry(touch.element).or_default();
                for (first, wrote) in before.iter().copied() {
                    let kind = match (wrote, touch.write) {
                        (true, true) => "WAW",
                        (true, false) => "RAW",
                        (false, true) => "WAR",
                        (false, false) => continue,
                    };
                    if first != then && Self::time(times, first) >= Self::time(times, then) {
                        return Some(Violation { kind, first, then, buffer: touch.element.0 });
                    }
                }
                before.push((then, touch.write));
            }
        }
        None
    }

    /// What outputs and carried temporaries hold after the loop ran sequentially, or at the given times.
    ///
    /// NaN is what nothing wrote.
    pub(crate) fn result(&self, times: Option<&Times>) -> BTreeMap<Element, f64> {
        let mut order = self.instances();
        if let Some(times) = times {
            order.sort_by_key(|it| Self::time(times, *it));
        }
        let mut memory = BTreeMap::new();
        for (at, it) in self.program.buffers.iter().enumerate() {
            let size = if it.long { 3 * self.trips + MARGIN } else { MARGIN };
            if !matches!(it.kind, BufferUse::Inner(_)) {
                for (row, column) in (0..THREADS).flat_map(|row| (0..size).map(move |it| (row, it))) {
                    memory.insert((at, None, row, column), input(row, column));
                }
            }
        }
        for it in order.into_iter().flat_map(|it| self.runs(it)) {
            self.execute(it, &mut memory);
        }
        memory.retain(|it, _| !matches!(self.program.buffers[it.0].kind, BufferUse::Inner(_)));
        memory
    }

    fn execute(&self, it: Run, memory: &mut BTreeMap<Element, f64>) {
        let block = self.block(it);
        let place = self.element(&block.place, it).expect("the input is not written");
        if block.reduce == Reduce::Init && it.trip == 0 {
            memory.insert(place, 0.0);
        }
        let load = |memory: &BTreeMap<Element, f64>, access: &Access| match self.element(access, it) {
            Some(it) => memory.get(&it).copied().unwrap_or(f64::NAN),
            None => input(
                if access.flip { THREADS - 1 - it.thread } else { it.thread },
                access.subscript.at(it.trip, it.tile),
            ),
        };
        let value = if block.copies {
            load(memory, &block.reads[0])
        } else {
            let terms = block.reads.iter().zip(FACTORS).map(|(read, factor)| load(memory, read) * factor);
            terms.sum::<f64>() + constant(it.component)
        };
        let before = memory.get(&place).copied().unwrap_or(f64::NAN);
        memory.insert(place, if block.reduce == Reduce::No { value } else { before + value });
    }
}

/// Whether something is read of a buffer that was not written before.
pub(crate) fn reads_before_writing(touches: impl IntoIterator<Item = Touch>, buffer: usize) -> bool {
    let mut written = BTreeSet::new();
    touches.into_iter().any(|it| {
        let carried = it.element.0 == buffer && !it.write && !written.contains(&it.element);
        if it.write {
            written.insert(it.element);
        }
        carried
    })
}

/// Whether two results are the same, but for what rounding may do.
pub(crate) fn agree(a: &BTreeMap<Element, f64>, b: &BTreeMap<Element, f64>) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * y.abs().max(1.0);
    a.len() == b.len() && a.iter().zip(b).all(|((i, x), (j, y))| i == j && near(*x, *y))
}

/// An element of the input: N(0, 1), the same in every run.
pub(crate) fn input(row: i64, column: i64) -> f64 {
    let mut random = super::generate::Random(u64::try_from(row * 1000 + column + 1).expect("positive"));
    // Rounded as the input of the tool is, so that both compute from the same numbers.
    ir::number::round(ir::DType::F32, random.normal())
}
