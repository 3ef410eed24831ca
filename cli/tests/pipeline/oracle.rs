//! What a pipelined loop computes, by brute force: each statement of each iteration, in the order of its time.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Access, Block, FACTORS, Kind, MARGIN, Program, Reduce, THREADS, constant};

/// The stage and the order of each component.
pub(crate) type Times = Vec<(i64, i64)>;

/// An element: buffer, the iteration whose own copy of the buffer it is, row, column.
pub(crate) type Element = (usize, Option<i64>, i64, i64);

/// One component in one iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instance {
    pub(crate) trip: i64,
    pub(crate) component: usize,
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
        let place = |it: &Instance| format!("c{} of iteration {}", it.component, it.trip);
        format!("{kind} on B{buffer} from {} to {}", place(first), place(then))
    }
}

/// A program for a number of iterations.
pub(crate) struct Oracle<'a> {
    program: &'a Program,
    trips: i64,
    private: BTreeSet<usize>,
}

/// What an instance does with one element.
struct Touch {
    element: Element,
    write: bool,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(program: &'a Program, trips: i64) -> Oracle<'a> {
        let mut out = Oracle { program, trips, private: BTreeSet::new() };
        let inner = |at: &usize| matches!(program.buffers[*at].kind, Kind::Inner(_));
        out.private = (0..program.buffers.len()).filter(inner).filter(|it| !out.carries(*it)).collect();
        out
    }

    /// Whether an iteration reads of a buffer what it has not written itself.
    pub(crate) fn carries(&self, buffer: usize) -> bool {
        (0..self.trips).any(|trip| {
            let mut written = BTreeSet::new();
            (0..self.program.components.len()).any(|component| {
                self.touches(Instance { trip, component }).into_iter().any(|it| {
                    let carried = it.element.0 == buffer && !it.write && !written.contains(&it.element);
                    if it.write {
                        written.insert(it.element);
                    }
                    carried
                })
            })
        })
    }

    /// All instances in program order.
    fn instances(&self) -> Vec<Instance> {
        let components = 0..self.program.components.len();
        let of_trip = |trip| components.clone().map(move |component| Instance { trip, component });
        (0..self.trips).flat_map(of_trip).collect()
    }

    /// Calls `f` with each run of a block of an instance, and the numbers of its thread and tile element.
    fn runs(&self, it: Instance, f: &mut dyn FnMut(&Block, i64, i64)) {
        let component = &self.program.components[it.component];
        for thread in 0..THREADS {
            for tile in 0..component.tile {
                for block in component.blocks.iter().filter(|block| block.guard.holds(it.trip)) {
                    f(block, thread, tile);
                }
            }
        }
    }

    fn element(&self, access: &Access, trip: i64, thread: i64, tile: i64) -> Option<Element> {
        let row = if access.flip { THREADS - 1 - thread } else { thread };
        let buffer = access.buffer?;
        let copy = self.private.contains(&buffer).then_some(trip);
        Some((buffer, copy, row, access.subscript.at(trip, tile)))
    }

    fn touches(&self, it: Instance) -> Vec<Touch> {
        let mut out = Vec::new();
        self.runs(it, &mut |block, thread, tile| {
            let element = |access: &Access| self.element(access, it.trip, thread, tile);
            let place = element(&block.place).expect("the input is not written");
            if block.reduce == Reduce::Init && it.trip == 0 {
                out.push(Touch { element: place, write: true });
            }
            if block.reduce != Reduce::No {
                out.push(Touch { element: place, write: false });
            }
            let reads = block.reads.iter().filter_map(element);
            out.extend(reads.map(|element| Touch { element, write: false }));
            out.push(Touch { element: place, write: true });
        });
        out
    }

    fn time(times: &Times, it: Instance) -> (i64, i64) {
        let (stage, order) = times[it.component];
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
            if !matches!(it.kind, Kind::Inner(_)) {
                for (row, column) in (0..THREADS).flat_map(|row| (0..size).map(move |it| (row, it))) {
                    memory.insert((at, None, row, column), input(row, column));
                }
            }
        }
        for it in order {
            self.execute(it, &mut memory);
        }
        memory.retain(|it, _| !matches!(self.program.buffers[it.0].kind, Kind::Inner(_)));
        memory
    }

    fn execute(&self, it: Instance, memory: &mut BTreeMap<Element, f64>) {
        self.runs(it, &mut |block, thread, tile| {
            let element = |access: &Access| self.element(access, it.trip, thread, tile);
            let place = element(&block.place).expect("the input is not written");
            if block.reduce == Reduce::Init && it.trip == 0 {
                memory.insert(place, 0.0);
            }
            let load = |memory: &BTreeMap<Element, f64>, access: &Access| match element(access) {
                Some(it) => memory.get(&it).copied().unwrap_or(f64::NAN),
                None => input(
                    if access.flip { THREADS - 1 - thread } else { thread },
                    access.subscript.at(it.trip, tile),
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
        });
    }
}

/// Whether two results are the same, but for what rounding may do.
pub(crate) fn agree(a: &BTreeMap<Element, f64>, b: &BTreeMap<Element, f64>) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * y.abs().max(1.0);
    a.len() == b.len() && a.iter().zip(b).all(|((i, x), (j, y))| i == j && near(*x, *y))
}

/// An element of the input: N(0, 1), the same in every run.
pub(crate) fn input(row: i64, column: i64) -> f64 {
    let mut random = crate::generate::Random(u64::try_from(row * 1000 + column + 1).expect("positive"));
    // Rounded as the input of the tool is, so that both compute from the same numbers.
    ir::number::round(ir::DType::F32, random.normal())
}
